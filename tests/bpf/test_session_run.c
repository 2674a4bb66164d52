// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Intervals of a session, and strata: what is passed on, and when it ends. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/exit_status.h"
#include "base/signals.h"
#include "session_run.h"

static void test_intervals(void **state)
{
	double began;

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	began = now_s();
	assert_int_equal(run(0.05, 4), 0);
	assert_int_equal(got.n[0], 4);
	assert_int_equal(got.n[1], 0);
	for (int i = 0; i < 4; i++)
		assert_true(got.at[i] >= began + 0.05 * (i + 1));
	/* all samples are in one of them, the last of which ends with sampling */
	assert_true(got.seen[0] > 20);
	assert_int_equal(got.seen[0], got.last_seen[0]);
	assert_int_equal(got.seen[0], seen(0));
	assert_true(got.groups >= 4);
	run_for(0.02);
	assert_int_equal(got.seen[0], seen(0));
	assert_int_equal(session_end(s, &signals, 0), 0);
}

static void test_intervals_of_two(void **state)
{
	(void)state;
	PARSE("-e", "ibs_op/cnt_ctl=1/,ibs_fetch//", "-c", "1000000");
	open_it();
	assert_int_equal(run(0.05, 2), 0);
	assert_int_equal(got.n[0], 2);
	assert_int_equal(got.n[1], 2);
	for (int e = 0; e < 2; e++) {
		assert_true(got.seen[e] > 10);
		assert_int_equal(got.seen[e], seen(e));
	}
}

/* What cannot be printed ends it; what was sampled before the first interval is in none. */
static void test_failure(void **state)
{
	__u64 before;

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	assert_int_equal(session_start(s, &err), 0);
	while (seen(0) < 5)
		run_for(0.01);
	session_stop(s);
	before = seen(0);
	got.fail_at = 2;
	assert_int_equal(run(0.05, 0), -EPIPE);
	assert_string_equal(err.text, "nobody reads it");
	assert_int_equal(got.n[0], 2);
	assert_int_equal(got.seen[0], got.last_seen[0] - before);
	assert_int_equal(session_end(s, &signals, -EPIPE), EXIT_FAILED);
	s->usage = true;
	assert_int_equal(session_end(s, &signals, -EPIPE), EXIT_USAGE);
}

/* A signal that came before ends the first interval. */
static void test_signal(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	open_it();
	session_signal(&signals, SIGTERM, false);
	assert_int_equal(run(1000, 0), 0);
	assert_int_equal(got.n[0], 1);
	assert_int_equal(signals.n, 1);
	assert_int_equal(signals.last, SIGTERM);
}

/* One that is pending is read from the file. */
static void test_pending_signal(void **state)
{
	const struct session_intervals i = {
		.sigfd = signals_open(true, NULL), .signals = &signals, .print = note, .arg = &got
	};

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	assert_true(i.sigfd >= 0);
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(session_run_intervals(s, &i, &err), 0);
	assert_int_equal(got.n[0], 1);
	assert_int_equal(signals.n, 1);
	assert_int_equal(signals.last, SIGTERM);
	assert_false(signals.terminal);
	close(i.sigfd);
}

/* --- strata --- */

/* As if the machine had a hardware filter: the simulation samples in both strata, the second with a period of its own. */
static void open_strata(void)
{
	struct session_event *e;

	PARSE("-c", "1600000");
	open_it();
	e = &s->setup->event[0];
	e->plan.strata = true;
	e->miss_attr = e->opts.attr;
	strcpy(e->miss_text, "ibs_op/l3missonly=1/");
	if (session_strata_open(s, &err))
		fail_msg("%s", err.text);
}

static __u64 seen_by(unsigned int n)
{
	struct snapshot snap;
	__u64 samples;

	if (sampler_snapshot(session_sampler(s, n), &snap, &err))
		fail_msg("%s", err.text);
	samples = snap.ledger.seen;
	snapshot_free(&snap);
	return samples;
}

