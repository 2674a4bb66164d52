// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of the HTML report: sums stay exact while bins double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <ibscope/sim.h>

#include "html/html_facts.h"
#include "html/html_report.h"

#define SECOND 1000000000ull

static int add(struct html_rows *r, const struct html_key *key, __u64 time_ns, __u32 latency,
	       __u64 period)
{
	const struct html_row row = html_row_of_sample(key, latency, period);

	return html_rows_add(r, key, time_ns, &row);
}

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
		assert_int_equal(add(&r, &key, SECOND, 100 + i, 1000), 0);
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

		assert_int_equal(add(&r, &key, SECOND + i * 1000000ull, i % 1000, 5), 0);
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
	assert_int_equal(add(&r, &key, 0, 0, 0), 0);
	assert_int_equal(html_rows_bins(&r), 1);
	assert_int_equal(add(&r, &key, 5 * SECOND, 0, 0), 0);
	assert_int_equal(add(&r, &key, 4 * SECOND, 0, 0), 0);
	assert_int_equal(add(&r, &key, UINT64_MAX, 0, 0), 0);
	assert_int_equal(samples_of(&r), 4);
	assert_in_range(html_rows_bins(&r), 1, HTML_BINS_MAX);
	html_rows_free(&r);
}

/* A bin before all others moves those that are there; which sample comes first makes no difference. */
static void test_a_recording_that_began_earlier(void **state)
{
	const struct html_key key = { .bucket = 30 };

	(void)state;
	for (__u64 back = 1; back < 1000 * SECOND; back *= 7) {
		struct html_rows r = { 0 };

		assert_int_equal(add(&r, &key, 2000 * SECOND, 100, 1), 0);
		assert_int_equal(add(&r, &key, 2001 * SECOND, 100, 1), 0);
		assert_int_equal(add(&r, &key, 2000 * SECOND - back, 100, 1), 0);
		assert_int_equal(samples_of(&r), 3);
		html_rows_sort(&r);
		assert_int_equal(r.row[0].key.time, 0);
		assert_int_equal(r.row[r.n - 1].key.time, (2001 * SECOND - r.start_ns) / r.bin_ns);
		assert_in_range(html_rows_bins(&r), 1, HTML_BINS_MAX);
		assert_true(r.start_ns <= 2000 * SECOND - back);
		html_rows_free(&r);
	}
}

/* What is given up is said, no sample is lost, and no row comes back with a detail that was given up. */
static void test_size_is_bounded(void **state)
{
	static const struct trace_topology topology = { .n = 8, .ccx = { 0, 0, 0, 0, 1, 1, 1, 1 } };
	static struct trace_info info = { .topology = &topology };
	const size_t limits[] = { 0, 3000, 600 };
	const __u64 n = 20000;
	struct tasks *tasks;

	(void)state;
	tasks = tasks_new();
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	for (size_t l = 0; l < ARRAY_SIZE(limits); l++) {
		const struct html_report_opts opts = { .info = &info,
						       .tasks = tasks,
						       .rows_max = limits[l],
						       .file = "",
						       .options = "" };
		struct html_report *r;
		char text[512];

		r = html_report_new(&opts);
		for (__u64 i = 0; i < n; i++) {
			struct trace_event ev = { .kind = TRACE_SAMPLE_OP,
						  .time = SECOND + i * 100000 };
			struct trace_sample *s = &ev.sample;

			s->has_cpu = s->has_time = true;
			s->cpu = i % 8;
			s->op.cpu = (struct ibs_cpu){ .caps = 0xbff };
			s->op.present = ~0;
			ibs_sim_op(1, s->cpu, i / 8, 0xbff, s->op.reg);
			assert_int_equal(html_report_add(r, &ev, 1000), 0);
		}
		assert_int_equal(html_fold_flush(r), 0);
		html_fold_text(r, text, sizeof(text));
		assert_int_equal(samples_of(&r->rows), n);
		assert_true(!limits[l] || r->rows.n <= limits[l]);
		assert_int_equal(!limits[l], !*text);
		if (limits[l] == 600) {
			assert_non_null(strstr(text, "at most 4 steps"));
			assert_null(strstr(text, "at most 60 steps"));
			assert_in_range(html_rows_bins(&r->rows), 1, 4);
			for (size_t i = 0; i < r->rows.n; i++)
				assert_int_equal(
					r->rows.row[i].key.cpu % 4 + r->rows.row[i].key.flags, 0);
		}
		html_report_free(r);
	}
	tasks_free(tasks);
}

