// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_rows.h"

#include "html_opts.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SHIFT 20 /* a bin of a millisecond to begin with */

static __u64 hash_key(const struct html_key *k)
{
	__u64 words[2];

	memcpy(words, k, sizeof(words));
	return words_hash(words, 2);
}

/* The row of a key, new if need be. Return: NULL when out of memory. */
static struct html_row *row_of(struct html_rows *r, const struct html_key *key)
{
	__u64 hash = hash_key(key);
	__u32 i;

	u64_map_for_each(i, &r->of_key,
			 hash) if (!memcmp(&r->row[i].key, key, sizeof(*key))) return &r->row[i];
	if (array_reserve(r->row, r->room, r->n + 1) || u64_map_add(&r->of_key, hash, r->n))
		return NULL;
	r->row[r->n] = (struct html_row){ .key = *key };
	return &r->row[r->n++];
}

/* Two bins become one, and so do rows that now have the same key. Return: 0 or -ENOMEM. */
static int double_bins(struct html_rows *r)
{
	size_t n = r->n;

	r->bin_shift++;
	u64_map_free(&r->of_key);
	r->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct html_row old = r->row[i], *to;

		old.key.time >>= 1;
		to = row_of(r, &old.key);
		if (!to)
			return -ENOMEM;
		to->samples += old.samples;
		to->latencies += old.latencies;
		to->operations += old.operations;
		to->cycles += old.cycles;
		to->max = old.max > to->max ? old.max : to->max;
	}
	return 0;
}

int html_rows_add(struct html_rows *r, const struct html_key *key, __u64 time_ns, __u32 latency,
		  __u64 period)
{
	struct html_key k = *key;
	struct html_row *row;

	if (r->n >= HTML_ROWS_MAX)
		return -E2BIG;
	if (time_ns && !r->has_time) {
		r->start_ns = r->end_ns = time_ns;
		r->bin_shift = FIRST_SHIFT;
		r->has_time = true;
	}
	/* CPUs are in order only nearly: what comes from before the first counts as the first */
	if (time_ns < r->start_ns)
		time_ns = r->start_ns;
	if (time_ns > r->end_ns)
		r->end_ns = time_ns;
	while (((time_ns - r->start_ns) >> r->bin_shift) >= HTML_BINS_MAX)
		if (double_bins(r))
			return -ENOMEM;
	k.time = (time_ns - r->start_ns) >> r->bin_shift;
	row = row_of(r, &k);
	if (!row)
		return -ENOMEM;
	row->samples++;
	row->operations += period;
	if (k.bucket != HTML_NO_LATENCY) {
		row->latencies += latency;
		row->cycles += (double)latency * period;
		row->max = latency > row->max ? latency : row->max;
	}
	return 0;
}

unsigned int html_rows_bins(const struct html_rows *r)
{
	return r->has_time ? ((r->end_ns - r->start_ns) >> r->bin_shift) + 1 : 1;
}

static int compare(const void *a, const void *b)
{
	const struct html_key *x = &((const struct html_row *)a)->key;
	const struct html_key *y = &((const struct html_row *)b)->key;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

void html_rows_sort(struct html_rows *r)
{
	if (r->n)
		qsort(r->row, r->n, sizeof(*r->row), compare);
	u64_map_free(&r->of_key); /* its numbers are no longer right */
}

void html_rows_free(struct html_rows *r)
{
	free(r->row);
	u64_map_free(&r->of_key);
	*r = (struct html_rows){ 0 };
}
