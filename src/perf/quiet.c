// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "quiet.h"

#include "base/cpulist.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define SETTLE_NS 300000000

int quiet_bind(unsigned int cpu, struct err *err)
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

void quiet_settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}
