/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What time it is. */
#ifndef IBSCOPE_CLOCK_H
#define IBSCOPE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Since boot, suspended time left out: for what is to be waited for. */
static inline double now_s(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1e9;
}

#endif
