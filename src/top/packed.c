// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "packed.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void pack_put(struct packed *b, __u64 v)
{
	if (b->failed || array_reserve(b->data, b->room, b->n + 10)) {
		b->failed = true;
		return;
	}
	for (; v >= 0x80; v >>= 7)
		b->data[b->n++] = v | 0x80;
	b->data[b->n++] = v;
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
	if (b->failed || array_reserve(b->data, b->room, b->n + n)) {
		b->failed = true;
		return;
	}
	memcpy(b->data + b->n, data, n);
	b->n += n;
}

/* All but op, source and buckets. */
static const size_t fields[] = {
	offsetof(struct series, samples), offsetof(struct series, valid),
	offsetof(struct series, sum),	  offsetof(struct series, ops),
	offsetof(struct series, cycles),  offsetof(struct series, open_n),
	offsetof(struct series, open),	  offsetof(struct series, state_n),
	offsetof(struct series, hitm),
};
#define FIELDS	  (sizeof(fields) / sizeof(fields[0]))
#define MAX_BYTES 10 /* of a number */

static __u64 *field(const struct series *s, size_t i)
{
	return (__u64 *)((char *)s + fields[i]);
}

static unsigned char *put(unsigned char *to, __u64 v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = v | 0x80;
	*to++ = v;
	return to;
}

void pack_put_series(struct packed *b, const struct series *s)
{
	unsigned char *to, used[IBS_LAT_BUCKETS];
	unsigned int n = 0, last = 0;

	if (array_reserve(b->data, b->room,
			  b->n + (3 + FIELDS + 2 * IBS_LAT_BUCKETS) * MAX_BYTES)) {
		b->failed = true;
		return;
	}
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

int pack_get_series(const unsigned char **p, struct series *s)
{
	unsigned int n, at = 0;

	*s = (struct series){ .op = pack_get(p), .src = pack_get(p) };
	for (size_t i = 0; i < FIELDS; i++)
		*field(s, i) = pack_get(p);
	n = pack_get(p);
	if (n)
		s->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	while (n && s->buckets) {
		at += pack_get(p);
		s->buckets[at] = pack_get(p);
		n--;
	}
	return n ? -ENOMEM : 0;
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

	if (b->failed || array_reserve(b->data, b->room, b->n + bytes)) {
		b->failed = true;
		return;
	}
	memmove(b->data + from + bytes, b->data + from, n);
	memcpy(b->data + from, length, bytes);
	b->n += bytes;
}
