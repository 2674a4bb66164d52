// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_rows.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BIN_NS (1ull << 20)

static __u64 hash_key(const struct html_key *k)
{
	__u64 words[sizeof(*k) / 8];

	memcpy(words, k, sizeof(words));
	return words_hash(words, ARRAY_SIZE(words));
}

/* Return: NULL if no row has the key. */
static struct html_row *find_row(struct html_rows *r, const struct html_key *key)
{
	__u32 i;

	u64_map_for_each(i, &r->of_key, hash_key(key))
	{
		if (!memcmp(&r->row[i].key, key, sizeof(*key)))
			return &r->row[i];
	}
	return NULL;
}

/* The row of a key, created if needed. */
static struct html_row *row_of(struct html_rows *r, const struct html_key *key)
{
	struct html_row *row = find_row(r, key);

	if (row)
		return row;
	array_reserve(r->row, r->room, r->n + 1);
	u64_map_add(&r->of_key, hash_key(key), r->n);
	r->row[r->n] = (struct html_row){ .key = *key };
	return &r->row[r->n++];
}

static void add_sums(struct html_row *to, const struct html_row *from)
{
	to->samples += from->samples;
	to->latencies += from->latencies;
	to->operations += from->operations;
	to->cycles += from->cycles;
	to->exposed += from->exposed;
	to->squares += from->squares;
	to->max = from->max > to->max ? from->max : to->max;
}

void html_rows_rekey(struct html_rows *r, void (*change)(struct html_key *key, void *ctx),
		     void *ctx)
{
	size_t n = r->n;

	u64_map_free(&r->of_key);
	r->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct html_row old = r->row[i];

		change(&old.key, ctx);
		add_sums(row_of(r, &old.key), &old); /* never beyond row i: those are still read */
	}
}

static void halve_bin(struct html_key *key, void *unused)
{
	(void)unused;
	key->time >>= 1;
}

static void double_bins(struct html_rows *r)
{
	r->bin_ns *= 2;
	html_rows_rekey(r, halve_bin, NULL);
}

static void move_bin(struct html_key *key, void *bins)
{
	key->time += *(__u64 *)bins;
}

static unsigned int bins_max(const struct html_rows *r)
{
	return r->bins_max ?: HTML_BINS_MAX;
}

void html_rows_limit_bins(struct html_rows *r, unsigned int max)
{
	r->bins_max = max;
	while (html_rows_bins(r) > max)
		double_bins(r);
}

/* Let the bins begin at @time_ns or before. */
static void begin_earlier(struct html_rows *r, __u64 time_ns)
{
	__u64 bins;

	while ((r->end_ns - time_ns) / r->bin_ns + 2 > bins_max(r))
		double_bins(r);
	bins = (r->start_ns - time_ns + r->bin_ns - 1) / r->bin_ns;
	html_rows_rekey(r, move_bin, &bins);
	r->start_ns -= bins * r->bin_ns < r->start_ns ? bins * r->bin_ns : r->start_ns;
}

struct html_row html_row_of_sample(const struct html_key *key, __u32 latency, __u64 period)
{
	bool valid = key->bucket != HTML_NO_LATENCY;

	return (struct html_row){ .samples = 1,
				  .latencies = valid ? latency : 0,
				  .operations = period,
				  .cycles = valid ? (double)latency * period : 0,
				  .squares = (double)period * period,
				  .max = valid ? latency : 0 };
}

int html_rows_add(struct html_rows *r, const struct html_key *key, __u64 time_ns,
		  const struct html_row *what)
{
	struct html_key k = *key;
	struct html_row *row;

	if (time_ns && !r->has_time) {
		r->start_ns = r->end_ns = time_ns;
		r->bin_ns = r->bin_ns ?: FIRST_BIN_NS;
		r->has_time = true;
	}
	if (time_ns && time_ns < r->start_ns)
		begin_earlier(r, time_ns);
	if (time_ns > r->end_ns)
		r->end_ns = time_ns;
	while (r->has_time && (r->end_ns - r->start_ns) / r->bin_ns >= bins_max(r))
		double_bins(r);
	k.time = time_ns ? (time_ns - r->start_ns) / r->bin_ns : 0;
	row = r->n < (r->rows_max ?: HTML_ROWS_MAX) ? row_of(r, &k) : find_row(r, &k);
	if (!row)
		return -E2BIG;
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
	u64_map_free(&r->of_key); /* its indices are no longer valid */
}

void html_rows_free(struct html_rows *r)
{
	free(r->row);
	u64_map_free(&r->of_key);
	*r = (struct html_rows){ 0 };
}
