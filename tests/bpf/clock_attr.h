/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The software clock as samplers open it. */
#ifndef IBSCOPE_TESTS_CLOCK_ATTR_H
#define IBSCOPE_TESTS_CLOCK_ATTR_H

#include <linux/perf_event.h>

/* struct perf_event_attr with a period in ns */
#define CLOCK_ATTR(period)                                                                      \
	{                                                                                       \
		.size = sizeof(struct perf_event_attr), .type = PERF_TYPE_SOFTWARE,             \
		.config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = (period),                   \
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING, \
	}

#endif
