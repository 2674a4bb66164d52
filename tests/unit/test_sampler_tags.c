// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counters of tagged ops, as numbers made here: what was tagged while all CPUs sampled, and the ops of a sample that
 * follow; and periods that cannot be set.
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

#include "base/err.h"
#include "perf/cpu_event.h"
#include "sampler/sampler_private.h"

/* Without open events, the counts are those of closed ones. */
static struct perf_events tags, valid;
static struct sampler s;

static void count(struct perf_events *pe, __u64 counted, __u64 second)
{
	pe->closed.counted = counted;
	pe->closed.second = second;
}

static int set_up(void **state)
{
	(void)state;
	free(s.state);
	tags = valid = (struct perf_events){ .cgroup = -1 };
	s = (struct sampler){ .tags = &tags, .tag_unit = 1, .started = true };
	s.state = aligned_alloc(_Alignof(struct ibs_state), sizeof(*s.state));
	memset(s.state, 0, sizeof(*s.state));
	return 0;
}

static struct pmu_state read_tags(void)
{
	struct pmu_state out = {};

	sampler_tags_read(&s, &out);
	return out;
}

static void tags_are(__u64 n, __u64 ops)
{
	const struct pmu_state p = read_tags();

	assert_int_equal(p.tag_n, n);
	assert_int_equal(p.tag_ops, ops);
}

/* Tags between start and stop; what is counted while sampling is stopped belongs to no sample. */
static void test_slices(void **state)
{
	struct pmu_state p;

	(void)state;
	count(&tags, 100, 5000);
	sampler_tags_begin(&s);
	tags_are(0, 0);
	count(&tags, 150, 9000);
	tags_are(50, 4000);
	p = read_tags();
	assert_int_equal(p.tagged, 150);
	assert_int_equal(p.ops, 9000);
	sampler_tags_end(&s);
	count(&tags, 170, 9900);
	tags_are(50, 4000);
	sampler_tags_end(&s); /* the first end counts */
	tags_are(50, 4000);
	p = read_tags();
	assert_int_equal(p.tagged, 170);
	assert_int_equal(p.ops, 9900);
	sampler_tags_begin(&s);
	tags_are(50, 4000);
	count(&tags, 200, 12000);
	tags_are(80, 6100);
	/* without counters nothing is known */
	s.tags = NULL;
	sampler_tags_begin(&s);
	sampler_tags_end(&s);
	tags_are(0, 0);
	assert_false(read_tags().tags_known);
}

/* Another user of the counters, filters and cgroups make some of it unknown. */
static void test_known(void **state)
{
	struct pmu_state p;

	(void)state;
	count(&tags, 150, 9000);
	count(&valid, 140, 0);
	p = read_tags();
	assert_true(p.tags_known && p.valid_known);
	assert_int_equal(p.valid, 150);
	s.filter = EVENT_FILTER_HARDWARE;
	assert_true(read_tags().tags_known);
	assert_false(read_tags().valid_known);
	s.filter = EVENT_FILTER_DRIVER;
	assert_false(read_tags().valid_known);
	/* those that interrupted are counted */
	s.valid = &valid;
	s.filter = EVENT_FILTER_HARDWARE;
	p = read_tags();
	assert_true(p.valid_known);
	assert_int_equal(p.valid, 140);
	assert_int_equal(p.tagged, 150);
	/* the driver drops some of them afterwards */
	s.filter = EVENT_FILTER_DRIVER;
	p = read_tags();
	assert_false(p.valid_known);
	assert_int_equal(p.valid, 150);
	s.filter = EVENT_FILTER_NONE;
	valid.closed.enabled_ns = 1;
	assert_true(read_tags().tags_known);
	assert_false(read_tags().valid_known);
	valid.closed.running_ns = 1;
	tags.closed.enabled_ns = 1;
	assert_false(read_tags().tags_known);
	assert_true(read_tags().valid_known);
	tags.cgroup = 3;
	assert_false(read_tags().valid_known);
}

/* Of fetches, all tags are counted, and those that were lost; a tag is a period of fetches. */
static void test_fetch(void **state)
{
	struct perf_events_total t;
	struct pmu_state p;

	(void)state;
	s.tags_are_lost = true;
	s.tag_unit = 160;
	count(&tags, 1000, 300);
	sampler_tags_total(&s, &t);
	assert_int_equal(t.counted, 700);
	assert_int_equal(t.second, 1000);
	sampler_tags_begin(&s);
	count(&tags, 1500, 400);
	p = read_tags();
	assert_int_equal(p.tagged, 1100);
	assert_int_equal(p.ops, 1500 * 160);
	assert_int_equal(p.tag_n, 400);
	assert_int_equal(p.tag_ops, 500 * 160);
	s.valid = &valid;
	count(&valid, 1500, 900);
	assert_int_equal(read_tags().valid, 600);
}

