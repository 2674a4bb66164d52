// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Differences and sums of counts, and estimates from tags and from a part of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "counts/snapshot.h"

#include <math.h>

/* --- snapshots --- */

static __u64 *buckets_of(unsigned int at, __u64 n)
{
	__u64 *buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*buckets));

	buckets[at] = n;
	return buckets;
}

static __u64 *all_buckets(__u64 n)
{
	__u64 *buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*buckets));

	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		buckets[i] = (1 + i) * n;
	return buckets;
}

/* A series of which each count is a different multiple of @n. */
static struct series series_of(enum ibs_op_kind op, enum ibs_src src, __u64 n)
{
	return (struct series){ .op = op,
				.src = src,
				.samples = n,
				.valid = 2 * n,
				.sum = 3 * n,
				.ops = 4 * n,
				.cycles = 5 * n,
				.open_n = 6 * n,
				.open = 7 * n,
				.state_n = 8 * n,
				.hitm = 9 * n,
				.exposed = 10 * n,
				.exposed_n = 11 * n,
				.price = 12.0 * n,
				.buckets = all_buckets(n) };
}

static void check_series(const struct series *s, enum ibs_op_kind op, enum ibs_src src, __u64 n)
{
	assert_int_equal(s->op, op);
	assert_int_equal(s->src, src);
	assert_int_equal(s->samples, n);
	assert_int_equal(s->valid, 2 * n);
	assert_int_equal(s->sum, 3 * n);
	assert_int_equal(s->ops, 4 * n);
	assert_int_equal(s->cycles, 5 * n);
	assert_int_equal(s->open_n, 6 * n);
	assert_int_equal(s->open, 7 * n);
	assert_int_equal(s->state_n, 8 * n);
	assert_int_equal(s->hitm, 9 * n);
	assert_int_equal(s->exposed, 10 * n);
	assert_int_equal(s->exposed_n, 11 * n);
	assert_true(s->price == 12.0 * n);
	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		assert_int_equal(s->buckets[i], (1 + i) * n);
}

static struct tlb_counts tlb_of(__u64 n)
{
	return (struct tlb_counts){ n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n };
}

static void check_tlb(const struct tlb_counts *t, __u64 n)
{
	assert_int_equal(t->l2_hit, n);
	assert_int_equal(t->l2_miss, 2 * n);
	assert_int_equal(t->l2_hit_ops, 3 * n);
	assert_int_equal(t->l2_miss_ops, 4 * n);
	assert_int_equal(t->refills, 5 * n);
	assert_int_equal(t->refill_cycles, 6 * n);
}

static void make(struct snapshot *s, size_t n_groups)
{
	*s = (struct snapshot){ .groups = xcalloc(n_groups, sizeof(*s->groups)) };
}

/* Append a group with loads from DRAM. */
static struct group *append(struct snapshot *s, __u32 slot, __u64 cgroup, __u64 n)
{
	struct group *g = &s->groups[s->n_groups++];

	*g = (struct group){
		.slot = slot, .key = { .cgroup_id = cgroup }, .tlb = tlb_of(n), .n_series = 1
	};
	g->series = xcalloc(1, sizeof(*g->series));
	g->series[0] = series_of(IBS_OP_KIND_LOAD, IBS_SRC_DRAM, n);
	return g;
}

/*
 * What a container had before is subtracted from what it has now. If its slot belonged to another one before, or to none,
 * everything is new, and nothing of the other is subtracted.
 */
