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

void pack_put_series(struct packed *b, const struct series *s)
{
	unsigned int n = 0, last = 0;

	pack_put(b, s->op);
	pack_put(b, s->src);
	pack_put(b, s->samples);
	pack_put(b, s->valid);
	pack_put(b, s->sum);
	pack_put(b, s->ops);
	pack_put(b, s->cycles);
	pack_put(b, s->open_n);
	pack_put(b, s->open);
	pack_put(b, s->state_n);
	pack_put(b, s->hitm);
	for (int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++)
		n += s->buckets[i] > 0;
	pack_put(b, n);
	for (int i = 0; n && i < IBS_LAT_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		pack_put(b, i - last);
		pack_put(b, s->buckets[i]);
		last = i;
	}
}

int pack_get_series(const unsigned char **p, struct series *s)
{
	unsigned int n, at = 0;

	*s = (struct series){ .op = pack_get(p), .src = pack_get(p) };
	s->samples = pack_get(p);
	s->valid = pack_get(p);
	s->sum = pack_get(p);
	s->ops = pack_get(p);
	s->cycles = pack_get(p);
	s->open_n = pack_get(p);
	s->open = pack_get(p);
	s->state_n = pack_get(p);
	s->hitm = pack_get(p);
	n = pack_get(p);
	if (n)
		s->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	for (unsigned int i = 0; i < n; i++) {
		__u64 count;

		at += pack_get(p);
		count = pack_get(p);
		if (s->buckets)
			s->buckets[at] = count;
	}
	return n && !s->buckets ? -ENOMEM : 0;
}
