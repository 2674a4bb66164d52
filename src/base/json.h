/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text for jansson, which rejects invalid UTF-8; command lines and paths may hold any bytes. */
#ifndef IBSCOPE_JSON_H
#define IBSCOPE_JSON_H

#include "std.h"

#include <jansson.h>
#include <math.h>

/* A JSON string; if @text is not valid UTF-8, each byte above 127 becomes '?'. */
static inline json_t *json_text(const char *text)
{
	json_t *j = json_string(text);
	char *copy;

	if (j)
		return j;
	copy = xstrdup(text);
	for (char *p = copy; *p; p++)
		if (*p & 0x80)
			*p = '?';
	j = json_string(copy);
	free(copy);
	return j;
}

/* NAN becomes null; whole numbers have no decimal point. */
static inline json_t *json_number(double v)
{
	bool whole = v >= 0 && v < 9e15 && v == floor(v);

	return isnan(v) ? json_null() : whole ? json_integer((json_int_t)v) : json_real(v);
}

static inline int json_put_ascii_(const char *text, size_t n, void *f)
{
	for (size_t i = 0; i < n; i++)
		if ((text[i] == 0x7f ? fputs("\\u007f", f) : putc(text[i], f)) == EOF)
			return -1;
	return 0;
}

/* Print @j in printable ASCII: JSON_ENSURE_ASCII keeps DEL, which terminals may act upon. */
static inline int json_put_ascii(FILE *f, const json_t *j, size_t flags)
{
	return json_dump_callback(j, json_put_ascii_, f, flags | JSON_ENSURE_ASCII);
}

#endif
