// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Miss cycles by time and latency, in memory that does not grow with the length of a side. */
#include "diff_private.h"

#include <string.h>

#define FINE	  64	       /* columns in which they are kept; a longer side makes them wider */
#define FINE_MIN  (1ULL << 20) /* ns, the first width of a column */
#define EXACT	  16	       /* buckets up to here are one row, then four each: half an octave */
#define PER_ROW	  4
#define MIDDLE(b) ((ibs_lat_le(b) + ((b) ? ibs_lat_le((b)-1) : 0)) / 2.)

struct diff_heat {
	__u64 first, width; /* ns */
	unsigned int n;	    /* columns up to the last one with samples */
	double cycles[FINE][DIFF_HEAT_ROWS], base[FINE];
};
_Static_assert((IBS_LAT_BUCKETS - 1 - EXACT - 1) / PER_ROW + 1 == DIFF_HEAT_ROWS - 1, "rows");

static unsigned int row_of(__u32 bucket)
{
	return bucket <= EXACT ? 0 : 1 + (bucket - EXACT - 1) / PER_ROW;
}

__u32 diff_heat_edge(unsigned int row)
{
	__u32 last = EXACT + PER_ROW * row;

	return ibs_lat_le(last < IBS_LAT_BUCKETS ? last : IBS_LAT_BUCKETS - 1);
}

/* Join columns in pairs. */
static void widen(struct diff_heat *h)
{
	for (unsigned int i = 0; i < FINE / 2; i++) {
		h->base[i] = h->base[2 * i] + h->base[2 * i + 1];
		for (unsigned int r = 0; r < DIFF_HEAT_ROWS; r++)
			h->cycles[i][r] = h->cycles[2 * i][r] + h->cycles[2 * i + 1][r];
	}
	memset(&h->base[FINE / 2], 0, sizeof(h->base) / 2);
	memset(&h->cycles[FINE / 2], 0, sizeof(h->cycles) / 2);
	h->width *= 2;
	h->n = (h->n + 1) / 2;
}

static unsigned int column_of(struct diff_heat *h, __u64 ns)
{
	unsigned int column;

	if (!h->width) {
		h->width = FINE_MIN;
		h->first = ns;
	}
	while (ns > h->first && (ns - h->first) / h->width >= FINE)
		widen(h);
	column = ns > h->first ? (ns - h->first) / h->width : 0;
	h->n = column >= h->n ? column + 1 : h->n;
	return column;
}

void diff_heat_add(struct diff *d, enum compare_side side, __u64 ns, __u32 bucket,
		   const struct compare_amount *a)
{
	struct diff_heat *h = d->heat[side];
	unsigned int column;

	if (!d->html)
		return;
	if (!h)
		h = d->heat[side] = xcalloc(1, sizeof(*h));
	column = column_of(h, ns);
	h->base[column] += a->base;
	if (a->valid)
		h->cycles[column][row_of(bucket)] += a->cycles;
}

void diff_heat_spread(struct diff *d, enum compare_side side, __u64 ns, const __u64 *buckets,
		      const struct compare_amount *a)
{
	struct compare_amount in = { .base = a->base };
	double sum = 0;

	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
		sum += buckets[b] * MIDDLE(b);
	diff_heat_add(d, side, ns, 0, &in);
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS && sum > 0; b++) {
		in = (struct compare_amount){ .valid = buckets[b],
					      .cycles =
						      a->cycles * (buckets[b] * MIDDLE(b) / sum) };
		if (in.valid)
			diff_heat_add(d, side, ns, b, &in);
	}
}

/* The kept columns as parts of the whole run, each by how much of it lies in a part. */
void diff_heat_parts(const struct diff *d, enum compare_side side, double seconds,
		     struct diff_parts *out)
{
	const struct diff_heat *h = d->heat[side];
	double base[DIFF_HEAT_COLUMNS] = {};

	memset(out, 0, sizeof(*out));
	if (!h)
		return;
	for (unsigned int c = 0; c < h->n; c++)
		for (unsigned int to = 0; to < DIFF_HEAT_COLUMNS; to++) {
			const double from = (double)to * h->n / DIFF_HEAT_COLUMNS;
			const double end = (double)(to + 1) * h->n / DIFF_HEAT_COLUMNS;
			const double low = from > c ? from : c, high = end < c + 1 ? end : c + 1;

			if (high <= low)
				continue;
			base[to] += h->base[c] * (high - low);
			for (unsigned int r = 0; r < DIFF_HEAT_ROWS; r++)
				out->y[to][r] += h->cycles[c][r] * (high - low);
		}
	for (unsigned int to = 0; to < DIFF_HEAT_COLUMNS; to++) {
		if (d->per == DIFF_PER_SECOND)
			base[to] = seconds / DIFF_HEAT_COLUMNS;
		out->known[to] = base[to] > 0;
		for (unsigned int r = 0; r < DIFF_HEAT_ROWS && out->known[to]; r++)
			out->y[to][r] /= base[to];
	}
}
