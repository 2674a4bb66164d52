// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Weights of slices by window, and what the slices of a window have in common: periods, groups, states of the PMU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "counts/snapshot.h"

#include <math.h>

#define REACH  (1U << IBS_SRC_DRAM)
#define SECOND 1000000000ULL

/* Sums of floats. */
static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-5 * fabs(want)))
		fail_msg("%g instead of %g", got, want);
}

static __u64 buckets[4][IBS_LAT_BUCKETS];

/* Loads of one source, @n of them with a latency of bucket 20, that is 23 or 24 cycles. */
static struct series loads(enum ibs_src src, __u64 n, __u64 *of)
{
	memset(of, 0, sizeof(buckets[0]));
	of[20] = n;
	return (struct series){ .op = IBS_OP_KIND_LOAD,
				.src = src,
				.samples = n,
				.valid = n,
				.sum = 24 * n,
				.buckets = of };
}

static void add(struct stratified *s, enum stratum of, __u64 period, __u64 tags,
		struct group *groups, size_t n)
{
	const struct snapshot slice = { .time_ns = SECOND / 2,
					.pmu = { .ops = 1000, .tagged = tags },
					.groups = groups,
					.n_groups = n };

	stratified_add(s, of, period, 1, &slice);
}

/*
 * 78 slices of 1000 ops are windows of 24, 24 and 30. A sample of an op that both strata take represents all ops of its window,
 * divided by all tags; one that only full slices take, divided by tags of those.
 */
static const struct window {
	unsigned int slices, full_tags, miss_tags;
	double dram, l3;
} windows[] = {
	{ 24, 10, 40, 40, 200 }, /* 24000 ops; 120 tags and 480 */
	{ 24, 20, 80, 20, 100 },
	{ 30, 50, 150, 10, 40 }, /* 30000 ops; 750 tags and 2250 */
};

static const struct window *window_of(unsigned int slice)
{
	return &windows[slice < 24 ? 0 : slice < 48 ? 1 : 2];
}

/* What a full slice has: numbers of samples, which differ from slice to slice. */
static __u64 dram_of(unsigned int slice)
{
	return slice % 2 ? 10 + slice : 3 + slice;
}

static bool has_l3(unsigned int slice)
{
	return slice % 4 == 0 && slice < 40;
}

static void build(struct snapshot *out)
{
	struct stratified *s = stratified_new(REACH);

	for (unsigned int k = 0; k < 78; k++) {
		const struct window *w = window_of(k);
		struct series both[] = { loads(IBS_SRC_L3, 2 + k, buckets[0]),
					 loads(IBS_SRC_DRAM, dram_of(k), buckets[1]) };
		struct group g = { .slot = 4,
				   .series = has_l3(k) ? both : both + 1,
				   .n_series = has_l3(k) ? 2 : 1 };

		both[1].hitm = k;
		g.tlb.l2_hit = 5 * k;
		g.tlb.l2_miss = 7 * k;
		add(s, k % 2, 16, k % 2 ? w->miss_tags : w->full_tags, &g, 1);
	}
	stratified_end(s, out);
	stratified_free(s);
}

/* Each slice of a series has the weight of its window. */
static void test_slices(void **state)
{
	const struct series *l3, *dram;
	double dram_square[2] = { 0 }, l3_square = 0;
	struct snapshot s;

	(void)state;
	build(&s);
	assert_int_equal(s.strata->design.n, 78);
	assert_int_equal(s.n_groups, 1);
	assert_int_equal(s.groups[0].n_series, 2);
	l3 = &s.groups[0].series[0];
	dram = &s.groups[0].series[1];
	assert_int_equal(dram->strata->n_timed, 78);
	for (unsigned int k = 0; k < STRATA_SLICES; k++) {
		const struct window *w = window_of(k);
		const double ops = k < 78 ? dram_of(k) * w->dram : 0,
			     of_l3 = has_l3(k) ? (2 + k) * w->l3 : 0;

		near(dram->strata->ops.part[k], ops);
		near(dram->strata->cycles.part[k], 24 * ops);
		near(l3->strata->ops.part[k], of_l3);
		near(l3->strata->cycles.part[k], 24 * of_l3);
		dram_square[k % 2] += ops * w->dram;
		l3_square += of_l3 * w->l3;
	}
	for (int of = 0; of < STRATUM_N; of++) {
		near(dram->strata->ops.square[of], dram_square[of]);
		/* the middle of the bucket is 23.5 cycles */
		near(dram->strata->cycles.square[of], dram_square[of] * 23.5 * 23.5);
	}
	near(l3->strata->ops.square[STRATUM_FULL], l3_square);
	assert_true(l3->strata->ops.square[STRATUM_MISS] == 0);
	snapshot_free(&s);
}

