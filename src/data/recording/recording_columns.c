// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_columns.h"

static const struct {
	__u8 id, transform, other;
} columns[] = {
#define ROW(NAME, id, transform, other, bytes) { id, RECORDING_##transform, other },
	RECORDING_COLUMN_TABLE(ROW)
#undef ROW
};
#define COLUMNS (ARRAY_SIZE(columns))

static __u64 zigzag(__u64 v)
{
	return v << 1 ^ -(v >> 63);
}

static __u64 unzigzag(__u64 v)
{
	return v >> 1 ^ -(v & 1);
}

/* Transforms: x = value - other, or value ^ other; then zigzag, or not. */
static const struct shape {
	bool refers, differs, zigzags;
} shapes[RECORDING_TRANSFORM_N] = {
	[RECORDING_DELTA] = { .differs = true, .zigzags = true },
	[RECORDING_XOR] = { .refers = true },
	[RECORDING_DISTANCE] = { .refers = true, .differs = true, .zigzags = true },
	[RECORDING_SIGNED] = { .zigzags = true },
	[RECORDING_XOR_SIGNED] = { .refers = true, .zigzags = true },
};

static const __u64 zeros[RECORDING_BATCH];

/* The compiler can vectorize this loop. Return: @room, or where the values are. */
static const __u64 *transform(const struct recording_column_head *h,
			      const struct recording_columns *c, __u64 *room)
{
	const struct shape s = shapes[h->transform];
	const __u64 *v = c->v[h->id], *other = s.refers ? c->v[h->other] : zeros;
	unsigned int i = 0;

	if (h->transform == RECORDING_PLAIN)
		return v;
	if (h->transform == RECORDING_DELTA) {
		room[i++] = 0;
		other = v - 1;
	}
	for (; i < c->n; i++) {
		__u64 x = s.differs ? v[i] - other[i] : v[i] ^ other[i];

		room[i] = s.zigzags ? zigzag(x) : x;
	}
	return room;
}

/* The bits that some values have, and those that all have; there is a value. */
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

/* The minimum, and in *@some the bits of the differences to it. */
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

/* In a subset of the values, is at least one in four 0? */
static bool looks_sparse(const __u64 *v, unsigned int n)
{
	unsigned int zeros = 0, looked = 0;

	for (unsigned int i = 0; i < n; i += 13, looked++)
		zeros += !v[i];
	return zeros * 4 >= looked;
}

/*
 * Move nonzero values to the front of @to, which may be @v, and mark them in @map.
 * Return: their number.
 */
static unsigned int squeeze(__u64 *to, const __u64 *v, unsigned int n, unsigned char *map)
{
	unsigned int kept = 0;

	memset(map, 0, (n + 7) / 8);
	for (unsigned int i = 0; i < n; i++) {
		__u64 value = v[i];

		to[kept] = value;
		kept += value != 0;
		map[i / 8] |= (value != 0) << i % 8;
	}
	return kept;
}

/* Write the planes that are not in @absent. Return: their end. */
static unsigned char *to_planes(unsigned char *out, const __u64 *v, unsigned int n, __u64 base,
				unsigned int absent)
{
	for (unsigned int k = 0; k < 8; k++) {
		if (absent >> k & 1)
			continue;
		for (unsigned int i = 0; i < n; i++)
			out[i] = (v[i] - base) >> 8 * k;
		out += n;
	}
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
	/* subtracting the bits that all values have needs no borrow */
	base = h->transform == RECORDING_DELTA ? 0 : bits.all;
	bits.some ^= base;
	if (h->transform == RECORDING_DELTA) {
		h->base = c->v[h->id][0];
	} else {
		if (bits.some && h->id < RECORDING_COLUMN_REG0 && !h->flags)
			base = least(v, n, &bits.some); /* such ids often share a range */
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

/* The bytes of a column; 0: more than @have. */
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
	const __u64 *other = zeros;
	__u64 *v = c->v[h->id], last = h->base;
	struct shape s;

	if (h->transform >= RECORDING_TRANSFORM_N)
		return unknown;
	s = shapes[h->transform];
	if (s.refers && (h->other >= RECORDING_COLUMN_N || !(c->present & 1u << h->other)))
		return "a column refers to one that is not before it";
	if (s.refers)
		other = c->v[h->other];
	if (h->transform == RECORDING_DELTA)
		for (unsigned int i = 0; i < c->n; i++)
			v[i] = last += unzigzag(v[i]);
	if (h->transform == RECORDING_DELTA || h->transform == RECORDING_PLAIN)
		return NULL;
	for (unsigned int i = 0; i < c->n; i++) {
		__u64 x = s.zigzags ? unzigzag(v[i]) : v[i];

		v[i] = s.differs ? x + other[i] : x ^ other[i];
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
			continue; /* written by a newer version */
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

bool recording_columns_strata_ok(const struct recording_columns *c, const struct trace_info *info,
				 bool op)
{
	for (unsigned int i = 0; i < c->n; i++) {
		const __u64 event = c->v[RECORDING_COLUMN_STRATUM][i];

		if (event >= info->n_pmus || info->pmu[event].op != op)
			return false;
	}
	return true;
}
