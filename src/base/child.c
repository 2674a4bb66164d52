// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "child.h"
#include "rlimit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static void close_others(int a, int b)
{
	unsigned int low = a < b ? a : b, high = a < b ? b : a;

	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0U, 0);
}

void child_enter(pid_t parent, int a, int b, uint64_t bytes)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close_others(a, b);
	rlimit_memory(bytes);
}
