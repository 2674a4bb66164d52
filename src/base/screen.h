/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capabilities of the output's destination, and the number and name formats of all views. */
#ifndef IBSCOPE_SCREEN_H
#define IBSCOPE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SCREEN_MIN_WIDTH 60
#define SCREEN_MAX_WIDTH 300

struct screen {
	unsigned int width;  /* columns, SCREEN_MIN_WIDTH to SCREEN_MAX_WIDTH */
	unsigned int height; /* lines; 0: not a terminal */
	bool color, utf8;
};

/*
 * screen_of() - get the properties of the terminal @f; for other files COLUMNS, default 100
 *
 * Colour only on terminals without NO_COLOR. UTF-8 unless the locale says otherwise.
 */
void screen_of(FILE *f, struct screen *out);

/* Number formats. All write at most @size bytes including the NUL; NAN prints as a dash. */

/* "12,402" */
void screen_count(const struct screen *s, double v, char *buf, size_t size);
/* "41.0%"; "0%" only for zero, "<0.1%" for what rounds to it. @ratio: 0 to 1 */
void screen_percent(const struct screen *s, double ratio, char *buf, size_t size);

/* "3.1" */
void screen_ratio(const struct screen *s, double v, char *buf, size_t size); /* 1.25 */
void screen_mean(const struct screen *s, double v, char *buf, size_t size);

/* One unit for a whole column: 'G' for a largest value from 1e9 on, ' ' below 1e3. */
char screen_unit(double largest);
/* "1.92 G" in that unit; "<0.01 G" for what rounds to zero */
void screen_scaled(const struct screen *s, double v, char unit, char *buf, size_t size);

/* Break a text at blanks: its first line continues the current one, @indent columns wide, the others are indented. */
void screen_wrap(FILE *f, const char *text, unsigned int indent, unsigned int width);

/* Columns of a printable UTF-8 text: its number of characters. */
size_t screen_columns(const char *text);

/* Between the name of an inlined function and that of the one that it was inlined into, behind which is ")". */
#define SCREEN_INLINED " (inlined into "

/* Between the functions of a call chain. */
#define SCREEN_FRAME ";"

/**
 * screen_shorten() - shorten names in the middle so that they fit and remain distinct
 * @names:  printable, @n of them; equal names stay equal
 * @width:  at least 8
 * @out:    gets a string each, which the caller frees
 *
 * Keeps the last part of a path, and where names differ only in what would be cut, that. Arguments of templates are cut
 * before anything else: "vector<…>::push_back". Before those, SCREEN_INLINED becomes " (in ". Of a call chain it keeps
 * the innermost functions, whole if they fit.
 */
void screen_shorten(const struct screen *s, const char *const *names, size_t n, unsigned int width,
		    char **out);

/*
 * False for a word that would mean something else to another command: an escaped name, which no option finds, or "-",
 * since standard input can be read only once.
 */
bool screen_is_repeatable(const char *word);

/**
 * screen_next() - on a terminal, print a line with a command of ibscope that shows more
 * @...: its words, which are quoted for a shell, and NULL; empty ones are left out
 *
 * Prints nothing if a word is not repeatable.
 */
void screen_next(FILE *f, const struct screen *s, ...) __attribute__((sentinel));

#endif