/* @n more tags with so many ops each; time passes, for others as well if @shared. */
static void run(__u64 n, __u64 ops, bool shared)
{
	tags.closed.counted += n;
	tags.closed.second += n * ops;
	tags.closed.enabled_ns += 1000;
	tags.closed.running_ns += shared ? 999 : 1000;
	sampler_tags_weigh(&s);
}

/* Later samples make up for those before, which had the weight that was known then, within a factor of two. */
static void test_weigh(void **state)
{
	__u64 *weight;

	(void)state;
	weight = &s.state->control.tag_ops;
	*weight = 100;
	sampler_tags_begin(&s);
	run(999, 150, false); /* too few to compute a weight */
	assert_int_equal(*weight, 100);
	run(1, 150, false);
	/* 1000 samples had 50 too little */
	assert_int_equal(*weight, 200);
	run(1000, 150, false);
	assert_int_equal(*weight, 150);
	run(1000, 150, false);
	assert_int_equal(*weight, 150);
	/* half and twice the ops at most */
	*weight = 1000;
	run(1000, 150, false);
	assert_int_equal(*weight, 75);
	s.tag_debt = 1e9;
	run(1000, 150, false);
	assert_int_equal(*weight, 300);
	/* beside another user of the counters the weight stays; what comes later is not mixed with that */
	s.tag_debt = 0;
	run(2000, 700, true);
	assert_int_equal(*weight, 300);
	run(1000, 300, false);
	assert_int_equal(*weight, 300);
	/* units of fetches */
	s.tag_unit = 16;
	*weight = 160;
	run(1000, 10, false);
	assert_int_equal(*weight, 160);
}

/* Where samples have no such weights, or nothing samples. */
static void test_not_weighed(void **state)
{
	(void)state;
	sampler_tags_begin(&s);
	run(2000, 150, false);
	assert_int_equal(s.state->control.tag_ops, 0);
	s.state->control.tag_ops = 100;
	s.started = false;
	run(2000, 150, false);
	s.started = true;
	s.strata = (void *)&s;
	run(2000, 150, false);
	s.strata = NULL;
	sampler_tags_end(&s);
	run(2000, 150, false);
	s.tags = NULL;
	run(2000, 150, false);
	assert_int_equal(s.state->control.tag_ops, 100);
}

/* A tag weighs more with a longer period; what samples were given until then is accounted with the old weight. */
static void test_period(void **state)
{
	__u64 *weight;

	(void)state;
	weight = &s.state->control.tag_ops;
	*weight = 110;
	sampler_tags_begin(&s);
	count(&tags, 10, 1200);
	sampler_tags_period(&s, 100, 200);
	assert_int_equal(*weight, 220);
	assert_int_equal(s.tag_unit, 1);
	assert_true(s.tag_debt == 100);
	sampler_tags_period(&s, 200, 300);
	assert_int_equal(*weight, 330);
	assert_true(s.tag_debt == 100);
	sampler_tags_period(&s, 0, 300);
	assert_int_equal(*weight, 330);
	s.tag_unit = 300;
	sampler_tags_period(&s, 300, 400);
	assert_int_equal(*weight, 440);
	assert_int_equal(s.tag_unit, 400);
	s.tags = NULL;
	sampler_tags_period(&s, 400, 100);
	assert_int_equal(*weight, 440);
	s.tags = &tags;
	*weight = 0;
	sampler_tags_period(&s, 400, 100);
	assert_int_equal(*weight, 0);
}

/* Tags are weighed where hardware drops samples of a fixed period whose ops are counted. */
static void test_weighs(void **state)
{
	const struct sampler_opts weighs = {
		.count_ops = true,
		.filter = EVENT_FILTER_HARDWARE,
		.tags[SAMPLER_TAG_RETIRED].size = 1,
	};
	struct sampler_opts opts = weighs;

	(void)state;
	assert_true(sampler_weighs_tags(&opts));
	opts.count_ops = false;
	assert_false(sampler_weighs_tags(&opts));
	opts = weighs;
	opts.filter = EVENT_FILTER_DRIVER;
	assert_false(sampler_weighs_tags(&opts));
	opts = weighs;
	opts.attr.freq = 1;
	assert_false(sampler_weighs_tags(&opts));
	opts = weighs;
	opts.tags[SAMPLER_TAG_RETIRED].size = 0;
	assert_false(sampler_weighs_tags(&opts));
	opts = weighs;
	opts.miss_attr.size = 1; /* strata have weights of their own */
	assert_false(sampler_weighs_tags(&opts));
}

static void refuses(__u64 period, const char *want)
{
	struct err err = { "" };

	assert_int_equal(sampler_set_period(&s, period, &err), -EINVAL);
	assert_string_equal(err.text, want);
}

