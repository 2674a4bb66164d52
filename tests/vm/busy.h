/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the loads of guests share. Errors go to stderr. */
#ifndef IBSCOPE_TESTS_VM_BUSY_H
#define IBSCOPE_TESTS_VM_BUSY_H

#include <sched.h>
#include <stdio.h>
#include <time.h>

/* Seconds of the monotonic clock. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline void spin_until(double end)
{
	while (now() < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

/* To run on this CPU only. 0, or -1. */
static inline int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Into a directory of cgroup v2. 0, or -1. */
static inline int join(const char *cgroup)
{
	char procs[4096];
	FILE *f;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
	f = fopen(procs, "w");
	if (!f || fprintf(f, "0") < 0 || fclose(f))
		return perror(procs), -1;
	return 0;
}

#endif
