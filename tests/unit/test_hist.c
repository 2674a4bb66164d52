// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What hist says of one interval beside its table: head, histograms, ledger, strata, the PMU, what to do next; and as JSON. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "json_same.h"
#include "base/array.h"
#include "base/err.h"
#include "base/screen.h"
#include "view/hist.h"

#define SECOND 1000000000ull

static struct hist_view v;
static struct hist_info info;
static struct snapshot s;
static struct group group;
static struct series series;
static __u64 buckets[IBS_LAT_BUCKETS];
static char *said;
static unsigned int height; /* of the terminal; 0: it is none */

/* Ten seconds on two CPUs: of a container "web", 100 loads from DRAM that waited for 400 cycles, and 20 without a latency. */
static int set_up(void **state)
{
	(void)state;
	v = (struct hist_view){};
	height = 0;
	info = (struct hist_info){ .event = "ibs_op//",
				   .source = "ibs",
				   .metric = IBS_METRIC_DC_MISS_LAT,
				   .period = 1000 };
	memset(buckets, 0, sizeof(buckets));
	buckets[ibs_lat_bucket(400)] = 100;
	series = (struct series){ .op = IBS_OP_KIND_LOAD,
				  .src = IBS_SRC_DRAM,
				  .samples = 120,
				  .valid = 100,
				  .sum = 40000,
				  .ops = 120000,
				  .cycles = 40000000,
				  .buckets = buckets };
	group = (struct group){ .slot = 1, .key.cgroup_id = 1, .n_series = 1, .series = &series };
	s = (struct snapshot){
		.time_ns = 10 * SECOND,
		.pmu = { .cpus = 2, .enabled_ns = 20 * SECOND, .running_ns = 20 * SECOND },
		.by = IBS_BY_CGROUP,
		.n_groups = 1,
		.groups = &group
	};
	s.ledger.seen = s.ledger.outcome[IBS_OUTCOME_AGGREGATED] = 120;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(said);
	said = NULL;
	return 0;
}

static const char *namer(void *arg, __u64 id, enum label l)
{
	(void)arg;
	assert_int_equal(id, 1);
	return l == LABEL_CGROUP ? "/web" : l == LABEL_CONTAINER ? "web" : "";
}

static const char *text(void)
{
	struct screen screen = { .width = 200, .height = height };
	size_t n;
	FILE *f;

	free(said);
	f = open_memstream(&said, &n);
	hist_print_text(f, &screen, &v, &info, &s, 0, namer, NULL);
	fclose(f);
	return said;
}

/* @line is one of the lines. */
static void has(const char *line)
{
	char want[512];

	snprintf(want, sizeof(want), "\n%s\n", line);
	if (!strstr(text(), want) && strncmp(said, want + 1, strlen(want + 1)))
		fail_msg("no '%s' in\n%s", line, said);
}

static void lacks(const char *what)
{
	if (strstr(text(), what))
		fail_msg("'%s' in\n%s", what, said);
}

