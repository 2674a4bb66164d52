// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `doctor --verify` with made-up samples and counters: sessions, core counters and the run of loops are implemented here,
 * so that each can fail and counts what the test wants.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/std.h"
#include "doctor/doctor_verify.h"
#include "doctor/l3_latency.h"
#include "doctor/loops.h"
#include "doctor/verify.h"
#include "event/cpu.h"
#include "near.h"
#include "perf/perf.h"
#include "session/session.h"

#define PERIOD 1000000

static struct err err;
static json_t *report;
static bool agree;

/* --- sessions --- */

struct session {
	struct session_event event;
	struct cpu_info cpu;
};

static struct session session;
static unsigned int cpus[] = { 0, 3 };
static struct snapshot given;
static bool open_fails, start_fails;
static char calls[64]; /* letters of what was called: enable, start, tick, stop, disable */
static int n_open;     /* sessions and counters */

static void called(char c)
{
	const size_t n = strlen(calls);

	if (n + 1 < sizeof(calls) && (c != 't' || !strchr(calls, 't')))
		calls[n] = c;
}

void sampling_init(struct sampling_opts *o)
{
	*o = (struct sampling_opts){};
	n_open++;
}

void sampling_free(struct sampling_opts *o)
{
	(void)o;
	n_open--;
}

int sampling_check(struct sampling_opts *o, struct err *e)
{
	(void)e;
	assert_int_equal(o->source, SOURCE_IBS);
	assert_int_equal(o->labels, 1U << LABEL_SRC);
	assert_true(o->core_counters);
	return 0;
}

struct session *session_new(void)
{
	n_open++;
	return &session;
}

void session_free(struct session *s)
{
	assert_ptr_equal(s, &session);
	n_open--;
}

int session_open(struct session *s, const struct sampling_opts *o, struct err *e)
{
	(void)s;
	assert_non_null(o);
	return open_fails ? err_set(e, -EACCES, "made not to open") : 0;
}

const struct session_event *session_event(const struct session *s, unsigned int n)
{
	assert_int_equal(n, 0);
	return &s->event;
}

const struct cpu_info *session_cpu(const struct session *s)
{
	return &s->cpu;
}

int session_start(struct session *s, struct err *e)
{
	(void)s;
	called('s');
	return start_fails ? err_set(e, -EIO, "made not to start") : 0;
}

void session_tick(struct session *s)
{
	(void)s; /* as often as there is time */
}

void session_stop(struct session *s)
{
	(void)s;
	called('p');
}

int sampler_snapshot(struct sampler *s, struct snapshot *out, struct err *e)
{
	(void)s;
	(void)e;
	*out = given;
	given = (struct snapshot){}; /* the caller frees it */
	return 0;
}

/* --- counters --- */

enum { TAGGED, FIRST_L3, COUNTERS = FIRST_L3 + L3_SOURCE_N };

struct perf_events {
	int which;
};

static struct perf_events counter[COUNTERS];
static struct perf_events_total total[COUNTERS];
static const char *fails[COUNTERS]; /* why it cannot be opened; NULL: it can */
static bool has_second;
static const char *no_l3; /* why there are none; NULL: there are */
static int next_l3;

int perf_events_open(const struct perf_event_attr *attr, const unsigned int *of, size_t n_cpus,
		     int cgroup, const char *event, const struct perf_event_attr *second,
		     struct perf_events **out, struct err *e)
{
	const bool tagged = strcmp(event, "amd_l3//") != 0;
	const int which = tagged ? TAGGED : FIRST_L3 + next_l3++;

	assert_int_equal(cgroup, -1);
	assert_true(which < COUNTERS);
	if (tagged) {
		assert_string_equal(event, "a counter of tagged ops");
		assert_ptr_equal(of, cpus);
		assert_int_equal(n_cpus, 2);
		assert_int_equal(attr->config, core_event_attr(CORE_EVENT_TAGGED).config);
		has_second = second != NULL;
		if (second)
			assert_false(second->disabled);
	} else {
		assert_int_equal(n_cpus, 1);
		assert_int_equal(of[0], 8);
		assert_int_equal(attr->config, which);
		assert_int_equal(second->config, 100 + which);
	}
	if (fails[which])
		return err_set(e, -ENODEV, "%s", fails[which]);
	counter[which].which = which;
	*out = &counter[which];
	n_open++;
	return 0;
}

