// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Percentiles of a series' latencies, and where they lie with 95 % confidence. */
#include "snapshot.h"

#include "base/estimate.h"
#include "base/std.h"

#include <math.h>

__u64 strata_timed_ops(const struct series_strata *x)
{
	__u64 sum = 0;

	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		sum += x->buckets[i];
	return sum;
}

/* Enough for one sample to lie beyond; the slack allows for 1 - 0.9, which is not quite 0.1. */
static bool is_enough(const struct series *s, double q)
{
	return s->buckets && s->valid >= 1 / (1 - q) - 1e-6;
}

long series_percentile(const struct series *s, double q)
{
	const __u64 *n = s->strata ? s->strata->buckets : s->buckets;
	__u64 rank, upto = 0, all = s->valid;

	if (!is_enough(s, q))
		return -1;
	if (s->strata)
		all = strata_timed_ops(s->strata);
	if (!all)
		return -1;
	rank = ceil(q * all - 1e-6);
	for (int i = 0; i < IBS_LAT_BUCKETS; i++) {
		upto += n[i];
		if (upto >= rank)
			return ibs_lat_le(i);
	}
	return -1;
}

/* --- latencies by slice --- */

static int compare_timed(const void *a, const void *b)
{
	const struct strata_timed *x = a, *y = b;

	return x->slice != y->slice ? x->slice - y->slice : x->bucket - y->bucket;
}

size_t strata_timed_sort(struct strata_timed *list, size_t n)
{
	size_t left = 0;

	qsort(list, n, sizeof(*list), compare_timed);
	for (size_t i = 0; i < n; i++) {
		if (left && !compare_timed(&list[left - 1], &list[i])) {
			list[left - 1].ops += list[i].ops;
			list[left - 1].square += list[i].square;
		} else {
			list[left++] = list[i];
		}
	}
	return left;
}

/* Equal pairs are combined when the list has doubled, so that a sum of many series stays small. */
#define TIMED_LEAST 1024

void strata_timed_add(struct series_strata *to, const struct strata_timed *list, size_t n,
		      double shared)
{
	array_reserve(to->timed, to->timed_room, to->n_timed + n);
	for (size_t i = 0; i < n; i++)
		to->timed[to->n_timed++] =
			(struct strata_timed){ .slice = list[i].slice,
					       .bucket = list[i].bucket,
					       .ops = (float)(list[i].ops * shared),
					       .square =
						       (float)(list[i].square * shared * shared) };
	if (to->n_timed < 2 * to->n_sorted || to->n_timed < TIMED_LEAST)
		return;
	to->n_timed = to->n_sorted = strata_timed_sort(to->timed, to->n_timed);
}

/* --- intervals --- */

#define LAST_BUCKET (IBS_LAT_BUCKETS - 1)

/* Ops by latency, of which `all` and `square` are the sums: squares of the ops that each sample represents. */
struct distribution {
	double ops[IBS_LAT_BUCKETS], all, square;
};

static void add_ops(struct distribution *d, unsigned int bucket, double ops, double square)
{
	d->ops[bucket] += ops;
	d->all += ops;
	d->square += square;
}

static void distribute(const struct series *s, struct distribution *d)
{
	const struct series_strata *x = s->strata;

	memset(d, 0, sizeof(*d));
	for (size_t i = 0; x && x->design && i < x->n_timed; i++)
		add_ops(d, x->timed[i].bucket, x->timed[i].ops, x->timed[i].square);
	for (unsigned int b = 0; !(x && x->design) && b < IBS_LAT_BUCKETS; b++) {
		const double n = s->buckets[b], ops = x ? x->buckets[b] : n;

		if (s->buckets[b])
			add_ops(d, b, ops, ops * ops / n);
	}
}

/* The bucket at which a share of the ops is reached, and the part of that bucket that is needed. */
static unsigned int reach(const struct distribution *d, double share, double *part)
{
	double left = share * d->all;
	unsigned int b = 0;

	/* the slack is for rounding: all ops are reached in the last bucket that has some */
	while (b < LAST_BUCKET && (!(d->ops[b] > 0) || left > d->ops[b] + 1e-9 * d->all))
		left -= d->ops[b++];
	*part = fmin(fmax(left / d->ops[b], 0), 1);
	return b;
}

static struct bounds strata_shares(const struct series_strata *x, const struct distribution *d,
				   double q)
{
	struct strata_sum below = {}, all = {};
	struct bounds share = { NAN, NAN };
	double part;
	const unsigned int at = reach(d, q, &part);

	for (size_t i = 0; i < x->n_timed; i++) {
		const struct strata_timed *t = &x->timed[i];
		/* of the bucket that has the percentile, samples are below it at random */
		const double f = t->bucket < at ? 1 : t->bucket == at ? part : 0;
		const enum stratum of = x->design->slice[t->slice].of;

		all.part[t->slice] += t->ops;
		all.square[of] += t->square;
		below.part[t->slice] += (float)(f * t->ops);
		below.square[of] += f * t->square;
	}
	strata_share_interval(x->design, &below, &all, &share.low, &share.high);
	return share;
}

bool series_percentile_interval(const struct series *s, double q, long *low, long *high)
{
	struct distribution d;
	struct bounds share;
	double part;
	unsigned int b;

	if (!is_enough(s, q))
		return false;
	distribute(s, &d);
	/* of no ops that is NAN, and so are its bounds */
	share = estimate_ranks(d.all * d.all / d.square, q);
	if (s->strata && s->strata->design && !isnan(share.low))
		share = strata_shares(s->strata, &d, q);
	if (isnan(share.low))
		return false;
	b = reach(&d, share.low, &part);
	*low = b ? ibs_lat_le(b - 1) + 1 : 0;
	*high = ibs_lat_le(reach(&d, share.high, &part));
	return true;
}
