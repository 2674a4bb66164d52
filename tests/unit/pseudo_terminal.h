/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pseudo-terminal: one end is the test's, the other one that of a program. After cmocka.h. */
#ifndef IBSCOPE_TESTS_PSEUDO_TERMINAL_H
#define IBSCOPE_TESTS_PSEUDO_TERMINAL_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct pseudo_terminal {
	int ours, theirs;
};

static inline struct pseudo_terminal pseudo_terminal_open(const struct winsize *size)
{
	struct pseudo_terminal t = { .ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };

	assert_true(t.ours >= 0);
	assert_int_equal(grantpt(t.ours) | unlockpt(t.ours), 0);
	t.theirs = open(ptsname(t.ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(t.theirs >= 0);
	assert_int_equal(ioctl(t.theirs, TIOCSWINSZ, size), 0);
	return t;
}

/* In a child: make it the controlling terminal, standard input and output. */
static inline void pseudo_terminal_take(const struct pseudo_terminal *t)
{
	setsid();
	ioctl(t->theirs, TIOCSCTTY, 0);
	dup2(t->theirs, STDIN_FILENO);
	dup2(t->theirs, STDOUT_FILENO);
	close(t->ours);
	close(t->theirs);
}

#endif
