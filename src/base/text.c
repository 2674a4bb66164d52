// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static size_t print_at(char *buf, size_t size, size_t at, const char *fmt, va_list ap)
{
	return at + vsnprintf(at < size ? buf + at : NULL, at < size ? size - at : 0, fmt, ap);
}

size_t text_at(char *buf, size_t size, size_t at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	at = print_at(buf, size, at, fmt, ap);
	va_end(ap);
	return at;
}

void text_append(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_at(buf, size, strnlen(buf, size), fmt, ap);
	va_end(ap);
}

const char *text_plural(unsigned long long n)
{
	return n == 1 ? "" : "s";
}

const char *text_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *text_count(char buf[TEXT_COUNT_SIZE], unsigned long long n)
{
	char *at = &buf[TEXT_COUNT_SIZE - 1];
	unsigned int digits = 0;

	*at = 0;
	do {
		if (digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + n % 10);
		digits++;
		n /= 10;
	} while (n);
	return at;
}

const char *text_time_stamp(char buf[TEXT_TIME_STAMP_SIZE], unsigned long long ns)
{
	const time_t second = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n = strftime(buf, TEXT_TIME_STAMP_SIZE, "%Y%m%dT%H%M%S", gmtime_r(&second, &tm));

	snprintf(buf + n, TEXT_TIME_STAMP_SIZE - n, ".%03uZ", (unsigned int)(ns / 1000000 % 1000));
	return buf;
}

void text_put_word(FILE *f, const char *word)
{
	if (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_-./:@%+=,")]) {
		fputs(word, f);
		return;
	}
	fputc('\'', f);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, f);
	fputc('\'', f);
}
