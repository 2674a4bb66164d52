// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two strata in one set of counters, of the simulation: whose samples are whose, for how long, and with which weights. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim_session.h"
#include "sampler/sampler_private.h"

#include "../unit/open_files.h"

#define PERIOD	200000
#define SLICE_S 3 /* more than any slice takes */

static time_t ahead; /* slices take a second: the clock is moved instead */
static struct timespec
	still; /* it stands there, so that a test that waits for a CPU is not late; 0: it goes */

int clock_gettime(clockid_t clock, struct timespec *out)
{
	const int ret = (int)syscall(SYS_clock_gettime, clock, out);

	if (clock == CLOCK_MONOTONIC && still.tv_sec)
		*out = still;
	out->tv_sec += clock == CLOCK_MONOTONIC ? ahead : 0;
	return ret;
}

static struct sampler *sampler;
static struct ibs_strata *strata;
static double began_s;

/* As a collector with --strata: the simulation has no filter, so that all samples pass it. */
static void open_strata(void)
{
	PARSE("-c", "200000");
	o.strata = STRATA_ON;
	o.strata_counters = true;
	o.sampler.count_ops = true;
	open_it();
	assert_int_equal(session_samplers(s), 1);
	sampler = session_sampler(s, 0);
	strata = &sampler->state->control.strata;
}

static void start(void)
{
	began_s = now_s();
	if (sampler_start(sampler, &err))
		fail_msg("%s", err.text);
}

static void await(__u64 more)
{
	const __u64 end = seen(0) + more;

	while (seen(0) < end)
		run_for(0.002);
}

/* End the current slice. */
static void turn(void)
{
	const __u64 before = strata->now;

	ahead += SLICE_S;
	if (sampler_turn(sampler, &err))
		fail_msg("%s", err.text);
	assert_int_equal(strata->now, !before);
}

/* What the strata have is what the ledger has. Nothing samples. */
static void adds_up(void)
{
	struct snapshot snap = snapshot(0);
	const struct ibs_stratum *of = strata->of;

	assert_int_equal(of[STRATUM_FULL].seen + of[STRATUM_MISS].seen, snap.ledger.seen);
	for (int i = 0; i < IBS_OUTCOME_N; i++)
		assert_int_equal(of[STRATUM_FULL].outcome[i] + of[STRATUM_MISS].outcome[i] +
					 strata->outside[i],
				 snap.ledger.outcome[i]);
	snapshot_free(&snap);
}

static void test_turns(void **state)
{
	const int files = open_files();
	struct timespec began;
	__u64 full, miss;

	(void)state;
	open_strata();
	assert_true(isinf(sampler_turn_due(sampler)));
	assert_int_equal(strata->used, 1);
	assert_int_equal(strata->on, 0);
	assert_int_equal(strata->now, STRATUM_FULL);
	assert_int_equal(strata->of[STRATUM_FULL].period, PERIOD);
	assert_int_equal(strata->of[STRATUM_MISS].period, PERIOD); /* each tag passes */
	assert_int_equal(sampler_turn(sampler, &err), 0);
	start();
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &began);
	assert_int_equal(strata->on, 1);
	assert_true(sampler_turn_due(sampler) > began_s);
	assert_true(sampler_turn_due(sampler) < now_s() + SLICE_S);
	await(10);
	/* not yet */
	still = began;
	assert_int_equal(sampler_turn(sampler, &err), 0);
	assert_int_equal(strata->now, STRATUM_FULL);
	assert_int_equal(strata->of[STRATUM_FULL].slices, 0);
	turn();
	assert_true(sampler_turn_due(sampler) > now_s());
	still.tv_sec = 0;
	full = strata->of[STRATUM_FULL].seen;
	assert_true(full >= 10);
	assert_int_equal(strata->of[STRATUM_MISS].seen, 0);
	assert_int_equal(strata->of[STRATUM_FULL].slices, 1);
	await(10);
	turn();
	miss = strata->of[STRATUM_MISS].seen;
	assert_true(miss >= 10);
	assert_int_equal(strata->of[STRATUM_FULL].seen, full);
	assert_int_equal(strata->of[STRATUM_MISS].slices, 1);
	await(10);
	sampler_stop(sampler);
	assert_int_equal(strata->on, 0);
	assert_true(isinf(sampler_turn_due(sampler)));
	assert_true(strata->of[STRATUM_FULL].seen >= full + 10);
	assert_int_equal(strata->of[STRATUM_MISS].seen, miss);
	adds_up();
	/* a simulation has no tags but its samples */
	assert_int_equal(strata->of[STRATUM_FULL].tags, strata->of[STRATUM_FULL].seen);
	assert_int_equal(strata->of[STRATUM_MISS].tags, miss);
	/* the time of both is that between start and stop; the clock was moved once in each */
	assert_in_range(strata->of[STRATUM_FULL].time_ns, SLICE_S * 1000000000ull, ~0ull);
	assert_in_range(strata->of[STRATUM_MISS].time_ns, SLICE_S * 1000000000ull, ~0ull);
	assert_in_range(strata->of[STRATUM_FULL].time_ns + strata->of[STRATUM_MISS].time_ns,
			2 * SLICE_S * 1000000000ull, (__u64)((now_s() - began_s) * 1e9));
	/* stopped twice is stopped once */
	full = strata->of[STRATUM_FULL].time_ns;
	sampler_stop(sampler);
	assert_int_equal(strata->of[STRATUM_FULL].time_ns, full);
	session_close(s);
	assert_int_equal(open_files(), files);
}