/* Each entry of a list of latencies has it, too. */
static void test_timed(void **state)
{
	const struct series_strata *x;
	bool seen[78] = { false };
	struct snapshot s;

	(void)state;
	build(&s);
	x = s.groups[0].series[1].strata;
	assert_int_equal(x->n_timed, 78);
	for (size_t i = 0; i < x->n_timed; i++) {
		const struct strata_timed *t = &x->timed[i];
		const double w = window_of(t->slice)->dram;

		assert_in_range(t->slice, 0, 77);
		assert_false(seen[t->slice]);
		seen[t->slice] = true;
		assert_int_equal(t->bucket, 20);
		near(t->ops, dram_of(t->slice) * w);
		near(t->square, dram_of(t->slice) * w * w);
	}
	snapshot_free(&s);
}

/* Sums of all slices are exact. */
static void test_sums(void **state)
{
	double dram = 0, l3 = 0, hitm = 0, hits = 0, misses = 0;
	const struct series *series;
	struct snapshot s;

	(void)state;
	build(&s);
	for (unsigned int k = 0; k < 78; k++) {
		const struct window *w = window_of(k);

		dram += dram_of(k) * w->dram;
		l3 += has_l3(k) ? (2 + k) * w->l3 : 0;
		hitm += k * w->dram;
		hits += k % 2 ? 0 : 5 * k * w->l3;
		misses += k % 2 ? 0 : 7 * k * w->l3;
	}
	series = s.groups[0].series;
	assert_int_equal(series[0].ops, l3);
	assert_int_equal(series[0].cycles, 24 * l3);
	assert_int_equal(series[1].ops, dram);
	assert_int_equal(series[1].cycles, 24 * dram);
	assert_int_equal(series[1].hitm, hitm);
	for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
		assert_int_equal(series[0].strata->buckets[b], b == 20 ? l3 : 0);
		assert_int_equal(series[1].strata->buckets[b], b == 20 ? dram : 0);
	}
	assert_int_equal(s.groups[0].tlb.l2_hit_ops, hits);
	assert_int_equal(s.groups[0].tlb.l2_miss_ops, misses);
	snapshot_free(&s);
}

static void test_design(void **state)
{
	struct snapshot s;

	(void)state;
	build(&s);
	for (unsigned int k = 0; k < 78; k++) {
		const struct strata_slice *slice = &s.strata->design.slice[k];

		assert_int_equal(slice->of, k % 2);
		assert_true(slice->ops == 1000);
		assert_true(slice->tags ==
			    (k % 2 ? window_of(k)->miss_tags : window_of(k)->full_tags));
		assert_true(slice->seconds == 0.5);
		assert_int_equal(slice->period, 16);
	}
	snapshot_free(&s);
}

/*
 * In one window, a tag of a short period represents fewer ops: of full slices with 10 tags in 1000 ops 100, and with 40 tags
 * 25; twice that, as half of the 4000 ops are in miss slices.
 */
static void test_periods(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct snapshot out;

	(void)state;
	for (unsigned int k = 0; k < 4; k++) {
		struct series l3 = loads(IBS_SRC_L3, 3 + k, buckets[0]);
		struct group g = { .slot = 1, .series = &l3, .n_series = 1 };

		add(s, k % 2, k == 2 ? 16 : 64, k % 2 ? 100 : k ? 40 : 10, &g, 1);
	}
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.groups[0].series[0].ops, 3 * 200 + 5 * 50);
	assert_int_equal(out.groups[0].series[0].strata->buckets[20], 3 * 200 + 5 * 50);
	snapshot_free(&out);
}