static void test_owners(void **state)
{
	/* by slot; 0: no such group */
	static const struct {
		__u32 slot;
		__u64 older_id, older, newer_id, newer;
	} rows[] = {
		{ 1, 11, 4, 11, 9 }, { 2, 12, 50, 22, 60 }, { 3, 13, 3, 0, 0 },
		{ 5, 0, 0, 15, 7 },  { 6, 16, 10, 16, 30 }, { 7, 17, 8, 0, 0 },
		{ 8, 18, 1, 18, 3 }, { 9, 0, 0, 19, 5 },
	};
	static const __u64 want[] = { 5, 60, 7, 20, 2, 5 };
	struct snapshot newer, older, d;

	(void)state;
	make(&older, 6);
	make(&newer, 6);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].older)
			append(&older, rows[i].slot, rows[i].older_id, rows[i].older);
		if (rows[i].newer)
			append(&newer, rows[i].slot, rows[i].newer_id, rows[i].newer);
	}
	snapshot_diff(&newer, &older, &d);
	assert_int_equal(d.n_groups, ARRAY_SIZE(want));
	for (size_t i = 0; i < d.n_groups; i++) {
		assert_int_equal(d.groups[i].slot, newer.groups[i].slot);
		assert_int_equal(d.groups[i].key.cgroup_id, newer.groups[i].key.cgroup_id);
		assert_int_equal(d.groups[i].n_series, 1);
		check_series(d.groups[i].series, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, want[i]);
		check_tlb(&d.groups[i].tlb, want[i]);
		/* the difference has memory of its own */
		check_series(newer.groups[i].series, IBS_OP_KIND_LOAD, IBS_SRC_DRAM,
			     newer.groups[i].series->samples);
	}
	snapshot_free(&d);
	snapshot_diff(&newer, NULL, &d);
	for (size_t i = 0; i < d.n_groups; i++)
		check_series(d.groups[i].series, IBS_OP_KIND_LOAD, IBS_SRC_DRAM,
			     newer.groups[i].series->samples);
	snapshot_free(&d);
	snapshot_free(&newer);
	snapshot_free(&older);
}

/* Series are compared by op and source. Those without new samples are left out. */
static void test_series_of_group(void **state)
{
	struct snapshot newer, older, d;
	struct group *g;

	(void)state;
	make(&older, 1);
	make(&newer, 1);
	g = append(&older, 1, 7, 10);
	g->n_series = 3;
	g->series = xrealloc(g->series, 3 * sizeof(*g->series));
	g->series[1] = series_of(IBS_OP_KIND_LOAD, IBS_SRC_L3, 20);
	g->series[2] = series_of(IBS_OP_KIND_STORE, IBS_SRC_L3, 30);
	g = append(&newer, 1, 7, 10);
	g->n_series = 5;
	g->series = xrealloc(g->series, 5 * sizeof(*g->series));
	g->series[1] = series_of(IBS_OP_KIND_STORE, IBS_SRC_L3, 31);
	g->series[2] = series_of(IBS_OP_KIND_STORE, IBS_SRC_DRAM, 2);
	g->series[3] = series_of(IBS_OP_KIND_LOAD, IBS_SRC_L3, 25);
	g->series[4] =
		(struct series){ .op = IBS_OP_KIND_OTHER, .src = IBS_SRC_NONE, .samples = 3 };
	snapshot_diff(&newer, &older, &d);
	assert_int_equal(d.n_groups, 1);
	g = &d.groups[0];
	assert_int_equal(g->n_series, 4);
	check_series(&g->series[0], IBS_OP_KIND_STORE, IBS_SRC_L3, 1);
	check_series(&g->series[1], IBS_OP_KIND_STORE, IBS_SRC_DRAM, 2);
	check_series(&g->series[2], IBS_OP_KIND_LOAD, IBS_SRC_L3, 5);
	assert_int_equal(g->series[3].samples, 3);
	assert_null(g->series[3].buckets);
	check_tlb(&g->tlb, 0);
	snapshot_free(&d);
	snapshot_free(&newer);
	snapshot_free(&older);
}

