/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that others chose, made fit to be shown: they may hold anything but a NUL. */
#ifndef IBSCOPE_UTF8_H
#define IBSCOPE_UTF8_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the character at @s; 0 if they are none of UTF-8. @s ends with a NUL. */
size_t utf8_len(const char *s);

/**
 * utf8_put() - a name on a terminal or a line of a file
 *
 * Characters that control the terminal or the direction of writing, and bytes that are no UTF-8,
 * are shown as \xNN for each byte.
 *
 * Return: the characters written.
 */
size_t utf8_put(FILE *f, const char *text);
size_t utf8_count(const char *text); /* as many as utf8_put() writes */

/* A field of a CSV file, in quotes where it needs them; controls as in utf8_put(). */
void utf8_put_csv(FILE *f, const char *text);

/* A JSON string with its quotes; '?' stands for a byte that is no UTF-8. */
void utf8_put_json(FILE *f, const char *text);

#endif
