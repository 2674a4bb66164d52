/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading clocks. */
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

/* CPU time of this thread: waiting for a CPU does not count. */
static inline double thread_cpu_s(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
}

/* Time since boot without suspended time, for timeouts. */
static inline double now_s(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/*
 * When what was due at @due_s, every @period_s, and ran until @now_s, is due again: as often as the
 * period says, but half a period or more from now, so that a late run leaves the next one some time.
 */
static inline double due_again_s(double due_s, double period_s, double now_s)
{
	const double next = due_s + period_s, least = now_s + period_s / 2;

	return next > least ? next : least;
}

#endif