/*
 * Ops of samples, which have weights, are those of the whole time: each stratum has about half of it. Slices have
 * different lengths, so that no load stays in step with them.
 */
static void test_weights(void **state)
{
	double shortest[STRATUM_N] = { INFINITY, INFINITY }, longest[STRATUM_N] = {};
	double ops = 0, ns, length, slice, waited_ns = 0;
	struct snapshot snap;

	(void)state;
	open_strata();
	start();
	assert_true(sampler->state->control.tag_ops > 0);
	for (int i = 0; i < 20; i++) {
		slice = now_s();
		await(20);
		waited_ns = fmax(waited_ns, (now_s() - slice) * 1e9);
		turn();
		length = sampler_turn_due(sampler) - now_s();
		shortest[strata->now] = fmin(shortest[strata->now], length);
		longest[strata->now] = fmax(longest[strata->now], length);
		/* samples of the kind that only the full stratum takes do not count in the other */
		assert_int_equal(sampler->state->control.tag_ops > 0, strata->now == STRATUM_FULL);
		assert_true(sampler->state->control.reach_ops > 0);
	}
	for (int of = 0; of < STRATUM_N; of++)
		assert_true(longest[of] - shortest[of] > 0.01);
	sampler_stop(sampler);
	snap = snapshot(0);
	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			ops += snap.groups[g].series[i].ops;
	ns = snap.pmu.running_ns;
	/* the strata have equal times but for the longest slice, during which this test may have waited for a CPU */
	assert_true(ops > ns / 1.5 - waited_ns && ops < ns * 1.5 + waited_ns);
	/* weights were too large or too small by less than a third of the time */
	for (int kind = 0; kind < IBS_STRATA; kind++)
		assert_true(fabs((double)strata->owed[kind]) < ns / 3 + waited_ns);
	assert_int_equal(sampler_turn(sampler, &err), 0);
	snapshot_free(&snap);
	adds_up();
}

/* Periods of both strata change; samples so far have the weights of before. */
static void test_period(void **state)
{
	double before;

	(void)state;
	open_strata();
	assert_int_equal(sampler_period(sampler), PERIOD);
	start();
	await(5);
	turn();
	before = sampler->state->control.reach_ops;
	if (sampler_set_period(sampler, 2 * PERIOD, &err))
		fail_msg("%s", err.text);
	assert_int_equal(sampler_period(sampler), 2 * PERIOD);
	assert_int_equal(strata->of[STRATUM_FULL].period, 2 * PERIOD);
	assert_int_equal(strata->of[STRATUM_MISS].period, 2 * PERIOD);
	assert_int_equal(strata->now, STRATUM_MISS);
	/* each sample counts for twice as many ops, but for what is owed */
	assert_true(sampler->state->control.reach_ops > before);
	await(5);
	turn();
	assert_int_equal(sampler_period(sampler), 2 * PERIOD);
	await(5);
	sampler_stop(sampler);
	adds_up();
	/* stopped, nothing is counted for the change */
	if (sampler_set_period(sampler, PERIOD, &err))
		fail_msg("%s", err.text);
	assert_int_equal(sampler_period(sampler), PERIOD);
	adds_up();
}

/* Sampling begins again in the stratum in which it was stopped. */
static void test_again(void **state)
{
	__u64 full, time_ns;

	(void)state;
	open_strata();
	start();
	await(5);
	turn();
	await(5);
	sampler_stop(sampler);
	adds_up();
	full = strata->of[STRATUM_FULL].seen;
	time_ns = strata->of[STRATUM_MISS].time_ns;
	ahead += 100;
	start();
	assert_int_equal(strata->now, STRATUM_MISS);
	await(5);
	turn();
	/* the time in between is nobody's */
	assert_in_range(strata->of[STRATUM_MISS].time_ns - time_ns, SLICE_S * 1000000000ull,
			(SLICE_S + 50) * 1000000000ull);
	await(5);
	sampler_stop(sampler);
	assert_true(strata->of[STRATUM_FULL].seen >= full + 5);
	adds_up();
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_session, free_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_turns),
		T(test_weights),
		T(test_period),
		T(test_again),
	};

	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
