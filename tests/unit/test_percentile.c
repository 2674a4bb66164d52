// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Percentiles of latencies, their intervals, and lists of latencies by slice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "counts/snapshot.h"

#include <math.h>

#define LAST (IBS_LAT_BUCKETS - 1)

static __u64 buckets[IBS_LAT_BUCKETS];

/* A series of samples in up to three buckets. */
static struct series series_of(unsigned int a, __u64 n_a, unsigned int b, __u64 n_b, unsigned int c,
			       __u64 n_c)
{
	memset(buckets, 0, sizeof(buckets));
	buckets[a] += n_a;
	buckets[b] += n_b;
	buckets[c] += n_c;
	return (struct series){ .samples = n_a + n_b + n_c,
				.valid = n_a + n_b + n_c,
				.buckets = buckets };
}

/* At least one sample has to lie beyond: 2 for the median, 10 for p90, 100 for p99. */
static void test_enough(void **state)
{
	static const struct {
		double q;
		__u64 least;
	} rows[] = { { 0.5, 2 }, { 0.9, 10 }, { 0.99, 100 }, { 0.999, 1000 } };
	struct series s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s = series_of(7, rows[i].least, 0, 0, 0, 0);
		assert_int_equal(series_percentile(&s, rows[i].q), ibs_lat_le(7));
		s = series_of(7, rows[i].least - 1, 0, 0, 0, 0);
		assert_int_equal(series_percentile(&s, rows[i].q), -1);
	}
	s.valid = 0;
	s.buckets = NULL;
	assert_int_equal(series_percentile(&s, 0.5), -1);
}

/* The first latency that the share of the samples does not exceed, from the first bucket to the last. */
static void test_percentile(void **state)
{
	struct series s = series_of(0, 10, 30, 80, LAST, 10);

	(void)state;
	assert_int_equal(series_percentile(&s, 0.05), ibs_lat_le(0));
	assert_int_equal(series_percentile(&s, 0.1), ibs_lat_le(0));
	assert_int_equal(series_percentile(&s, 0.11), ibs_lat_le(30));
	assert_int_equal(series_percentile(&s, 0.9), ibs_lat_le(30));
	assert_int_equal(series_percentile(&s, 0.91), ibs_lat_le(LAST));
	/* counts that do not match, as of a damaged file: buckets hold fewer samples than there are */
	s.valid = 200;
	assert_int_equal(series_percentile(&s, 0.9), -1);
}

/* Of samples that represent different numbers of ops, ops count; without an op, nothing is known. */
static void test_weighted(void **state)
{
	struct series s = series_of(5, 90, 9, 10, 0, 0);
	struct series_strata x = { .buckets = { [5] = 100, [9] = 300 } };

	(void)state;
	s.strata = &x;
	assert_int_equal(strata_timed_ops(&x), 400);
	assert_int_equal(series_percentile(&s, 0.25), ibs_lat_le(5));
	assert_int_equal(series_percentile(&s, 0.26), ibs_lat_le(9));
	x.buckets[0] = x.buckets[LAST] = 100;
	assert_int_equal(strata_timed_ops(&x), 600);
	assert_int_equal(series_percentile(&s, 0.16), ibs_lat_le(0));
	assert_int_equal(series_percentile(&s, 0.9), ibs_lat_le(LAST));
	memset(x.buckets, 0, sizeof(x.buckets));
	assert_int_equal(series_percentile(&s, 0.5), -1);
}

/* --- lists --- */

static void test_sort(void **state)
{
	static const struct strata_timed want[] = {
		{ 0, 9, 4, 40 },   { 1, 3, 5, 50 },   { 1, 4, 1, 10 },
		{ 2, 0, 64, 640 }, { 2, 1, 34, 340 },
	};
	struct strata_timed list[] = {
		{ 2, 1, 2, 20 }, { 1, 4, 1, 10 },   { 2, 1, 32, 320 },
		{ 0, 9, 4, 40 }, { 2, 0, 64, 640 }, { 1, 3, 5, 50 },
	};

	(void)state;
	assert_int_equal(strata_timed_sort(list, ARRAY_SIZE(list)), ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(list[i].slice, want[i].slice);
		assert_int_equal(list[i].bucket, want[i].bucket);
		assert_true(list[i].ops == want[i].ops && list[i].square == want[i].square);
	}
}

