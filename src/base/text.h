/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text put together in a buffer. */
#ifndef IBSCOPE_TEXT_H
#define IBSCOPE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/**
 * text_at() - snprintf() at an offset into a buffer
 * @at: may be beyond the buffer: then nothing is written
 *
 * Return: the length of the text so far, also of what did not fit.
 */
size_t text_at(char *buf, size_t size, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* snprintf() at the end of the string in a buffer; text that does not fit is cut. */
void text_append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The ending of the plural: "" for 1, else "s". */
const char *text_plural(unsigned long long n);

/* What is behind the last slash, or all of it. */
const char *text_last_part(const char *path);

#define TEXT_COUNT_SIZE 27

/* Digits in groups of three: "1,234,567". */
const char *text_count(char buf[TEXT_COUNT_SIZE], unsigned long long n);

/* The same in a buffer that lives until the end of the block. For people; programs read plain digits. */
#define TEXT_COUNT(n) text_count((char[TEXT_COUNT_SIZE]){ "" }, n)

#define TEXT_TIME_STAMP_SIZE 24

/* A time since 1970 in UTC, as in names of files: "20261128T031200.123Z". */
const char *text_time_stamp(char buf[TEXT_TIME_STAMP_SIZE], unsigned long long ns);

/* Print a word of a command line, quoted if a shell would interpret it. */
void text_put_word(FILE *f, const char *word);

#endif
