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
enum { N_FUNCTIONS = 0, TEXT = 2, NAMES = 2, VALUES = 5, FUNCTIONS = 6, WORDS = 8 };

/* Of what is said of a function, behind its start; from 1.20 on, there is a word more before the flags. */
enum { NAME = 0, DEPTHS = 12, FLAGS = 33, MORE = 40, OUTERMOST = 1, SWITCHES = 2 };

#define STEPS_MAX (1U << 16) /* of a list of depths; the longest one of go's compiler has 4,000 */

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
	t.values = word(&t, VALUES + t.has_text);
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
	name = read_at(t, t->functions + more + bytes + NAME, 4);
	if (name >= t->size - t->names)
		return false;
	name += t->names;
	*out = (struct go_function){ t->text + start, end - start, (const char *)t->data + name };
	return *out->name && memchr(out->name, 0, t->size - name);
}

/* The last function that begins at or before an address, if the table is sorted. */
static __u64 function_before(const struct go_table *t, __u64 addr)
{
	const size_t bytes = number(t);
	__u64 lo = 0, hi = t->n;

	while (lo < hi) {
		const __u64 mid = lo + (hi - lo) / 2;

		if (t->text + read_at(t, t->functions + mid * 2 * bytes, bytes) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - 1;
}

/* A number of 7 bits in each byte. Return: false if it does not end in the table. */
static bool read_varint(const struct go_table *t, size_t *at, __u32 *out)
{
	*out = 0;
	for (unsigned int shift = 0; shift < 35 && *at < t->size; shift += 7) {
		const unsigned char byte = t->data[(*at)++];

		*out |= (__u32)(byte & 0x7f) << (shift < 32 ? shift : 31);
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* A list of (change of the depth, bytes of code with it), which ends with a change of 0 that is not the first. */
static bool depth_at(const struct go_table *t, size_t at, __u64 offset, __u32 *out)
{
	__u32 change, bytes, depth = -1;
	__u64 end = 0;

	for (unsigned int i = 0; i < STEPS_MAX; i++) {
		if (!read_varint(t, &at, &change) || (i && !change) || !read_varint(t, &at, &bytes))
			return false;
		depth += change >> 1 ^ -(change & 1);
		end += bytes;
		if (offset < end) {
			*out = depth;
			return depth <= INT32_MAX;
		}
	}
	return false;
}

bool go_table_frame(const struct go_table *t, __u64 addr, struct go_frame *out)
{
	const size_t bytes = number(t);
	const __u64 i = function_before(t, addr), room = t->size - t->functions;
	const unsigned char *said;
	struct go_function f;
	__u64 more;
	__u32 depths;
	bool later;

	if (!go_table_function(t, i, &f) || addr - f.start >= f.size)
		return false;
	more = read_at(t, t->functions + i * 2 * bytes + bytes, bytes);
	if (room - more < bytes + MORE)
		return false;
	said = t->data + t->functions + more + bytes;
	memcpy(&depths, said + DEPTHS, sizeof(depths));
	later = read_at(t, 0, 4) == MAGIC_1_20;
	out->outermost = said[FLAGS + (later ? 4 : 0)] & OUTERMOST;
	out->switches = said[FLAGS + (later ? 4 : 0)] & SWITCHES;
	/* 0: there is no list */
	return depths && t->values < t->size && depths < t->size - t->values &&
	       depth_at(t, t->values + depths, addr - f.start, &out->depth);
}
