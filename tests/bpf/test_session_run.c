// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Intervals of a session, its command, and strata: what is passed on, when it ends, and with which status. */
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
#include "sim_session.h"

/* What intervals had. */
static struct {
	unsigned int n[2], groups;
	__u64 seen[2], last_seen[2], pmu;
	double at[32];
	int fail_at; /* the one whose printing fails; 0: none */
	bool strata;
} got;
static struct session_signals signals;

static int note(void *arg, unsigned int event, struct snapshot *interval,
		const struct snapshot *now, struct err *e)
{
	assert_ptr_equal(arg, &got);
	got.at[got.n[event]++ % 32] = now_s();
	got.seen[event] += interval->ledger.seen;
	got.last_seen[event] = now->ledger.seen;
	got.pmu += interval->ledger.pmu_samples;
	got.groups += interval->n_groups;
	got.strata |= interval->strata != NULL;
	if (interval->strata)
		assert_string_equal(interval->strata->event[STRATUM_MISS], "ibs_op/l3missonly=1/");
	if (got.n[event] == (unsigned int)got.fail_at)
		return err_set(e, -EPIPE, "nobody reads it");
	return 0;
}

static int run(double interval_s, uint64_t count)
{
	const struct session_intervals i = { .interval_s = interval_s,
					     .count = count,
					     .sigfd = -1,
					     .signals = &signals,
					     .print = note,
					     .arg = &got };

	return session_run_intervals(s, &i, &err);
}

static int begin(void **state)
{
	memset(&got, 0, sizeof(got));
	memset(&signals, 0, sizeof(signals));
	return new_session(state);
}

static void command(const char *words)
{
	static char *argv[] = { (char *)"sh", (char *)"-c", NULL, NULL };

	argv[2] = (char *)words;
	o.argv = argv;
}

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

/* Without intervals there is one, until the command exits; its status is the session's. */
static void test_command(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	command("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3");
	open_it();
	assert_non_null(session_command(s));
	assert_true(session_command_fd(s) >= 0);
	assert_false(session_command_ended(s));
	assert_int_equal(run(0, 0), 0);
	assert_int_equal(got.n[0], 1);
	assert_true(session_command_ended(s));
	assert_int_equal(session_end(s, &signals, 0), 3);
	assert_int_equal(session_end(s, &signals, 0), 3);
}

static void test_killed_command(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	command("kill -9 $$");
	open_it();
	assert_int_equal(run(0, 0), 0);
	assert_int_equal(session_end(s, &signals, 0), 128 + SIGKILL);
}

/* The command runs on when sampling has ended; a second signal is passed on to it. */
static void test_passed_on(void **state)
{
	double began;

	(void)state;
	PARSE("-c", "1000000");
	command("trap 'exit 5' TERM; while :; do sleep 0.05; done");
	open_it();
	assert_int_equal(run(0.3, 1), 0);
	assert_false(session_command_ended(s));
	session_signal(&signals, SIGINT, false);
	session_signal(&signals, SIGTERM, false);
	began = now_s();
	assert_int_equal(session_end(s, &signals, 0), 5);
	assert_true(now_s() - began < 2);
}

/* One that ignores it has two seconds, and runs on. */
static void test_ignored(void **state)
{
	double began;
	pid_t pid;

	(void)state;
	PARSE("-c", "1000000");
	command("trap '' TERM; exec sleep 100");
	open_it();
	assert_int_equal(run(0.3, 1), 0);
	pid = command_pid(session_command(s));
	session_signal(&signals, SIGINT, false);
	session_signal(&signals, SIGTERM, false);
	began = now_s();
	heard();
	listen();
	assert_int_equal(session_end(s, &signals, 0), 128 + SIGTERM);
	assert_string_equal(heard(),
			    "warning: the command does not exit on SIGTERM; it continues\n");
	listen();
	assert_true(now_s() - began > 1.9);
	assert_false(session_command_ended(s));
	kill(pid, SIGKILL);
}

/* A command that cannot be run has a shell's status, and nothing is sampled. */
static void test_no_command(void **state)
{
	static char *argv[] = { (char *)"/nowhere/at/all", NULL };

	(void)state;
	PARSE("-c", "1000000");
	o.argv = argv;
	open_it();
	assert_int_equal(run(0, 0), -ENOENT);
	assert_int_equal(got.n[0], 0);
	assert_int_equal(session_end(s, &signals, -ENOENT), EXIT_NOT_FOUND);
	argv[0] = (char *)"/tmp";
	open_it();
	assert_int_equal(run(0, 0), -EACCES);
	assert_int_equal(session_end(s, &signals, -EACCES), EXIT_NOT_RUN);
	argv[0] = (char *)"/nowhere/at/all";
}

/* With a cgroup of its own that is selected, else its processes. */
static void test_selected(void **state)
{
	static const __u32 ranks[] = { 1, 2 };
	const struct selection *sel;

	(void)state;
	PARSE("-c", "1000000", "--cgroup-hierarchy", "v2");
	command("exit 0");
	if (session_open(s, &o, &err)) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	sel = &session_event(s, 0)->opts.sel;
	if (session_command_cgroup(s)) {
		assert_int_equal(session_command_cgroup(s), command_cgroup_id(session_command(s)));
		assert_int_equal(sel->processes.n, 0);
	}
	/* commands of other ranks are in other cgroups */
	o.ranks = ranks;
	o.n_ranks = 2;
	open_it();
	sel = &session_event(s, 0)->opts.sel;
	assert_int_equal(session_command_cgroup(s), 0);
	assert_int_equal(sel->processes.n, 3);
	assert_int_equal(sel->processes.pids[0], command_pid(session_command(s)));
	assert_int_equal(sel->processes.pids[1], 1);
	assert_int_equal(sel->processes.pids[2], 2);
	assert_true(sel->follow);
	o.ranks = NULL;
	o.n_ranks = 0;
	/* if others are measured, it only sets the duration */
	PARSE("-c", "1000000", "-a");
	command("exit 0");
	open_it();
	assert_int_equal(session_command_cgroup(s), 0);
	assert_int_equal(session_event(s, 0)->opts.sel.processes.n, 0);
	assert_int_equal(command_cgroup_id(session_command(s)), 0);
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

/* Slices follow each other without gaps, and alternate between the strata. */
static void test_slices(void **state)
{
	struct session_slice slice, before = {};

	(void)state;
	open_strata();
	assert_int_equal(session_slices_start(s, &err), 0);
	assert_int_equal(session_start(s, &err), 0);
	for (int i = 0; i < 6; i++) {
		const struct session_slice now = session_slice_now(s);

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
		T(test_intervals),	T(test_intervals_of_two), T(test_failure),
		T(test_signal),		T(test_pending_signal),	  T(test_command),
		T(test_killed_command), T(test_passed_on),	  T(test_ignored),
		T(test_no_command),	T(test_selected),	  T(test_strata),
		T(test_slices),		T(test_no_slices),
	};

	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