static json_t *json(void)
{
	struct err err;
	json_error_t why;
	size_t n;
	json_t *o;
	FILE *f;

	free(said);
	f = open_memstream(&said, &n);
	v.opts.format = FORMAT_JSON;
	assert_int_equal(hist_print(f, &v, &info, &s, 0, namer, NULL, &err), 0);
	fclose(f);
	o = json_loads(said, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		fail_msg("%s: %s", why.text, said);
	return o;
}

/* --- text --- */

static void test_head(void **state)
{
	(void)state;
	has("10.0 s on 2 CPUs, ibs_op//, period 1,000");
	lacks("SIMULATED");
	s.pmu.cpus = 1;
	info.period = 0;
	info.simulated = true;
	has("10.0 s on 1 CPU, ibs_op//");
	has("SIMULATED samples, not measurements");
	info.metric = IBS_METRIC_TAG_TO_RET;
	has("10.0 s on 1 CPU, ibs_op//, latency is tag_to_ret");
	has("seen 120 = aggregated 120 + filtered 0 + lost 0; unseen unknown");
	lacks("no samples");
	s.n_groups = 0;
	has("no samples");
}

/* What the PMU did to the interval. */
static void test_pmu(void **state)
{
	(void)state;
	lacks("throttled");
	lacks("CPUs: ");
	lacks("PMU share");
	s.pmu.throttled = 1;
	has("throttled by the kernel: 1 time");
	s.pmu.throttled = 1234;
	has("throttled by the kernel: 1,234 times");
	s.pmu.went = 1;
	has("CPUs: 1 went offline, 0 came online");
	s.pmu.went = 0;
	s.pmu.came = 2;
	has("CPUs: 0 went offline, 2 came online");
	s.pmu.running_ns = 15 * SECOND;
	assert_non_null(strstr(text(),
			       "\nPMU share: 75.0 % of the time; another user has the rest, "
			       "and estimates are scaled up"));
}

static void test_strata(void **state)
{
	struct strata_report r = {
		.design = { .n = 3,
			    .slice = { { .of = STRATUM_FULL,
					 .ops = 1000,
					 .tags = 10,
					 .seconds = 2 },
				       { .of = STRATUM_MISS,
					 .ops = 3000,
					 .tags = 30,
					 .seconds = 1 },
				       { .of = STRATUM_FULL,
					 .ops = 500,
					 .tags = 5,
					 .seconds = 1 } } },
		.ledger = { { .seen = 7 }, { .seen = 8 } },
		.period = { 262144, 16384 },
		.event = { "all", "miss" },
	};
	json_t *o;

	(void)state;
	r.ledger[0].outcome[IBS_OUTCOME_AGGREGATED] = 7;
	r.ledger[1].outcome[IBS_OUTCOME_AGGREGATED] = 8;
	lacks("stratum");
	s.strata = &r;
	has("full stratum, 75 % of the time, all, period 262144: seen 7 = aggregated 7 + filtered "
	    "0 + "
	    "lost 0; unseen unknown");
	has("miss stratum, 25 % of the time, miss, period 16384: seen 8 = aggregated 8 + filtered "
	    "0 + "
	    "lost 0; unseen unknown");
	o = json();
	same(json_array_get(json_object_get(o, "strata"), 0), "name", "'full'");
	same(json_array_get(json_object_get(o, "strata"), 0), "event", "'all'");
	same(json_array_get(json_object_get(o, "strata"), 0), "slices", "2");
	same(json_array_get(json_object_get(o, "strata"), 0), "seconds", "3.0");
	same(json_array_get(json_object_get(o, "strata"), 0), "ops", "1500.0");
	same(json_array_get(json_object_get(o, "strata"), 0), "tagged", "15.0");
	same(json_array_get(json_object_get(o, "strata"), 1), "slices", "1");
	same(json_array_get(json_object_get(o, "strata"), 1), "period", "16384");
	assert_int_equal(json_array_size(json_object_get(o, "strata")), 2);
	json_decref(o);
}

static void test_recorded(void **state)
{
	struct ledger l = { .seen = 9 };
	struct hist_recorded of = { .file = "x.data", .whole = true, .ledger = &l };
	json_t *o;

	(void)state;
	l.outcome[IBS_OUTCOME_FORWARDED] = 9;
	lacks("recording");
	info.recorded = &of;
	has("while recording: seen 9 = aggregated 0 + forwarded 9 + filtered 0 + lost 0; unseen "
	    "unknown");
	lacks("records were lost");
	lacks("incomplete");
	of.lost = 1234;
	of.whole = false;
	has("1,234 records were lost while recording");
	has("the recording is incomplete");
	o = json();
	same(json_object_get(o, "recorded"), "whole", "false");
	same(json_object_get(o, "recorded"), "lost", "1234");
	assert_true(json_is_object(json_object_get(json_object_get(o, "recorded"), "ledger")));
	json_decref(o);
	of.ledger = NULL;
	v.opts.format = FORMAT_TEXT;
	lacks("while recording: ");
	o = json();
	same(json_object_get(o, "recorded"), "ledger", "null");
	json_decref(o);
}

/* --- histograms --- */

/* Lines below the table. */
static void test_bars(void **state)
{
	const char *at;

	(void)state;
	lacks("distribution");
	v.histograms = true;
	has("web: 120 samples, 20 without dc_miss_lat");
	/* a percentile is the edge of its bucket; p99 needs 100 samples */
	has("  mean 400  p50 416  p90 416  p99 416  of 100");
	has("            cycles : samples    |distribution                            |");
	has("     385 .. 416    : 100        |****************************************|");
	buckets[ibs_lat_bucket(400)] = 99;
	series.valid = 99;
	series.sum = 39600;
	has("  mean 400  p50 416  p90 416  p99 -  of 99");
	/* half as many have half of the width */
	buckets[ibs_lat_bucket(200)] = 49;
	buckets[ibs_lat_bucket(20)] = 1;
	series.valid = 149;
	text();
	at = strstr(said, " : 99 ");
	assert_non_null(at);
	assert_memory_equal(strchr(at, '|'), "|****************************************|", 42);
	at = strstr(said, " : 49 ");
	assert_non_null(at);
	assert_memory_equal(strchr(at, '|'), "|********************                    |", 42);
	at = strstr(said, " : 1 ");
	assert_memory_equal(strchr(at, '|'), "|*                                       |", 42);
	/* nothing has a latency */
	series.valid = series.sum = 0;
	memset(buckets, 0, sizeof(buckets));
	has("web: 120 samples, 120 without dc_miss_lat");
	lacks("distribution");
}

/* Few samples are not spread over more lines than there are of them; many take 20 lines at most. */
static void test_lines(void **state)
{
	const char *const edge = " .. ";
	unsigned int lines, sum;

	(void)state;
	v.histograms = true;
	for (unsigned int n = 1; n <= 60; n++) {
		memset(buckets, 0, sizeof(buckets));
		for (unsigned int i = 0; i < n; i++)
			buckets[10 + i * 100 / 60]++;
		series.valid = n;
		series.samples = n;
		series.sum = n * 100;
		lines = 0;
		text();
		for (const char *at = strstr(said, "|distribution"); (at = strstr(at, edge)); at++)
			lines++;
		assert_in_range(lines, 1, n < 4 ? 4 : n < 20 ? n : 20);
		/* all samples are in them */
		sum = 0;
		for (const char *at = strstr(said, "|distribution"); (at = strstr(at, edge)); at++)
			sum += strtoul(strchr(at, ':') + 1, NULL, 10);
		assert_int_equal(sum, n);
	}
}

/* --- what to do next --- */

static void test_next(void **state)
{
	struct hist_recorded of = { .file = "x.data", .whole = true };

	(void)state;
	lacks("Next: ");
	height = 40;
	assert_non_null(strstr(text(), " hist --container web --by src 10 1\n"));
	assert_non_null(strstr(said, " top\n"));
	info.simulated = true;
	assert_non_null(strstr(text(), " hist --source=sim --container web --by src 10 1\n"));
	assert_non_null(strstr(said, " top --source=sim\n"));
	info.simulated = false;
	info.recorded = &of;
	assert_non_null(strstr(text(), " report x.data --by symbol,src --container web\n"));
	lacks(" top\n");
	v.goes_on = true;
	lacks("Next: ");
}

/* --- JSON and CSV --- */

static void test_json(void **state)
{
	json_t *o, *row;

	(void)state;
	info.end_ns = 1767225601234567890ull;
	info.since_ns = 1767225600000000000ull;
	s.pmu.went = 3;
	s.pmu.came = 4;
	s.pmu.throttled = 5;
	s.pmu.running_ns = 10 * SECOND;
	o = json();
	same(o, "event", "'ibs_op//'");
	same(o, "source", "'ibs'");
	same(o, "simulated", "false");
	same(o, "period", "1000");
	same(o, "interval_s", "10.0");
	same(o, "metric", "'dc_miss_lat'");
	same(o, "cpus", "2");
	same(o, "cpus_went_offline", "3");
	same(o, "cpus_came_online", "4");
	same(o, "throttled", "5");
	same(o, "running", "0.5");
	same(o, "end", "'2026-01-01T00:00:01.234Z'");
	same(o, "counted_since", "'2026-01-01T00:00:00.000Z'");
	assert_null(json_object_get(o, "strata"));
	assert_null(json_object_get(o, "recorded"));
	assert_int_equal(json_array_size(json_object_get(o, "series")), 1);
	row = json_array_get(json_object_get(o, "series"), 0);
	same(row, "labels", "{'cgroup':'/web','src':'dram','op':'load'}");
	same(row, "samples", "120");
	same(row, "valid", "100");
	same(row, "sum", "40000");
	same(row, "estimated_ops", "120000");
	same(row, "p50", "416");
	same(row, "p90", "416");
	same(row, "p99", "416");
	same(row, "open_requests", "null");
	same(row, "hitm_cycles", "null");
	same(row, "buckets", "[[416,100]]");
	assert_null(json_object_get(row, "ops_buckets"));
	json_decref(o);
	info.end_ns = info.since_ns = 0;
	info.period = 0;
	s.pmu.enabled_ns = 0;
	series.ops = 0;
	series.open_n = 2;
	series.open = 7;
	series.state_n = 3;
	series.hitm = 44;
	o = json();
	same(o, "period", "null");
	same(o, "running", "null");
	same(o, "running_error", "null");
	assert_null(json_object_get(o, "end"));
	assert_null(json_object_get(o, "counted_since"));
	row = json_array_get(json_object_get(o, "series"), 0);
	same(row, "estimated_ops", "null");
	same(row, "open_requests", "{'samples':2,'sum':7}");
	same(row, "hitm_cycles", "44");
	json_decref(o);
}

/* An interval by these keys, in this order. */
static FILE *freopen_csv(const char *by)
{
	unsigned int labels;
	struct err err;
	size_t n;
	FILE *f;

	free(said);
	f = open_memstream(&said, &n);
	v.header_printed = false;
	assert_int_equal(labels_parse(by, &labels, &v.order, &err), 0);
	assert_int_equal(hist_print(f, &v, &info, &s, labels, namer, NULL, &err), 0);
	return f;
}

/* The head comes once. */
static void test_csv(void **state)
{
	struct err err;
	unsigned int heads = 0;
	size_t n;
	FILE *f = open_memstream(&said, &n);

	(void)state;
	v.opts.format = FORMAT_CSV;
	for (int i = 0; i < 2; i++)
		assert_int_equal(hist_print(f, &v, &info, &s, 0, namer, NULL, &err), 0);
	fclose(f);
	for (const char *at = said; (at = strstr(at, "container,")); at++)
		heads++;
	assert_int_equal(heads, 1);
	assert_true(v.header_printed);
	assert_non_null(strstr(said, "web,"));
	fclose(f = freopen_csv("src,op,cgroup"));
	assert_non_null(strstr(said, "src,op,cgroup,"));
	fclose(f = freopen_csv("cgroup,op,src"));
	assert_non_null(strstr(said, "cgroup,op,src,"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_head),  T(test_pmu),  T(test_strata), T(test_recorded), T(test_bars),
		T(test_lines), T(test_next), T(test_json),   T(test_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