/* Of each shard and source; a shard that is new had nothing before. */
static void test_shards(void **state)
{
	struct snapshot newer = { .n_shards = 3 }, older = { .n_shards = 2 }, d;

	(void)state;
	newer.shards = xcalloc(3, sizeof(*newer.shards));
	older.shards = xcalloc(2, sizeof(*older.shards));
	for (int src = 0; src < IBS_SRC_N; src++) {
		for (int i = 0; i < 3; i++)
			newer.shards[i].cycles[src] = 1000 * (i + 1) + src;
		for (int i = 0; i < 2; i++)
			older.shards[i].cycles[src] = 100 * (i + 1);
	}
	snapshot_diff(&newer, &older, &d);
	for (int src = 0; src < IBS_SRC_N; src++) {
		assert_int_equal(d.shards[0].cycles[src], 900 + src);
		assert_int_equal(d.shards[1].cycles[src], 1800 + src);
		assert_int_equal(d.shards[2].cycles[src], 3000 + src);
	}
	snapshot_free(&d);
	snapshot_diff(&newer, NULL, &d);
	for (int src = 0; src < IBS_SRC_N; src++)
		assert_int_equal(d.shards[1].cycles[src], 2000 + src);
	snapshot_free(&d);
	snapshot_free(&newer);
	snapshot_free(&older);
}

static void test_ledger(void **state)
{
	struct snapshot newer = { .time_ns = 50,
				  .ledger = { .seen = 100,
					      .pmu_samples = 200,
					      .unseen = 300,
					      .dropped = 400,
					      .undelivered = 500 } };
	struct snapshot older = { .time_ns = 20,
				  .ledger = { .seen = 1,
					      .pmu_samples = 2,
					      .unseen = 3,
					      .dropped = 4,
					      .undelivered = 5 } };
	struct snapshot d;

	(void)state;
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		newer.ledger.outcome[o] = 100 + 3 * o;
		older.ledger.outcome[o] = 1 + o;
	}
	snapshot_diff(&newer, &older, &d);
	assert_int_equal(d.time_ns, 30);
	assert_int_equal(d.ledger.seen, 99);
	assert_int_equal(d.ledger.pmu_samples, 198);
	assert_int_equal(d.ledger.unseen, 297);
	assert_int_equal(d.ledger.dropped, 396);
	assert_int_equal(d.ledger.undelivered, 495);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(d.ledger.outcome[o], 99 + 2 * o);
	snapshot_free(&d);
	snapshot_diff(&newer, NULL, &d);
	assert_int_equal(d.time_ns, 50);
	assert_int_equal(d.ledger.seen, 100);
	snapshot_free(&d);
}

/* What owns nothing any more is empty; that can be freed again. */
static void test_freed(void **state)
{
	struct series s = series_of(IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 3);
	static const struct snapshot empty;
	struct snapshot all;
	struct group *g;

	(void)state;
	s.strata = xcalloc(1, sizeof(*s.strata));
	s.strata->timed = xcalloc(1, sizeof(*s.strata->timed));
	for (int i = 0; i < 2; i++) {
		series_free(&s);
		assert_null(s.buckets);
		assert_null(s.strata);
	}
	make(&all, 3);
	all.by = 1;
	all.shards = xcalloc(2, sizeof(*all.shards));
	all.n_shards = 2;
	all.strata = xcalloc(1, sizeof(*all.strata));
	for (int i = 0; i < 3; i++)
		append(&all, i, i, 4);
	g = &all.groups[1];
	g->series = xrealloc(g->series, 2 * sizeof(*g->series));
	g->series[1] = series_of(IBS_OP_KIND_STORE, IBS_SRC_DRAM, 4);
	g->n_series = 2;
	for (int i = 0; i < 2; i++) {
		group_free(g);
		assert_int_equal(g->n_series, 0);
		assert_null(g->series);
	}
	for (int i = 0; i < 2; i++) {
		snapshot_free(&all);
		assert_memory_equal(&all, &empty, sizeof(all));
	}
}

static void test_groups(void **state)
{
	struct group groups[] = { { .slot = 1 },
				  { .slot = 2, .other = true },
				  { .slot = 3, .other = true, .ended = true },
				  { .slot = 4 },
				  { .slot = 5 } };
	const struct snapshot s = { .groups = groups, .n_groups = ARRAY_SIZE(groups) };

	(void)state;
	assert_int_equal(snapshot_groups(&s), 3);
	assert_int_equal(snapshot_groups(&(struct snapshot){}), 0);
}

