/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Preparing a measurement. */
#ifndef IBSCOPE_QUIET_H
#define IBSCOPE_QUIET_H

#include "base/cpulist.h"
#include "base/err.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define SETTLE_NS 300000000

/* Bind the calling thread to @cpu. Return: 0, or a negative errno with @err. */
static int quiet_bind(unsigned int cpu, struct err *err)
{
	size_t bytes = CPU_ALLOC_SIZE(CPULIST_MAX);
	cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
	int ret = 0;

	if (!set)
		return err_set(err, -ENOMEM, "out of memory");
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(cpu, bytes, set);
	if (sched_setaffinity(0, bytes, set))
		ret = err_set(err, -errno, "cannot run on cpu %u: %s", cpu, strerror(errno));
	CPU_FREE(set);
	return ret;
}

/* Wait until the kernel has freed what was closed before, which would disturb the measurement. */
static void quiet_settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}

#endif
