// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A status line on a terminal, and what erases it: the next one, a message, the end, a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/on_kill.h"
#include "base/status_line.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERASE "\r\033[K"

/* What @act, in a child, writes to a terminal of @columns. Return: its wait status. */
static int on_terminal(void (*act)(void), unsigned short columns, char *said, size_t size)
{
	const struct winsize ws = { .ws_row = 24, .ws_col = columns };
	int ours = posix_openpt(O_RDWR | O_NOCTTY), theirs, status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_true(ours >= 0);
	assert_int_equal(grantpt(ours) | unlockpt(ours), 0);
	theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
	assert_true(theirs >= 0);
	assert_int_equal(ioctl(theirs, TIOCSWINSZ, &ws), 0);
	pid = fork();
	if (!pid) {
		dup2(theirs, STDERR_FILENO);
		setenv("TERM", "xterm", 1);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(write(theirs, ".", 1), 1);
	do {
		got = read(ours, said + n, size - 1 - n);
		assert_true(got > 0);
		n += got;
	} while (said[n - 1] != '.');
	said[n - 1] = 0;
	close(ours);
	close(theirs);
	return status;
}

static void show_and_warn(void)
{
	if (!status_line_possible())
		_exit(1);
	status_line_show("reading: %d%%", 7);
	status_line_show("reading: %d%%", 8);
	log_warn("one");
	log_warn("two");
	status_line_show("reading: %d%%", 9);
	status_line_end();
	status_line_end();
}

static void show_long(void)
{
	status_line_show("0123456789abcdef");
	status_line_end();
}

static void show_and_die(void)
{
	status_line_show("reading: 50%%");
	raise(SIGINT);
}

static void die_later(void)
{
	status_line_show("reading: 50%%");
	status_line_end();
	raise(SIGTERM);
}

static void die_in_child(void)
{
	int status;
	pid_t pid;

	status_line_show("x");
	pid = fork();
	if (!pid)
		raise(SIGTERM);
	waitpid(pid, &status, 0);
	_exit(!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM);
}

static void ignore_and_show(void)
{
	signal(SIGINT, SIG_IGN);
	show_and_die();
}

static void test_shown(void **state)
{
	char said[256];

	(void)state;
	assert_int_equal(on_terminal(show_and_warn, 80, said, sizeof(said)), 0);
	assert_string_equal(said, ERASE "reading: 7%" ERASE "reading: 8%" ERASE
					"ibscope: warning: one\r\nibscope: warning: two\r\n" ERASE
					"reading: 9%" ERASE);
	assert_int_equal(on_terminal(show_long, 10, said, sizeof(said)), 0);
	assert_string_equal(said, ERASE "012345678" ERASE);
	assert_int_equal(on_terminal(show_long, 0, said, sizeof(said)), 0);
	assert_string_equal(said, ERASE "0123456789abcdef" ERASE);
}

static void test_killed(void **state)
{
	char said[256];
	int status = on_terminal(show_and_die, 80, said, sizeof(said));

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	assert_string_equal(said, ERASE "reading: 50%" ERASE);
	status = on_terminal(die_later, 80, said, sizeof(said));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_string_equal(said, ERASE "reading: 50%" ERASE);
	assert_int_equal(on_terminal(die_in_child, 80, said, sizeof(said)), 0);
	assert_string_equal(said, ERASE "x");
	assert_int_equal(on_terminal(ignore_and_show, 80, said, sizeof(said)), 0);
	assert_string_equal(said, ERASE "reading: 50%");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shown),
					    cmocka_unit_test(test_killed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
