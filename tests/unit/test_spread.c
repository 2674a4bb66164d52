// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How much sums differ between slices, from samples in order of time, against the same of all slices at once; and the
 * schedule, weights and intervals of windows whose periods change.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/u64_map.h"
#include "strata/strata.h"

#define near(a, b) assert_true(fabs((a) - (double)(b)) <= 1e-9 * (1 + fabs((double)(b))))

#define WINDOWS 500

static __u64 state = 1;

static unsigned int draw(unsigned int below)
{
	state = u64_hash(state + 0x9e3779b97f4a7c15ull);
	return state % below;
}

/*
 * Beyond that of independent samples: for each stratum, the share of ops that it did not see, times the variance of its
 * slices' sums, which differences of neighbours tell, less that of the samples.
 */
static double beyond(const struct strata_design *d, const double *part, const double *square)
{
	double all = 0, out = 0;

	for (unsigned int k = 0; k < d->n; k++)
		all += d->slice[k].ops;
	for (int of = 0; of < STRATUM_N; of++) {
		double ops = 0, sum = 0, squares = 0, rest[STRATA_SLICES];
		unsigned int n = 0;

		for (unsigned int k = 0; k < d->n; k++) {
			ops += (int)d->slice[k].of == of ? d->slice[k].ops : 0;
			sum += (int)d->slice[k].of == of ? part[k] : 0;
		}
		for (unsigned int k = 0; k < d->n; k++)
			if ((int)d->slice[k].of == of)
				rest[n++] = part[k] - sum * d->slice[k].ops / ops;
		for (unsigned int i = 1; i < n; i++)
			squares += (rest[i] - rest[i - 1]) * (rest[i] - rest[i - 1]);
		if (n > 1 && sum > 0)
			out += (1 - ops / all) * (n * squares / (2. * (n - 1)) - square[of]);
	}
	return out;
}

static void make_design(struct strata_design *d, unsigned int n)
{
	memset(d, 0, sizeof(*d));
	d->n = n;
	for (unsigned int k = 0; k < n; k++)
		d->slice[k] = (struct strata_slice){ .of = draw(4) ? k % 2 : draw(2),
						     .ops = 100 + draw(900),
						     .tags = 10,
						     .seconds = 1 };
}

/* Windows with few samples, many, and none, one after the other. */
static void test_spread(void **unused)
{
	static struct strata_design design[WINDOWS];
	struct strata_spread s = {};
	double want = 0, part[STRATA_SLICES], square[STRATUM_N];

	(void)unused;
	for (unsigned int window = 0; window < WINDOWS; window++) {
		struct strata_design *d = &design[window];
		const unsigned int often = 1 + draw(6);

		make_design(d, 1 + draw(24));
		memset(part, 0, sizeof(part));
		memset(square, 0, sizeof(square));
		for (unsigned int k = 0; k < d->n; k++)
			for (unsigned int i = draw(often); i; i--) {
				const double x = 1 + draw(100);

				strata_spread_add(&s, d, k, x);
				part[k] += x;
				square[d->slice[k].of] += x * x;
			}
		want += beyond(d, part, square);
		/* the next window ends it, too */
		if (draw(2))
			near(strata_spread_end(&s), want);
	}
	near(strata_spread_end(&s), want);
	near(strata_spread_end(&s), want);
}

/* By hand: two full slices of 100 and 300 ops, with 10 and 50, and a miss slice of 400. */
static void test_by_hand(void **unused)
{
	static const struct strata_design d = { 3,
						{ { STRATUM_FULL, 100, 1, 1 },
						  { STRATUM_MISS, 400, 1, 1 },
						  { STRATUM_FULL, 300, 1, 1 } } };
	struct strata_spread s = {};

	(void)unused;
	near(strata_spread_end(&s), 0);
	strata_spread_add(&s, &d, 0, 10);
	strata_spread_add(&s, &d, 2, 30);
	strata_spread_add(&s, &d, 2, 20);
	/* 60 in 400 ops: 15 and 45 expected, so -5 and 5, whose difference is 10; 2 * 100 / 2 less 1400, halved */
	near(strata_spread_end(&s), .5 * (100 - 1400));
	assert_null(s.d);
}

/* A sample that comes late counts in the slice that goes on. */
static void test_late(void **unused)
{
	static const struct strata_design d = { 3,
						{ { STRATUM_FULL, 100, 1, 1 },
						  { STRATUM_FULL, 100, 1, 1 },
						  { STRATUM_FULL, 100, 1, 1 } } };
	struct strata_spread late = {}, s = {};
	static const struct strata_design other = { 4,
						    { { STRATUM_FULL, 100, 1, 1 },
						      { STRATUM_FULL, 200, 1, 1 },
						      { STRATUM_MISS, 100, 1, 1 },
						      { STRATUM_FULL, 100, 1, 1 } } };

	(void)unused;
	/* one stratum sees all ops: nothing is beyond */
	strata_spread_add(&s, &d, 0, 1);
	strata_spread_add(&s, &d, 1, 9);
	near(strata_spread_end(&s), 0);
	strata_spread_add(&late, &other, 0, 4);
	strata_spread_add(&late, &other, 1, 5);
	strata_spread_add(&late, &other, 0, 3); /* as of slice 1 */
	strata_spread_add(&late, &other, 3, 2);
	strata_spread_add(&s, &other, 0, 4);
	strata_spread_add(&s, &other, 1, 5);
	strata_spread_add(&s, &other, 1, 3);
	strata_spread_add(&s, &other, 3, 2);
	near(strata_spread_end(&late), strata_spread_end(&s));
	near(late.variance,
	     beyond(&other, (double[]){ 4, 8, 0, 2 }, (double[]){ 16 + 25 + 9 + 4, 0 }));
}