/* A sample may represent less than an op. Sums are rounded once: 1000 ops of 1600 tags, twice, are 1.25 of two samples. */
static void test_rounded(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct series both[] = { loads(IBS_SRC_L2, 8, buckets[0]),
				 loads(IBS_SRC_L3, 1, buckets[1]) };
	struct group g = { .slot = 1, .series = both, .n_series = 2 };
	struct snapshot out;

	(void)state;
	both[1].hitm = 1;
	for (int k = 0; k < 2; k++)
		add(s, STRATUM_FULL, 16, 1600, &g, 1);
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.groups[0].n_series, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(out.groups[0].series[i].ops, i ? 1 : 10);
		assert_int_equal(out.groups[0].series[i].hitm, i ? 1 : 0);
		assert_int_equal(out.groups[0].series[i].strata->buckets[20], i ? 1 : 10);
	}
	snapshot_free(&out);
}

/* --- more slices than there is room for --- */

/* 10 tags of full slices and 40 of miss slices: a sample represents 40 ops in each window. */
#define WEIGHT 40
#define MANY   168

static unsigned int merged_into(unsigned int k)
{
	/* slices 0 and 2, 1 and 3, 4 and 6, ... of the first 120 */
	return k < 120 ? k / 4 * 2 + k % 2 : 60 + k - 120;
}

/* Groups and series are not in all slices: nothing came in the first ones, and in the first ones without weights. */
static bool has_samples(unsigned int k)
{
	return k > 1 && k != 120 && k != 121;
}

/* Numbers of samples of group @g and series @i in slice @k: with a latency of bucket 20, and with another one. */
static __u64 first_of(unsigned int k, unsigned int g, unsigned int i)
{
	return has_samples(k) ? 1 + k % 7 + 10 * g + 20 * i : 0;
}

static __u64 second_of(unsigned int k)
{
	return has_samples(k) ? 2 : 0;
}

static unsigned int second_bucket(unsigned int k)
{
	return 30 + k / 2 % 3;
}

static void build_many(struct snapshot *out)
{
	static __u64 of[2][2][IBS_LAT_BUCKETS];
	struct stratified *s = stratified_new(REACH);

	for (unsigned int k = 0; k < MANY; k++) {
		struct series list[2][2];
		struct group groups[2];

		for (unsigned int g = 0; g < 2; g++) {
			for (unsigned int i = 0; i < 2; i++) {
				list[g][i] = loads(IBS_SRC_DRAM, first_of(k, g, i), of[g][i]);
				of[g][i][second_bucket(k)] = second_of(k);
				list[g][i].op = i ? IBS_OP_KIND_STORE : IBS_OP_KIND_LOAD;
				list[g][i].samples += second_of(k);
				list[g][i].valid += second_of(k);
			}
			groups[g] = (struct group){ .slot = 1 + g,
						    .key = { .cgroup_id = g },
						    .series = list[g],
						    .n_series = 2 };
		}
		add(s, k % 2, 16, k % 2 ? 40 : 10, groups, has_samples(k) ? 2 : 0);
	}
	stratified_end(s, out);
	stratified_free(s);
}

static void check_many(const struct series_strata *x, unsigned int g, unsigned int i)
{
	static double ops[STRATA_SLICES], cycles[STRATA_SLICES],
		entry[STRATA_SLICES][IBS_LAT_BUCKETS];
	size_t entries = 0;

	memset(ops, 0, sizeof(ops));
	memset(cycles, 0, sizeof(cycles));
	memset(entry, 0, sizeof(entry));
	for (unsigned int k = 0; k < MANY; k++) {
		const unsigned int to = merged_into(k);

		ops[to] += WEIGHT * (first_of(k, g, i) + second_of(k));
		cycles[to] += WEIGHT * 24 * first_of(k, g, i);
		entry[to][20] += WEIGHT * first_of(k, g, i);
		entry[to][second_bucket(k)] += WEIGHT * second_of(k);
	}
	for (unsigned int k = 0; k < STRATA_SLICES; k++) {
		near(x->ops.part[k], ops[k]);
		near(x->cycles.part[k], cycles[k]);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			entries += entry[k][b] > 0;
	}
	assert_int_equal(x->n_timed, entries);
	for (size_t n = 0; n < x->n_timed; n++) {
		double *one = &entry[x->timed[n].slice][x->timed[n].bucket];

		near(x->timed[n].ops, *one);
		near(x->timed[n].square, WEIGHT * *one);
		*one = 0;
	}
}

