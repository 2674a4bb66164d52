// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_columns.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	__u8 id, transform, other;
} columns[] = {
#define ROW(NAME, id, transform, other, bytes) { id, RECORDING_##transform, other },
	RECORDING_COLUMN_TABLE(ROW)
#undef ROW
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static __u64 zigzag(__u64 v)
{
	return v << 1 ^ -(v >> 63);
}

static __u64 unzigzag(__u64 v)
{
	return v >> 1 ^ -(v & 1);
}

/* The loops over samples are such that the compiler makes vectors of them. */
static void transform(const struct recording_column_head *h, const struct recording_columns *c,
		      __u64 *out)
{
	const __u64 *v = c->v[h->id], *other = c->v[h->other];
	unsigned int n = c->n, i;

	switch (h->transform) {
	case RECORDING_DELTA:
		out[0] = 0;
		for (i = 1; i < n; i++)
			out[i] = zigzag(v[i] - v[i - 1]);
		break;
	case RECORDING_XOR:
		for (i = 0; i < n; i++)
			out[i] = v[i] ^ other[i];
		break;
	case RECORDING_DISTANCE:
		for (i = 0; i < n; i++)
			out[i] = zigzag(v[i] - other[i]);
		break;
	case RECORDING_SIGNED:
		for (i = 0; i < n; i++)
			out[i] = zigzag(v[i]);
		break;
	case RECORDING_XOR_SIGNED:
		for (i = 0; i < n; i++)
			out[i] = zigzag(v[i] ^ other[i]);
		break;
	default:
		memcpy(out, v, n * sizeof(*out));
	}
}

/* The bits that some have, and those that all have. */
struct bits {
	__u64 some, all;
};

static struct bits bits_of(const __u64 *v, unsigned int n)
{
	struct bits b = { 0, ~0ULL };

	for (unsigned int i = 0; i < n; i++) {
		b.some |= v[i];
		b.all &= v[i];
	}
	return b;
}

/* One in four at the least is 0, of some of them. */
static bool looks_sparse(const __u64 *v, unsigned int n)
{
	unsigned int zeros = 0, looked = 0;

	for (unsigned int i = 0; i < n; i += 13, looked++)
		zeros += !v[i];
	return zeros * 4 >= looked;
}

/* Move those that are not 0 to the front, and say in @bits which they were. Return: how many. */
static unsigned int squeeze(__u64 *v, unsigned int n, unsigned char *bits)
{
	unsigned int kept = 0, i, b;

	for (i = 0; i < n; i += 8) {
		unsigned int byte = 0, end = n - i < 8 ? n - i : 8;

		for (b = 0; b < end; b++) {
			__u64 value = v[i + b];

			v[kept] = value;
			kept += value != 0;
			byte |= (value != 0) << b;
		}
		*bits++ = byte;
	}
	return kept;
}

typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef __u32 words4 __attribute__((vector_size(16)));
typedef __u64 pair __attribute__((vector_size(16)));

#define LOW_BYTES(a, b)                                                                     \
	__builtin_shufflevector((bytes16)(a), (bytes16)(b), 0, 16, 1, 17, 2, 18, 3, 19, 4, \
				20, 5, 21, 6, 22, 7, 23)
#define HIGH_BYTES(a, b)                                                                      \
	__builtin_shufflevector((bytes16)(a), (bytes16)(b), 8, 24, 9, 25, 10, 26, 11, 27, 12, \
				28, 13, 29, 14, 30, 15, 31)
#define LOW_WORDS(a, b)	 ((pair)__builtin_shufflevector((words4)(a), (words4)(b), 0, 4, 1, 5))
#define HIGH_WORDS(a, b) ((pair)__builtin_shufflevector((words4)(a), (words4)(b), 2, 6, 3, 7))

/* Byte k of eight values less @base to to[k], side by side. */
static void eight_to_planes(unsigned char *const *to, const __u64 *v, __u64 base)
{
	bytes16 even[2], odd[2], low[2], high[2];
	pair at[4], plane[4];

	memcpy(at, v, sizeof(at));
	for (int i = 0; i < 4; i++)
		at[i] -= base;
	for (int i = 0; i < 2; i++) {
		even[i] = LOW_BYTES(at[2 * i], at[2 * i + 1]);
		odd[i] = HIGH_BYTES(at[2 * i], at[2 * i + 1]);
		low[i] = LOW_BYTES(even[i], odd[i]);
		high[i] = HIGH_BYTES(even[i], odd[i]);
	}
	plane[0] = LOW_WORDS(low[0], low[1]);
	plane[1] = HIGH_WORDS(low[0], low[1]);
	plane[2] = LOW_WORDS(high[0], high[1]);
	plane[3] = HIGH_WORDS(high[0], high[1]);
	for (int k = 0; k < 8; k++)
		memcpy(to[k], (char *)plane + 8 * k, 8);
}

/* Those of @absent are left out. Return: where they end. */
static unsigned char *to_planes(unsigned char *out, const __u64 *v, unsigned int n, __u64 base,
				unsigned int absent)
{
	unsigned char nowhere[8], *to[8];
	unsigned int step[8], i, k;

	for (k = 0; k < 8; k++) {
		step[k] = absent >> k & 1 ? 0 : 8;
		to[k] = step[k] ? out : nowhere;
		out += step[k] ? n : 0;
	}
	for (i = 0; i + 8 <= n; i += 8) {
		eight_to_planes(to, v + i, base);
		for (k = 0; k < 8; k++)
			to[k] += step[k];
	}
	for (; i < n; i++)
		for (k = 0; k < 8; k++) {
			*to[k] = (v[i] - base) >> 8 * k;
			to[k] += step[k] / 8;
		}
	return out;
}

static unsigned char *encode(struct recording_column_head *h, const struct recording_columns *c,
			     unsigned char *out)
{
	__u64 values[RECORDING_BATCH];
	unsigned int n = c->n, k;
	struct bits bits;

	transform(h, c, values);
	if (h->transform != RECORDING_DELTA && looks_sparse(values, n)) {
		h->flags |= RECORDING_SPARSE;
		n = squeeze(values, n, out);
		out += (c->n + 7) / 8;
	}
	bits = bits_of(values, n);
	if (!n)
		bits.all = 0;
	if (h->transform == RECORDING_DELTA) {
		h->base = c->v[h->id][0];
		bits.all = 0;
	} else {
		h->base = bits.all;
	}
	/* what all have is taken off without a borrow */
	bits.some ^= bits.all;
	for (k = 0; k < 8; k++) {
		if (bits.some >> 8 * k & 0xff)
			h->width = k + 1;
		else
			h->absent |= 1 << k;
	}
	out = to_planes(out, values, n, bits.all, h->absent);
	h->absent &= (1 << h->width) - 1;
	return out;
}

size_t recording_columns_encode(const struct recording_columns *c, unsigned char *out)
{
	struct recording_column_head h;
	unsigned char *head = out, *data;

	data = out + (__builtin_popcount(c->present) + 1) * sizeof(h);
	for (unsigned int k = 0; k < COLUMNS; k++) {
		if (!(c->present & 1u << columns[k].id))
			continue;
		h = (struct recording_column_head){ .id = columns[k].id,
						    .transform = columns[k].transform,
						    .other = columns[k].other };
		data = encode(&h, c, data);
		memcpy(head, &h, sizeof(h));
		head += sizeof(h);
	}
	h = (struct recording_column_head){ .id = RECORDING_COLUMNS_END };
	memcpy(head, &h, sizeof(h));
	return data - out;
}

/* Bytes that the column takes, of which there are at most @have; 0: more than that. */
static bool measure(const struct recording_column_head *h, unsigned int n,
		    const unsigned char *in, size_t have, size_t *bytes, unsigned int *kept)
{
	unsigned int planes = h->width;
	size_t map = h->flags & RECORDING_SPARSE ? (n + 7) / 8 : 0;

	if (h->width > sizeof(__u64) || map > have)
		return false;
	for (unsigned int k = 0; k < h->width; k++)
		planes -= h->absent >> k & 1;
	*kept = map ? 0 : n;
	for (size_t i = 0; i < map; i++)
		*kept += __builtin_popcount(in[i]);
	*bytes = map + (size_t)planes * *kept;
	return *kept <= n && *bytes <= have;
}

/* @n values, @kept of them in the planes. */
static void from_planes(__u64 *v, const struct recording_column_head *h, const unsigned char *in,
			unsigned int n, unsigned int kept)
{
	bool sparse = h->flags & RECORDING_SPARSE;
	const unsigned char *map = in;
	unsigned int i, k;

	in += sparse ? (n + 7) / 8 : 0;
	memset(v, 0, n * sizeof(*v));
	for (k = 0; k < h->width; k++) {
		if (h->absent >> k & 1)
			continue;
		for (i = 0; i < kept; i++)
			v[i] |= (__u64)*in++ << 8 * k;
	}
	if (h->transform != RECORDING_DELTA)
		for (i = 0; i < kept; i++)
			v[i] += h->base;
	for (i = n; sparse && i-- > 0;)
		v[i] = map[i / 8] >> i % 8 & 1 ? v[--kept] : 0;
}

static const char *restore(const struct recording_column_head *h, struct recording_columns *c)
{
	__u64 *v = c->v[h->id], last = h->base;
	const __u64 *other = c->v[h->other % RECORDING_COLUMN_N];
	unsigned int i;

	if (h->transform == RECORDING_XOR || h->transform == RECORDING_DISTANCE ||
	    h->transform == RECORDING_XOR_SIGNED)
		if (h->other >= RECORDING_COLUMN_N || !(c->present & 1u << h->other))
			return "a column refers to one that is not before it";
	switch (h->transform) {
	case RECORDING_PLAIN:
		break;
	case RECORDING_DELTA:
		for (i = 0; i < c->n; i++)
			v[i] = last += unzigzag(v[i]);
		break;
	case RECORDING_XOR:
		for (i = 0; i < c->n; i++)
			v[i] ^= other[i];
		break;
	case RECORDING_DISTANCE:
		for (i = 0; i < c->n; i++)
			v[i] = other[i] + unzigzag(v[i]);
		break;
	case RECORDING_SIGNED:
		for (i = 0; i < c->n; i++)
			v[i] = unzigzag(v[i]);
		break;
	case RECORDING_XOR_SIGNED:
		for (i = 0; i < c->n; i++)
			v[i] = other[i] ^ unzigzag(v[i]);
		break;
	default:
		return "a column is encoded in a way that this program does not know";
	}
	return NULL;
}

const char *recording_columns_decode(struct recording_columns *c, unsigned int n,
				     const unsigned char *in, size_t bytes)
{
	struct recording_column_head h;
	const char *wrong;
	size_t heads = 0, at, i;

	c->present = 0;
	c->n = n;
	if (!n || n > RECORDING_BATCH)
		return "it holds no samples, or too many";
	do {
		if (bytes - heads * sizeof(h) < sizeof(h) || heads > 255)
			return "the list of its columns does not end";
		memcpy(&h, in + heads++ * sizeof(h), sizeof(h));
	} while (h.id != RECORDING_COLUMNS_END);

	at = heads * sizeof(h);
	for (i = 0; i + 1 < heads; i++) {
		unsigned int kept;
		size_t takes;

		memcpy(&h, in + i * sizeof(h), sizeof(h));
		if (!measure(&h, n, in + at, bytes - at, &takes, &kept))
			return "a column is longer than its block";
		at += takes;
		if (h.id >= RECORDING_COLUMN_N)
			continue; /* of a newer writer */
		if (c->present & 1u << h.id)
			return "it has a column twice";
		from_planes(c->v[h.id], &h, in + at - takes, n, kept);
		wrong = restore(&h, c);
		if (wrong)
			return wrong;
		c->present |= 1u << h.id;
	}
	return at == bytes ? NULL : "there are bytes behind its last column";
}
