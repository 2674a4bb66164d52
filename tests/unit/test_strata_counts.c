// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slices of two strata as one snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "counts/snapshot.h"

#include <ibscope/histogram.h>
#include <ibscope/op.h>
#include <math.h>
#include <string.h>

#define NEAR(a, b) assert_true(fabs((double)(a) - (double)(b)) <= 1e-4 * fabs((double)(b)) + 1)

static __u64 in_l3[IBS_LAT_BUCKETS], in_dram[IBS_LAT_BUCKETS], of_two[IBS_LAT_BUCKETS];

/* Latencies of 50 and 400 cycles. */
static struct series series(enum ibs_src src, __u64 samples, __u64 *buckets)
{
	const __u32 latency = src == IBS_SRC_L3 ? 50 : 400;

	memset(buckets, 0, sizeof(in_l3));
	buckets[ibs_lat_bucket(latency)] = samples;
	return (struct series){ .op = IBS_OP_KIND_LOAD,
				.src = src,
				.samples = samples,
				.valid = samples,
				.sum = samples * latency,
				.ops = samples,
				.cycles = samples * latency,
				.open_n = samples,
				.open = 3 * samples,
				.hitm = src == IBS_SRC_DRAM ? samples * latency : 0,
				.buckets = buckets };
}

static struct ledger ledger(__u64 seen, bool exact)
{
	struct ledger l = {
		.seen = seen, .pmu_exact = exact, .dropped_known = true, .dropped = exact ? 0 : 90
	};

	l.outcome[IBS_OUTCOME_AGGREGATED] = seen;
	return l;
}

static __u64 period = 100;

/* Times that the event was enabled, of that on the PMU. */
static unsigned int shared = 1;

static void add(struct stratified *s, enum stratum of, __u64 tags, struct group *groups, size_t n,
		__u64 seen)
{
	const struct snapshot slice = { .time_ns = 1000000000,
					.ledger = ledger(seen, of == STRATUM_FULL),
					.pmu = { .cpus = 2,
						 .ops = 1000,
						 .tagged = tags,
						 .enabled_ns = 1000,
						 .running_ns = 1000 / shared },
					.groups = groups,
					.n_groups = n };

	stratified_add(s, of, period, 1, &slice);
}

/* Two slices of each stratum; the slot of a group differs between them. */
static void build(struct snapshot *out)
{
	struct stratified *s = stratified_new(1U << IBS_SRC_DRAM);
	struct series full[] = { series(IBS_SRC_L3, 2, in_l3), series(IBS_SRC_DRAM, 1, in_dram) };
	struct series miss[] = { series(IBS_SRC_DRAM, 10, of_two),
				 { .src = IBS_SRC_NONE, .samples = 5 } };
	struct series alone[] = { { .src = IBS_SRC_NONE, .samples = 4, .ops = 1 } };
	struct group of_full[] = {
		{ .slot = 1,
		  .key = { .cgroup_id = 7 },
		  .n_series = 2,
		  .series = full,
		  .has_tlb = true,
		  .tlb = { .l2_miss = 2, .l2_miss_ops = 9 } },
		{ .slot = 2, .key = { .cgroup_id = 9 }, .n_series = 1, .series = alone },
	};
	struct group of_miss[] = { { .slot = 5,
				     .key = { .cgroup_id = 7 },
				     .n_series = 2,
				     .series = miss,
				     .tlb = { .l2_miss = 99 } } };

	for (int i = 0; i < 2; i++) {
		add(s, STRATUM_FULL, 10, of_full, 2, 7);
		add(s, STRATUM_MISS, 100, of_miss, 1, 15);
	}
	stratified_end(s, out);
	stratified_free(s);
}

static void sums(void **state)
{
	struct snapshot s;
	struct group *g;

	(void)state;
	build(&s);
	assert_int_equal(s.n_groups, 2);
	g = &s.groups[0];
	assert_int_equal(g->key.cgroup_id, 7);
	assert_int_equal(g->n_series, 2);
	/* 4000 ops in all, for 20 and for 220 tags */
	assert_int_equal(g->series[0].src, IBS_SRC_L3);
	NEAR(g->series[0].ops, 4 * 200);
	NEAR(g->series[0].cycles, 4 * 200 * 50);
	assert_int_equal(g->series[1].samples, 22);
	NEAR(g->series[1].ops, 22 * 4000 / 220.0);
	NEAR(g->series[1].cycles, 22 * 400 * 4000 / 220.0);
	NEAR(g->series[1].hitm, g->series[1].cycles);
	/* what only one stratum reports without bias */
	assert_int_equal(g->series[1].open_n, 2);
	assert_int_equal(g->tlb.l2_miss, 4);
	NEAR(g->tlb.l2_miss_ops, 4 * 200);
	NEAR(s.groups[1].series[0].ops, 8 * 200);
	snapshot_free(&s);
}

