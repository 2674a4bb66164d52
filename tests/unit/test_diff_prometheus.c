// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Windows of counters that a Prometheus server has scraped, of made-up answers. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "diff/diff_private.h"

#define near(a, b) assert_true(fabs((a) - (double)(b)) < 1e-6 * fabs((double)(b)) + 1e-9)

/* A window of 300 s has 30 steps of 10 s, between 31 values. */
#define FROM   1000
#define STEP   10
#define VALUES 31
#define LAT    "ibscope_load_miss_latency_cycles"
#define WEB    "\"instance\":\"h1\",\"container\":\"web\",\"namespace\":\"shop\",\"pod\":\"web-5\""

static struct diff diff;
static struct diff_window window;
static struct compare_result result;
static struct err err;
static char *text;
static size_t size;
static FILE *answer;

static void begin_again(bool per_second)
{
	compare_result_free(&result);
	result = (struct compare_result){};
	diff_reset(&diff);
	diff.compare = compare_new(per_second, 10);
}

static int begin(void **state)
{
	(void)state;
	diff = (struct diff){ .per = DIFF_PER_OPS,
			      .metric = IBS_METRIC_DC_MISS_LAT,
			      .by = { LABEL_CONTAINER, LABEL_POD, LABEL_HOST },
			      .n_by = 3 };
	for (int s = 0; s < COMPARE_SIDES; s++)
		diff.about[s].selection = s ? "after" : "before";
	window = (struct diff_window){
		.url = "http://p:1", .match = "", .from_s = FROM, .seconds = 300
	};
	begin_again(false);
	err.text[0] = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	compare_result_free(&result);
	result = (struct compare_result){};
	diff_reset(&diff);
	free(text);
	text = NULL;
	return 0;
}

static void begin_answer(void)
{
	free(text);
	answer = open_memstream(&text, &size);
	fputs("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":"
	      "{\"__name__\":\"up\"},\"values\":[]}",
	      answer);
}

static const char *end_answer(void)
{
	fputs("]}}", answer);
	fclose(answer);
	return text;
}

static void begin_series(const char *name, const char *labels)
{
	fprintf(answer, ",{\"metric\":{\"__name__\":\"%s\",%s},\"values\":[", name, labels);
}

/* A counter that grows by @each at each step, and at @reset begins again. */
static void series(const char *name, const char *labels, unsigned int each, int reset)
{
	unsigned int v = 1000;

	begin_series(name, labels);
	for (int i = 0; i < VALUES; i++) {
		fprintf(answer, "%s[%d,\"%u\"]", i ? "," : "", FROM + STEP * i, v);
		v = i + 1 == reset ? each : v + each;
	}
	fputs("]}", answer);
}

/* 40 samples a step, of 4000 ops; 20 have a latency, of 400 cycles on average. */
static void usual(int reset)
{
	series(LAT "_sum", WEB ",\"src\":\"dram\"", 8000, reset);
	series(LAT "_count", WEB ",\"src\":\"dram\"", 20, reset);
	series("ibscope_samples_total", WEB, 40, reset);
	series("ibscope_estimated_ops_total", WEB, 4000, reset);
}

/* All are between two edges. */
static void buckets(const char *low, const char *high)
{
	char labels[256];

	snprintf(labels, sizeof(labels), WEB ",\"src\":\"dram\",\"le\":\"%s\"", low);
	series(LAT "_bucket", labels, 0, 0);
	snprintf(labels, sizeof(labels), WEB ",\"src\":\"dram\",\"le\":\"%s\"", high);
	series(LAT "_bucket", labels, 20, 0);
	series(LAT "_bucket", WEB ",\"src\":\"dram\",\"le\":\"+Inf\"", 20, 0);
}

static int add(enum compare_side side, const char *json)
{
	return diff_add_answer(&diff, side, &window, json, strlen(json), &err);
}

static void finish(const char *json)
{
	for (int s = 0; s < COMPARE_SIDES; s++)
		if (add(s, json))
			fail_msg("%s", err.text);
	assert_int_equal(compare_finish(diff.compare, &result, &err), 0);
}

