// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command of a session: what of it is sampled, when sampling ends, and with which status. */
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
#include "session_run.h"

static void command(const char *words)
{
	static char *argv[] = { (char *)"sh", (char *)"-c", NULL, NULL };

	argv[2] = (char *)words;
	o.argv = argv;
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
		T(test_command), T(test_killed_command), T(test_passed_on),
		T(test_ignored), T(test_no_command),	 T(test_selected),
	};

	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