int perf_events_enable(struct perf_events *pe, struct err *e)
{
	(void)e;
	assert_non_null(pe);
	called('e');
	return 0;
}

void perf_events_disable(struct perf_events *pe)
{
	assert_non_null(pe);
	called('d');
}

void perf_events_read(struct perf_events *pe, struct perf_events_total *out)
{
	*out = total[pe->which];
}

void perf_events_close(struct perf_events *pe)
{
	n_open -= pe != NULL;
}

int l3_latency_describe(const char *root, const struct cpu_info *cpu, struct l3_latency *out,
			struct err *e)
{
	assert_string_equal(root, "");
	assert_ptr_equal(cpu, &session.cpu);
	if (no_l3)
		return err_set(e, -ENODEV, "%s", no_l3);
	*out = (struct l3_latency){};
	cpulist_add(&out->cpus, 8);
	for (int i = 0; i < L3_SOURCE_N; i++) {
		out->of[i].sum.config = FIRST_L3 + i;
		out->of[i].requests.config = 100 + FIRST_L3 + i;
	}
	return 0;
}

/* --- loops --- */

static double loads; /* measured, of 1,000; 0: nothing could be */
static bool loops_fail;

int loops_run(struct loops *l, struct err *e)
{
	if (loops_fail)
		return err_set(e, -EPERM, "made to have no loops");
	for (int i = 0; i < LOOPS_N; i++)
		loops_unknown(l, i, "not here");
	if (loads)
		loops_set(l, LOOPS_LOADS, 1000, loads, 1000000);
	return 0;
}

/* --- tests --- */

static void add_series(struct group *g, enum ibs_src src, unsigned int n, unsigned int latency)
{
	g->series = realloc(g->series, (g->n_series + 1) * sizeof(*g->series));
	assert_non_null(g->series);
	g->series[g->n_series++] = (struct series){
		.src = src, .samples = 2 * n, .valid = n, .sum = (__u64)n * latency
	};
}

/* A Zen 6, whose counters and samples agree. */
static int set_up(void **state)
{
	(void)state;
	session = (struct session){ .event = { .text = "ibs_op/made/",
					       .info = { .period = PERIOD },
					       .opts = { .cpus = cpus, .n_cpus = 2 } } };
	cpu_info_set(&session.cpu, "AuthenticAMD", 0x1a, 0x50, ~0u);
	given = (struct snapshot){
		.ledger = { .seen = 10000, .pmu_exact = true },
		.pmu = { .cpus = 2,
			 .tagged = 9990,
			 .tag_n = 5000,
			 .tag_ops = 5000000000,
			 .tags_known = true },
		.n_groups = 2,
	};
	given.groups = calloc(2, sizeof(*given.groups));
	assert_non_null(given.groups);
	add_series(&given.groups[0], IBS_SRC_L2, 5000, 20);
	add_series(&given.groups[0], IBS_SRC_DRAM, 150, 320);
	add_series(&given.groups[1], IBS_SRC_DRAM, 50, 240);
	add_series(&given.groups[1], IBS_SRC_REMOTE_DRAM, 100, 700);
	add_series(&given.groups[1], IBS_SRC_NEAR_CACHE, 99, 100);
	memset(total, 0, sizeof(total));
	total[TAGGED] = (struct perf_events_total){
		.counted = 11000, .second = 10020, .enabled_ns = 5, .running_ns = 5
	};
	for (int i = FIRST_L3; i < COUNTERS; i++)
		total[i] = (struct perf_events_total){ .counted = 6000 + i, .second = 200 };
	memset(fails, 0, sizeof(fails));
	memset(calls, 0, sizeof(calls));
	open_fails = start_fails = loops_fail = has_second = false;
	no_l3 = NULL;
	loads = 0;
	next_l3 = n_open = 0;
	agree = false;
	return 0;
}

/* Everything is closed again. */
static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(n_open, 0);
	json_decref(report);
	report = NULL;
	snapshot_free(&given);
	return 0;
}