static void test_counts(void **state)
{
	const struct compare_side_sum *a = &result.side[COMPARE_A];

	(void)state;
	for (int reset = 0; reset < 30; reset += 12) {
		begin_again(false);
		begin_answer();
		usual(reset);
		buckets("256", "512");
		finish(end_answer());
		assert_int_equal(a->samples, 30 * 40);
		assert_int_equal(a->valid, 30 * 20);
		near(a->base, 30 * 4000);
		/* a sample counts for 100 ops */
		near(a->y, 8000. * 100 / 4000);
		assert_int_equal(a->blocks, 30);
		assert_int_equal(result.n_rows, 1);
		assert_string_equal(result.row[0].name[0], "web");
		assert_string_equal(result.row[0].name[1], "shop/web-5");
		assert_string_equal(result.row[0].name[2], "h1");
		assert_string_equal(compare_cause_name(diff.compare, 0), "dram");
	}
	assert_true(result.has_quantile && result.quantile_wide);
	near(result.quantile_low[COMPARE_A], 256);
	near(result.quantile_high[COMPARE_A], 512);
	near(result.quantile[COMPARE_A], 256 + .99 * 256);
	assert_string_equal(diff.about[COMPARE_A].metric, "dc_miss_lat");
	assert_string_equal(diff.about[COMPARE_A].event, "ibs_op");
	assert_int_equal(diff.about[COMPARE_A].units, REPORT_OPS);
	assert_true(diff.about[COMPARE_A].counts);
	assert_false(diff.about[COMPARE_A].simulated);
}

static void test_per(void **state)
{
	(void)state;
	begin_answer();
	usual(0);
	end_answer();
	diff.per = DIFF_PER_ACCESS;
	finish(text);
	near(result.side[COMPARE_A].y, 400);
	begin_again(true);
	diff.per = DIFF_PER_SECOND;
	finish(text);
	near(result.side[COMPARE_A].base, 300);
	near(result.side[COMPARE_A].y, 8000. * 100 / STEP);
	assert_false(result.has_quantile); /* there are no buckets */
}

static void test_fetches(void **state)
{
	(void)state;
	diff.metric = IBS_METRIC_FETCH_LAT;
	begin_answer();
	usual(0); /* of another event */
	series("ibscope_fetch_latency_cycles_sum", WEB ",\"fetch\":\"l2\"", 400, 0);
	series("ibscope_fetch_latency_cycles_count", WEB ",\"fetch\":\"l2\"", 10, 0);
	series("ibscope_fetch_samples_total", WEB, 10, 0);
	series("ibscope_estimated_fetches_total", WEB, 500, 0);
	finish(end_answer());
	near(result.side[COMPARE_A].y, 40);
	assert_int_equal(result.n_terms, 2);
	assert_string_equal(compare_cause_name(diff.compare, 0), "l2");
	assert_string_equal(diff.about[COMPARE_A].event, "ibs_fetch");
	assert_int_equal(diff.about[COMPARE_A].units, REPORT_FETCHES);
}

/* A step is at most a thirtieth of the window, and at least a second. */
static void test_short(void **state)
{
	static const char *const name[] = { LAT "_sum", LAT "_count", "ibscope_samples_total",
					    "ibscope_estimated_ops_total" };
	static const int each[] = { 8000, 20, 40, 4000 };

	(void)state;
	window.seconds = 10;
	begin_answer();
	usual(0);
	end_answer();
	/* the other values are behind the window */
	assert_int_equal(add(COMPARE_A, text), -EBADMSG);
	begin_answer();
	for (size_t k = 0; k < 4; k++) {
		begin_series(name[k], WEB);
		for (int i = 0; i <= 10; i++)
			fprintf(answer, "%s[%d.4,\"%d\"]", i ? "," : "", FROM + i, each[k] * i);
		fputs("]}", answer);
	}
	finish(end_answer());
	assert_int_equal(result.side[COMPARE_A].samples, 400);
	near(result.side[COMPARE_A].seconds, 10);
	near(result.side[COMPARE_A].y, 200);
}

/* Values may be missing: what was counted meanwhile is of the next step that has one. */
static void test_gap(void **state)
{
	(void)state;
	begin_answer();
	series(LAT "_sum", WEB ",\"src\":\"dram\"", 8000, 0);
	series(LAT "_count", WEB ",\"src\":\"dram\"", 20, 0);
	series("ibscope_samples_total", WEB, 40, 0);
	begin_series("ibscope_estimated_ops_total", WEB);
	for (int i = 0; i < VALUES; i++)
		if (i < 5 || i > 14)
			fprintf(answer, "%s[%d.9,\"%d\"]", i ? "," : "", FROM + STEP * i, 4000 * i);
	fputs("]}", answer);
	finish(end_answer());
	near(result.side[COMPARE_A].base, 30 * 4000);
}