/* A mode that is not in the table is unknown, too. */
static void test_modes(void **state)
{
	(void)state;
	assert_string_equal(mode_name(IBS_MODE_UNKNOWN), "unknown");
	assert_string_equal(mode_name(IBS_MODE_USER), "user");
	assert_string_equal(mode_name(IBS_MODE_KERNEL), "kernel");
	assert_string_equal(mode_name(IBS_MODE_N), "unknown");
	assert_string_equal(mode_name(~0U), "unknown");
}

/* --- sums --- */

/* The first one that has latencies gives the sum its buckets; the error is the largest. */
static void test_series_add(void **state)
{
	struct series sum = { .op = IBS_OP_KIND_LOAD, .src = IBS_SRC_DRAM, .share_error = 0.25 };
	struct series one = series_of(IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 3);
	const struct series none = { .op = IBS_OP_KIND_LOAD, .share_error = 0.125 };
	struct tlb_counts tlb = tlb_of(3);

	(void)state;
	series_add(&sum, &none);
	assert_null(sum.buckets);
	assert_null(sum.strata);
	assert_true(sum.share_error == 0.25);
	one.share_error = 0.5;
	for (int i = 0; i < 2; i++)
		series_add(&sum, &one);
	series_add(&sum, &none);
	check_series(&sum, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 6);
	assert_true(sum.share_error == 0.5);
	tlb_add(&tlb, &tlb);
	check_tlb(&tlb, 6);
	series_free(&sum);
	series_free(&one);
}

/* Sums of samples of two strata have slices and latencies of all. */
static void test_strata_add(void **state)
{
	static const struct strata_design design = {
		2, { { STRATUM_FULL, 10, 1, 1 }, { STRATUM_MISS, 10, 1, 1 } }
	};
	struct strata_timed timed[] = { { .slice = 0, .bucket = 3, .ops = 2, .square = 4 },
					{ .slice = 1, .bucket = 5, .ops = 7, .square = 49 } };
	struct series_strata x = { .design = &design,
				   .cycles = { .part = { 1, 2 }, .square = { 3, 4 } },
				   .ops = { .part = { 5, 6 }, .square = { 7, 8 } },
				   .timed = timed,
				   .n_timed = 2 };
	const struct series one = { .samples = 2, .strata = &x };
	struct series sum = {};

	(void)state;
	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		x.buckets[i] = 1 + i;
	for (int i = 0; i < 2; i++)
		series_add(&sum, &one);
	assert_int_equal(sum.samples, 4);
	assert_ptr_equal(sum.strata->design, &design);
	for (int k = 0; k < 2; k++) {
		assert_true(sum.strata->cycles.part[k] == 2 * x.cycles.part[k]);
		assert_true(sum.strata->cycles.square[k] == 2 * x.cycles.square[k]);
		assert_true(sum.strata->ops.part[k] == 2 * x.ops.part[k]);
		assert_true(sum.strata->ops.square[k] == 2 * x.ops.square[k]);
	}
	assert_int_equal(sum.strata->n_timed, 4);
	for (int i = 0; i < 4; i++)
		assert_memory_equal(&sum.strata->timed[i], &timed[i % 2], sizeof(*timed));
	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		assert_int_equal(sum.strata->buckets[i], 2 * (1 + i));
	series_free(&sum);
}

/* One sample has a mean. Ops that are too few to have a latency have none, whatever their cycles are. */
static void test_mean(void **state)
{
	struct series_strata x = { .buckets = { [3] = 1 } };
	struct series s = { .samples = 2, .valid = 1, .sum = 17, .cycles = 40 };

	(void)state;
	assert_true(series_mean(&s) == 17);
	s.strata = &x;
	assert_true(series_mean(&s) == 40);
	x.buckets[3] = 0;
	assert_true(isnan(series_mean(&s)));
}