/* The first of them are merged in pairs; entries of latencies, too, and those of open slices are kept. */
static void test_merged(void **state)
{
	struct snapshot s;

	(void)state;
	build_many(&s);
	assert_int_equal(s.strata->design.n, 108);
	assert_int_equal(s.n_groups, 2);
	for (unsigned int g = 0; g < 2; g++) {
		assert_int_equal(s.groups[g].n_series, 2);
		for (unsigned int i = 0; i < 2; i++)
			check_many(s.groups[g].series[i].strata, g, i);
	}
	snapshot_free(&s);
}

/* A group that ended has nothing in later windows: 12 samples and misses of the first one, and of the second. */
static void test_ended(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct snapshot out;

	(void)state;
	for (unsigned int k = 0; k < 78; k++) {
		const struct window *w = window_of(k);
		struct series l3 = loads(IBS_SRC_L3, 1, buckets[0]);
		struct group g = { .slot = 1,
				   .series = &l3,
				   .n_series = 1,
				   .tlb = { .l2_hit = 1, .l2_miss = 2 } };

		add(s, k % 2, 16, k % 2 ? w->miss_tags : w->full_tags, &g, k < 48);
	}
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.groups[0].series[0].ops, 12 * (200 + 100));
	assert_int_equal(out.groups[0].tlb.l2_hit_ops, 12 * (200 + 100));
	assert_int_equal(out.groups[0].tlb.l2_miss_ops, 2 * 12 * (200 + 100));
	for (unsigned int k = 48; k < STRATA_SLICES; k++)
		assert_true(out.groups[0].series[0].strata->ops.part[k] == 0);
	snapshot_free(&out);
}

/*
 * Windows have weights when the next one is complete: 24 slices at 48, 72, 96, ... At 168, 120 slices have them and 24 more
 * find no room, so these become 60, and 84 in all. At 216 it is the same with 108.
 */
static void test_full(void **state)
{
	struct stratified *s = stratified_new(REACH);

	(void)state;
	for (unsigned int k = 0; k < 250; k++) {
		assert_int_equal(stratified_is_full(s), k == 167 || k == 215);
		add(s, k % 2, 16, 10, NULL, 0);
	}
	stratified_free(s);
}

/* 128 entries of three slices each fit. */
static void test_fits(void **state)
{
	struct series l3 = loads(IBS_SRC_L3, 1, buckets[0]);
	struct group g = { .slot = 1, .series = &l3, .n_series = 1 };
	const struct snapshot slice = {
		.time_ns = SECOND, .pmu = { .ops = 1000, .tagged = 10 }, .groups = &g, .n_groups = 1
	};
	struct stratified *s = stratified_new(REACH);
	struct snapshot out;

	(void)state;
	for (unsigned int k = 0; k < STRATA_SLICES; k++)
		stratified_add(s, k % 2, 16, 3, &slice);
	stratified_end(s, &out);
	assert_int_equal(out.strata->design.n, STRATA_SLICES);
	/* of the 64 full ones a sample represents twice the 100 ops of a tag */
	assert_int_equal(out.groups[0].series[0].ops, 64 * 200);
	snapshot_free(&out);
	stratified_free(s);
	/* 120 have weights, the eight of a window wait for theirs: there is room for these, too */
	s = stratified_new(REACH);
	for (unsigned int k = 0; k < STRATA_SLICES + 8 - 1; k++)
		stratified_add(s, k % 2, 16, 3, &slice);
	for (unsigned int k = 0; k < 3; k++) {
		assert_false(stratified_is_full(s));
		stratified_add(s, 0, 16, 1, &slice);
	}
	/* for those of the next window there is none */
	for (unsigned int k = 0; k < 7; k++)
		stratified_add(s, k % 2, 16, 3, &slice);
	for (unsigned int k = 0; k < 2; k++)
		stratified_add(s, 0, 16, 1, &slice);
	assert_true(stratified_is_full(s));
	stratified_free(s);
}

/* --- groups --- */

static struct group group_of(__u32 slot, __u64 cgroup, struct series *series, size_t n)
{
	return (struct group){
		.slot = slot, .key = { .cgroup_id = cgroup }, .series = series, .n_series = n
	};
}

