// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Estimates and intervals of strata: by hand, and over simulated windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "strata_sim.h"

#define NEAR(a, b) assert_true(fabs((a) - (double)(b)) < 1e-4 * fabs((double)(b)))

static const struct strata_design four = { 4,
					   {
						   { STRATUM_FULL, 1000, 10, 1 },
						   { STRATUM_MISS, 1000, 100, 1 },
						   { STRATUM_FULL, 2000, 20, 2 },
						   { STRATUM_MISS, 1000, 100, 1 },
					   } };

static void weights(void **state)
{
	static const struct strata_design no_full = {
		2, { { STRATUM_FULL, 10, 0, 1 }, { STRATUM_MISS, 10, 2, 1 } }
	};

	(void)state;
	/* 5000 ops in all: 30 tags of the full stratum, 230 of both */
	for (unsigned int k = 0; k < 4; k++)
		NEAR(strata_slice_weight(&four, k, true), 5000 / 230.0);
	NEAR(strata_slice_weight(&four, 2, false), 5000 / 30.0);
	assert_true(strata_slice_weight(&four, 1, false) == 0);
	NEAR(strata_total(&four, STRATUM_FULL).seconds, 3);
	/* without a tag in full slices, a sum would lack the ops that the filter drops */
	assert_true(strata_slice_weight(&no_full, 1, true) == 0);
}

static void interval(void **state)
{
	struct strata_sum s = { .part = { 30, 0, 60, 0 }, .square = { 90 } };
	double low, high;

	(void)state;
	/* equal rates in both slices: what is left is 3 of 5 parts of the sampling */
	assert_true(strata_interval(&four, &s, &low, &high));
	NEAR(log(high / 90), 1.959964 * sqrt(0.6 * 90) / 90);
	NEAR(low * high, 90.0 * 90);
	/* 24 rather than 30, and 66: differences of -6 and 6, squared and halved, for two of five parts */
	s.part[0] = 24;
	s.part[2] = 66;
	assert_true(strata_interval(&four, &s, &low, &high));
	assert_true(log(high / 90) > 1.959964 * sqrt(0.6 * 90 + 0.4 * 2 * 144 / 2) / 90);
	/* one slice says nothing of the others, nor do no samples */
	assert_false(strata_interval(&(struct strata_design){ 1, { { STRATUM_FULL, 10, 2, 1 } } },
				     &s, &low, &high));
	assert_false(strata_interval(&four, &(struct strata_sum){}, &low, &high));
}

static void merged(void **state)
{
	struct strata_design d = four;
	struct strata_sum s = { .part = { 1, 2, 4, 8 } };
	unsigned int into[STRATA_SLICES];

	(void)state;
	strata_merge(&d, into);
	strata_sum_merge(&s, into);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.slice[0].of, STRATUM_FULL);
	NEAR(d.slice[0].ops, 3000);
	NEAR(d.slice[1].tags, 200);
	NEAR(s.part[0], 5);
	NEAR(s.part[1], 10);
	assert_true(s.part[2] == 0);
}

static void schedule(void **state)
{
	double full = 0, miss = 0;
	struct sim s = { .state = 1 };

	(void)state;
	NEAR(strata_slice_s(0), 1);
	NEAR(strata_slice_s(12), 0.5);
	NEAR(strata_slice_s(0.1), 0.05);
	NEAR(strata_next_s(STRATUM_FULL, 1, 0), 0.55);
	NEAR(strata_next_s(STRATUM_FULL, 1, 1), 1.65);
	for (int i = 0; i < 1000; i++) {
		full += strata_next_s(STRATUM_FULL, 1, sim_random(&s));
		miss += strata_next_s(STRATUM_MISS, 1, sim_random(&s));
	}
	assert_true(fabs(full / (full + miss) - STRATA_FULL_SHARE) < 0.01);
	assert_int_equal(strata_period(1000000, 0.02), 20000);
	assert_int_equal(strata_period(1000000, 0), 1000000 / 64 / 16 * 16);
	assert_int_equal(strata_period(1000000, 2), 1000000);
	assert_int_equal(strata_period(10000, 0.02), 4096);
	assert_int_equal(strata_period(400, 0.5), 400);
}

