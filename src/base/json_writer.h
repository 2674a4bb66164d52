/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON, written to a stream member by member. Every function takes the name of the member, which
 * needs no escapes; NULL for an element of an array and for the outermost value. Errors of writing
 * stay in the stream (ferror()).
 */
#ifndef IBSCOPE_JSON_WRITER_H
#define IBSCOPE_JSON_WRITER_H

#include "std.h"

#define JSON_DEPTH_MAX 16 /* objects and arrays in each other */

/* All but @f may be zero. */
struct json_writer {
	FILE *f;
	int precision;	     /* significant digits of doubles; 0: 17, which restore every double */
	unsigned int indent; /* spaces per level; 0: no line breaks */
	/* private */
	unsigned int depth;
	bool any;	 /* the innermost object or array has a member */
	bool line_break; /* before the next value */
	char close[JSON_DEPTH_MAX];
};

void json_begin_object(struct json_writer *w, const char *key);
void json_begin_array(struct json_writer *w, const char *key);

/* End the innermost object or array. */
void json_end(struct json_writer *w);

/* End all objects and arrays, and the line. */
void json_finish(struct json_writer *w);

/* Begin the next value on a new line. */
void json_line_break(struct json_writer *w);

/* Any bytes: see utf8_put_json(). NULL becomes null. */
void json_put_text(struct json_writer *w, const char *key, const char *text);

/* The same, but "" becomes null as well. */
void json_put_text_if_any(struct json_writer *w, const char *key, const char *text);

void json_put_u64(struct json_writer *w, const char *key, __u64 v);

/* An array. */
void json_put_u16s(struct json_writer *w, const char *key, const __u16 *v, unsigned int n);

/* For what jansson reads: its integers are signed, and a cast restores the others. */
void json_put_i64(struct json_writer *w, const char *key, __s64 v);
void json_put_bool(struct json_writer *w, const char *key, bool v);
void json_put_null(struct json_writer *w, const char *key);

/* null unless @known */
void json_put_known(struct json_writer *w, const char *key, bool known, __u64 v);

/* A string, "0x1f": not every reader keeps integers above 2^53. */
void json_put_hex(struct json_writer *w, const char *key, __u64 v);

/* With a decimal point or an exponent; null if not finite. */
void json_put_double(struct json_writer *w, const char *key, double v);

/* The same, but whole numbers from 0 to 9e15 without a decimal point. */
void json_put_number(struct json_writer *w, const char *key, double v);

/* @json: a value that is JSON already */
void json_put_raw(struct json_writer *w, const char *key, const char *json);

#endif
