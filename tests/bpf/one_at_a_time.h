/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests with probes in their own program: such a probe counts the calls of all processes that run it. */
#ifndef ONE_AT_A_TIME_H
#define ONE_AT_A_TIME_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>

/* Wait until no other process runs this program as a test. It keeps a file open. */
static inline bool one_at_a_time(void)
{
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (self >= 0 && !flock(self, LOCK_EX))
		return true;
	perror("/proc/self/exe");
	return false;
}

#endif
