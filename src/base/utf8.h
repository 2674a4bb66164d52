/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Printing names that others chose: comms, cgroups, containers, files, symbols. They may hold any
 * byte but NUL. All text, CSV and JSON output and all log lines print them with these functions.
 *
 * Characters that control a terminal or the direction of text, invisible ones, and invalid UTF-8
 * bytes are printed as \xNN, byte by byte. Backslashes, which systemd uses in names, stay.
 */
#ifndef IBSCOPE_UTF8_H
#define IBSCOPE_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the character at @s, 0 if it is not valid UTF-8. @s ends with a NUL. */
size_t utf8_len(const char *s);

/* Columns that the character at @s takes on a terminal: 0 to 2. */
unsigned int utf8_width(const char *s);

/* Print @text within a line. Return: the characters written. */
size_t utf8_put(FILE *f, const char *text);

/**
 * utf8_escape() - write the output of utf8_put() to a buffer
 * @size: of @out; text that does not fit is cut after a whole character
 *
 * Idempotent.
 *
 * Return: the bytes written, without the NUL.
 */
size_t utf8_escape(char *out, size_t size, const char *text);

/* Print @text in XML or HTML, in an element or between double quotes. */
void utf8_put_markup(FILE *f, const char *text);

/*
 * Print a CSV cell, quoted if needed. A spreadsheet would evaluate a cell that begins with =, +, -
 * or @, so such a cell is prefixed with ' unless it is a plain number.
 */
void utf8_put_csv(FILE *f, const char *text);

/*
 * Print a JSON string with its quotes. Characters that utf8_put() escapes are written as \uNNNN,
 * which readers convert back; bytes that are not valid UTF-8 become '?'.
 */
void utf8_put_json(FILE *f, const char *text);

#endif