static void test_simulated(void **state)
{
	static const char *const value[] = { "0", "1" };

	(void)state;
	for (int is = 0; is < 2; is++) {
		begin_again(false);
		begin_answer();
		usual(0);
		begin_series("ibscope_simulated", WEB);
		fprintf(answer, "[%d,\"0\"],[%d,\"%s\"]]}", FROM, FROM + STEP, value[is]);
		finish(end_answer());
		assert_int_equal(diff.about[COMPARE_A].simulated, is);
	}
}

/* Edges that the exporter does not have, or not in all series, give no percentiles. */
static void test_edges(void **state)
{
	static const char *const odd[] = { "500", "x", "512x", "0", "-1", "1e9", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		begin_again(false);
		begin_answer();
		usual(0);
		buckets("256", odd[i]);
		finish(end_answer());
		assert_false(result.has_quantile);
	}
	begin_again(false);
	begin_answer();
	usual(0);
	buckets("256", "512");
	series(LAT "_bucket", WEB ",\"src\":\"dram\",\"le\":\"512\"", 20, 0);
	finish(end_answer());
	assert_false(result.has_quantile);
	begin_again(false);
	begin_answer();
	usual(0);
	buckets("256", "512");
	series(LAT "_bucket", WEB ",\"src\":\"dram\"", 20, 0); /* without an edge */
	finish(end_answer());
	assert_false(result.has_quantile);
	/* none but that of all */
	begin_again(false);
	begin_answer();
	usual(0);
	series(LAT "_bucket", WEB ",\"src\":\"dram\",\"le\":\"+Inf\"", 20, 0);
	finish(end_answer());
	assert_false(result.has_quantile);
	/* what is above the last edge goes up to the largest latency */
	begin_again(false);
	begin_answer();
	usual(0);
	series(LAT "_bucket", WEB ",\"src\":\"dram\",\"le\":\"512\"", 0, 0);
	series(LAT "_bucket", WEB ",\"src\":\"dram\",\"le\":\"+Inf\"", 20, 0);
	finish(end_answer());
	assert_true(result.has_quantile);
	near(result.quantile_low[COMPARE_A], 512);
	near(result.quantile_high[COMPARE_A], IBS_LAT_MAX);
}

static void refused(const char *json, int want, const char *why)
{
	err.text[0] = 0;
	assert_int_equal(add(COMPARE_A, json), want);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_refused(void **state)
{
	static const char *const bad[] = { "[1000,\"-1\"]",   "[1000,\"1.5\"]", "[1000,\"x\"]",
					   "[1000,\"2e18\"]", "[1000,1]",	"[1000]",
					   "[990,\"1\"]",     "[1310,\"1\"]",	"[1000,\"1 \"]",
					   "[1000,\"NaN\"]",  "\"1000\"" };

	(void)state;
	refused("", -EBADMSG, "http://p:1: the answer is not one of Prometheus: ");
	refused("{}", -EBADMSG, "it has no list of series");
	refused("{\"data\":{\"result\":{}}}", -EBADMSG, "it has no list of series");
	refused("{\"error\":\"too many\",\"data\":{\"result\":[]}}", -EINVAL,
		"http://p:1: too many");
	refused("{\"data\":{\"result\":[{}]}}", -EBADMSG, "a series has no name");
	begin_answer();
	series("ibscope_samples_total", WEB, 40, 0);
	refused(end_answer(), -ENODATA,
		"http://p:1: no series of ibscope_load_miss_latency_cycles_count before: scrape "
		"ibscope-exporter, without conversion to native histograms");
	window.match = "job=\"x\"";
	refused(text, -ENODATA, "_count{job=\"x\"} before: ");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		begin_answer();
		begin_series(LAT "_count", WEB);
		fprintf(answer, "%s]}", bad[i]);
		refused(end_answer(), -EBADMSG, "a value is not that of a counter");
	}
}

#define P(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(test_counts), P(test_per),	   P(test_fetches), P(test_short),
		P(test_gap),	P(test_simulated), P(test_edges),   P(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