/*
 * Groups of both strata are the same if their keys are, whatever their slots. `other` comes first, then `ended`, then the keys.
 * One without samples is left out.
 */
static void test_groups(void **state)
{
	static const __u64 keys[] = { 0, 0, 5, 7, 8, 9 },
			   samples[] = { 10 + 30, 11 + 32, 12 + 31, 33, 17, 13 };
	struct stratified *s = stratified_new(REACH);
	struct series one[8];
	static __u64 all[8][IBS_LAT_BUCKETS];
	struct snapshot out;

	(void)state;
	for (int i = 0; i < 4; i++)
		one[i] = loads(IBS_SRC_DRAM, 10 + i, all[i]);
	for (int i = 4; i < 8; i++)
		one[i] = loads(IBS_SRC_DRAM, 30 + i - 4, all[i]);
	struct group full[] = { group_of(0, 0, &one[0], 1), group_of(1, 9, &one[3], 1),
				group_of(2, 0, &one[1], 1), group_of(3, 77, NULL, 0),
				group_of(6, 5, &one[2], 1) };
	struct group miss[] = { group_of(0, 0, &one[4], 1), group_of(3, 5, &one[5], 1),
				group_of(4, 7, &one[7], 1), group_of(5, 0, &one[6], 1) };

	full[0].other = full[2].other = miss[0].other = miss[3].other = true;
	full[2].ended = miss[3].ended = true;
	full[4].tlb.l2_hit = 4;
	miss[1].tlb.l2_hit = miss[2].tlb.l2_hit = 100; /* of a part of the ops: not reported */
	add(s, STRATUM_FULL, 16, 10, full, ARRAY_SIZE(full));
	add(s, STRATUM_MISS, 16, 40, miss, ARRAY_SIZE(miss));
	/* a group that comes later, between two others */
	one[0] = loads(IBS_SRC_DRAM, 17, all[0]);
	full[0] = group_of(4, 8, &one[0], 1);
	add(s, STRATUM_FULL, 16, 10, full, 1);
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.n_groups, ARRAY_SIZE(keys));
	for (size_t i = 0; i < out.n_groups; i++) {
		assert_int_equal(out.groups[i].slot, i);
		assert_int_equal(out.groups[i].other, i < 2);
		assert_int_equal(out.groups[i].ended, i == 1);
		assert_int_equal(out.groups[i].key.cgroup_id, keys[i]);
		assert_int_equal(out.groups[i].n_series, 1);
		assert_int_equal(out.groups[i].series[0].samples, samples[i]);
		assert_int_equal(out.groups[i].tlb.l2_hit, keys[i] == 5 ? 4 : 0);
	}
	snapshot_free(&out);
}

/* Series are ordered by source, then by kind of op; each has its own counts. */
static void test_series(void **state)
{
	static const struct {
		enum ibs_src src;
		enum ibs_op_kind op;
	} order[] = {
		{ IBS_SRC_L3, IBS_OP_KIND_LOAD },     { IBS_SRC_L3, IBS_OP_KIND_STORE },
		{ IBS_SRC_DRAM, IBS_OP_KIND_LOAD },   { IBS_SRC_DRAM, IBS_OP_KIND_STORE },
		{ IBS_SRC_DRAM, IBS_OP_KIND_LOCKED },
	};
	static const int given[] = { 4, 1, 3, 0, 2 };
	struct stratified *s = stratified_new(REACH);
	struct series list[ARRAY_SIZE(order)];
	struct group g = { .slot = 1, .series = list, .n_series = ARRAY_SIZE(order) };
	struct snapshot out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		list[i] = (struct series){ .op = order[given[i]].op,
					   .src = order[given[i]].src,
					   .samples = 1 + given[i],
					   .exposed = 100 + given[i],
					   .price = 5 };
	for (int k = 0; k < 2; k++)
		add(s, STRATUM_FULL, 16, 10, &g, 1);
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.groups[0].n_series, ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const struct series *one = &out.groups[0].series[i];

		assert_int_equal(one->op, order[i].op);
		assert_int_equal(one->src, order[i].src);
		assert_int_equal(one->samples, 2 * (1 + i));
		assert_int_equal(one->exposed, 2 * (100 + i));
		assert_int_equal(one->ops, 2 * (1 + i) * 100); /* 2000 ops, 20 tags */
		assert_int_equal(one->cycles, 0);
		assert_true(one->price == 0); /* prices are those of an interval */
		assert_null(one->buckets);
	}
	snapshot_free(&out);
}

