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

/*
 * The loops over samples are such that the compiler makes vectors of them. Return: the numbers, in
 * @room or where the values are.
 */
static const __u64 *transform(const struct recording_column_head *h,
			      const struct recording_columns *c, __u64 *room)
{
	const __u64 *v = c->v[h->id], *other = c->v[h->other];
	unsigned int n = c->n, i;

	switch (h->transform) {
	case RECORDING_DELTA:
		room[0] = 0;
		for (i = 1; i < n; i++)
			room[i] = zigzag(v[i] - v[i - 1]);
		return room;
	case RECORDING_XOR:
		for (i = 0; i < n; i++)
			room[i] = v[i] ^ other[i];
		return room;
	case RECORDING_DISTANCE:
		for (i = 0; i < n; i++)
			room[i] = zigzag(v[i] - other[i]);
		return room;
	case RECORDING_SIGNED:
		for (i = 0; i < n; i++)
			room[i] = zigzag(v[i]);
		return room;
	case RECORDING_XOR_SIGNED:
		for (i = 0; i < n; i++)
			room[i] = zigzag(v[i] ^ other[i]);
		return room;
	default:
		return v;
	}
}

/* The bits that some have, and those that all have. */
struct bits {
	__u64 some, all;
};

static struct bits bits_of(const __u64 *v, unsigned int n)
{
	struct bits b = { 0, n ? ~0ULL : 0 };

	for (unsigned int i = 0; i < n; i++) {
		b.some |= v[i];
		b.all &= v[i];
	}
	return b;
}

/* The least, and in *@some the bits of what the others are above it. */
static __u64 least(const __u64 *v, unsigned int n, __u64 *some)
{
	__u64 min = v[0];
	unsigned int i;

	for (i = 1; i < n; i++)
		min = v[i] < min ? v[i] : min;
	for (i = 0, *some = 0; i < n; i++)
		*some |= v[i] - min;
	return min;
}

/* One in four at the least is 0, of some of them. */
static bool looks_sparse(const __u64 *v, unsigned int n)
{
	unsigned int zeros = 0, looked = 0;

	for (unsigned int i = 0; i < n; i += 13, looked++)
		zeros += !v[i];
	return zeros * 4 >= looked;
}

/*
 * Move those that are not 0 to the front of @to, which may be @v, and say in @map which they were.
 * Return: how many.
 */
static unsigned int squeeze(__u64 *to, const __u64 *v, unsigned int n, unsigned char *map)
{
	unsigned int kept = 0, i, b;

	for (i = 0; i + 8 <= n; i += 8) {
		unsigned int byte = 0;

		for (b = 0; b < 8; b++) {
			__u64 value = v[i + b];

			to[kept] = value;
			kept += value != 0;
			byte |= (value != 0) << b;
		}
		*map++ = byte;
	}
	if (i < n)
		*map = 0;
	for (b = 0; i < n; i++, b++) {
		__u64 value = v[i];

		to[kept] = value;
		kept += value != 0;
		*map |= (value != 0) << b;
	}
	return kept;
}

typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef __u32 words4 __attribute__((vector_size(16)));
typedef __u64 pair __attribute__((vector_size(16)));

#define LOW_BYTES(a, b)                                                                           \
	__builtin_shufflevector((bytes16)(a), (bytes16)(b), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, \
				21, 6, 22, 7, 23)
#define HIGH_BYTES(a, b)                                                                          \
	__builtin_shufflevector((bytes16)(a), (bytes16)(b), 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, \
				13, 29, 14, 30, 15, 31)
#define LOW_WORDS(a, b)	 ((pair)__builtin_shufflevector((words4)(a), (words4)(b), 0, 4, 1, 5))
#define HIGH_WORDS(a, b) ((pair)__builtin_shufflevector((words4)(a), (words4)(b), 2, 6, 3, 7))
#define LOWS(a, b)	 __builtin_shufflevector(a, b, 0, 2)
#define HIGHS(a, b)	 __builtin_shufflevector(a, b, 1, 3)