/* make strata prints the same of 10,000 windows. */
static void simulated(void **state)
{
	struct sim s = { .state = 1 };
	struct sim_score score[SIM_ROWS];
	const struct sim_score *dram = &score[SIM_DRAM], *l3 = &score[SIM_L3];

	(void)state;
	sim_score(&s, 1000, score);
	assert_int_equal(dram->unknown, 0);
	assert_in_range(dram->covered, 930, 970);
	assert_in_range(l3->covered, 930, 970);
	assert_true(fabs(dram->bias / dram->n) < 0.005);
	assert_true(dram->half < dram->one_half / 4);
	assert_true(sqrt(dram->error / dram->one_error) < 0.25);
	assert_true(l3->half < 1.5 * l3->one_half);
	assert_true(fabs(dram->interrupts / dram->n - 1) < 0.01);
	s.load = SIM_STEPS;
	sim_score(&s, 1000, score);
	assert_in_range(dram->covered, 930, 985);
	assert_true(fabs(dram->bias / dram->n) < 0.01);
}

static void share(void **state)
{
	struct strata_sum below = { .part = { 10, 0, 20, 0 }, .square = { 30 } };
	const struct strata_sum all = { .part = { 40, 0, 80, 0 }, .square = { 120 } };
	double low, high;

	(void)state;
	/* the same share in both slices: what is left is 3 of 5 parts of the sampling */
	assert_true(strata_share_interval(&four, &below, &all, &low, &high));
	NEAR(log(high / (1 - high)) - log(0.25 / 0.75),
	     1.959964 * sqrt(0.6 * 120 * 0.25 * 0.75) / (120 * 0.25 * 0.75));
	NEAR(low / (1 - low) * high / (1 - high), 1 / 9.0);
	assert_false(strata_share_interval(&four, &all, &all, &low, &high));
	assert_false(strata_share_interval(&four, &(struct strata_sum){}, &all, &low, &high));
	assert_false(strata_share_interval(&four, &(struct strata_sum){}, &(struct strata_sum){},
					   &low, &high));
	/* unequal slices make it wider */
	below.part[0] = 0;
	below.part[2] = 30;
	assert_true(strata_share_interval(&four, &below, &all, &low, &high));
	assert_true(high > 0.4);
}

/* Percentiles of latencies from memory, which are higher at some times than at others. */
static void quantiles(void **state)
{
	static const double q[] = { 0.5, 0.9, 0.99 };
	unsigned int covered = 0, n = 0;

	(void)state;
	for (int i = 0; i < 3 * 4; i++) {
		struct sim s = { .state = i,
				 .load = i % 2 ? SIM_STEPS : SIM_STEADY,
				 .contended = i / 2 % 2,
				 .quantile = q[i / 4] };
		struct sim_score score[SIM_ROWS];

		sim_score(&s, 200, score);
		assert_int_equal(score[SIM_DRAM].shares, 200);
		assert_in_range(score[SIM_DRAM].shares_covered, 178, 200);
		covered += score[SIM_DRAM].shares_covered;
		n += 200;
	}
	print_message("quantiles: %u of %u\n", covered, n);
	assert_in_range(covered, 93 * n / 100, 97 * n / 100);
}

static struct sim_score *split(enum sim_load load, double dram, double l3, double full_share)
{
	static struct sim_score score[SIM_ROWS];
	struct sim s = { .state = 1, .load = load, .full_share = full_share, .part = { dram, l3 } };

	sim_score(&s, 400, score);
	return score;
}

static double width(double full_share, enum sim_kind row)
{
	const struct sim_score *c = &split(SIM_STEADY, 0, 0, full_share)[row];

	return c->half / c->one_half;
}

/* The split is where both intervals are as narrow as promised; make strata-split looks at more loads. */
static void splits(void **state)
{
	static const double least = STRATA_FULL_LEAST, most = STRATA_FULL_MOST;
	static const double dram[] = { 0.0005, 0.02, 0.1 };

	(void)state;
	assert_true(width(least, SIM_L3) < 1.5 && width(least - 0.05, SIM_L3) > 1.5);
	assert_true(width(most, SIM_DRAM) < 0.25 && width(most + 0.05, SIM_DRAM) > 0.25);
	for (int i = 0; i < 6; i++) {
		const enum sim_load load = i % 2 ? SIM_STEPS : SIM_STEADY;
		const double now = split(load, dram[i / 2], 0.028, 0)[SIM_ALL].half;

		assert_true(split(load, dram[i / 2], 0.028, least)[SIM_ALL].half > 0.88 * now);
		assert_true(split(load, dram[i / 2], 0.028, most)[SIM_ALL].half > 0.88 * now);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights),  cmocka_unit_test(interval),	 cmocka_unit_test(merged),
		cmocka_unit_test(schedule), cmocka_unit_test(simulated), cmocka_unit_test(splits),
		cmocka_unit_test(share),    cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
