// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Findings of the HTML report: what differs is found, noise is not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <ibscope/sim.h>

#include "base/array.h"
#include "html/html_findings.h"

#define DRAWS_MAX 200000

static __u64 state;

static double random_number(void)
{
	return (ibs_sim_mix(++state) >> 11) * 0x1p-53;
}

/* A sample of which @share is HITM and as much remote, walked, far or slow; HITM costs @hitm_cost. */
static void draw(struct html_tally *t, double share, double hitm_cost)
{
	double cost = 0;
	bool has[HTML_CAUSES];

	for (unsigned int c = 0; c < HTML_CAUSES; c++)
		has[c] = random_number() < share;
	cost = (has[HTML_CAUSE_HITM] ? hitm_cost : 100) * (.5 + random_number());
	for (unsigned int c = 0; c < HTML_CAUSES; c++)
		html_part_add(&t->of[c], 1, 1, c == HTML_CAUSE_SLOW ? 1 : cost, has[c]);
	t->cycles += cost;
	t->dram_cycles += cost;
}

/* Exactly: @hitm of @n equal samples. */
static struct html_tally exact(double n, double hitm)
{
	struct html_tally t = { .cycles = 100 * n };

	html_part_add(&t.of[HTML_CAUSE_HITM], n - hitm, n - hitm, 100 * (n - hitm), false);
	html_part_add(&t.of[HTML_CAUSE_HITM], hitm, hitm, 100 * hitm, true);
	return t;
}

static size_t find(const struct html_tally *row, size_t n, struct html_finding *out)
{
	return html_findings_find(row, n, HTML_FALSE, out, HTML_FINDINGS_MAX);
}

/* 18.6 % where all have 18.7 % is nothing, however many samples say so; nor are 19.8 %. */
static void test_a_share_like_that_of_the_total(void **unused)
{
	struct html_finding f[HTML_FINDINGS_MAX];

	(void)unused;
	for (double n = 1000; n < 1e10; n *= 10) {
		const struct html_tally rows[] = { exact(n, .186 * n),
						   exact(3 * n, .1873 * 3 * n) };
		const struct html_tally small[] = { exact(n, .198 * n),
						    exact(3 * n, .187 * 3 * n) };

		assert_int_equal(find(rows, 2, f), 0);
		assert_int_equal(find(small, 2, f), 0);
	}
}

static void test_a_row_that_differs(void **unused)
{
	const struct html_tally rows[] = { exact(500, 200), exact(2000, 370), exact(2000, 380) };
	struct html_finding f[HTML_FINDINGS_MAX];

	(void)unused;
	assert_int_equal(find(rows, 3, f), 1);
	assert_int_equal(f[0].row, 0);
	assert_int_equal(f[0].cause, HTML_CAUSE_HITM);
	assert_true(f[0].share > .399 && f[0].share < .401);
	assert_true(f[0].rest > .187 && f[0].rest < .188);
	assert_true(f[0].excess > .21 * 50000 && f[0].excess < .22 * 50000);
}

/* The largest row differs from a small rest as well. */
static void test_the_largest_row(void **unused)
{
	const struct html_tally rows[] = { exact(9000, 2700), exact(1000, 100) };
	struct html_finding f[HTML_FINDINGS_MAX];

	(void)unused;
	assert_int_equal(find(rows, 2, f), 1);
	assert_int_equal(f[0].row, 0);
}

/* Few samples prove nothing, even if all of them are HITM; nor does what costs nothing. */
static void test_tiny_rows(void **unused)
{
	const struct html_tally three[] = { exact(3, 3), exact(200, 40) };
	const struct html_tally cheap[] = { exact(1000, 1000), exact(1e6, 1e5) };
	const struct html_tally alone[] = { exact(1000, 500) };
	struct html_tally heavy[] = { exact(10, 0), exact(300, 3) };
	struct html_finding f[HTML_FINDINGS_MAX];

	(void)unused;
	assert_int_equal(find(three, 2, f), 0);
	assert_int_equal(find(cheap, 2, f), 0);
	assert_int_equal(find(alone, 1, f), 0);
	assert_int_equal(find(alone, 0, f), 0);
	/* one sample that took very long */
	html_part_add(&heavy[0].of[HTML_CAUSE_HITM], 1, 1, 20000, true);
	heavy[0].cycles += 20000;
	assert_int_equal(find(heavy, 2, f), 0);
}

