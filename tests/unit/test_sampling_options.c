// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of all commands that sample: what they set, what they imply, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "session/session.h"

static struct sampling_opts o;
static struct err err;
static bool takes_two;

/* Parse a command line of @n words, and check it. */
static int parse_words(int n, const char *const *words)
{
	const struct option_set set = { "Sampling", sampling_options, sampling_n_options, &o };
	char *argv[16] = { (char *)"hist" };

	memcpy(argv + 1, words, n * sizeof(*words));
	sampling_init(&o);
	o.takes_two = takes_two;
	err = (struct err){ "" };
	return options_parse(n + 1, argv, &set, 1, &err) ?: sampling_check(&o, &err);
}

#define PARSE(...)                                                            \
	parse_words(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), \
		    (const char *[]){ __VA_ARGS__ })

#define REFUSED(message, ...)                                  \
	do {                                                   \
		assert_int_equal(PARSE(__VA_ARGS__), -EINVAL); \
		assert_string_equal(err.text, message);        \
	} while (0)

static int one(void **state)
{
	(void)state;
	takes_two = false;
	return 0;
}

static int two(void **state)
{
	(void)state;
	takes_two = true;
	return 0;
}

static void test_defaults(void **state)
{
	(void)state;
	memset(&o, 0xff, sizeof(o));
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_DFL);
	sampling_init(&o);
	signal(SIGUSR1, SIG_DFL);
	/* those of the command */
	assert_int_equal(sigismember(&o.signals.ignored, SIGUSR1), 1);
	assert_int_equal(sigismember(&o.signals.ignored, SIGUSR2), 0);
	assert_int_equal(o.n_events, 1);
	assert_string_equal(o.event[0].spec.pmu, "ibs_op");
	assert_int_equal(event_term(&o.event[0].spec, "cnt_ctl"), 1);
	assert_false(sampling_of_fetch(&o));
	assert_int_equal(o.labels, LABELS_DEFAULT);
	assert_int_equal(o.metric, IBS_METRIC_N);
	assert_int_equal(o.stages, PLAN_AUTO);
	assert_int_equal(o.sampler.sim_seed, 1);
	assert_int_equal(o.n_periods, 0);
	assert_int_equal(o.source, SOURCE_AUTO);
	assert_false(o.event[0].rate.has_period || o.event[0].rate.has_freq || o.has_cpus || o.all);
	assert_int_equal(sampling_check(&o, &err), 0);
	assert_int_equal(o.event[0].metric, IBS_METRIC_DC_MISS_LAT);
	assert_int_equal(o.event[0].labels, LABELS_DEFAULT);
	o.labels = 7;
	sampling_free(&o);
	assert_int_equal(o.labels, 0);
}

/* Commas between slashes separate terms, others events. */
static void test_one_event(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-e", "ibs_op/cnt_ctl=1,l3missonly=1/u"), 0);
	assert_int_equal(o.n_events, 1);
	assert_int_equal(o.event[0].spec.n_terms, 2);
	assert_int_equal(event_term(&o.event[0].spec, "l3missonly"), 1);
	assert_true(o.event[0].spec.user);
	assert_int_equal(PARSE("-e", "ibs_fetch//"), 0);
	assert_true(sampling_of_fetch(&o));
	assert_int_equal(o.event[0].metric, IBS_METRIC_FETCH_LAT);
	REFUSED("-e ibs_op//,ibs_fetch//: at most one event is possible: run the command once for "
		"each",
		"-e", "ibs_op//,ibs_fetch//");
	assert_int_equal(PARSE("-e", "cycles"), -ENODEV);
	assert_int_equal(strncmp(err.text, "-e cycles: ", 11), 0);
}

static void is_both(void)
{
	assert_int_equal(o.n_events, 2);
	assert_string_equal(o.event[0].spec.pmu, "ibs_op");
	assert_int_equal(event_term(&o.event[0].spec, "cnt_ctl"), 1);
	assert_int_equal(event_term(&o.event[0].spec, "l3missonly"), 1);
	assert_string_equal(o.event[1].spec.pmu, "ibs_fetch");
	assert_int_equal(event_term(&o.event[1].spec, "rand_en"), 1);
	assert_int_equal(o.event[0].metric, IBS_METRIC_DC_MISS_LAT);
	assert_int_equal(o.event[1].metric, IBS_METRIC_FETCH_LAT);
}

