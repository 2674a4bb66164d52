// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A header of words, whose first 8 bytes say which version it is; the names; and an array of (start, place of more)
 * by address, which ends with the end of the code. Places count from the array.
 */
#include "go_table.h"

#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u
#define X86_64	   0x08010000u /* 2 bytes of 0, the unit of addresses, bytes of a pointer */
#define HEAD	   8
#define WORD	   8

/* Words of the header; from 1.18 on, the start of the code is before the names. */
enum { N_FUNCTIONS = 0, TEXT = 2, NAMES = 2, FUNCTIONS = 6, WORDS = 8 };

static __u64 read_at(const struct go_table *t, size_t at, size_t bytes)
{
	__u64 v = 0;

	memcpy(&v, t->data + at, bytes);
	return v;
}

static __u64 word(const struct go_table *t, int i)
{
	return read_at(t, HEAD + (size_t)i * WORD, WORD);
}

/* Bytes of a number in the array; an element has two. */
static size_t number(const struct go_table *t)
{
	return t->has_text ? 4 : 8;
}

bool go_table_open(const void *data, size_t size, struct go_table *out)
{
	struct go_table t = { .data = data, .size = size };
	__u64 magic;

	if (size < HEAD + WORDS * WORD)
		return false;
	magic = read_at(&t, 0, 4);
	if (read_at(&t, 4, 4) != X86_64 ||
	    (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20))
		return false;
	t.has_text = magic != MAGIC_1_16;
	t.n = word(&t, N_FUNCTIONS);
	t.text_at = HEAD + TEXT * WORD;
	t.text = t.has_text ? word(&t, TEXT) : 0;
	t.names = word(&t, NAMES + t.has_text);
	t.functions = word(&t, FUNCTIONS + t.has_text);
	/* of the element behind the last one only the first half is there */
	if (t.names > size || t.functions > size || size - t.functions < number(&t) ||
	    t.n > (size - t.functions - number(&t)) / (2 * number(&t)))
		return false;
	*out = t;
	return true;
}

bool go_table_function(const struct go_table *t, __u64 i, struct go_function *out)
{
	const size_t bytes = number(t), at = t->functions + i * 2 * bytes;
	const __u64 room = t->size - t->functions;
	__u64 start, end, more, name;

	if (i >= t->n)
		return false;
	start = read_at(t, at, bytes);
	more = read_at(t, at + bytes, bytes);
	end = read_at(t, at + 2 * bytes, bytes);
	/* there is the start again, and then the place of the name */
	if (end <= start || more > room || room - more < bytes + 4)
		return false;
	name = read_at(t, t->functions + more + bytes, 4);
	if (name >= t->size - t->names)
		return false;
	name += t->names;
	*out = (struct go_function){ t->text + start, end - start, (const char *)t->data + name };
	return *out->name && memchr(out->name, 0, t->size - name);
}