/* What another user of the PMU took away is estimated from the rest. */
static void shares(void **state)
{
	struct snapshot s;

	(void)state;
	shared = 2;
	build(&s);
	shared = 1;
	NEAR(s.groups[0].series[0].ops, 2 * 4 * 200);
	NEAR(s.groups[0].series[1].cycles, 2 * 22 * 400 * 4000 / 220.0);
	assert_int_equal(s.groups[0].series[1].samples, 22);
	NEAR(s.groups[1].series[0].ops, 2 * 8 * 200);
	snapshot_free(&s);
}

static void ledgers(void **state)
{
	struct snapshot s;

	(void)state;
	build(&s);
	assert_int_equal(s.ledger.seen, 44);
	assert_int_equal(s.strata->ledger[STRATUM_FULL].seen, 14);
	assert_int_equal(s.strata->ledger[STRATUM_MISS].outcome[IBS_OUTCOME_AGGREGATED], 30);
	assert_int_equal(ledger_residual(&s.ledger), 0);
	assert_true(s.strata->ledger[STRATUM_FULL].pmu_exact);
	assert_false(s.ledger.pmu_exact);
	assert_int_equal(s.ledger.dropped, 180);
	assert_int_equal(s.time_ns, 4000000000);
	assert_int_equal(s.pmu.ops, 4000);
	assert_int_equal(strata_slices(&s.strata->design, STRATUM_MISS), 2);
	snapshot_free(&s);
}

/* A row of both kinds of series: ops count, not samples, of which most are from DRAM. */
static void rows(void **state)
{
	struct series sum = {};
	struct snapshot s;
	double low, high;

	(void)state;
	build(&s);
	for (size_t i = 0; i < s.groups[0].n_series; i++)
		series_add(&sum, &s.groups[0].series[i]);
	assert_int_equal(sum.valid, 26);
	NEAR(series_mean(&sum), (800 * 50 + 400 * 400) / 1200.0);
	assert_int_equal(series_percentile(&sum, 0.5), ibs_lat_le(ibs_lat_bucket(50)));
	assert_int_equal(series_percentile(&sum, 0.9), ibs_lat_le(ibs_lat_bucket(400)));
	NEAR(series_in_bucket(&sum, ibs_lat_bucket(400)), 400);
	NEAR(series_counted(&sum), 1200);
	assert_true(series_cycles_interval(&sum, &low, &high));
	assert_true(low < 200000 && 200000 < high);
	assert_true(series_ops_interval(&sum, &low, &high));
	assert_true(low < 1200 && 1200 < high);
	series_free(&sum);
	snapshot_free(&s);
	/* without strata as ever */
	sum = series(IBS_SRC_DRAM, 2, in_dram);
	NEAR(series_mean(&sum), 400);
	assert_false(series_cycles_interval(&sum, &low, &high));
	assert_true(isnan(series_mean(&(struct series){})));
}

/* Slices of both strata by turns, with @n samples each, of which a part takes 800 cycles rather than 400. */
static void build_two(struct snapshot *out, __u64 n, const double *slow, int slices)
{
	struct stratified *w = stratified_new(1U << IBS_SRC_DRAM);

	for (int i = 0; i < slices; i++) {
		struct series dram = series(IBS_SRC_DRAM, n, in_dram);
		struct group g = { .slot = 1, .n_series = 1, .series = &dram };
		const __u64 late = llround(slow[i] * n);

		in_dram[ibs_lat_bucket(400)] = n - late;
		in_dram[ibs_lat_bucket(800)] = late;
		add(w, i % 2, 10, &g, 1, 1);
	}
	stratified_end(w, out);
	stratified_free(w);
}

/* The bucket that ends with @le has @value; one that begins with @low does. */
static bool begins(long low, __u32 value)
{
	return low == (long)ibs_lat_le(ibs_lat_bucket(value) - 1) + 1;
}

static bool ends(long high, __u32 value)
{
	return high == (long)ibs_lat_le(ibs_lat_bucket(value));
}

