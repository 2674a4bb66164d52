// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_columns.h"

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

static void transform(struct recording_column_head *h, const struct recording_columns *c,
		      __u64 *out)
{
	const __u64 *v = c->v[h->id], *other = c->v[h->other];
	unsigned int i;

	switch (h->transform) {
	case RECORDING_DELTA:
		h->base = v[0];
		for (i = 0; i < c->n; i++)
			out[i] = zigzag(v[i] - v[i ? i - 1 : 0]);
		break;
	case RECORDING_XOR:
		for (i = 0; i < c->n; i++)
			out[i] = v[i] ^ other[i];
		break;
	case RECORDING_DISTANCE:
		for (i = 0; i < c->n; i++)
			out[i] = zigzag(v[i] - other[i]);
		break;
	default:
		h->base = v[0];
		for (i = 1; i < c->n; i++)
			h->base = v[i] < h->base ? v[i] : h->base;
		for (i = 0; i < c->n; i++)
			out[i] = v[i] - h->base;
	}
}

static void to_planes(unsigned char *out, const __u64 *v, unsigned int n, unsigned int width)
{
	for (unsigned int b = 0; b < width; b++)
		for (unsigned int i = 0; i < n; i++)
			*out++ = v[i] >> 8 * b;
}

static void from_planes(__u64 *v, const unsigned char *in, unsigned int n, unsigned int width)
{
	memset(v, 0, n * sizeof(*v));
	for (unsigned int b = 0; b < width; b++)
		for (unsigned int i = 0; i < n; i++)
			v[i] |= (__u64)*in++ << 8 * b;
}

size_t recording_columns_encode(const struct recording_columns *c, unsigned char *out)
{
	__u64 values[RECORDING_BATCH], all;
	struct recording_column_head h;
	unsigned char *head = out, *data;
	unsigned int i, k;

	data = out + (__builtin_popcount(c->present) + 1) * sizeof(h);
	for (k = 0; k < COLUMNS; k++) {
		if (!(c->present & 1u << columns[k].id))
			continue;
		h = (struct recording_column_head){ .id = columns[k].id,
						    .transform = columns[k].transform,
						    .other = columns[k].other };
		transform(&h, c, values);
		for (i = 0, all = 0; i < c->n; i++)
			all |= values[i];
		for (; all; all >>= 8)
			h.width++;
		to_planes(data, values, c->n, h.width);
		data += (size_t)h.width * c->n;
		memcpy(head, &h, sizeof(h));
		head += sizeof(h);
	}
	h = (struct recording_column_head){ .id = RECORDING_COLUMNS_END };
	memcpy(head, &h, sizeof(h));
	return data - out;
}

static const char *restore(const struct recording_column_head *h, struct recording_columns *c)
{
	__u64 *v = c->v[h->id], last = h->base;
	const __u64 *other = c->v[h->other % RECORDING_COLUMN_N];
	unsigned int i;

	if (h->transform == RECORDING_XOR || h->transform == RECORDING_DISTANCE)
		if (h->other >= RECORDING_COLUMN_N || !(c->present & 1u << h->other))
			return "a column refers to one that is not before it";
	switch (h->transform) {
	case RECORDING_PLAIN:
		for (i = 0; i < c->n; i++)
			v[i] += h->base;
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
		memcpy(&h, in + i * sizeof(h), sizeof(h));
		if (h.width > sizeof(__u64) || (size_t)h.width * n > bytes - at)
			return "a column is longer than its block";
		at += (size_t)h.width * n;
		if (h.id >= RECORDING_COLUMN_N)
			continue; /* of a newer writer */
		if (c->present & 1u << h.id)
			return "it has a column twice";
		from_planes(c->v[h.id], in + at - (size_t)h.width * n, n, h.width);
		wrong = restore(&h, c);
		if (wrong)
			return wrong;
		c->present |= 1u << h.id;
	}
	return at == bytes ? NULL : "there are bytes behind its last column";
}
