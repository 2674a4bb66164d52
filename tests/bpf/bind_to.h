/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Run on one CPU, from here on, and on which ones we may. After cmocka.h. */
#ifndef IBSCOPE_TESTS_BIND_TO_H
#define IBSCOPE_TESTS_BIND_TO_H

#include <sched.h>
#include <stdbool.h>

/* Whether it is online, and in our cpuset. */
static inline bool may_run_on(unsigned int cpu)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && CPU_ISSET(cpu, &set);
}

static inline void bind_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

#endif