/* Squares are those of what a sample represents, so they change by the square. */
static void test_add(void **state)
{
	static const struct strata_timed list[] = { { 3, 4, 10, 30 }, { 1, 2, 20, 50 } };
	struct series_strata x = {};

	(void)state;
	strata_timed_add(&x, list, 2, 1);
	strata_timed_add(&x, list, 2, 0.5);
	/* so few entries are not worth sorting */
	assert_int_equal(x.n_timed, 4);
	for (int i = 0; i < 4; i++) {
		const double f = i < 2 ? 1 : 0.5;

		assert_int_equal(x.timed[i].slice, list[i % 2].slice);
		assert_int_equal(x.timed[i].bucket, list[i % 2].bucket);
		assert_true(x.timed[i].ops == list[i % 2].ops * f);
		assert_true(x.timed[i].square == list[i % 2].square * f * f);
	}
	free(x.timed);
}

/* Each of 1000 pairs, @times as they were added. */
static void check_combined(const struct series_strata *x, unsigned int times)
{
	assert_int_equal(x->n_timed, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(x->timed[i].slice, i / 100);
		assert_int_equal(x->timed[i].bucket, i % 100);
		assert_true(x->timed[i].ops == 2.0 * times && x->timed[i].square == 4.0 * times);
	}
}

/* Once a list of 1000 different pairs has doubled, equal ones are combined. */
static void test_combined(void **state)
{
	static struct strata_timed list[1000];
	struct series_strata x = {};

	(void)state;
	for (int i = 0; i < 1000; i++)
		list[i] = (struct strata_timed){
			.slice = i / 100, .bucket = i % 100, .ops = 2, .square = 4
		};
	strata_timed_add(&x, list, 1000, 1);
	strata_timed_add(&x, list, 1000, 1);
	check_combined(&x, 2);
	strata_timed_add(&x, list, 999, 1);
	assert_int_equal(x.n_timed, 1999);
	strata_timed_add(&x, list + 999, 1, 1);
	check_combined(&x, 3);
	free(x.timed);
}

/* --- intervals --- */

/*
 * The ranks of bounds of the median of 100 independent samples are about 50 -+ 1.96 sqrt(25): the 40th and the 61st, as
 * tables of the binomial distribution have them.
 */
static void test_interval(void **state)
{
	static const struct {
		__u64 n[3];
		unsigned int low, high; /* buckets */
	} rows[] = {
		{ { 30, 40, 30 }, 20, 20 }, /* all these are in the middle */
		{ { 45, 30, 25 }, 10, 20 }, { { 30, 25, 45 }, 20, 40 }, { { 45, 10, 45 }, 10, 40 },
		{ { 0, 100, 0 }, 20, 20 },  { { 100, 0, 0 }, 10, 10 },	{ { 0, 0, 100 }, 40, 40 },
	};
	long low, high;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct series s =
			series_of(10, rows[i].n[0], 20, rows[i].n[1], 40, rows[i].n[2]);

		assert_true(series_percentile_interval(&s, 0.5, &low, &high));
		assert_int_equal(low, ibs_lat_le(rows[i].low - 1) + 1);
		assert_int_equal(high, ibs_lat_le(rows[i].high));
	}
}

/* The first bucket begins with 0 cycles; the last one is not left out. */
static void test_edges(void **state)
{
	const struct series first = series_of(0, 100, 0, 0, 0, 0);
	long low, high;

	(void)state;
	assert_true(series_percentile_interval(&first, 0.5, &low, &high));
	assert_int_equal(low, 0);
	assert_int_equal(high, ibs_lat_le(0));
	const struct series last = series_of(LAST, 100, 0, 0, 0, 0);

	assert_true(series_percentile_interval(&last, 0.5, &low, &high));
	assert_int_equal(low, ibs_lat_le(LAST - 1) + 1);
	assert_int_equal(high, ibs_lat_le(LAST));
}

