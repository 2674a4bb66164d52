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

/* Wait until the kernel has freed what was closed before, which would disturb the measurement. */
static void quiet_settle(void)
{
	const struct timespec t = { .tv_nsec = SETTLE_NS };

	nanosleep(&t, NULL);
}

#endif
