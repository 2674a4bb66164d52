// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Intervals of 95 % contain the truth in 93 to 97 of 100 windows, and what they do not promise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/estimate.h"
#include "base/std.h"
#include "table/table.h"
#include "random_word.h"

#include <ibscope/histogram.h>

#define PERIOD 1000

/* in [0, 1) */
static double random_unit(void)
{
	return (double)(random_word() >> 11) / (double)(1ull << 53);
}

static double random_exp(double mean)
{
	return -mean * log1p(-random_unit());
}

static unsigned int random_poisson(double mean)
{
	unsigned int n = 0;

	for (double t = random_exp(1); t < mean; t += random_exp(1))
		n++;
	return n;
}

/* L2, L3 and DRAM. */
static unsigned int latency_mixed(void)
{
	const double u = random_unit();

	if (u < 0.6)
		return 12 + random_exp(6);
	return u < 0.85 ? 45 + random_exp(15) : 400 + random_exp(150);
}

static unsigned int latency_dram(void)
{
	return 400 + random_exp(100);
}

/* One in 33 is 50 times the others. */
static unsigned int latency_rare(void)
{
	return random_unit() < 0.97 ? 15 + random_exp(5) : 500 + random_exp(400);
}

static struct series series_of(__u64 buckets[IBS_LAT_BUCKETS])
{
	memset(buckets, 0, IBS_LAT_BUCKETS * sizeof(*buckets));
	return (struct series){ .buckets = buckets };
}

static void add(struct series *s, unsigned int lat)
{
	s->samples++;
	s->valid++;
	s->sum += lat;
	s->ops += PERIOD;
	s->cycles += (__u64)lat * PERIOD;
	s->buckets[ibs_lat_bucket(lat)]++;
}

static bool holds(struct bounds b, double truth)
{
	return b.low <= truth && truth <= b.high;
}

static double mean_of(unsigned int (*latency)(void))
{
	double sum = 0;

	for (int i = 0; i < 1000000; i++)
		sum += latency();
	return sum / 1000000;
}

/* Percent of @windows with @n samples on average whose interval contains the truth. */
static double coverage(unsigned int (*latency)(void), double mean, double n, int windows)
{
	__u64 buckets[IBS_LAT_BUCKETS];
	int held = 0;

	for (int w = 0; w < windows; w++) {
		struct series s = series_of(buckets);
		struct estimate e;

		for (unsigned int i = random_poisson(n); i; i--)
			add(&s, latency());
		e = series_waits(&s);
		held += holds(estimate_interval(&e, 0), n * mean * PERIOD);
	}
	return 100.0 * held / windows;
}

static void assert_covers(double percent, double low, double high)
{
	if (percent < low || percent > high)
		fail_msg("the truth is in %.1f %% of the intervals, not in %.1f to %.1f", percent,
			 low, high);
}

static void test_coverage(void **unused)
{
	static const int counts[] = { TABLE_FEW, 50, 200, 1000 };
	const double mixed = mean_of(latency_mixed), dram = mean_of(latency_dram);

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		assert_covers(coverage(latency_mixed, mixed, counts[i], 2000), 93, 97);
		assert_covers(coverage(latency_dram, dram, counts[i], 2000), 93, 97);
	}
}

/* What the man pages say of rare long latencies. */
static void test_rare(void **unused)
{
	const double rare = mean_of(latency_rare);

	(void)unused;
	assert_covers(coverage(latency_rare, rare, 20, 2000), 40, 50);
	assert_covers(coverage(latency_rare, rare, 200, 2000), 91, 97);
	assert_covers(coverage(latency_rare, rare, 1000, 2000), 93, 97);
}

/*
 * A program of two functions, of which each op is known, sampled every 1000 ops or a few more or less.
 * The truth is the sum over all its ops, not a mean of many windows.
 */