/*
 * Cycles of modified lines are latencies, times the weight: 60 of 120 miss cycles are 12 of the latencies of 24, or they were
 * latencies if ops are unknown. A latency of 0 adds nothing to squares.
 */
static void test_modified(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct series both[] = { loads(IBS_SRC_L3, 1, buckets[0]),
				 loads(IBS_SRC_DRAM, 1, buckets[1]) };
	struct group g = { .slot = 1, .series = both, .n_series = 2 };
	struct snapshot out;

	(void)state;
	both[0].hitm = 12;
	both[1].cycles = 120;
	both[1].ops = 5;
	both[1].hitm = 60;
	buckets[1][0] = 3;
	both[1].samples = both[1].valid = 4;
	add(s, STRATUM_FULL, 16, 10, &g, 1);
	stratified_end(s, &out);
	stratified_free(s);
	for (int i = 0; i < 2; i++) {
		const struct series *one = &out.groups[0].series[i];

		assert_int_equal(one->hitm, 1200);
		assert_int_equal(one->cycles, 2400);
		near(one->strata->cycles.square[STRATUM_FULL], 23.5 * 23.5 * 100 * 100);
		assert_int_equal(one->strata->buckets[0], i ? 300 : 0);
	}
	snapshot_free(&out);
}

/* --- the PMU and its ledger --- */

/*
 * The full stratum was on the PMU for half of the time, the miss stratum for a quarter: what the former estimates is doubled,
 * and of the latter it is four times as much. The former already makes up for 10 of the 50. Of DRAM, a sample represents 2000 ops
 * of 50 tags, of the L3 2000 of 10 tags.
 */
static void test_shared(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct series both[] = { loads(IBS_SRC_L3, 3, buckets[0]),
				 loads(IBS_SRC_DRAM, 5, buckets[1]) };
	struct group g = {
		.slot = 1, .series = both, .n_series = 2, .tlb = { .l2_hit = 2, .l2_miss = 7 }
	};
	struct snapshot slice = { .time_ns = SECOND,
				  .pmu = { .ops = 1000,
					   .tagged = 10,
					   .enabled_ns = 100,
					   .running_ns = 40,
					   .extra_ns = 10 },
				  .groups = &g,
				  .n_groups = 1 },
			out;
	const struct series_strata *x;

	(void)state;
	both[1].hitm = 24;
	stratified_add(s, STRATUM_FULL, 16, 1, &slice);
	slice.pmu.tagged = 40;
	slice.pmu.running_ns = 25;
	slice.pmu.extra_ns = 0;
	stratified_add(s, STRATUM_MISS, 16, 1, &slice);
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.groups[0].series[0].ops, 2 * 3 * 200);
	assert_int_equal(out.groups[0].series[0].cycles, 2 * 3 * 200 * 24);
	assert_int_equal(out.groups[0].series[0].strata->buckets[20], 2 * 3 * 200);
	assert_int_equal(out.groups[0].series[1].samples, 10);
	assert_int_equal(out.groups[0].series[1].ops, (2 + 4) * 5 * 40);
	assert_int_equal(out.groups[0].series[1].hitm, (2 + 4) * 24 * 40);
	assert_int_equal(out.groups[0].tlb.l2_hit_ops, 2 * 2 * 200);
	assert_int_equal(out.groups[0].tlb.l2_miss_ops, 2 * 7 * 200);
	x = out.groups[0].series[1].strata;
	for (int of = 0; of < STRATUM_N; of++) {
		const double f = of == STRATUM_FULL ? 2 : 4;

		near(x->ops.part[of], f * 5 * 40);
		near(x->cycles.part[of], f * 5 * 40 * 24);
		near(x->ops.square[of], f * f * 5 * 40 * 40);
		near(x->timed[of].ops, f * 5 * 40);
		near(x->timed[of].square, f * f * 5 * 40 * 40);
	}
	snapshot_free(&out);
}

