// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_rows.h"

#include "html_opts.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BIN_NS (1ull << 20)

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

static void add_sums(struct html_row *to, const struct html_row *from)
{
	to->samples += from->samples;
	to->latencies += from->latencies;
	to->operations += from->operations;
	to->cycles += from->cycles;
	to->max = from->max > to->max ? from->max : to->max;
}

/* Two bins become one, and so do rows that now have the same key. Return: 0 or -ENOMEM. */
static int double_bins(struct html_rows *r)
{
	size_t n = r->n;

	r->bin_ns *= 2;
	u64_map_free(&r->of_key);
	r->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct html_row old = r->row[i], *to;

		old.key.time >>= 1;
		to = row_of(r, &old.key);
		if (!to)
			return -ENOMEM;
		add_sums(to, &old);
	}
	return 0;
}

int html_rows_add(struct html_rows *r, const struct html_key *key, __u64 time_ns, __u32 latency,
		  __u64 period)
{
	bool valid = key->bucket != HTML_NO_LATENCY;
	const struct html_row one = { .samples = 1,
				      .latencies = valid ? latency : 0,
				      .operations = period,
				      .cycles = valid ? (double)latency * period : 0,
				      .max = valid ? latency : 0 };

	return html_rows_add_sums(r, key, time_ns, &one);
}

int html_rows_add_sums(struct html_rows *r, const struct html_key *key, __u64 time_ns,
		       const struct html_row *what)
{
	struct html_key k = *key;
	struct html_row *row;

	if (r->n >= HTML_ROWS_MAX)
		return -E2BIG;
	if (time_ns && !r->has_time) {
		r->start_ns = r->end_ns = time_ns;
		r->bin_ns = r->bin_ns ?: FIRST_BIN_NS;
		r->has_time = true;
	}
	/* CPUs are in order only nearly: what comes from before the first counts as the first */
	if (time_ns < r->start_ns)
		time_ns = r->start_ns;
	if (time_ns > r->end_ns)
		r->end_ns = time_ns;
	while (r->has_time && (time_ns - r->start_ns) / r->bin_ns >= HTML_BINS_MAX)
		if (double_bins(r))
			return -ENOMEM;
	k.time = r->has_time ? (time_ns - r->start_ns) / r->bin_ns : 0;
	row = row_of(r, &k);
	if (!row)
		return -ENOMEM;
	add_sums(row, what);
	return 0;
}

unsigned int html_rows_bins(const struct html_rows *r)
{
	return r->has_time ? (r->end_ns - r->start_ns) / r->bin_ns + 1 : 1;
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