static void test_every_op(void **unused)
{
	enum { WINDOWS = 400, OPS = 400000 };
	__u64 buckets[2][IBS_LAT_BUCKETS];
	int held[2] = {}, shares = 0;

	(void)unused;
	for (int w = 0; w < WINDOWS; w++) {
		struct series s[2] = { series_of(buckets[0]), series_of(buckets[1]) };
		struct estimate e[2], all = {};
		double truth[2] = {};
		int next = (int)(random_unit() * PERIOD), drawn = 0;

		for (int op = 0; op < OPS; op++) {
			const int f = op % 7 < 3;
			unsigned int lat = 0;

			/* a third of the ops misses, the second function half as often */
			const __u64 r = random_word() >> 11;

			if ((r & 255) < (f ? 43 : 85))
				lat = r >> 8 & 1 ? 14 : 50 + (r >> 16 & 255);
			truth[f] += lat;
			if (op != next)
				continue;
			drawn++;
			next += PERIOD - 64 + (int)(random_unit() * 128);
			if (lat)
				add(&s[f], lat);
		}
		for (int f = 0; f < 2; f++) {
			e[f] = series_waits(&s[f]);
			estimate_merge(&all, &e[f]);
			held[f] += holds(estimate_interval(&e[f], drawn), truth[f]);
		}
		shares += holds(estimate_share(&e[1], &all), truth[1] / (truth[0] + truth[1]));
	}
	assert_covers(100.0 * held[0] / WINDOWS, 93, 97.5);
	assert_covers(100.0 * held[1] / WINDOWS, 93, 97.5);
	assert_covers(100.0 * shares / WINDOWS, 93, 97.5);
}

/* Each sample has a latency, as with ibs_fetch: without the number drawn the interval is too wide. */
static void test_drawn(void **unused)
{
	enum { WINDOWS = 2000, DRAWN = 100 };
	const double mean = mean_of(latency_dram);
	int held = 0, alone = 0;

	(void)unused;
	for (int w = 0; w < WINDOWS; w++) {
		struct estimate e = {};

		for (int i = 0; i < DRAWN; i++)
			estimate_add(&e, latency_dram());
		held += holds(estimate_interval(&e, DRAWN), DRAWN * mean);
		alone += holds(estimate_interval(&e, 0), DRAWN * mean);
	}
	assert_covers(100.0 * held / WINDOWS, 93, 97.5);
	assert_covers(100.0 * alone / WINDOWS, 99, 100);
}

static void test_shares(void **unused)
{
	enum { WINDOWS = 2000 };
	const double mean = mean_of(latency_mixed), dram = mean_of(latency_dram);
	const double parts[] = { 25, 100 }; /* samples of the part; the rest has 150 */

	(void)unused;
	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const double truth = parts[k] * dram / (parts[k] * dram + 150 * mean);
		int held = 0;

		for (int w = 0; w < WINDOWS; w++) {
			struct estimate part = {}, all = {};

			for (unsigned int i = random_poisson(parts[k]); i; i--)
				estimate_add(&part, latency_dram());
			for (unsigned int i = random_poisson(150); i; i--)
				estimate_add(&all, latency_mixed());
			estimate_merge(&all, &part);
			held += holds(estimate_share(&part, &all), truth);
		}
		assert_covers(100.0 * held / WINDOWS, 93, 97);
	}
}

static void test_edges(void **unused)
{
	struct estimate none = {}, one = {}, all = {};
	struct bounds b = estimate_interval(&none, 0);

	(void)unused;
	/* nothing was seen: how much there may be is unknown */
	assert_true(b.low == 0 && isnan(b.high));
	assert_true(isnan(estimate_error(&none, 0)));
	b = estimate_share(&none, &none);
	assert_true(isnan(b.low) && isnan(b.high));

	estimate_add(&one, 500);
	b = estimate_interval(&one, 0);
	assert_true(b.low > 0 && b.low < 50 && b.high > 2000 && b.high < 5000);
	b = estimate_share(&one, &one);
	assert_true(b.low == 1 && b.high == 1);
	estimate_merge(&all, &one);
	estimate_add(&all, 500);
	b = estimate_share(&one, &all);
	assert_true(b.low > 0 && b.low < 0.2 && b.high > 0.8 && b.high < 1);
	b = estimate_share(&none, &all);
	assert_true(b.low == 0 && isnan(b.high));
	/* all samples drawn, of one weight: nothing is left to chance */
	b = estimate_interval(&all, 2);
	assert_true(b.low == 1000 && b.high == 1000);
}

/* What all weights have in common adds to the interval of a sum, but not of a share. */
static void test_common(void **unused)
{
	struct estimate one = { .sum = 500, .squares = 250000, .largest = 500, .common = 0.1 };
	struct estimate all = { .sum = 500, .squares = 250000, .largest = 500 };
	const struct bounds share = estimate_share(&all, &one);
	struct bounds without, b;

	(void)unused;
	estimate_merge(&all, &one);
	b = estimate_interval(&all, 2);
	assert_true(fabs(b.low - (1000 - 195.9964)) < 1e-6 && fabs(b.high - 1195.9964) < 1e-6);
	b = estimate_interval(&all, 0);
	all.common = 0;
	without = estimate_interval(&all, 0);
	assert_true(fabs(hypot(1000 - without.low, 195.9964) - (1000 - b.low)) < 1e-6);
	assert_true(fabs(hypot(without.high - 1000, 195.9964) - (b.high - 1000)) < 1e-6);
	all.common = 1;
	b = estimate_interval(&all, 2);
	assert_true(b.low == 0);
	one.common = 0;
	b = estimate_share(&one, &one);
	assert_true(b.low == share.low && b.high == share.high);
}