/* --- windows whose periods change --- */

/* 100 ops a tag of the full stratum; 10 of the miss stratum in one slice, and 20 in another. */
static const struct strata_design periods = { 5,
					      { { STRATUM_FULL, 1000, 10, 1, 0 },
						{ STRATUM_MISS, 1000, 100, 1, 10 },
						{ STRATUM_FULL, 1000, 10, 1, 0 },
						{ STRATUM_MISS, 2000, 100, 1, 20 },
						{ STRATUM_MISS, 500, 0, 1, 30 } } };

static void test_weights(void **unused)
{
	/* ops with tags: 2000 and 3000; 5500 in all. Tags that are as good: 20, and 3000^2 / (10 * 1000 + 20 * 2000) */
	const double miss = 9e6 / 5e4, share = miss / (miss + 20);

	(void)unused;
	near(strata_slice_weight(&periods, 0, false), 5500. / 2000 * 100);
	near(strata_slice_weight(&periods, 0, true), (1 - share) * 5500 / 2000 * 100);
	near(strata_slice_weight(&periods, 1, true), share * 5500 / 3000 * 10);
	near(strata_slice_weight(&periods, 3, true), share * 5500 / 3000 * 20);
	near(strata_slice_weight(&periods, 4, true), 0); /* no tag of that period */
	assert_true(strata_slice_weight(&periods, 1, false) == 0);
	assert_int_equal(strata_slices(&periods, STRATUM_FULL), 2);
	assert_int_equal(strata_slices(&periods, STRATUM_MISS), 3);
	near(strata_total(&periods, STRATUM_N).ops, 5500);
	near(strata_total(&periods, STRATUM_N).tags, 220);
	near(strata_total(&periods, STRATUM_MISS).seconds, 3);
}

static void test_sums(void **unused)
{
	struct strata_sum a = { .part = { 1, 2 }, .square = { 3, 4 } };
	const struct strata_sum b = { .part = { 10, 20, 30 }, .square = { 40, 50 } };

	(void)unused;
	strata_add(&a, &b);
	near(a.part[0], 11);
	near(a.part[1], 22);
	near(a.part[2], 30);
	near(a.square[STRATUM_FULL], 43);
	near(a.square[STRATUM_MISS], 54);
	assert_string_equal(stratum_name(STRATUM_FULL), "full");
	assert_string_equal(stratum_name(STRATUM_MISS), "miss");
	assert_string_equal(stratum_name(2), "unknown");
}

/* With a difference of two slices, two thirds of a degree of freedom; Student's t begins at two: 4.303 by a table. */
static void test_interval(void **unused)
{
	static const struct strata_design two = { 3,
						  { { STRATUM_FULL, 100, 1, 1 },
						    { STRATUM_MISS, 200, 1, 1 },
						    { STRATUM_FULL, 100, 1, 1 } } };
	const struct strata_sum s = { .part = { 40, 0, 60 }, .square = { 0 } };
	double low, high;

	(void)unused;
	/* 50 expected in each: -10 and 10. (1 - 1/2) * 2 * 400 / 2 is 200 */
	assert_true(strata_interval(&two, &s, &low, &high));
	near(low * high, 1e4);
	assert_true(fabs(log(high / 100) / (sqrt(200) / 100) - 4.303) < .14); /* of an expansion */
}

/* Differences of seven slices are four degrees of freedom: 2.776 by a table. */
static void test_freedom(void **unused)
{
	static const double sums[] = { 40, 60, 40, 60, 40, 60, 50 };
	struct strata_design d = { .n = 8, .slice = { [7] = { STRATUM_MISS, 700, 1, 1 } } };
	struct strata_sum s = {};
	double low, high, squares = 5 * 20 * 20 + 10 * 10, variance;

	(void)unused;
	for (unsigned int k = 0; k < 7; k++) {
		d.slice[k] = (struct strata_slice){ STRATUM_FULL, 100, 1, 1 };
		s.part[k] = (float)sums[k];
	}
	assert_true(strata_interval(&d, &s, &low, &high));
	variance = .5 * 7 * squares / (2 * 6); /* of the half of the ops that was not seen */
	near(low * high, 350 * 350);
	assert_true(fabs(log(high / 350) / (sqrt(variance) / 350) - 2.776) < .02);
}

static void test_schedule(void **unused)
{
	(void)unused;
	near(strata_slice_s(24), 1);
	near(strata_slice_s(25), 1);
	near(strata_slice_s(1.2), .05);
	near(strata_slice_s(2.4), .1);
	near(strata_next_s(STRATUM_MISS, 1, 0), .45);
	near(strata_next_s(STRATUM_MISS, 1, 1), 1.35);
	near(strata_next_s(STRATUM_MISS, .5, .5), .45);
	assert_int_equal(strata_period(4096, .5), 4096);
	assert_int_equal(strata_period(8192, .5), 4096);
	assert_int_equal(strata_period(8200, .5), 4096);
	assert_int_equal(strata_period(100000, .5), 50000);
	assert_int_equal(strata_period(100030, .5), 50000);
	assert_int_equal(strata_period(100032, .5), 50016);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spread),	 cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_late),	 cmocka_unit_test(test_weights),
		cmocka_unit_test(test_sums),	 cmocka_unit_test(test_interval),
		cmocka_unit_test(test_schedule), cmocka_unit_test(test_freedom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
