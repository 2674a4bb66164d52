// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "json_writer.h"

#include "num.h"
#include "utf8.h"

#include <math.h>

#define EXACT_DIGITS 17

static void new_line(const struct json_writer *w)
{
	if (w->indent)
		fprintf(w->f, "\n%*s", (int)(w->indent * w->depth), "");
}

/* What precedes a value: a comma, and its name. */
static void begin_value(struct json_writer *w, const char *key)
{
	if (w->any)
		putc_unlocked(',', w->f);
	if (w->line_break)
		putc_unlocked('\n', w->f);
	else if (w->depth)
		new_line(w);
	w->any = true;
	w->line_break = false;
	if (!key)
		return;
	putc_unlocked('"', w->f);
	fputs_unlocked(key, w->f);
	fputs_unlocked(w->indent ? "\": " : "\":", w->f);
}

static void begin(struct json_writer *w, const char *key, const char *brackets)
{
	if (w->depth == JSON_DEPTH_MAX)
		abort();
	begin_value(w, key);
	putc_unlocked(brackets[0], w->f);
	w->close[w->depth++] = brackets[1];
	w->any = false;
}

void json_begin_object(struct json_writer *w, const char *key)
{
	begin(w, key, "{}");
}

void json_begin_array(struct json_writer *w, const char *key)
{
	begin(w, key, "[]");
}

void json_end(struct json_writer *w)
{
	if (!w->depth)
		abort();
	w->depth--;
	if (w->any)
		new_line(w);
	putc_unlocked(w->close[w->depth], w->f);
	w->any = true;
}

void json_finish(struct json_writer *w)
{
	while (w->depth)
		json_end(w);
	putc_unlocked('\n', w->f);
	w->any = false;
}

void json_line_break(struct json_writer *w)
{
	w->line_break = true;
}

void json_put_raw(struct json_writer *w, const char *key, const char *json)
{
	begin_value(w, key);
	fputs_unlocked(json, w->f);
}

void json_put_null(struct json_writer *w, const char *key)
{
	json_put_raw(w, key, "null");
}

void json_put_bool(struct json_writer *w, const char *key, bool v)
{
	json_put_raw(w, key, v ? "true" : "false");
}

void json_put_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text) {
		json_put_null(w, key);
		return;
	}
	begin_value(w, key);
	utf8_put_json(w->f, text);
}

void json_put_text_if_any(struct json_writer *w, const char *key, const char *text)
{
	json_put_text(w, key, text && *text ? text : NULL);
}

void json_put_u64(struct json_writer *w, const char *key, __u64 v)
{
	begin_value(w, key);
	num_put(w->f, v, 10);
}

void json_put_u16s(struct json_writer *w, const char *key, const __u16 *v, unsigned int n)
{
	json_begin_array(w, key);
	for (unsigned int i = 0; i < n; i++)
		json_put_u64(w, NULL, v[i]);
	json_end(w);
}

void json_put_i64(struct json_writer *w, const char *key, __s64 v)
{
	begin_value(w, key);
	if (v < 0)
		putc_unlocked('-', w->f);
	num_put(w->f, v < 0 ? -(__u64)v : (__u64)v, 10);
}

void json_put_known(struct json_writer *w, const char *key, bool known, __u64 v)
{
	if (known)
		json_put_u64(w, key, v);
	else
		json_put_null(w, key);
}

void json_put_hex(struct json_writer *w, const char *key, __u64 v)
{
	begin_value(w, key);
	fputs_unlocked("\"0x", w->f);
	num_put(w->f, v, 16);
	putc_unlocked('"', w->f);
}

void json_put_double(struct json_writer *w, const char *key, double v)
{
	char text[32];

	if (!isfinite(v)) {
		json_put_null(w, key);
		return;
	}
	snprintf(text, sizeof(text), "%.*g", w->precision ?: EXACT_DIGITS, v);
	json_put_raw(w, key, text);
	if (!strpbrk(text, ".e"))
		fputs_unlocked(".0", w->f);
}

void json_put_number(struct json_writer *w, const char *key, double v)
{
	if (v >= 0 && v < 9e15 && v == floor(v))
		json_put_u64(w, key, v);
	else
		json_put_double(w, key, v);
}