/*
 * Allocations are given up after callers and functions, and before threads. Rows that only sites tell apart merge, and the
 * page says so if the recording has allocations.
 */
static void test_allocations_are_given_up(void **state)
{
	static struct trace_info info;
	const struct html_report_opts opts = {
		.info = &info, .rows_max = 50, .file = "", .options = ""
	};
	const __u64 n = 2000;

	(void)state;
	for (int named = 0; named < 2; named++) {
		struct html_report *r = html_report_new(&opts);
		char text[512], site[16];

		for (__u64 i = 0; i < n; i++) {
			const struct html_key key = { .site = 1 + i % 100,
						      .role = 1 + i % 3,
						      .cpu = HTML_NO_CPU };
			const struct html_row row = html_row_of_sample(&key, 100, 7);

			snprintf(site, sizeof(site), "make a.c:%u", key.site);
			if (named)
				assert_int_equal(intern_get(&r->names[HTML_SITE], site), key.site);
			assert_int_equal(html_fold_add(r, key, SECOND, &row), 0);
		}
		html_fold_text(r, text, sizeof(text));
		assert_int_equal(samples_of(&r->rows), n);
		assert_int_equal(r->rows.n, 3);
		for (size_t i = 0; i < r->rows.n; i++) {
			assert_int_equal(r->rows.row[i].key.site, 0);
			assert_int_not_equal(r->rows.row[i].key.role, 0);
		}
		assert_non_null(strstr(text, "functions are not shown"));
		assert_int_equal(strstr(text, ", allocations are not shown") != NULL, named);
		assert_null(strstr(text, "threads"));
		html_report_free(r);
	}
}

/* The page of an interval in which "db" waits for another node, and "web" for its own in half of @samples. */
static char *page_of_counters(__u64 samples)
{
	static struct trace_info info = { .simulated = true,
					  .format = "counters",
					  .source = "sim" };
	static __u64 buckets[3][IBS_LAT_BUCKETS];
	static char db[] = "db", web[] = "web", none[] = "";
	const struct html_report_opts opts = { .info = &info, .file = "", .options = "" };
	const struct trace_end end = { .whole = true };
	struct row row[3];
	struct rows rows = { ARRAY_SIZE(row), row };
	struct html_report *r = html_report_new(&opts);
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	for (unsigned int i = 0; i < ARRAY_SIZE(row); i++) {
		buckets[i][40] = samples / 3;
		row[i] = (struct row){ .series = { .src = i == 2 ? IBS_SRC_DRAM
								 : IBS_SRC_REMOTE_DRAM,
						   .samples = samples / 3,
						   .valid = samples / 3,
						   .sum = 400 * samples,
						   .ops = 1000 * samples,
						   .buckets = buckets[i] } };
		for (unsigned int l = 0; l < LABEL_N; l++)
			row[i].label[l] = none;
		row[i].label[LABEL_CONTAINER] = i ? web : db;
	}
	assert_int_equal(html_report_interval(r, &rows, 2 * SECOND, SECOND), 0);
	assert_int_equal(html_report_write(r, &end, 0, f), 0);
	xmemclose(f);
	html_report_free(r);
	return text;
}

/* Counters have findings as well, and commands that count; few samples have none. */
static void test_findings_of_counters(void **state)
{
	char *page = page_of_counters(3000);

	(void)state;
	assert_non_null(strstr(page, "\"list\":[{\"group\":0,\"cause\":\"remote\",\"share\":1"));
	assert_non_null(strstr(page,
			       "\"command\":[\"hist\",\"--source=sim\",\"--container\",\"db\","
			       "\"--by\",\"comm,src\",\"10\",\"1\"]"));
	assert_non_null(strstr(page, "\"lines\":[]"));
	free(page);
	page = page_of_counters(90);
	assert_non_null(strstr(page, "\"findings\":null"));
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_samples_are_one_row),
		cmocka_unit_test(test_bins_double),
		cmocka_unit_test(test_times_that_are_missing_or_early),
		cmocka_unit_test(test_a_recording_that_began_earlier),
		cmocka_unit_test(test_size_is_bounded),
		cmocka_unit_test(test_allocations_are_given_up),
		cmocka_unit_test(test_findings_of_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