/* The median of six samples, and of seven, is between the first and the last, however many ops each represents. */
static void test_few(void **state)
{
	long low, high;

	(void)state;
	for (unsigned int n = 6; n <= 7; n++) {
		struct series s = series_of(10, 1, 20, 1, 30, n - 5);
		struct series_strata x = {};

		buckets[40] = buckets[50] = buckets[60] = 1;
		s.valid = n;
		for (int i = 0; i < IBS_LAT_BUCKETS; i++)
			x.buckets[i] = 1000000 * buckets[i];
		for (int i = 0; i < 2; i++) {
			assert_true(series_percentile_interval(&s, 0.5, &low, &high));
			assert_int_equal(low, ibs_lat_le(9) + 1);
			assert_int_equal(high, ibs_lat_le(60));
			s.strata = &x;
		}
	}
}

/* 6 samples bound the median, 36 p90, and 368 p99. */
static void test_interval_needs(void **state)
{
	static const struct {
		double q;
		__u64 least;
	} rows[] = { { 0.5, 6 }, { 0.9, 36 }, { 0.99, 368 } };
	long low, high;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct series s = series_of(7, rows[i].least, 0, 0, 0, 0);

		assert_true(series_percentile_interval(&s, rows[i].q, &low, &high));
		s = series_of(7, rows[i].least - 1, 0, 0, 0, 0);
		assert_false(series_percentile_interval(&s, rows[i].q, &low, &high));
	}
}

/*
 * Samples of different weights bound less than as many that are equal: (sum of ops)^2 / (sum of squares) count. 50
 * samples of one op and 2 of 50 are 150^2 / 5050 = 4.5 samples.
 */
static void test_interval_weighted(void **state)
{
	struct series s = series_of(5, 50, 9, 2, 0, 0);
	struct series_strata x = { .buckets = { [5] = 50, [9] = 100 } };
	long low, high;

	(void)state;
	assert_true(series_percentile_interval(&s, 0.5, &low, &high));
	assert_true(low == ibs_lat_le(4) + 1 && high == ibs_lat_le(5));
	s.strata = &x;
	assert_false(series_percentile_interval(&s, 0.5, &low, &high));
	/* all of 3 ops: as 52 samples */
	x.buckets[5] = 150;
	x.buckets[9] = 6;
	assert_true(series_percentile_interval(&s, 0.5, &low, &high));
	assert_true(low == ibs_lat_le(4) + 1 && high == ibs_lat_le(5));
	/* a tenth of an op each: as 100 samples */
	s = series_of(5, 80, 9, 20, 0, 0);
	s.strata = &x;
	x.buckets[5] = 8;
	x.buckets[9] = 2;
	assert_true(series_percentile_interval(&s, 0.5, &low, &high));
	assert_true(low == ibs_lat_le(4) + 1 && high == ibs_lat_le(5));
	/* no ops at all */
	memset(x.buckets, 0, sizeof(x.buckets));
	assert_false(series_percentile_interval(&s, 0.5, &low, &high));
}

/* --- intervals of slices --- */

#define SLICES 8

/* Slices of both strata by turns, as long as each other. */
static void make_design(struct strata_design *d)
{
	*d = (struct strata_design){ .n = SLICES };
	for (unsigned int k = 0; k < SLICES; k++)
		d->slice[k] = (struct strata_slice){ k % 2, 1000, 100, 1, 0 };
}

/* In each slice, @n[k] ops of latencies of bucket 10, and the rest of 100 of bucket 30. Samples represent one op. */
static void make_timed(struct series_strata *x, const struct strata_design *d,
		       struct strata_timed *timed, const unsigned int *n)
{
	*x = (struct series_strata){ .design = d, .timed = timed };
	for (unsigned int k = 0; k < SLICES; k++) {
		timed[x->n_timed++] = (struct strata_timed){ k, 10, n[k], n[k] };
		timed[x->n_timed++] = (struct strata_timed){ k, 30, 100 - n[k], 100 - n[k] };
	}
}

/*
 * The same shares in each slice: the interval is that of 800 samples, of which half are seen, so narrower than 0.5 -+
 * 1.96 sqrt(0.25 / 800) = 0.465 to 0.535. If shares differ between slices, it is wider.
 */