/* Only buckets with samples, from the first one to the last; other members can follow. */
static void test_put_buckets(void **state)
{
	struct series s = { .buckets = buckets_of(0, 7) };
	char *text, want[100];
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct json_writer w = { .f = f };

	(void)state;
	assert_non_null(f);
	s.buckets[IBS_LAT_BUCKETS - 1] = 9;
	json_begin_object(&w, NULL);
	series_put_buckets(&w, &s);
	json_put_u64(&w, "samples", 16);
	json_finish(&w);
	fclose(f);
	snprintf(want, sizeof(want), "{\"buckets\":[[0,7],[%u,9]],\"samples\":16}\n",
		 ibs_lat_le(IBS_LAT_BUCKETS - 1));
	assert_string_equal(text, want);
	free(text);
	series_free(&s);
}

/* A series without latencies has none in any bucket; without slices, nothing is known of how sums vary. */
static void test_without(void **state)
{
	struct series_strata no_design = { .cycles = { .part = { 1 } }, .ops = { .part = { 1 } } };
	const struct series plain = { .samples = 5 },
			    of_strata = { .samples = 5, .ops = 40, .strata = &no_design };
	double low, high;

	(void)state;
	assert_true(series_in_bucket(&plain, 0) == 0);
	assert_true(series_counted(&plain) == 5 && series_counted(&of_strata) == 40);
	assert_true(isnan(series_mean(&plain)) && isnan(series_mean(&of_strata)));
	for (int i = 0; i < 2; i++) {
		const struct series *s = i ? &of_strata : &plain;

		assert_false(series_cycles_interval(s, &low, &high));
		assert_false(series_ops_interval(s, &low, &high));
	}
}

/* --- estimates --- */

