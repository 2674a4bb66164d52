/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What output can look like where it goes, and the number and name formats that all views share. */
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
 * screen_of() - from the terminal that @f is; else from COLUMNS, 100 by default
 *
 * Colour only on terminals, and not if NO_COLOR is set. UTF-8 unless the locale says otherwise.
 */
void screen_of(FILE *f, struct screen *out);

/* All write at most @size bytes with the NUL; NAN is the dash for "unknown". */

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

/* Columns that a printable UTF-8 text takes: its characters. */
size_t screen_columns(const char *text);

/**
 * screen_shorten() - cut names in the middle so that they fit and stay different from each other
 * @names:  printable, @n of them; equal names stay equal
 * @width:  at least 8
 * @out:    gets a string each, which the caller frees
 *
 * The last part of a path stays. Where two names differ only in what would be cut, that is kept
 * instead.
 */
void screen_shorten(const struct screen *s, const char *const *names, size_t n, unsigned int width,
		    char **out);

#endif