static void test_interval_of_slices(void **state)
{
	static const struct {
		unsigned int n[SLICES];
		unsigned int low, high;
	} rows[] = {
		{ { 45, 45, 45, 45, 45, 45, 45, 45 }, 30, 30 },
		{ { 55, 55, 55, 55, 55, 55, 55, 55 }, 10, 10 },
		{ { 50, 50, 50, 50, 50, 50, 50, 50 }, 10, 30 },
		{ { 5, 5, 95, 95, 5, 5, 75, 75 }, 10, 30 },
		{ { 95, 95, 5, 5, 95, 95, 25, 25 }, 10, 30 },
	};
	struct strata_timed timed[2 * SLICES];
	struct strata_design d;
	struct series_strata x;
	long low, high;

	(void)state;
	make_design(&d);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct series s = series_of(10, 400, 30, 400, 0, 0);

		s.strata = &x;
		make_timed(&x, &d, timed, rows[i].n);
		assert_true(series_percentile_interval(&s, 0.5, &low, &high));
		assert_int_equal(low, ibs_lat_le(rows[i].low - 1) + 1);
		assert_int_equal(high, ibs_lat_le(rows[i].high));
	}
}

/* However low the share is, no bound is below the latencies of all samples. */
static void test_lowest(void **state)
{
	static const unsigned int n[SLICES] = { 5, 5, 95, 95, 5, 5, 75, 75 };
	const float many = 1e12F;
	struct series s = series_of(10, 400, 30, 400, 0, 0);
	struct strata_timed timed[2 * SLICES];
	struct strata_design d;
	struct series_strata x;
	long low, high;

	(void)state;
	s.strata = &x;
	make_design(&d);
	make_timed(&x, &d, timed, n);
	for (size_t i = 0; i < x.n_timed; i++) {
		timed[i].ops *= many;
		timed[i].square *= many;
	}
	assert_true(series_percentile_interval(&s, 1e-11, &low, &high));
	assert_int_equal(low, ibs_lat_le(9) + 1);
	assert_int_equal(high, ibs_lat_le(10));
}

/* A damaged file may have fewer ops than none. Bounds are edges of buckets all the same. */
static void test_damaged(void **state)
{
	struct series s = series_of(10, 100, 0, 0, 0, 0);
	struct strata_timed timed[] = { { 0, 10, -10, 1 } };
	struct strata_design d = { 1, { { STRATUM_FULL, 1000, 100, 1, 0 } } };
	struct series_strata x = { .design = &d, .timed = timed, .n_timed = 1 };
	long low, high;

	(void)state;
	s.strata = &x;
	if (series_percentile_interval(&s, 0.5, &low, &high)) {
		assert_in_range(low, 0, ibs_lat_le(LAST));
		assert_in_range(high, 0, ibs_lat_le(LAST));
	}
}

/* The interval of p90 of 800 such samples is about 0.9 -+ 1.96 sqrt(0.5 * 0.09 / 800) = 0.885 to 0.915. */
static void test_high_percentile(void **state)
{
	static const unsigned int n[2][SLICES] = { { 87, 87, 87, 87, 87, 87, 87, 87 },
						   { 93, 93, 93, 93, 93, 93, 93, 93 } };
	struct strata_timed timed[2 * SLICES];
	struct strata_design d;
	struct series_strata x;
	long low, high;

	(void)state;
	make_design(&d);
	for (int i = 0; i < 2; i++) {
		struct series s = series_of(10, 400, 30, 400, 0, 0);
		const unsigned int bucket = i ? 10 : 30;

		s.strata = &x;
		make_timed(&x, &d, timed, n[i]);
		assert_true(series_percentile_interval(&s, 0.9, &low, &high));
		assert_int_equal(low, ibs_lat_le(bucket - 1) + 1);
		assert_int_equal(high, ibs_lat_le(bucket));
	}
}

/* With one slice of a stratum, nothing is known of how much the others differ. */
static void test_interval_of_slice(void **state)
{
	struct series s = series_of(10, 100, 30, 100, 0, 0);
	struct strata_timed timed[] = { { 0, 10, 100, 100 }, { 0, 30, 100, 100 } };
	struct strata_design d = { 1, { { STRATUM_FULL, 1000, 100, 1, 0 } } };
	struct series_strata x = { .design = &d, .timed = timed, .n_timed = 2 };
	long low, high;

	(void)state;
	s.strata = &x;
	assert_false(series_percentile_interval(&s, 0.5, &low, &high));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_enough),
		cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_weighted),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_combined),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_interval_needs),
		cmocka_unit_test(test_interval_weighted),
		cmocka_unit_test(test_interval_of_slices),
		cmocka_unit_test(test_interval_of_slice),
		cmocka_unit_test(test_high_percentile),
		cmocka_unit_test(test_lowest),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
