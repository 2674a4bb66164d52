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

#define T(f) cmocka_unit_test_setup_teardown(f, begin, free_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_intervals),	T(test_intervals_of_two), T(test_failure),
		T(test_signal),		T(test_pending_signal),	  T(test_command),
		T(test_killed_command), T(test_passed_on),	  T(test_ignored),
		T(test_no_command),	T(test_selected),
	};

	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