#define ROWS 16

/* Byte k of sixteen values less @base to to[k] + @i, side by side; for k to 3, or if @wide to 7. */
static inline __attribute__((always_inline)) void
rows_to_planes(unsigned char *const *to, const __u64 *v, unsigned int i, __u64 base, bool wide)
{
	bytes16 even, odd, low[4], high[4];
	pair plane[8], words[2], at[8];

	memcpy(at, v + i, sizeof(at));
	for (int k = 0; k < 4; k++) {
		even = LOW_BYTES(at[2 * k] - base, at[2 * k + 1] - base);
		odd = HIGH_BYTES(at[2 * k] - base, at[2 * k + 1] - base);
		low[k] = LOW_BYTES(even, odd);
		high[k] = HIGH_BYTES(even, odd);
	}
	for (int k = 0; k < (wide ? 8 : 4); k += 2) {
		const bytes16 *half = k < 4 ? low : high;

		for (int j = 0; j < 2; j++)
			words[j] = k % 4 ? HIGH_WORDS(half[2 * j], half[2 * j + 1])
					 : LOW_WORDS(half[2 * j], half[2 * j + 1]);
		plane[k] = LOWS(words[0], words[1]);
		plane[k + 1] = HIGHS(words[0], words[1]);
	}
	for (int k = 0; k < (wide ? 8 : 4); k++)
		memcpy(to[k] + i, &plane[k], ROWS);
}

/* Those of @absent are left out. Return: where they end. */
static unsigned char *to_planes(unsigned char *out, const __u64 *v, unsigned int n, __u64 base,
				unsigned int absent)
{
	unsigned char nowhere[RECORDING_BATCH], *to[8];
	unsigned int i = 0, k;

	for (k = 0; k < 8; k++) {
		/* cppcheck-suppress legacyUninitvar; it is only written to */
		to[k] = absent >> k & 1 ? nowhere : out;
		out += absent >> k & 1 ? 0 : n;
	}
	if ((absent & 0xf0) == 0xf0)
		for (; i + ROWS <= n; i += ROWS)
			rows_to_planes(to, v, i, base, false);
	else
		for (; i + ROWS <= n; i += ROWS)
			rows_to_planes(to, v, i, base, true);
	for (; i < n; i++)
		for (k = 0; k < 8; k++)
			to[k][i] = (v[i] - base) >> 8 * k;
	return out;
}

static unsigned char *encode(struct recording_column_head *h, const struct recording_columns *c,
			     unsigned char *out)
{
	__u64 room[RECORDING_BATCH];
	const __u64 *v = transform(h, c, room);
	unsigned int n = c->n, k;
	__u64 base;
	struct bits bits = bits_of(v, n);

	if (h->transform != RECORDING_DELTA && bits.some != bits.all && looks_sparse(v, n)) {
		h->flags |= RECORDING_SPARSE;
		n = squeeze(room, v, n, out);
		v = room;
		out += (c->n + 7) / 8;
		bits = bits_of(v, n);
	}
	/* what all have is taken off without a borrow */
	base = h->transform == RECORDING_DELTA ? 0 : bits.all;
	bits.some ^= base;
	if (h->transform == RECORDING_DELTA) {
		h->base = c->v[h->id][0];
	} else {
		if (bits.some && h->id < RECORDING_COLUMN_REG0 && !h->flags)
			base = least(v, n, &bits.some); /* numbers of a range */
		h->base = base;
	}
	if (!bits.some)
		return out;
	for (k = 0; k < 8; k++) {
		if (bits.some >> 8 * k & 0xff)
			h->width = k + 1;
		else
			h->absent |= 1 << k;
	}
	out = to_planes(out, v, n, base, h->absent);
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
static bool measure(const struct recording_column_head *h, unsigned int n, const unsigned char *in,
		    size_t have, size_t *bytes, unsigned int *kept)
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

static const char unknown[] = "a column is encoded in a way that this program does not know";

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
		return unknown;
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
		if (h.flags & ~RECORDING_SPARSE)
			return unknown;
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
