// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Weights of samples on CPUs where another user has the PMU for a part of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/estimate.h"
#include "perf/cpu_event.h"
#include "sampler/sampler_private.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CPUS  2
#define STEP  100000000ULL /* ns from tick to tick */
#define STEPS 100

static struct cpu_event ev[CPUS];
static struct perf_events events = { .ev = ev, .n = CPUS, .cgroup = -1 };
static struct sampler s = {
	.events = &events, .possible_cpus = CPUS, .count_ops = true, .started = true
};
static double estimated[CPUS], extra;

static double weight(unsigned int cpu)
{
	const struct ibs_cpu_state *st = &s.state->cpu[cpu];

	return st->live & IBS_LIVE_SHARED ? (double)st->share / IBS_SHARE_ONE : 1;
}

/* Time passes; samples stand for the time on the PMU, by the weight that they have now. */
static void run(unsigned int cpu, double share)
{
	const __u64 on = STEP * share;

	ev[cpu].own_ns += STEP;
	ev[cpu].running_ns += on;
	estimated[cpu] += on * weight(cpu);
	extra += on * (weight(cpu) - 1);
}

static int set_up(void **unused)
{
	const size_t size = sizeof(*s.state) + CPUS * sizeof(*s.state->cpu);

	(void)unused;
	free(s.state);
	free(s.shares);
	s.state = aligned_alloc(_Alignof(struct ibs_state), size);
	memset(s.state, 0, size);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		/* a file that has no counts, which are those above */
		if (ev[cpu].fd > 0)
			close(ev[cpu].fd);
		ev[cpu] = CLOSED_EVENT(cpu);
		ev[cpu].fd = open("/dev/null", O_RDONLY);
		ev[cpu].own_ns = ev[cpu].running_ns = ev[cpu].counted = 0;
		s.state->cpu[cpu].live = 5 * IBS_LIVE_STEP | IBS_PID_TEST_IN;
		estimated[cpu] = 0;
	}
	extra = 0;
	sampler_share_open(&s);
	return 0;
}

/* One CPU is shared, the other is not. */
static void test_one(void **unused)
{
	(void)unused;
	for (int i = 0; i < STEPS; i++) {
		run(0, 1);
		run(1, 0.5 + (i % 7 - 3) / 40.0);
		/* before the tick, as an interval may end then */
		assert_true(fabs(sampler_share_extra(&s) - extra) < 100);
		sampler_share_weigh(&s);
		assert_true(fabs(sampler_share_extra(&s) - extra) < 100);
		assert_true(weight(0) == 1);
		assert_true(sampler_is_shared(&s));
	}
	assert_true(estimated[0] == ev[0].own_ns);
	assert_true(fabs(estimated[1] / ev[1].own_ns - 1) < 0.002);
	assert_int_equal(s.state->cpu[0].live, 5 * IBS_LIVE_STEP | IBS_PID_TEST_IN);
	assert_int_equal(s.state->cpu[1].live,
			 5 * IBS_LIVE_STEP | IBS_LIVE_SHARED | IBS_PID_TEST_IN);
	/* the other user leaves */
	for (int i = 0; i < 5; i++) {
		run(0, 1);
		run(1, 1);
		sampler_share_weigh(&s);
	}
	assert_true(weight(1) == 1);
	assert_false(sampler_is_shared(&s));
	assert_true(fabs(estimated[1] / ev[1].own_ns - 1) < 0.0002);
	assert_int_equal(s.state->cpu[1].live, 5 * IBS_LIVE_STEP | IBS_PID_TEST_IN);
}

/* What samples stood for too little is made up for, but a few samples never stand for much. */
static void test_debt(void **unused)
{
	double before;

	(void)unused;
	run(0, 0.01);
	sampler_share_weigh(&s);
	assert_true(weight(0) <= IBS_SHARE_MAX / (double)IBS_SHARE_ONE);
	run(0, 0);
	sampler_share_weigh(&s); /* nothing to tell a weight by */
	for (int i = 0; i < STEPS; i++) {
		run(0, 0.25);
		sampler_share_weigh(&s);
		assert_true(weight(0) <= 2 / 0.25);
	}
	assert_true(fabs(estimated[0] / ev[0].own_ns - 1) < 0.002);
	before = weight(0);
	run(0, 0);
	sampler_share_weigh(&s);
	assert_true(weight(0) == before);
	/* a reopened event counts from 0 */
	ev[0].own_ns = ev[0].running_ns = 0;
	run(0, 0.25);
	sampler_share_weigh(&s);
	assert_true(fabs(weight(0) - 4) < 0.1);
	/* nothing is owed for time in which the CPU was offline */
	run(0, 0.4);
	sampler_share_weigh(&s);
	ev[0].own_ns = ev[0].running_ns = 0;
	sampler_share_weigh(&s);
	assert_true(weight(0) == 1);
	for (int i = 0; i < 3; i++) {
		run(0, 1);
		sampler_share_weigh(&s);
		assert_true(weight(0) == 1);
	}
	/* nor do they stand for less than half, after some that stood for too much */
	run(0, 0.25);
	sampler_share_weigh(&s);
	run(0, 1);
	sampler_share_weigh(&s);
	assert_true(weight(0) == 0.5);
}

