// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What options mean in the simulation: rates, CPUs, what a sampler is opened with, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpulist.h"
#include "base/err.h"
#include "base/exit_status.h"
#include "session/session_private.h"

static struct sampling_opts o;
static struct setup *s;
static struct err err;

static void parse(int n, const char *const *words)
{
	const struct option_set sets[] = {
		{ "Sampling", sampling_options, sampling_n_options, &o },
		{ "Selection", select_option_rows, select_option_n_rows, &o.select },
	};
	char *argv[24] = { (char *)"hist", (char *)"--source", (char *)"sim" };

	setup_free(s);
	s = NULL;
	sampling_free(&o);
	memcpy(argv + 3, words, n * sizeof(*words));
	sampling_init(&o);
	o.takes_two = true;
	err = (struct err){ "" };
	if (options_parse(n + 3, argv, sets, 2, &err) ?: sampling_check(&o, &err))
		fail_msg("%s", err.text);
}

static void accepted(void)
{
	bool usage = true;

	if (setup_new(&o, &s, &usage, &err))
		fail_msg("%s", err.text);
	assert_false(usage);
	assert_int_equal(session_check(&o, &usage, &err), 0);
}

static void refused(int code, const char *want)
{
	bool usage = false;

	assert_int_equal(setup_new(&o, &s, &usage, &err), code);
	assert_string_equal(err.text, want);
	assert_true(usage);
	assert_null(s);
	usage = false;
	assert_int_equal(session_check(&o, &usage, &err), code);
	assert_true(usage);
}

#define WORDS(...)                                                                 \
	sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]) \
	{                                                                          \
		__VA_ARGS__                                                        \
	}
#define ACCEPTED(...)                      \
	do {                               \
		parse(WORDS(__VA_ARGS__)); \
		accepted();                \
	} while (0)
#define REFUSED(code, want, ...)           \
	do {                               \
		parse(WORDS(__VA_ARGS__)); \
		refused(code, want);       \
	} while (0)

static int end(void **state)
{
	(void)state;
	setup_free(s);
	s = NULL;
	sampling_free(&o);
	return 0;
}