static void test_nameless_rows_and_order(void **unused)
{
	struct html_tally rows[20];
	struct html_finding f[HTML_FINDINGS_MAX];
	size_t n;

	(void)unused;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = exact(1000, i % 2 ? 100 : 500 + i);
	rows[18].nameless = true;
	n = find(rows, ARRAY_SIZE(rows), f);
	assert_int_equal(n, HTML_FINDINGS_MAX);
	assert_int_equal(f[0].row, 16);
	for (unsigned int i = 1; i < n; i++)
		assert_true(f[i].excess <= f[i - 1].excess);
}

/* How many of @pages of @n rows of noise have a finding; row k has a part of 1 / k^@skew. */
static unsigned int wrong_pages(unsigned int pages, size_t n, unsigned int draws, double skew,
				double share, double hitm_cost)
{
	struct html_tally *row = calloc(n, sizeof(*row));
	static __u32 of[DRAWS_MAX];
	struct html_finding f[HTML_FINDINGS_MAX];
	unsigned int wrong = 0;
	double sum = 0, up = 0;
	size_t at = 0;

	for (size_t k = 0; k < n; k++)
		sum += pow(k + 1, -skew);
	for (unsigned int i = 0; i < draws; i++) {
		while (at + 1 < n && (i + .5) / draws > (up + pow(at + 1, -skew)) / sum)
			up += pow(++at, -skew);
		of[i] = at;
	}
	for (unsigned int p = 0; p < pages; p++) {
		memset(row, 0, n * sizeof(*row));
		for (unsigned int i = 0; i < draws; i++)
			draw(&row[of[i]], share, hitm_cost);
		wrong += find(row, n, f) != 0;
	}
	free(row);
	return wrong;
}

/* The promise is one page in a hundred; the bound is not tight, so that fewer are seen. */
static void test_noise(void **unused)
{
	(void)unused;
	assert_int_equal(wrong_pages(3, 1000, 100000, 0, .19, 600), 0);
	assert_int_equal(wrong_pages(3, 1000, 100000, 1, .19, 600), 0);
	assert_in_range(wrong_pages(300, 30, 2000, 0, .19, 600), 0, 3);
	assert_in_range(wrong_pages(300, 30, 600, 1, .02, 600), 0, 3);
	assert_in_range(wrong_pages(1000, 2, 200, 0, .5, 600), 0, 10);
	assert_in_range(wrong_pages(1000, 20, 200, 0, .01, 600), 0, 10);
	assert_in_range(wrong_pages(1000, 20, 200, 0, .01, 10000), 0, 10);
	assert_in_range(wrong_pages(300, 30, 2000, 1, .01, 2000), 0, 3);
}

/* Samples that count as 1,000 each prove as much as their number; a few that count most, less. */
static void test_weights(void **unused)
{
	struct html_finding f[HTML_FINDINGS_MAX];
	struct html_tally row[] = { exact(100, 40), exact(1000, 100) }, few = row[0];

	(void)unused;
	assert_int_equal(find(row, 2, f), 1);
	for (int i = 0; i < 2; i++) {
		row[i].of[HTML_CAUSE_HITM].samples *= 1000;
		row[i].of[HTML_CAUSE_HITM].part_samples *= 1000;
		row[i].of[HTML_CAUSE_HITM].squares *= 1e6;
	}
	assert_int_equal(find(row, 2, f), 1);
	assert_true(row[0].of[HTML_CAUSE_HITM].part == few.of[HTML_CAUSE_HITM].part);
	row[0].of[HTML_CAUSE_HITM].squares *= 20; /* as good as 5 */
	row[1].of[HTML_CAUSE_HITM].squares *= 20;
	assert_int_equal(find(row, 2, f), 0);
}

/* One sample with a cause that none of 100,000 others has is no chance; one that counts as a quarter of one is. */
static void test_a_single_sample(void **unused)
{
	struct html_finding f[HTML_FINDINGS_MAX];
	struct html_tally rows[] = { exact(1, 1), exact(100000, 0) };

	(void)unused;
	/* it costs as much as a tenth of the others together */
	rows[0].of[HTML_CAUSE_HITM].all = rows[0].of[HTML_CAUSE_HITM].part = rows[0].cycles = 1e6;
	assert_int_equal(find(rows, 2, f), 1);
	assert_int_equal(f[0].row, 0);
	assert_int_equal(f[0].cause, HTML_CAUSE_HITM);
	rows[0].of[HTML_CAUSE_HITM].samples = rows[0].of[HTML_CAUSE_HITM].part_samples = 0.25;
	assert_int_equal(find(rows, 2, f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_single_sample),
		cmocka_unit_test(test_a_share_like_that_of_the_total),
		cmocka_unit_test(test_a_row_that_differs),
		cmocka_unit_test(test_the_largest_row),
		cmocka_unit_test(test_tiny_rows),
		cmocka_unit_test(test_nameless_rows_and_order),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