/* The first that is seen of another user is an old reading: weights are of the time until now. */
static void test_late(void **unused)
{
	struct {
		__u64 counted, enabled, running;
	} now;

	(void)unused;
	run(0, 0.5);
	run(0, 0.5);
	now.counted = 0;
	now.enabled = ev[0].own_ns;
	now.running = ev[0].running_ns;
	ev[0].own_ns = STEP;
	ev[0].running_ns = STEP / 2;
	close(ev[0].fd);
	ev[0].fd = memfd_create("share", 0);
	assert_int_equal(pwrite(ev[0].fd, &now, sizeof(now), 0), sizeof(now));
	sampler_share_weigh(&s);
	assert_int_equal(ev[0].own_ns, 2 * STEP);
	for (int i = 0; i < STEPS; i++) {
		assert_true(fabs(sampler_share_extra(&s) - extra) < 100);
		run(0, 0.5);
		sampler_share_weigh(&s);
	}
	assert_true(fabs(estimated[0] / ev[0].own_ns - 1) < 0.0001);
	assert_true(fabs(weight(0) - 2) < 0.001);
}

/* Where the program does not count ops, nothing is weighed. */
static void test_without(void **unused)
{
	(void)unused;
	s.count_ops = false;
	run(0, 0.5);
	sampler_share_weigh(&s);
	s.count_ops = true;
	assert_true(weight(0) == 1);
	assert_int_equal(sampler_share_extra(&s), 0);
}

#define TURNS	12  /* of each user from tick to tick */
#define TICKS	60  /* of an interval */
#define SPREADS 400 /* intervals */

static unsigned long long seed = 1;

/* Ops a ns of a turn, with a mean of @mean. */
static double load(double mean)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return mean * (0.5 + (double)(seed >> 40) / (1 << 24));
}

/* An interval of a load that grows by @growth; return the error of its ops, in standard errors. */
static double deviation(double growth, double *error)
{
	struct pmu_state pmu = {};
	double all = 0, estimate;

	set_up(NULL);
	for (int tick = 0; tick < TICKS; tick++) {
		for (int turn = 0; turn < TURNS; turn++) {
			const double mean = 1 + growth * tick / TICKS, own = load(mean);

			ev[1].counted += llround(own * STEP / TURNS / 2);
			all += (own + load(mean)) * STEP / TURNS / 2;
		}
		ev[1].own_ns += STEP;
		ev[1].running_ns += STEP / 2;
		sampler_share_weigh(&s);
	}
	sampler_share_spread(&s, &pmu);
	pmu.counted = ev[1].counted;
	pmu.enabled_ns = ev[1].own_ns;
	pmu.running_ns = ev[1].running_ns;
	*error = pmu_share_error(&pmu);
	estimate = pmu.counted * pmu_scale(&pmu);
	return (estimate / all - 1) / *error;
}

/* The error of a share of time is known: 95 of 100 intervals hold the truth, and a slow change adds little. */
static void test_spread(void **unused)
{
	double error, steady = 0;
	int inside = 0;

	(void)unused;
	for (int i = 0; i < SPREADS; i++) {
		inside += fabs(deviation(0, &error)) < ESTIMATE_Z;
		steady += error / SPREADS;
	}
	assert_in_range(inside, 0.92 * SPREADS, 0.98 * SPREADS);
	/* a turn differs by 29 %, and there are 720 of each user */
	assert_true(fabs(steady / (0.29 / sqrt(TURNS * TICKS) / sqrt(2)) - 1) < 0.05);
	inside = 0;
	for (int i = 0; i < SPREADS; i++)
		inside += fabs(deviation(2, &error)) < ESTIMATE_Z;
	assert_in_range(inside, 0.92 * SPREADS, 0.98 * SPREADS);
	/* samples that are not weighed have it as well */
	s.count_ops = false;
	assert_true(fabs(deviation(0, &error)) < 5 && error > 0.5 * steady);
	s.count_ops = true;
}

/* Unknown with few ticks, and nothing without another user. */
static void test_few(void **unused)
{
	const struct pmu_state few = { .counted = 1000,
				       .enabled_ns = 20,
				       .running_ns = 10,
				       .share_variance = 1,
				       .share_n = 3 };
	struct pmu_state pmu = {};

	(void)unused;
	for (int i = 0; i < STEPS; i++) {
		ev[0].counted += i % 2 * STEP;
		run(0, 1);
		sampler_share_weigh(&s);
	}
	sampler_share_spread(&s, &pmu);
	assert_int_equal(pmu.share_n, 0);
	assert_true(pmu_share_error(&pmu) == 0);
	/* a reopened event counts from 0, which is no difference of the load */
	for (int i = 0; i < 2; i++) {
		ev[1].counted += STEP;
		run(1, 0.5);
		sampler_share_weigh(&s);
	}
	ev[1].counted = STEP;
	run(1, 0.5);
	sampler_share_weigh(&s);
	sampler_share_spread(&s, &pmu);
	assert_int_equal(pmu.share_n, 1);
	assert_true(pmu.share_variance == 0);
	assert_true(isnan(pmu_share_error(&few)));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_one, set_up),
					    cmocka_unit_test_setup(test_debt, set_up),
					    cmocka_unit_test_setup(test_late, set_up),
					    cmocka_unit_test_setup(test_without, set_up),
					    cmocka_unit_test_setup(test_spread, set_up),
					    cmocka_unit_test_setup(test_few, set_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