/* What it prints; freed by the caller. */
static char *verify(bool loops, bool json, int *ret)
{
	FILE *before = stdout;
	char *text;
	size_t n;

	stdout = open_memstream(&text, &n);
	assert_non_null(stdout);
	*ret = doctor_verify(.001, loops, json, &agree, &err);
	fclose(stdout);
	stdout = before;
	return text;
}

static void run(bool loops)
{
	int ret;
	char *text = verify(loops, true, &ret);

	if (ret)
		fail_msg("%s", err.text);
	json_decref(report);
	report = json_loads(text, 0, NULL);
	assert_non_null(report);
	free(text);
}

static const json_t *figure(enum verify_figure f)
{
	return json_array_get(json_object_get(report, "figures"), f);
}

static void is(enum verify_figure f, double sampled, double counted)
{
	const json_t *j = figure(f);

	if (json_is_string(json_object_get(j, "why")))
		fail_msg("%d: %s", f, json_string_value(json_object_get(j, "why")));
	near(json_number_value(json_object_get(j, "sampled")), sampled);
	near(json_number_value(json_object_get(j, "counted")), counted);
}

static void is_unknown(enum verify_figure f, const char *why)
{
	assert_string_equal(json_string_value(json_object_get(figure(f), "why")), why);
}

static void test_good(void **state)
{
	(void)state;
	run(false);
	assert_true(agree);
	assert_string_equal(json_string_value(json_object_get(report, "event")), "ibs_op/made/");
	assert_int_equal(json_integer_value(json_object_get(report, "period")), PERIOD);
	assert_int_equal(json_integer_value(json_object_get(report, "cpus")), 2);
	near(json_number_value(json_object_get(report, "seconds")), .001);
	assert_null(json_object_get(report, "loops"));
	assert_true(has_second);
	is(VERIFY_RETIRED, 10000, 9990);
	is(VERIFY_VALID, 10000, 10020);
	is(VERIFY_TAGGED, 10000, 11000);
	/* each of 10,000 samples of a million ops, in the part of the tags while all CPUs sampled */
	is(VERIFY_OPS, 1e10 * 5000 / 9990, 5e9);
	/* the mean of 200 and 100 and 99 samples; tens of clocks in a request */
	is(VERIFY_L3, (200 * 300 + 100 * 700 + 99 * 100) / 399., 6001 / 20.);
	is(VERIFY_L3_DRAM, 300, 6002 / 20.);
	is(VERIFY_L3_REMOTE_DRAM, 700, 6003 / 20.);
	is_unknown(VERIFY_L3_NEAR_CACHE, "too few samples of such misses");
	is_unknown(VERIFY_L3_CXL, "too few samples of such misses");
	/* counters begin before samples and end behind them */
	assert_string_equal(calls, "eeeeeeeespdddddddd");
}

/* Whatever is wrong with tagged ops, all figures of them are unknown. */
static void untagged(const char *why)
{
	run(false);
	is_unknown(VERIFY_RETIRED, why);
	is_unknown(VERIFY_VALID, why);
	is_unknown(VERIFY_TAGGED, why);
	is_unknown(VERIFY_OPS, why);
	is(VERIFY_L3_DRAM, 300, 6002 / 20.);
	/* those of the L3 are not judged */
	assert_false(agree);
	snapshot_free(&given);
	set_up(NULL);
}

static void test_untagged(void **state)
{
	(void)state;
	fails[TAGGED] = "made to have no counter";
	untagged("made to have no counter");
	session.cpu.family = 0x15;
	untagged("this processor has no known event that counts tagged ops");
	given.pmu.throttled = 1;
	untagged("the kernel throttled sampling");
	given.ledger.pmu_exact = false;
	untagged("another profiler used ibs_op");
	total[TAGGED].running_ns = 4;
	untagged("other events used the core counters part of the time");
	given.pmu.tags_known = false;
	untagged("other events used the core counters part of the time");
}

/* Before Zen 6 nothing counts tags that interrupted. */
static void test_zen5(void **state)
{
	(void)state;
	cpu_info_set(&session.cpu, "AuthenticAMD", 0x1a, 0x02, 0x1bff);
	run(false);
	assert_false(has_second);
	is_unknown(VERIFY_VALID, "the processor does not count these (Zen 6 does)");
	is(VERIFY_RETIRED, 10000, 9990);
	assert_true(agree);
}

