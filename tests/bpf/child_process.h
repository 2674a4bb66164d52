/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a forked process of a test calls first. */
#ifndef IBSCOPE_TESTS_CHILD_PROCESS_H
#define IBSCOPE_TESTS_CHILD_PROCESS_H

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* It ends with its parent, and on a failed assertion, instead of running the other tests. */
static inline void child_begins(void)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

#endif