static void test_two_events(void **state)
{
	char terms[EVENT_TEXT_MAX], longer[EVENT_TEXT_MAX + 2];

	(void)state;
	assert_int_equal(PARSE("-e", "ibs_op/cnt_ctl=1,l3missonly=1/,ibs_fetch/rand_en=1/"), 0);
	is_both();
	assert_int_equal(
		PARSE("-e", "ibs_op/cnt_ctl=1,l3missonly=1/", "-e", "ibs_fetch/rand_en=1/"), 0);
	is_both();
	assert_string_equal(o.events, "ibs_op/cnt_ctl=1,l3missonly=1/,ibs_fetch/rand_en=1/");
	REFUSED("-e ibs_op//,ibs_fetch//,ibs_op//: at most two events, ibs_op and ibs_fetch, are "
		"possible",
		"-e", "ibs_op//,ibs_fetch//,ibs_op//");
	REFUSED("-e ibs_op//,ibs_op//: two events of ibs_op, which supports only one: use one of "
		"ibs_op and one of ibs_fetch",
		"-e", "ibs_op//,ibs_op//");
	/* all events together have at most 1023 characters */
	memset(terms, 'x', sizeof(terms));
	memcpy(terms, "ibs_op/", 7);
	strcpy(terms + sizeof(terms) - 2, "/");
	assert_int_equal(strlen(terms), 1023);
	assert_true(PARSE("-e", terms) != -E2BIG);
	snprintf(longer, sizeof(longer), "%sx", terms);
	assert_int_equal(PARSE("-e", longer), -E2BIG);
}

/* Each event groups by the keys that its samples have. */
static void test_labels(void **state)
{
	const unsigned int pid = 1U << LABEL_PID, src = 1U << LABEL_SRC, fetch = 1U << LABEL_FETCH;

	(void)state;
	assert_int_equal(PARSE("-e", "ibs_op//,ibs_fetch//", "--by", "pid,src,fetch"), 0);
	assert_int_equal(o.event[0].labels, pid | src);
	assert_int_equal(o.event[1].labels, pid | fetch);
	assert_int_equal(PARSE("--by", "pid,src"), 0);
	assert_int_equal(o.event[0].labels, pid | src);
	sampling_init(&o);
	o.labels = LABELS_SERVED;
	event_parse("ibs_fetch//", &o.event[0].spec, NULL);
	assert_int_equal(sampling_check(&o, &err), 0);
	assert_int_equal(o.event[0].labels, (LABELS_SERVED & ~LABELS_OP) | LABELS_FETCH);
}

/* With two events the metric is that of the one that has it. */
static void test_metric(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--metric", "tag_to_ret"), 0);
	assert_int_equal(o.event[0].metric, IBS_METRIC_TAG_TO_RET);
	assert_int_equal(PARSE("-e", "ibs_op//,ibs_fetch//", "--metric", "tag_to_ret"), 0);
	assert_int_equal(o.event[0].metric, IBS_METRIC_TAG_TO_RET);
	assert_int_equal(o.event[1].metric, IBS_METRIC_FETCH_LAT);
	assert_int_equal(PARSE("-e", "ibs_op//,ibs_fetch//", "--metric", "itlb_refill_lat"), 0);
	assert_int_equal(o.event[0].metric, IBS_METRIC_DC_MISS_LAT);
	assert_int_equal(o.event[1].metric, IBS_METRIC_ITLB_REFILL_LAT);
	REFUSED("--metric fetch_lat: samples of ibs_op do not have that; use -e ibs_fetch//, or "
		"another metric",
		"--metric", "fetch_lat");
	REFUSED("--metric tag_to_ret: samples of ibs_fetch do not have that; use fetch_lat or "
		"itlb_refill_lat",
		"-e", "ibs_fetch//", "--metric", "tag_to_ret");
}