/* Intervals have the samples of both strata. */
static void test_strata(void **state)
{
	(void)state;
	open_strata();
	assert_int_equal(session_samplers(s), 2);
	assert_ptr_equal(session_sampler(s, 1), session_strata_sampler(s));
	assert_ptr_not_equal(session_sampler(s, 1), session_sampler(s, 0));
	assert_int_equal(session_strata_reach(s), PLAN_L3_MISSES);
	assert_int_equal(sampler_period(session_sampler(s, 1)), 50000); /* of 32 tags, one */
	assert_int_equal(run(0.3, 2), 0);
	assert_int_equal(got.n[0], 2);
	assert_true(got.strata);
	assert_true(seen_by(0) > 0 && seen_by(1) > 0);
	assert_int_equal(got.seen[0], seen_by(0) + seen_by(1));
	/* the clock has no tags, as if each tag passed the filter: then there is nothing to gain */
	assert_int_equal(sampler_period(session_sampler(s, 1)), 1600000);
	/* sampling has ended in both */
	run_for(0.05);
	assert_int_equal(got.seen[0], seen_by(0) + seen_by(1));
	session_close(s);
	assert_null(session_strata_sampler(s));
}

static void await_slice(void)
{
	while (now_s() < session_slice_due(s))
		run_for(0.001);
}

/* Slices follow each other without gaps, alternate between the strata, and have different lengths. */
static void test_slices(void **state)
{
	double shortest[STRATUM_N] = { INFINITY, INFINITY }, longest[STRATUM_N] = {}, due_s;
	struct session_slice slice, before = {};

	(void)state;
	open_strata();
	assert_int_equal(session_slices_start(s, &err), 0);
	assert_int_equal(session_start(s, &err), 0);
	for (int i = 0; i < 6; i++) {
		const struct session_slice now = session_slice_now(s);

		due_s = session_slice_due(s) - now.start_ns / 1e9;
		shortest[now.of] = fmin(shortest[now.of], due_s);
		longest[now.of] = fmax(longest[now.of], due_s);
		assert_true(session_slice_due(s) < now_s() + 1);
		if (now_s() < session_slice_due(s) - 0.001)
			assert_int_equal(session_slice_end(s, false, &slice, &err), 0);
		await_slice();
		assert_int_equal(session_slice_end(s, false, &slice, &err), 1);
		assert_int_equal(slice.of, now.of);
		assert_int_equal(slice.start_ns, now.start_ns);
		assert_true(slice.end_ns > slice.start_ns);
		assert_true(slice.end_ns <= now_s() * 1e9);
		if (i) {
			assert_int_equal(slice.of, !before.of);
			assert_int_equal(slice.start_ns, before.end_ns);
		}
		if (slice.of == STRATUM_FULL)
			assert_int_equal(slice.period, 1600000);
		before = slice;
	}
	assert_true(longest[STRATUM_FULL] - shortest[STRATUM_FULL] > 0.001 ||
		    longest[STRATUM_MISS] - shortest[STRATUM_MISS] > 0.001);
	session_stop(s);
	assert_int_equal(session_slice_end(s, true, &slice, &err), 1);
	assert_int_equal(slice.of, !before.of);
	assert_int_equal(slice.start_ns, before.end_ns);
}

/* A session without strata has no slices. */
static void test_no_slices(void **state)
{
	struct session_slice slice;

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	assert_int_equal(session_samplers(s), 1);
	assert_int_equal(session_slices_start(s, &err), 0);
	assert_true(isinf(session_slice_due(s)));
	assert_int_equal(session_slice_end(s, true, &slice, &err), 0);
	assert_int_equal(session_strata_turn(s, &err), 0);
	session_strata_interval(s, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, free_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_intervals), T(test_intervals_of_two), T(test_failure),
		T(test_signal),	   T(test_pending_signal),   T(test_strata),
		T(test_slices),	   T(test_no_slices),
	};

	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