static void test_idle(void **state)
{
	(void)state;
	given.ledger.seen = given.pmu.tagged = 99;
	run(false);
	is_unknown(VERIFY_OPS, "too few samples: the machine is idle");
	is(VERIFY_RETIRED, 99, 99);
	snapshot_free(&given);
	set_up(NULL);
	given.ledger.seen = 100;
	given.pmu.tagged = 0;
	given.pmu.tag_n = 1;
	run(false);
	is(VERIFY_OPS, 100 * PERIOD, 5e9);
	is_unknown(VERIFY_RETIRED, "the counter counted nothing");
	assert_false(agree);
}

static void test_l3(void **state)
{
	(void)state;
	fails[FIRST_L3 + L3_SOURCE_REMOTE_DRAM] = "made to have no events";
	total[FIRST_L3].second = 0;
	run(false);
	is_unknown(VERIFY_L3, "the counter counted nothing");
	is(VERIFY_L3_DRAM, 300, 6002 / 20.);
	is_unknown(VERIFY_L3_REMOTE_DRAM, "made to have no events");
	assert_string_equal(calls, "eeeeeeespddddddd");
	snapshot_free(&given);
	set_up(NULL);
	no_l3 = "made to have no L3";
	run(false);
	for (int i = VERIFY_L3; i < VERIFY_N; i++)
		is_unknown(i, "made to have no L3");
	is(VERIFY_RETIRED, 10000, 9990);
	assert_true(agree);
	assert_string_equal(calls, "espd");
	/* a hundred samples are enough */
	snapshot_free(&given);
	set_up(NULL);
	add_series(&given.groups[0], IBS_SRC_NEAR_CACHE, 1, 100);
	run(false);
	is(VERIFY_L3_NEAR_CACHE, 100, 6004 / 20.);
}

static void test_disagree(void **state)
{
	(void)state;
	given.pmu.tagged = 9000;
	run(false);
	assert_false(agree);
}

/* Counters and loops must agree, as far as there are any. */
static void test_loops(void **state)
{
	static const struct {
		double loads;
		bool counters, good, agree;
	} rows[] = {
		{ 1000, true, true, true },   { 1300, true, true, false },
		{ 0, true, true, true },      { 1000, true, false, false },
		{ 1000, false, false, true }, { 1300, false, false, false },
		{ 0, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snapshot_free(&given);
		set_up(NULL);
		loads = rows[i].loads;
		given.pmu.throttled = !rows[i].counters;
		given.pmu.tagged = rows[i].good ? 9990 : 9000;
		run(true);
		assert_int_equal(json_array_size(json_object_get(report, "loops")), LOOPS_N);
		if (agree != rows[i].agree)
			fail_msg("row %zu", i);
	}
}

static void test_text(void **state)
{
	char *text;
	int ret;

	(void)state;
	loads = 1000;
	text = verify(true, false, &ret);
	assert_int_equal(ret, 0);
	assert_non_null(strstr(text, "Samples and counters agree.\n\nLOOP "));
	assert_non_null(strstr(text, "Loops look as they must.\n"));
	free(text);
	snapshot_free(&given);
	set_up(NULL);
	text = verify(false, false, &ret);
	assert_int_equal(ret, 0);
	assert_non_null(strstr(text, "Samples and counters agree.\n"));
	assert_null(strstr(text, "LOOP"));
	free(text);
}

static void fails_with(int code, const char *why)
{
	int ret;
	char *text = verify(true, true, &ret);

	assert_int_equal(ret, code);
	assert_string_equal(err.text, why);
	assert_string_equal(text, "");
	assert_int_equal(n_open, 0);
	free(text);
}

static void test_errors(void **state)
{
	(void)state;
	open_fails = true;
	fails_with(-EACCES, "made not to open");
	assert_string_equal(calls, "");
	open_fails = false;
	start_fails = true;
	fails_with(-EIO, "made not to start");
	assert_string_equal(calls, "eeeeeeeespdddddddd");
	snapshot_free(&given);
	set_up(NULL);
	loops_fail = true;
	fails_with(-EPERM, "made to have no loops");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_good),	  T(test_untagged), T(test_zen5), T(test_idle),	  T(test_l3),
		T(test_disagree), T(test_loops),    T(test_text), T(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