/* Counts of the PMU are sums over all slices; CPUs are those of the last one. */
static void test_pmu(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct snapshot slice = { .by = 3,
				  .time_ns = 7,
				  .pmu = { .cpus = 8,
					   .counted = 1,
					   .enabled_ns = 2,
					   .running_ns = 3,
					   .extra_ns = -4,
					   .share_variance = 5,
					   .share_n = 6,
					   .throttled = 7,
					   .went = 8,
					   .came = 9,
					   .tagged = 10,
					   .tag_n = 11,
					   .tag_ops = 12,
					   .ops = 13 } },
			out;

	(void)state;
	for (int k = 0; k < 5; k++)
		stratified_add(s, k % 2, 16, 1, &slice);
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.by, 3);
	assert_int_equal(out.time_ns, 35);
	assert_int_equal(out.pmu.cpus, 8);
	assert_int_equal(out.pmu.counted, 5);
	assert_int_equal(out.pmu.enabled_ns, 10);
	assert_int_equal(out.pmu.running_ns, 15);
	assert_int_equal(out.pmu.extra_ns, -20);
	assert_true(out.pmu.share_variance == 25);
	assert_int_equal(out.pmu.share_n, 30);
	assert_int_equal(out.pmu.throttled, 35);
	assert_int_equal(out.pmu.went, 40);
	assert_int_equal(out.pmu.came, 45);
	assert_int_equal(out.pmu.tagged, 50);
	assert_int_equal(out.pmu.tag_n, 55);
	assert_int_equal(out.pmu.tag_ops, 60);
	assert_int_equal(out.pmu.ops, 65);
	snapshot_free(&out);
}

/* Ledgers are added up, also those of slices too short for the clock. With one stratum they are its own, and as exact. */
static void test_ledgers(void **state)
{
	struct snapshot slice = {
		.ledger = { .seen = 5, .pmu_exact = true, .dropped = 2, .dropped_known = true },
		.pmu = { .ops = 1000, .tagged = 10 }
	};
	struct snapshot out;

	(void)state;
	for (int which = 1; which <= 3; which++) {
		const int strata = which == 3 ? 2 : 1;
		struct stratified *s = stratified_new(REACH);

		for (int k = 0; k < 3; k++) {
			if (which & 1)
				stratified_add(s, STRATUM_FULL, 16, 1, &slice);
			if (which & 2)
				stratified_add(s, STRATUM_MISS, 16, 1, &slice);
		}
		stratified_end(s, &out);
		stratified_free(s);
		assert_int_equal(out.ledger.seen, 15 * strata);
		assert_int_equal(out.ledger.dropped, 6 * strata);
		assert_true(out.ledger.dropped_known);
		/* what the miss stratum did not see is unknown */
		assert_int_equal(out.ledger.pmu_exact, which == 1);
		for (int of = 0; of < STRATUM_N; of++)
			assert_int_equal(out.strata->ledger[of].seen, which >> of & 1 ? 15 : 0);
		snapshot_free(&out);
	}
}

/* Without a slice there is nothing; what was added and not ended can be freed. */
static void test_nothing(void **state)
{
	struct stratified *s = stratified_new(REACH);
	struct series l3 = loads(IBS_SRC_L3, 3, buckets[0]);
	struct group g = { .slot = 1, .series = &l3, .n_series = 1 };
	struct snapshot out;

	(void)state;
	stratified_end(s, &out);
	stratified_free(s);
	assert_int_equal(out.n_groups, 0);
	assert_int_equal(out.time_ns, 0);
	assert_int_equal(out.strata->design.n, 0);
	snapshot_free(&out);
	s = stratified_new(REACH);
	for (int k = 0; k < 60; k++)
		add(s, k % 2, 16, 10, &g, 1);
	stratified_free(s);
	stratified_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),	 cmocka_unit_test(test_timed),
		cmocka_unit_test(test_sums),	 cmocka_unit_test(test_design),
		cmocka_unit_test(test_periods),	 cmocka_unit_test(test_merged),
		cmocka_unit_test(test_rounded),	 cmocka_unit_test(test_ended),
		cmocka_unit_test(test_full),	 cmocka_unit_test(test_fits),
		cmocka_unit_test(test_groups),	 cmocka_unit_test(test_series),
		cmocka_unit_test(test_modified), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_pmu),	 cmocka_unit_test(test_ledgers),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