/* Estimates are for the time that the event was enabled; unless they already make up for a part of it. */
static void test_scale(void **state)
{
	static const struct {
		struct pmu_state pmu;
		double scale;
	} rows[] = {
		{ { .enabled_ns = 1000, .running_ns = 500 }, 2 },
		{ { .enabled_ns = 1000, .running_ns = 400, .extra_ns = 100 }, 2 },
		{ { .enabled_ns = 1000, .running_ns = 600, .extra_ns = -100 }, 2 },
		{ { .enabled_ns = 3, .running_ns = 1 }, 3 },
		{ { .enabled_ns = 1000 }, 1 }, /* nothing is known */
		{ { .enabled_ns = 1000, .running_ns = 100, .extra_ns = -200 }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_true(pmu_scale(&rows[i].pmu) == rows[i].scale);
}

/* 500 ops in half the time are 1000 in all. A standard error of 100 is a tenth of these. */
static void test_share_error(void **state)
{
	const struct pmu_state half = { .enabled_ns = 2000,
					.running_ns = 1000,
					.counted = 500,
					.share_variance = 10000,
					.share_n = 8 };
	struct pmu_state p = half;

	(void)state;
	assert_true(fabs(pmu_share_error(&p) - 0.1) < 1e-12);
	p.share_n = 7; /* too few differences */
	assert_true(isnan(pmu_share_error(&p)));
	p = half;
	p.counted = 0;
	assert_true(isnan(pmu_share_error(&p)));
	p = half;
	p.counted = 1;
	assert_true(fabs(pmu_share_error(&p) - 50) < 1e-9);
	p = half;
	p.share_variance = -1; /* by rounding, or a difference of two */
	assert_true(pmu_share_error(&p) == 0);
	p = half;
	p.running_ns = 2000;
	p.share_n = 0;
	assert_true(pmu_share_error(&p) == 0);
}

/* Ops and cycles of two series, as if counted, and of a third one that has no ops. */
static void make_group(struct group *g)
{
	*g = (struct group){
		.n_series = 3,
		.tlb = { .l2_hit = 1, .l2_miss = 2, .l2_hit_ops = 30, .l2_miss_ops = 50 }
	};
	g->series = xcalloc(3, sizeof(*g->series));
	g->series[0] = (struct series){
		.samples = 3, .sum = 9, .ops = 101, .cycles = 203, .hitm = 41, .exposed = 61
	};
	g->series[1] = (struct series){
		.samples = 4, .sum = 8, .ops = 11, .cycles = 21, .hitm = 5, .exposed = 7
	};
	g->series[2] = (struct series){ .samples = 5, .sum = 7, .hitm = 5, .exposed = 7 };
}

/*
 * If the event was on the PMU for two fifths of the time, estimates are 2.5 times as large; samples and latencies are
 * what they are.
 */
static void test_group_scale(void **state)
{
	const struct pmu_state pmu = { .enabled_ns = 2000,
				       .running_ns = 800,
				       .counted = 400,
				       .share_variance = 10000,
				       .share_n = 8 };
	struct group g;

	(void)state;
	make_group(&g);
	group_weigh(&g, &pmu);
	assert_int_equal(g.series[0].samples, 3);
	assert_int_equal(g.series[0].sum, 9);
	assert_int_equal(g.series[0].ops, 253); /* 252.5 */
	assert_int_equal(g.series[0].cycles, 508);
	assert_int_equal(g.series[0].hitm, 103);
	assert_int_equal(g.series[0].exposed, 153);
	assert_int_equal(g.series[1].ops, 28);
	assert_int_equal(g.series[1].cycles, 53);
	assert_int_equal(g.series[1].hitm, 13);
	assert_int_equal(g.series[1].exposed, 18);
	assert_int_equal(g.series[2].ops, 0);
	assert_int_equal(g.series[2].hitm, 5);
	assert_int_equal(g.series[2].exposed, 7);
	assert_int_equal(g.tlb.l2_hit, 1);
	assert_int_equal(g.tlb.l2_miss, 2);
	assert_int_equal(g.tlb.l2_hit_ops, 75);
	assert_int_equal(g.tlb.l2_miss_ops, 125);
	for (int i = 0; i < 3; i++)
		assert_true(fabs(g.series[i].share_error - 0.1) < 1e-12);
	group_free(&g);
}

/* All the time: counts stay exact, also beyond what a double can hold. An error that is unknown is 0. */
static void test_group_exact(void **state)
{
	const __u64 large = (1ULL << 60) + 1;
	const struct pmu_state whole = { .enabled_ns = 1000, .running_ns = 1000 }, few = {
		.enabled_ns = 2000, .running_ns = 1000, .counted = 5, .share_n = 1
	};
	struct group g;

	(void)state;
	make_group(&g);
	g.series[0].ops = g.series[0].cycles = g.series[0].hitm = g.series[0].exposed = large;
	g.tlb.l2_hit_ops = g.tlb.l2_miss_ops = large;
	group_weigh(&g, &whole);
	assert_int_equal(g.series[0].ops, large);
	assert_int_equal(g.series[0].cycles, large);
	assert_int_equal(g.series[0].hitm, large);
	assert_int_equal(g.series[0].exposed, large);
	assert_int_equal(g.tlb.l2_hit_ops, large);
	assert_int_equal(g.tlb.l2_miss_ops, large);
	assert_true(g.series[0].share_error == 0);
	group_weigh(&g, &few);
	assert_int_equal(g.series[1].ops, 22);
	assert_true(g.series[1].share_error == 0);
	group_free(&g);
}

/* 25 ops in 10 tags: each sample of an unknown period represents 2.5 ops. Ops that were counted are kept. */
static void test_tags(void **state)
{
	const struct pmu_state tags = { .tags_known = true, .tag_n = 10, .tag_ops = 25 };
	struct group g;

	(void)state;
	make_group(&g);
	g.series[1].samples = 0;
	g.series[1].ops = 0;
	g.tlb.l2_hit_ops = 0;
	group_weigh(&g, &tags);
	assert_int_equal(g.series[0].ops, 101);
	assert_int_equal(g.series[0].cycles, 203);
	assert_int_equal(g.series[1].cycles, 21);
	assert_int_equal(g.series[2].ops, 13); /* 12.5 */
	assert_int_equal(g.series[2].cycles, 18);
	assert_int_equal(g.series[2].hitm, 13);
	assert_int_equal(g.tlb.l2_hit_ops, 0);
	assert_int_equal(g.tlb.l2_miss_ops, 50);
	g.tlb.l2_hit_ops = 30;
	g.tlb.l2_miss_ops = 0;
	group_weigh(&g, &tags);
	assert_int_equal(g.tlb.l2_hit_ops, 30);
	assert_int_equal(g.tlb.l2_miss_ops, 0);
	g.tlb = (struct tlb_counts){ .l2_hit = 3, .l2_miss = 5 };
	group_weigh(&g, &tags);
	assert_int_equal(g.tlb.l2_hit_ops, 8);
	assert_int_equal(g.tlb.l2_miss_ops, 13);
	g.series[0].ops = 0;
	group_weigh(&g, &tags);
	assert_int_equal(g.series[0].ops, 8); /* 7.5 */
	assert_int_equal(g.series[0].cycles, 23);
	group_free(&g);
}

/* Of an interval: 7 new samples, and 25 ops in 10 tags that came since. */
static void test_tags_of_interval(void **state)
{
	struct snapshot newer, older, d;

	(void)state;
	make(&older, 1);
	make(&newer, 1);
	append(&older, 1, 7, 0)->series[0].samples = 2;
	append(&newer, 1, 7, 0)->series[0].samples = 9;
	older.pmu = (struct pmu_state){ .tags_known = true, .tag_n = 100, .tag_ops = 100 };
	newer.pmu = (struct pmu_state){ .tags_known = true, .tag_n = 110, .tag_ops = 125 };
	snapshot_diff(&newer, &older, &d);
	assert_int_equal(d.groups[0].series[0].samples, 7);
	assert_int_equal(d.groups[0].series[0].ops, 18); /* 17.5 */
	snapshot_free(&d);
	snapshot_free(&newer);
	snapshot_free(&older);
}

/* Without tags there is no estimate. */
static void test_no_tags(void **state)
{
	static const struct pmu_state rows[] = { { .tag_n = 10, .tag_ops = 25 },
						 { .tags_known = true, .tag_ops = 25 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct group g;

		make_group(&g);
		g.tlb.l2_hit_ops = g.tlb.l2_miss_ops = 0;
		group_weigh(&g, &rows[i]);
		assert_int_equal(g.series[2].ops, 0);
		assert_int_equal(g.series[2].cycles, 0);
		assert_int_equal(g.series[2].hitm, 5);
		assert_int_equal(g.tlb.l2_hit_ops, 0);
		assert_int_equal(g.tlb.l2_miss_ops, 0);
		group_free(&g);
	}
}

/* Series whose samples have different weights get ops by latency: 3 samples of 10 ops, two of which took as long. */
static void test_weighted(void **state)
{
	struct group g = { .n_series = 3, .weighted = true };

	(void)state;
	g.series = xcalloc(3, sizeof(*g.series));
	g.series[0] =
		(struct series){ .samples = 4, .valid = 3, .ops = 10, .buckets = buckets_of(0, 3) };
	g.series[0].buckets[IBS_LAT_BUCKETS - 1] = 2;
	g.series[1] = (struct series){ .ops = 6, .buckets = buckets_of(2, 1) };
	g.series[2] = (struct series){ .samples = 1, .ops = 6 };
	group_weigh(&g, &(struct pmu_state){});
	assert_int_equal(g.series[0].strata->buckets[0], 8); /* 7.5 */
	assert_int_equal(g.series[0].strata->buckets[IBS_LAT_BUCKETS - 1], 5);
	assert_int_equal(strata_timed_ops(g.series[0].strata), 13);
	assert_int_equal(strata_timed_ops(g.series[1].strata), 0);
	assert_int_equal(strata_timed_ops(g.series[2].strata), 0);
	group_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_series_of_group),
		cmocka_unit_test(test_shards),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_series_add),
		cmocka_unit_test(test_strata_add),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_put_buckets),
		cmocka_unit_test(test_tags_of_interval),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_share_error),
		cmocka_unit_test(test_group_scale),
		cmocka_unit_test(test_group_exact),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_no_tags),
		cmocka_unit_test(test_weighted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
