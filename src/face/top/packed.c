// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "packed.h"
#include "base/std.h"

#define MAX_BYTES 10 /* of a number */

static unsigned char *put(unsigned char *to, __u64 v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = v | 0x80;
	*to++ = v;
	return to;
}

void pack_put(struct packed *b, __u64 v)
{
	array_reserve(b->data, b->room, b->n + MAX_BYTES);
	b->n = put(b->data + b->n, v) - b->data;
}

__u64 pack_get(const unsigned char **p)
{
	__u64 v = 0;

	for (int shift = 0;; shift += 7) {
		unsigned char c = *(*p)++;

		v |= (__u64)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return v;
	}
}

void pack_put_bytes(struct packed *b, const void *data, size_t n)
{
	array_reserve(b->data, b->room, b->n + n);
	memcpy(b->data + b->n, data, n);
	b->n += n;
}

/* All but op, source and buckets. */
static const size_t fields[] = {
	offsetof(struct series, samples),   offsetof(struct series, valid),
	offsetof(struct series, sum),	    offsetof(struct series, ops),
	offsetof(struct series, cycles),    offsetof(struct series, open_n),
	offsetof(struct series, open),	    offsetof(struct series, state_n),
	offsetof(struct series, hitm),	    offsetof(struct series, exposed),
	offsetof(struct series, exposed_n),
};
#define FIELDS ARRAY_SIZE(fields)

static __u64 *field(const struct series *s, size_t i)
{
	return (__u64 *)((char *)s + fields[i]);
}

void pack_put_series(struct packed *b, const struct series *s)
{
	unsigned char *to, used[IBS_LAT_BUCKETS];
	unsigned int n = 0, last = 0;

	array_reserve(b->data, b->room, b->n + (3 + FIELDS + 2 * IBS_LAT_BUCKETS) * MAX_BYTES);
	to = put(put(b->data + b->n, s->op), s->src);
	for (size_t i = 0; i < FIELDS; i++)
		to = put(to, *field(s, i));
	/* which are not 0 cannot be guessed: no branch for each */
	for (unsigned int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++) {
		used[n] = i;
		n += s->buckets[i] > 0;
	}
	to = put(to, n);
	for (unsigned int i = 0; i < n; i++) {
		to = put(put(to, used[i] - last), s->buckets[used[i]]);
		last = used[i];
	}
	b->n = to - b->data;
}

void pack_get_series(const unsigned char **p, struct series *s)
{
	unsigned int n, at = 0;

	*s = (struct series){ .op = pack_get(p), .src = pack_get(p) };
	for (size_t i = 0; i < FIELDS; i++)
		*field(s, i) = pack_get(p);
	n = pack_get(p);
	if (n)
		s->buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	for (; n; n--) {
		at += pack_get(p);
		s->buckets[at] = pack_get(p);
	}
}

void pack_subtract_series(const unsigned char **p, struct series *s)
{
	unsigned int at = 0;

	pack_get(p); /* op and source */
	pack_get(p);
	for (size_t i = 0; i < FIELDS; i++)
		*field(s, i) -= pack_get(p);
	for (unsigned int n = pack_get(p); n; n--) {
		__u64 count;

		at += pack_get(p);
		count = pack_get(p);
		if (s->buckets)
			s->buckets[at] -= count;
	}
}

void pack_put_length(struct packed *b, size_t from)
{
	unsigned char length[MAX_BYTES];
	size_t n = b->n - from, bytes = put(length, n) - length;

	array_reserve(b->data, b->room, b->n + bytes);
	memmove(b->data + from + bytes, b->data + from, n);
	memcpy(b->data + from, length, bytes);
	b->n += bytes;
}