/* The model takes a nanosecond for an op; the default period is that of the hardware. */
static void test_event(void **state)
{
	const struct session_event *e;

	(void)state;
	ACCEPTED("-e", "ibs_op/cnt_ctl=1/");
	e = &s->event[0];
	assert_string_equal(e->text, "ibs_op/cnt_ctl=1/");
	assert_ptr_equal(e->opts.event, e->text);
	assert_ptr_equal(e->info.event, e->text);
	assert_string_equal(e->info.source, "sim");
	assert_true(e->info.simulated);
	assert_int_equal(e->info.period, EVENT_DEFAULT_PERIOD);
	assert_int_equal(e->info.metric, IBS_METRIC_DC_MISS_LAT);
	assert_int_equal(e->opts.source, SAMPLER_SIM);
	assert_int_equal(e->opts.metric, IBS_METRIC_DC_MISS_LAT);
	assert_int_equal(e->opts.filter, EVENT_FILTER_NONE);
	assert_int_equal(e->opts.ibs.caps, 0xbff); /* of a Zen 4 */
	assert_int_equal(e->opts.ibs.quirks, 0);
	assert_int_equal(e->opts.attr.size, sizeof(e->opts.attr));
	assert_int_equal(e->opts.attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(e->opts.attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(e->opts.attr.sample_period, EVENT_DEFAULT_PERIOD);
	assert_int_equal(e->opts.attr.freq, 0);
	assert_int_equal(e->opts.attr.read_format,
			 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	assert_true(e->opts.tlb && e->opts.exposed);
	assert_false(e->opts.count_ops || e->opts.slabs);
	assert_false(e->plan.strata);
	/* stalls are exposed only where ops are counted, and latencies of misses */
	ACCEPTED("-e", "ibs_op/cnt_ctl=0/");
	assert_false(s->event[0].opts.exposed);
	ACCEPTED("--metric", "tag_to_ret");
	assert_false(s->event[0].opts.exposed);
	assert_int_equal(s->event[0].info.metric, IBS_METRIC_TAG_TO_RET);
	ACCEPTED("-e", "ibs_fetch/rand_en=1/", "--by", "fetch");
	assert_false(s->event[0].opts.exposed || s->event[0].opts.tlb);
	assert_int_equal(s->event[0].opts.metric, IBS_METRIC_FETCH_LAT);
}

static void test_rates(void **state)
{
	(void)state;
	/* the period varies: the ops of samples are summed up */
	ACCEPTED("-F", "1000");
	assert_int_equal(s->event[0].opts.attr.freq, 1);
	assert_int_equal(s->event[0].opts.attr.sample_freq, 1000);
	assert_int_equal(s->event[0].info.period, 0);
	assert_true(s->event[0].opts.count_ops);
	ACCEPTED("-e", "ibs_op/period=200000/");
	assert_int_equal(s->event[0].info.period, 200000);
	assert_int_equal(s->event[0].opts.attr.sample_period, 200000);
	ACCEPTED("-c", "1099511627776");
	assert_int_equal(s->event[0].info.period, 1ULL << 40);
	REFUSED(-ERANGE,
		"-c (period): invalid period 1099511627777: must be from 10000 to 2^40 ns in the "
		"simulation",
		"-c", "1099511627777");
	REFUSED(-ERANGE,
		"-c (period): invalid period 9999: must be from 10000 to 2^40 ns in the simulation",
		"-c", "9999");
	REFUSED(-ERANGE,
		"-F (freq): invalid frequency 0: must be from 1 to 100000 Hz in the simulation",
		"-F", "0");
	REFUSED(-ERANGE,
		"-F (freq): invalid frequency 100001: must be from 1 to 100000 Hz in the "
		"simulation",
		"-F", "100001");
	REFUSED(-EINVAL, "the event has period=, which conflicts with a frequency (-F); give one",
		"-e", "ibs_op/period=200000/", "-F", "1000");
	/* page faults */
	ACCEPTED("--sim-event", "faults");
	assert_int_equal(s->event[0].opts.attr.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(s->event[0].info.period, 16);
	ACCEPTED("--sim-event", "faults", "-c", "17");
	assert_int_equal(s->event[0].info.period, 17);
	REFUSED(-ERANGE,
		"-c (period): invalid period 15: must be from 16 to 2^40 page faults in the "
		"simulation",
		"--sim-event", "faults", "-c", "15");
}

static void test_refused(void **state)
{
	(void)state;
	REFUSED(-EINVAL,
		"the simulation has no 'ldlat': leave the term out, or sample with --source ibs",
		"-e", "ibs_op/cnt_ctl=1,ldlat=128/");
	REFUSED(-EINVAL,
		"the simulation has no 'rand_en': leave the term out, or sample with --source ibs",
		"-e", "ibs_op/rand_en=1/");
	REFUSED(-EINVAL,
		"the simulation has no 'cnt_ctl': leave the term out, or sample with --source ibs",
		"-e", "ibs_fetch/cnt_ctl=1/", "--by", "fetch");
	REFUSED(-EINVAL,
		"the simulation has no modifiers: leave them out, or sample with --source ibs",
		"-e", "ibs_op//u");
	REFUSED(-EINVAL,
		"the simulation has no modifiers: leave them out, or sample with --source ibs",
		"-e", "ibs_op//k");
	REFUSED(-EINVAL, "--plan: the simulation has only the program: use --plan program",
		"--plan", "hw");
	ACCEPTED("--plan", "program");
	ACCEPTED("--plan", "auto");
	REFUSED(-EINVAL,
		"--by symbol: only recordings have addresses of ops, counters do not: use ibscope "
		"record, then ibscope report --by symbol or ibscope top -i FILE --by symbol",
		"--by", "symbol");
	/* strata need a hardware filter */
	parse(WORDS("-a"));
	o.strata = STRATA_ON;
	refused(-EINVAL, "--strata: a simulation has no hardware filters");
	o.strata = STRATA_AUTO;
	accepted();
	assert_false(s->event[0].plan.strata);
}

/* Keys of groups, and what programs must read for them. */
static void test_keys(void **state)
{
	(void)state;
	ACCEPTED("--by", "cgroup,src");
	assert_int_equal(s->event[0].opts.by, IBS_BY_CGROUP);
	assert_false(s->event[0].opts.slabs);
	ACCEPTED("--by", "slab,pid");
	assert_int_equal(s->event[0].opts.by, IBS_BY_SLAB | IBS_BY_PID);
	assert_true(s->event[0].opts.slabs);
}

/* Two events share the memory and the CPUs. */
static void test_two(void **state)
{
	(void)state;
	ACCEPTED("-e", "ibs_op//,ibs_fetch//", "-c", "100000,200000", "--max-memory", "64", "--by",
		 "pid,src,fetch");
	assert_int_equal(s->event[0].info.period, 100000);
	assert_int_equal(s->event[1].info.period, 200000);
	assert_int_equal(s->event[0].opts.max_memory_bytes, 32 << 20);
	assert_int_equal(s->event[1].opts.max_memory_bytes, 32 << 20);
	assert_ptr_equal(s->event[1].opts.cpus, s->cpus);
	assert_ptr_equal(s->event[0].opts.cpus, s->cpus);
	assert_int_equal(s->event[0].opts.n_cpus, s->event[1].opts.n_cpus);
	assert_int_equal(s->event[0].labels, 1U << LABEL_PID | 1U << LABEL_SRC);
	assert_int_equal(s->event[1].labels, 1U << LABEL_PID | 1U << LABEL_FETCH);
	assert_true(s->event[0].opts.tlb);
	assert_false(s->event[1].opts.tlb);
}

/* Given CPUs must be online; without, also those are sampled that come online later. */
static void test_cpus(void **state)
{
	struct cpulist online, possible;
	char list[256], want[400];
	int cpu, beyond = 0;
	size_t n = 0;

	(void)state;
	assert_int_equal(cpulist_read("", "online", &online, &err), 0);
	assert_int_equal(cpulist_read("", "possible", &possible, &err), 0);
	ACCEPTED("-C", "0");
	assert_int_equal(s->event[0].opts.n_cpus, 1);
	assert_int_equal(s->cpus[0], 0);
	ACCEPTED("-a");
	assert_int_equal(s->event[0].opts.n_cpus, cpulist_count(&possible));
	cpulist_for_each (cpu, &possible) {
		assert_int_equal(s->cpus[n++], cpu);
		beyond = cpu + 1;
	}
	cpulist_print(&online, list, sizeof(list));
	snprintf(want, sizeof(want), "-C: cpu %d is not online; online CPUs: %s", beyond, list);
	snprintf(list, sizeof(list), "0,%d", beyond);
	{
		const char *const words[] = { "-C", list };

		parse(2, words);
	}
	refused(-EINVAL, want);
}

/* --- --explain --- */

static char text[16384];

/* What is printed, without where it goes to. */
static int explain(bool json)
{
	FILE *f = tmpfile();
	const int out = dup(1);
	size_t n;
	int ret;

	assert_non_null(f);
	fflush(stdout);
	assert_int_equal(dup2(fileno(f), 1), 1);
	ret = sampling_explain(&o, json);
	fflush(stdout);
	assert_int_equal(dup2(out, 1), 1);
	close(out);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	return ret;
}

static bool begins(const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The plan, then the tests of a filter; of two events, one after the other. */
static void test_explain(void **state)
{
	const char *second, *filter;

	(void)state;
	parse(WORDS("--source", "ibs"));
	o.select.machine = "zen4:6.12";
	assert_int_equal(explain(false), EXIT_DONE);
	assert_true(begins("Zen 4, Linux 6.12\n\n"));
	assert_null(strstr(text, "in the kernel,"));
	parse(WORDS("--source", "ibs", "--filter", "pid == 7"));
	o.select.machine = "zen4:6.12";
	assert_int_equal(explain(false), EXIT_DONE);
	filter = strstr(text, "\n\nfilter: pid == 7\nin the kernel, 1 test of 24:\n");
	assert_non_null(filter);
	parse(WORDS("--source", "ibs", "-e", "ibs_op//,ibs_fetch//"));
	o.select.machine = "zen5:7.2";
	assert_int_equal(explain(false), EXIT_DONE);
	assert_true(begins("Zen 5, Linux 7.2\n\n"));
	second = strstr(text + 1, "\n\nZen 5, Linux 7.2\n\n");
	assert_non_null(second);
	assert_null(strstr(second + 3, "Zen 5, Linux 7.2"));
	assert_int_equal(explain(true), EXIT_DONE);
	assert_true(begins("{"));
	assert_null(strstr(text, "in the kernel,"));
	/* a period that the machine cannot count */
	parse(WORDS("--source", "ibs", "-c", "16"));
	o.select.machine = "zen4:6.12";
	assert_int_equal(explain(false), EXIT_USAGE);
	assert_string_equal(text, "");
	o.select.machine = "no:such";
	assert_int_equal(explain(false), EXIT_USAGE);
	assert_string_equal(text, "");
	/* the simulation can */
	parse(WORDS("-c", "10008"));
	o.select.machine = "zen4:6.12";
	assert_int_equal(explain(false), EXIT_DONE);
}

#define T(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_event), T(test_rates), T(test_refused), T(test_keys),
		T(test_two),   T(test_cpus),  T(test_explain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
