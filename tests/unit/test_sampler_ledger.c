// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A sampler's ledger from counts made here: what the PMU has counted, and what of that the program never saw. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "perf/cpu_event.h"
#include "sampler/sampler_private.h"

/* Without open events, the counts are those of closed ones. */
static struct perf_events events, resting, tags;
static struct sampler s;
static struct pmu_state pmu;

static void forget(void)
{
	free(s.shares);
	free(s.state);
}

static int set_up(void **state)
{
	const size_t size = sizeof(*s.state) + sizeof(*s.state->cpu);

	(void)state;
	forget();
	events = resting = tags = (struct perf_events){ .cgroup = -1, .closed.exact = true };
	s = (struct sampler){ .events = &events,
			      .possible_cpus = 1,
			      .counts_periods = true,
			      .tag_unit = 1,
			      .started = true };
	s.state = aligned_alloc(_Alignof(struct ibs_state), size);
	memset(s.state, 0, size);
	s.counts = (struct counts){ .state = s.state, .n_cpus = 1, .outcomes = IBS_OUTCOME_N };
	sampler_share_open(&s);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	forget();
	return 0;
}

/* So many samples were seen, and aggregated. */
static void see(__u64 n)
{
	s.state->cpu[0].seen = n;
	s.state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] = n;
}

static struct ledger ledger(void)
{
	struct err err = { "" };
	struct ledger l;

	if (sampler_ledger(&s, &l, &pmu, &err))
		fail_msg("%s", err.text);
	assert_int_equal(l.seen, s.state->cpu[0].seen);
	assert_int_equal(l.outcome[IBS_OUTCOME_AGGREGATED], l.seen);
	return l;
}

/* What was once unseen stays so: a sample that comes late is another one. */
static void test_unseen(void **state)
{
	struct ledger l;

	(void)state;
	see(100);
	events.closed.samples = 110;
	l = ledger();
	assert_true(l.pmu_exact && l.dropped_known);
	assert_int_equal(l.pmu_samples, 110);
	assert_int_equal(l.unseen, 10);
	assert_int_equal(l.dropped, 0);
	assert_false(l.undelivered_known);
	see(115);
	events.closed.samples = 120;
	assert_int_equal(ledger().unseen, 10);
	events.closed.samples = 125;
	assert_int_equal(ledger().unseen, 10);
	events.closed.samples = 126;
	assert_int_equal(ledger().unseen, 11);
	/* a count that is disturbed says nothing */
	events.closed.samples = 200;
	events.closed.exact = false;
	l = ledger();
	assert_false(l.pmu_exact);
	assert_int_equal(l.unseen, 11);
	events.closed.exact = true;
	s.counts_periods = false;
	l = ledger();
	assert_false(l.pmu_exact);
	assert_int_equal(l.pmu_samples, 0);
	assert_int_equal(l.unseen, 11);
	/* without events there are no counts */
	s.counts_periods = true;
	s.events = NULL;
	l = ledger();
	assert_true(l.pmu_exact);
	assert_int_equal(l.pmu_samples, 0);
}

/* Counts continue those of earlier collectors. */
static void test_before(void **state)
{
	struct ledger l;

	(void)state;
	see(100);
	s.pmu_samples_before = 90;
	s.dropped_before = 7;
	s.pmu_before = (struct pmu_state){ .counted = 1000,
					   .went = 1,
					   .came = 2,
					   .enabled_ns = 30,
					   .running_ns = 20,
					   .throttled = 5 };
	events.closed = (struct perf_events_total){ .samples = 15,
						    .counted = 300,
						    .enabled_ns = 9,
						    .running_ns = 8,
						    .went = 3,
						    .came = 4,
						    .exact = true };
	events.throttled = 6;
	l = ledger();
	assert_int_equal(l.pmu_samples, 105);
	assert_int_equal(l.unseen, 5);
	assert_int_equal(l.dropped, 7);
	assert_int_equal(pmu.counted, 1300);
	assert_int_equal(pmu.went, 4);
	assert_int_equal(pmu.came, 6);
	assert_int_equal(pmu.enabled_ns, 39);
	assert_int_equal(pmu.running_ns, 28);
	assert_int_equal(pmu.throttled, 11);
}

/* With strata two events have counted, by turns; both see most CPUs go and come. */
static void test_strata(void **state)
{
	struct ledger l;

	(void)state;
	see(100);
	s.resting = &resting;
	events.closed = (struct perf_events_total){ .samples = 60,
						    .counted = 300,
						    .enabled_ns = 9,
						    .running_ns = 8,
						    .went = 3,
						    .came = 1,
						    .exact = true };
	resting.closed = (struct perf_events_total){ .samples = 45,
						     .counted = 50,
						     .enabled_ns = 3,
						     .running_ns = 2,
						     .went = 2,
						     .came = 4,
						     .exact = true };
	l = ledger();
	assert_true(l.pmu_exact);
	assert_int_equal(l.pmu_samples, 105);
	assert_int_equal(pmu.counted, 350);
	assert_int_equal(pmu.enabled_ns, 12);
	assert_int_equal(pmu.running_ns, 10);
	assert_int_equal(pmu.went, 3);
	assert_int_equal(pmu.came, 4);
	resting.closed.exact = false;
	assert_false(ledger().pmu_exact);
}

/* What hardware drops was tagged, but is not a sample. */
static void test_dropped(void **state)
{
	struct ledger l;

	(void)state;
	see(100);
	s.counts_periods = false;
	s.filter = EVENT_FILTER_HARDWARE;
	events.closed.samples = 100;
	l = ledger();
	assert_false(l.dropped_known);
	s.tags = &tags;
	tags.closed.counted = 490;
	s.dropped_before = 7;
	l = ledger();
	assert_true(l.dropped_known);
	assert_int_equal(l.dropped, 397);
	/* it never falls */
	events.closed.samples = 200;
	assert_int_equal(ledger().dropped, 397);
	tags.closed.counted = 591;
	assert_int_equal(ledger().dropped, 398);
	/* with -F, a disturbed count or tags of others it is unknown */
	s.by_freq = true;
	assert_false(ledger().dropped_known);
	s.by_freq = false;
	events.closed.exact = false;
	assert_false(ledger().dropped_known);
	events.closed.exact = true;
	tags.closed.enabled_ns = 1;
	assert_false(ledger().dropped_known);
	assert_int_equal(ledger().dropped, 398);
}

/* Tags that interrupted, and samples that the program has seen since it began. */
static void test_undelivered(void **state)
{
	struct ledger l;

	(void)state;
	see(100);
	s.tags = &tags;
	tags.closed.counted = 130;
	l = ledger();
	assert_true(l.undelivered_known);
	assert_int_equal(l.undelivered, 30);
	see(120);
	assert_int_equal(ledger().undelivered, 30);
	s.seen_before = 20;
	s.undelivered_before = 1000;
	assert_int_equal(ledger().undelivered, 1030);
	tags.closed.counted = 131;
	assert_int_equal(ledger().undelivered, 1031);
	/* unknown, but not forgotten */
	tags.closed.counted = 500;
	tags.closed.enabled_ns = 1;
	l = ledger();
	assert_false(l.undelivered_known);
	assert_int_equal(l.undelivered, 1031);
}

#define T(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_unseen),	 T(test_before),      T(test_strata),
		T(test_dropped), T(test_undelivered),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