static void test_periods(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-c", "160k"), 0);
	assert_true(o.event[0].rate.has_period && o.event[1].rate.has_period);
	assert_int_equal(o.event[0].rate.period, 160000);
	assert_int_equal(o.event[1].rate.period, 160000);
	assert_int_equal(o.n_periods, 1);
	assert_int_equal(PARSE("-e", "ibs_op//,ibs_fetch//", "-c", "1600,320"), 0);
	assert_int_equal(o.event[0].rate.period, 1600);
	assert_int_equal(o.event[1].rate.period, 320);
	REFUSED("-c: 2 periods, but 1 event", "-c", "1600,320");
	REFUSED("-c: 3 periods, but 2 events", "-e", "ibs_op//,ibs_fetch//", "-c", "16,16,16");
	assert_int_equal(PARSE("-F", "1000"), 0);
	assert_true(o.event[0].rate.has_freq && o.event[1].rate.has_freq);
	assert_int_equal(o.event[0].rate.freq, 1000);
	assert_int_equal(o.event[1].rate.freq, 1000);
	assert_false(o.event[0].rate.has_period);
	assert_true(PARSE("-F", "fast") < 0);
}

#define RULE "decimal (K, M, G multiply by 1e3, 1e6, 1e9) or 0x hexadecimal"

/* What is wrong with a period depends on the source. */
static void test_bad_periods(void **state)
{
	(void)state;
	REFUSED("-c (period): invalid number 'x1': must be a multiple of 16 from 16 to "
		"134217712, " RULE,
		"-c", "x1");
	REFUSED("-c (period): invalid number 'x2': must be a multiple of 16 from 16 to "
		"134217712, " RULE,
		"-e", "ibs_op//,ibs_fetch//", "-c", "16,x2");
	/* the first of several */
	REFUSED("-c (period): invalid number 'x1': must be a multiple of 16 from 16 to "
		"134217712, " RULE,
		"-c", "x1,x2");
	assert_int_equal(PARSE("-c", "x1", "--source", "sim"), -EINVAL);
	assert_non_null(strstr(err.text, "to 2^40 ns in the simulation"));
	assert_int_equal(PARSE("-c", "x1", "--source", "sim", "--sim-event", "faults"), -EINVAL);
	assert_non_null(strstr(err.text, "to 2^40 page faults in the simulation"));
	assert_int_equal(PARSE("-c", "x1", "--source", "ibs"), -EINVAL);
	assert_non_null(strstr(err.text, "a multiple of 16"));
}

static void test_cpus(void **state)
{
	char text[32];

	(void)state;
	assert_int_equal(PARSE("-C", "0-3,8"), 0);
	assert_true(o.has_cpus);
	assert_false(o.all || sampling_measures_others(&o));
	cpulist_print(&o.cpus, text, sizeof(text));
	assert_string_equal(text, "0-3,8");
	/* the last one counts */
	assert_int_equal(PARSE("-C", "1", "-a"), 0);
	assert_false(o.has_cpus);
	assert_true(o.all && sampling_measures_others(&o));
	assert_int_equal(PARSE("-a", "-C", "1"), 0);
	assert_true(o.has_cpus);
	assert_true(PARSE("-C", "one") < 0);
}

static void test_choices(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--source", "sim", "--sim-event", "clock", "--sim-ops", "tasks"), 0);
	assert_int_equal(o.source, SOURCE_SIM);
	assert_int_equal(o.sim_faults, 0);
	assert_int_equal(o.sampler.sim_ops, SAMPLER_SIM_TASKS);
	assert_int_equal(PARSE("--source", "ibs", "--sim-event", "faults", "--sim-ops", "random"),
			 0);
	assert_int_equal(o.source, SOURCE_IBS);
	assert_int_equal(o.sim_faults, 1);
	assert_int_equal(o.sampler.sim_ops, SAMPLER_SIM_RANDOM);
	assert_int_equal(PARSE("--source", "auto", "--sim-ops", "contended"), 0);
	assert_int_equal(o.source, SOURCE_AUTO);
	assert_int_equal(o.sampler.sim_ops, SAMPLER_SIM_CONTENDED);
	assert_int_equal(PARSE("--plan", "hw,driver"), 0);
	assert_int_equal(o.stages, 1U << PLAN_HARDWARE | 1U << PLAN_DRIVER);
	assert_true(PARSE("--plan", "none") < 0);
	assert_string_equal(strata_option_name(STRATA_OFF), "off");
	assert_string_equal(strata_option_name(STRATA_AUTO), "auto");
	assert_string_equal(strata_option_name(STRATA_ON), "on");
}