static void percentiles(void **state)
{
	double slow[STRATA_WINDOW];
	const struct series *s;
	struct snapshot even, uneven;
	struct series sum = {};
	long low, high;

	(void)state;
	/* 54 % take 400 cycles, in each slice: 1200 samples say so */
	for (int i = 0; i < STRATA_WINDOW; i++)
		slow[i] = 0.46;
	build_two(&even, 50, slow, STRATA_WINDOW);
	s = even.groups[0].series;
	assert_true(series_percentile_interval(s, 0.5, &low, &high));
	assert_true(begins(low, 400) && ends(high, 400));
	assert_true(series_percentile_interval(s, 0.99, &low, &high));
	assert_true(begins(low, 800) && ends(high, 800));
	/* rows add up series */
	for (int i = 0; i < 2; i++)
		series_add(&sum, s);
	assert_true(series_percentile_interval(&sum, 0.5, &low, &high));
	assert_true(begins(low, 400) && ends(high, 400));
	series_free(&sum);
	snapshot_free(&even);
	/* the same number, but 11 of the 24 slices have nothing else: what the other stratum had then is unknown */
	for (int i = 0; i < STRATA_WINDOW; i++)
		slow[i] = i / 2 % 2 && i != 3;
	build_two(&uneven, 50, slow, STRATA_WINDOW);
	s = uneven.groups[0].series;
	assert_int_equal(s->buckets[ibs_lat_bucket(800)], 550);
	assert_true(series_percentile_interval(s, 0.5, &low, &high));
	assert_true(begins(low, 400) && ends(high, 800));
	snapshot_free(&uneven);
}

/* 368 samples of one weight bound p99; a stratum with one slice bounds nothing. */
static void few_percentiles(void **state)
{
	const double slow[STRATA_WINDOW] = {};
	struct snapshot s;
	long low, high;

	(void)state;
	build_two(&s, 15, slow, STRATA_WINDOW);
	assert_int_equal(s.groups[0].series[0].valid, 360);
	assert_true(series_percentile(s.groups[0].series, 0.99) > 0);
	assert_false(series_percentile_interval(s.groups[0].series, 0.99, &low, &high));
	assert_true(series_percentile_interval(s.groups[0].series, 0.9, &low, &high));
	snapshot_free(&s);
	build_two(&s, 500, slow, 3);
	assert_false(series_percentile_interval(s.groups[0].series, 0.5, &low, &high));
	snapshot_free(&s);
}

/* More slices than a window has room for. */
static void long_window(void **state)
{
	struct series both[] = { series(IBS_SRC_DRAM, 1, in_dram),
				 { .src = IBS_SRC_NONE, .samples = 1 } };
	struct group g = { .slot = 1, .n_series = 2, .series = both };
	struct stratified *w = stratified_new(1U << IBS_SRC_DRAM);
	struct snapshot s;
	double sum = 0;
	long low, high;

	(void)state;
	for (int i = 0; i < 3 * STRATA_SLICES; i++)
		add(w, i % 2, 10, &g, 1, 1);
	stratified_end(w, &s);
	stratified_free(w);
	assert_true(s.strata->design.n <= STRATA_SLICES);
	assert_int_equal(s.groups[0].series[1].samples, 3 * STRATA_SLICES);
	for (unsigned int k = 0; k < s.strata->design.n; k++)
		sum += s.groups[0].series[1].strata->ops.part[k];
	/* a sample in ten tags, of 100 ops each */
	NEAR(sum, 3.0 * STRATA_SLICES * 100);
	NEAR(s.groups[0].series[1].ops, sum);
	/* as many entries as slices, and the same sum */
	assert_int_equal(s.groups[0].series[1].strata->n_timed, s.strata->design.n);
	for (unsigned int k = 0; k < s.strata->design.n; k++)
		sum -= s.groups[0].series[1].strata->timed[k].ops;
	assert_true(fabs(sum) < 1);
	assert_true(series_percentile_interval(&s.groups[0].series[1], 0.5, &low, &high));
	assert_true(begins(low, 400) && ends(high, 400));
	assert_false(series_percentile_interval(&s.groups[0].series[0], 0.5, &low, &high));
	snapshot_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(ledgers),
		cmocka_unit_test(shares),
		cmocka_unit_test(rows),
		cmocka_unit_test(long_window),
		cmocka_unit_test(percentiles),
		cmocka_unit_test(few_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
