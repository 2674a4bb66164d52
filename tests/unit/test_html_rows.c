// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the HTML report: sums stay exact while bins double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "html/html_lines.h"
#include "html/html_rows.h"

#define SECOND 1000000000ull

static __u64 samples_of(const struct html_rows *r)
{
	__u64 n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->row[i].samples;
	return n;
}

static void test_equal_samples_are_one_row(void **state)
{
	const struct html_key key = { .stack = 3, .group = 1, .bucket = 20 };
	struct html_rows r = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(html_rows_add(&r, &key, SECOND, 100 + i, 1000), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.row[0].samples, 10);
	assert_int_equal(r.row[0].latencies, 1045);
	assert_true(r.row[0].operations == 10000 && r.row[0].cycles == 1045000);
	html_rows_free(&r);
}

/* Each key once a millisecond for ten minutes: the bins double until they suffice. */
static void test_bins_double(void **state)
{
	struct html_rows r = { 0 };
	const unsigned int n = 600 * 1000;
	double cycles = 0;

	(void)state;
	for (unsigned int i = 0; i < n; i++) {
		struct html_key key = { .stack = i % 7, .group = i % 3, .bucket = 30 };

		assert_int_equal(html_rows_add(&r, &key, SECOND + i * 1000000ull, i % 1000, 5), 0);
		cycles += i % 1000 * 5;
	}
	assert_in_range(html_rows_bins(&r), HTML_BINS_MAX / 2, HTML_BINS_MAX);
	assert_int_equal(samples_of(&r), n);
	assert_in_range(r.n, 1, 21 * HTML_BINS_MAX);
	html_rows_sort(&r);
	for (size_t i = 0; i < r.n; i++) {
		cycles -= r.row[i].cycles;
		if (i)
			assert_true(r.row[i].key.time >= r.row[i - 1].key.time);
		assert_in_range(r.row[i].key.time, 0, html_rows_bins(&r) - 1);
	}
	assert_true(cycles == 0);
	html_rows_free(&r);
}

static void test_times_that_are_missing_or_early(void **state)
{
	const struct html_key key = { .bucket = HTML_NO_LATENCY };
	struct html_rows r = { 0 };

	(void)state;
	assert_int_equal(html_rows_add(&r, &key, 0, 0, 0), 0);
	assert_int_equal(html_rows_bins(&r), 1);
	assert_int_equal(html_rows_add(&r, &key, 5 * SECOND, 0, 0), 0);
	assert_int_equal(html_rows_add(&r, &key, 4 * SECOND, 0, 0), 0);
	assert_int_equal(html_rows_add(&r, &key, UINT64_MAX, 0, 0), 0);
	assert_int_equal(samples_of(&r), 4);
	assert_in_range(html_rows_bins(&r), 1, HTML_BINS_MAX);
	html_rows_free(&r);
}

static void test_lines(void **state)
{
	struct html_lines l = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(html_lines_add(&l, &(struct html_access){ .line = 64 * (i % 2),
									   .group = i / 10,
									   .tid = i,
									   .store = i % 2,
									   .cycles = i % 2 }),
				 0);
	html_lines_sort(&l);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.line[0].line, 64);
	assert_int_equal(l.line[0].stores, 10);
	assert_int_equal(l.line[0].n_threads, HTML_LINE_THREADS);
	assert_true(l.line[0].more_threads && l.line[0].shared);
	html_lines_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_samples_are_one_row),
		cmocka_unit_test(test_bins_double),
		cmocka_unit_test(test_times_that_are_missing_or_early),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