static void test_numbers(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--seed", "0", "--max-groups", "1", "--max-memory", "1"), 0);
	assert_int_equal(o.sampler.sim_seed, 0);
	assert_int_equal(o.sampler.max_groups, 1);
	assert_int_equal(o.sampler.max_memory_bytes, 1 << 20); /* of MiB */
	assert_int_equal(PARSE("--max-groups", "1048576", "--max-memory", "1G", "--any-period",
			       "--core-counters", "--cgroup-hierarchy", "memory"),
			 0);
	assert_int_equal(o.sampler.max_groups, 1048576);
	assert_int_equal(o.sampler.max_memory_bytes, 1 << 30);
	assert_true(o.any_period && o.core_counters);
	assert_string_equal(o.hierarchy, "memory");
	assert_true(PARSE("--max-groups", "0") < 0);
	assert_true(PARSE("--max-groups", "1048577") < 0);
	assert_true(PARSE("--max-memory", "1K") < 0);
}

/* What else is measured than the command. */
static void test_others(void **state)
{
	(void)state;
	sampling_init(&o);
	assert_false(sampling_measures_others(&o));
	o.select.sel.processes.n = 1;
	assert_true(sampling_measures_others(&o));
	sampling_init(&o);
	o.select.sel.threads.n = 1;
	assert_true(sampling_measures_others(&o));
	sampling_init(&o);
	o.select.n_cgroups = 1;
	assert_true(sampling_measures_others(&o));
	sampling_init(&o);
	o.select.n_containers = 1;
	assert_true(sampling_measures_others(&o));
}

/* Sources and kinds of op are those of ops. */
static void test_selection(void **state)
{
	struct selection sel;

	(void)state;
	sampling_init(&o);
	o.select.sel.src_mask = 2;
	o.select.sel.min_lat = 5;
	o.live = 3;
	assert_int_equal(sampling_check(&o, &err), 0);
	sel = sampling_selection(&o, 0);
	assert_int_equal(sel.src_mask, 2);
	assert_int_equal(sel.min_lat, 5);
	assert_int_equal(sel.live, 3);
	assert_null(sel.filter);
	o.select.filter[false].n_parts = 1;
	sel = sampling_selection(&o, 0);
	assert_ptr_equal(sel.filter, &o.select.filter[false].prog);
	event_parse("ibs_fetch//", &o.event[0].spec, NULL);
	assert_null(sampling_selection(&o, 0).filter);
	assert_int_equal(sampling_check(&o, &err), -EINVAL);
	assert_string_equal(err.text, "--src: samples of ibs_fetch do not have that; use --filter "
				      "'fetch == ..'");
	o.select.sel.src_mask = 0;
	o.select.sel.op_mask = 1;
	assert_int_equal(sampling_check(&o, &err), -EINVAL);
	assert_string_equal(err.text, "--op: samples of ibs_fetch do not have that; use --filter "
				      "'fetch == ..'");
	o.select.sel.op_mask = 0;
	o.select.sel.max_lat = 4;
	assert_int_equal(sampling_check(&o, &err), -EINVAL);
	assert_string_equal(err.text, "--min-lat 5 is above --max-lat 4");
}

/* The command is cut off before options are parsed. */
static void test_cut_command(void **state)
{
	char *words[] = { (char *)"--", (char *)"-v", (char *)"--", (char *)"ls", (char *)"--" };

	(void)state;
	sampling_init(&o);
	assert_int_equal(sampling_cut_command(&o, 2, words, &err), 2);
	assert_null(o.argv);
	assert_int_equal(sampling_cut_command(&o, 3, words, &err), -EINVAL);
	assert_string_equal(err.text, "missing command after '--'");
	assert_int_equal(sampling_cut_command(&o, 5, words, &err), 2);
	assert_ptr_equal(o.argv, words + 3);
	assert_null(words[2]);
}

#define ONE(f) cmocka_unit_test_setup(f, one)
#define TWO(f) cmocka_unit_test_setup(f, two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE(test_defaults),    ONE(test_one_event), TWO(test_two_events),
		TWO(test_labels),      TWO(test_metric),    TWO(test_periods),
		TWO(test_bad_periods), ONE(test_cpus),	    ONE(test_choices),
		ONE(test_numbers),     ONE(test_others),    ONE(test_selection),
		ONE(test_cut_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