/* Rows, and what a table says of all of them. */
static void test_line(void **unused)
{
	__u64 buckets[2][IBS_LAT_BUCKETS];
	struct series many = series_of(buckets[0]), few = series_of(buckets[1]);
	struct table_row rows[2] = {};
	struct screen screen = { .width = 80 };
	struct table t = { .row = rows, .n = 2 };
	char out[256] = "";
	FILE *f;

	(void)unused;
	for (int i = 0; i < 400; i++)
		add(&many, 100);
	for (int i = 0; i < 4; i++)
		add(&few, 100);
	rows[0] = (struct table_row){ .all = many, .waits = series_waits(&many), .cycles = 4e7 };
	rows[1] = (struct table_row){ .all = few, .waits = series_waits(&few), .cycles = 4e5 };
	/* of equal weights, 400 samples are +-10 % */
	assert_true(table_interval(&t, &rows[0]).low > 0.9 * 4e7);
	assert_true(table_interval(&t, &rows[0]).low < 0.915 * 4e7);
	rows[0].cycles = NAN;
	assert_true(isnan(table_interval(&t, &rows[0]).low));

	f = fmemopen(out, sizeof(out), "w");
	table_print_trust(f, &screen, &t);
	fclose(f);
	assert_string_equal(out, "95% intervals of cycles: +-9.9%; ~ fewer than 20 samples\n");
	/* below one with fewer cycles */
	rows[0].cycles = 4e7;
	rows[1].cycles = 5e7;
	f = fmemopen(out, sizeof(out), "w");
	table_print_trust(f, &screen, &t);
	fclose(f);
	assert_string_equal(out, "95% intervals of cycles: +-9.9%; ~ last: under 20 samples\n");
	t.row = &rows[1];
	t.n = 1;
	f = fmemopen(out, sizeof(out), "w");
	table_print_trust(f, &screen, &t);
	fclose(f);
	assert_non_null(strstr(out, "every row has fewer than 20 samples"));
}

static bool is_rank(double share, double n, double rank)
{
	return fabs(share * n - rank) < 1e-6;
}

/* Ranks of tables of the binomial distribution, and how often they contain the quantile. */
static void test_ranks(void **state)
{
	static const struct {
		double n, q;
	} cases[] = { { 40, 0.5 }, { 150, 0.9 }, { 500, 0.99 }, { 20000, 0.99 } };
	struct bounds b = estimate_ranks(100, 0.5);

	(void)state;
	assert_true(is_rank(b.low, 100, 40) && is_rank(b.high, 100, 61));
	b = estimate_ranks(6.9, 0.5);
	assert_true(is_rank(b.low, 6, 1) && is_rank(b.high, 6, 6));
	assert_true(isnan(estimate_ranks(5, 0.5).low));
	assert_true(isnan(estimate_ranks(35, 0.9).low) && !isnan(estimate_ranks(36, 0.9).low));
	assert_true(isnan(estimate_ranks(367, 0.99).low) && !isnan(estimate_ranks(368, 0.99).low));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const double n = cases[i].n, q = cases[i].q;
		unsigned int covered = 0;

		b = estimate_ranks(n, q);
		for (int run = 0; run < 2000; run++) {
			/* gaps between samples above the quantile are geometric */
			double above = -1;

			for (double at = 0; at < n; at += ceil(log1p(-random_unit()) / log(q)))
				above++;
			covered += n - above >= round(b.low * n) && n - above < round(b.high * n);
		}
		if (covered < 1860 || covered > 1975)
			fail_msg("%.0f samples, %.2f: %u of 2000", n, q, covered);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coverage), cmocka_unit_test(test_rare),
		cmocka_unit_test(test_every_op), cmocka_unit_test(test_drawn),
		cmocka_unit_test(test_shares),	 cmocka_unit_test(test_edges),
		cmocka_unit_test(test_common),	 cmocka_unit_test(test_line),
		cmocka_unit_test(test_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