/* Periods change only where ops are counted, and there is one; in hardware they are multiples of 16. */
static void test_set_period(void **state)
{
	static const char not_started[] =
		"this collection was not started with a period that can be changed";
	struct perf_events events = { .cgroup = -1, .n_open = 3, .attr.sample_period = 1600 };
	struct err err = { "" };
	char want[128];

	(void)state;
	s.count_ops = true;
	refuses(1600, not_started);
	assert_int_equal(sampler_period(&s), 0);
	assert_int_equal(sampler_n_cpus(&s), 0);
	assert_false(sampler_has_cgroup(&s));
	s.events = &events;
	assert_int_equal(sampler_period(&s), 1600);
	assert_int_equal(sampler_n_cpus(&s), 3);
	assert_false(sampler_has_cgroup(&s));
	events.cgroup = 0;
	assert_true(sampler_has_cgroup(&s));
	snprintf(want, sizeof(want),
		 "invalid period: must be a multiple of 16, at least %d; not 1601",
		 SAMPLER_PERIOD_MIN);
	refuses(1601, want);
	snprintf(want, sizeof(want),
		 "invalid period: must be a multiple of 16, at least %d; not %d",
		 SAMPLER_PERIOD_MIN, SAMPLER_PERIOD_MIN - 16);
	refuses(SAMPLER_PERIOD_MIN - 16, want);
	/* the one that it has */
	assert_int_equal(sampler_set_period(&s, 1600, &err), 0);
	events.attr.sample_period = SAMPLER_PERIOD_MIN;
	assert_int_equal(sampler_set_period(&s, SAMPLER_PERIOD_MIN, &err), 0);
	s.simulated = true;
	refuses(0, "invalid period: the simulation needs 1 to 2^40 ns; not 0");
	refuses((1ULL << 40) + 1,
		"invalid period: the simulation needs 1 to 2^40 ns; not 1099511627777");
	events.attr.sample_period = 1ULL << 40;
	assert_int_equal(sampler_set_period(&s, 1ULL << 40, &err), 0);
	events.attr.sample_period = 1;
	assert_int_equal(sampler_set_period(&s, 1, &err), 0);
	s.count_ops = false;
	refuses(1, not_started);
	s.count_ops = true;
	events.attr.freq = 1;
	refuses(1, not_started);
}

/* What is logged when the counters cannot be opened: here, of a PMU that does not exist. */
static void warns(const struct sampler_opts *opts, const char *want)
{
	char *said = NULL;
	size_t size;
	FILE *f = open_memstream(&said, &size);

	s.filter = opts->filter;
	s.count_ops = opts->count_ops;
	s.tags = NULL;
	log_to(f);
	sampler_tags_open(&s, opts, -1);
	log_to(NULL);
	fclose(f);
	assert_null(s.tags);
	if (!*want)
		assert_string_equal(said, "");
	else if (!strstr(said, want))
		fail_msg("'%s' lacks '%s'", said, want);
	free(said);
}

/* A tag begins with the weight of a period, if tags are weighed. */
static void test_open(void **state)
{
	static const unsigned int cpus[] = { 0 };
	struct perf_events events = { .cgroup = -1, .attr.sample_period = 4800 };
	struct perf_event_attr none = { .size = sizeof(none), .type = 0x7fffffff };
	struct sampler_opts opts = { .attr.sample_period = 1600,
				     .count_ops = true,
				     .filter = EVENT_FILTER_HARDWARE,
				     .cpus = cpus,
				     .n_cpus = 1 };

	(void)state;
	s.events = &events;
	s.state->control.tag_ops = s.state->control.reach_ops = 5;
	warns(&opts, "");
	assert_int_equal(s.state->control.tag_ops, 0);
	assert_int_equal(s.state->control.reach_ops, 0);
	assert_int_equal(s.tag_unit, 1);
	assert_false(s.tags_are_lost);
	for (int i = 0; i < SAMPLER_TAGS; i++)
		opts.tags[i] = none;
	warns(&opts, "; estimated ops are too low\n");
	assert_int_equal(s.state->control.tag_ops, 1600);
	opts.count_ops = false;
	warns(&opts, "; estimated ops are unknown\n");
	assert_int_equal(s.state->control.tag_ops, 0);
	opts.filter = EVENT_FILTER_NONE;
	warns(&opts, "; tagged ops are unknown\n");
	/* of fetches, a tag is a period */
	opts.metric = IBS_METRIC_FETCH_LAT;
	opts.tags_are_lost = true;
	warns(&opts, "; tagged ops are unknown\n");
	assert_int_equal(s.tag_unit, 4800);
	assert_true(s.tags_are_lost);
}

static int free_state(void **state)
{
	(void)state;
	free(s.state);
	return 0;
}

#define T(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_slices), T(test_known),	     T(test_fetch),
		T(test_weigh),	T(test_not_weighed), T(test_period),
		T(test_weighs), T(test_set_period),  T(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, free_state);
}
