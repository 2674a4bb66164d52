/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts of the events on a list of CPUs. */
#ifndef IBSCOPE_PERF_TOTAL_H
#define IBSCOPE_PERF_TOTAL_H

#include <linux/types.h>
#include <stdbool.h>

/* Totals over all CPUs, including those that went offline. */
struct perf_events_total {
	unsigned int cpus; /* sampled now */
	__u64 samples;	   /* whole periods counted; 0 if the period varies */
	__u64 counted;	   /* count of the event: ops, cycles, ns */
	__u64 second;	   /* count of the second event of the group */
	__u64 enabled_ns;  /* since the events were enabled */
	__u64 running_ns;  /* of that, on the PMU; less if another user shares it */
	bool exact;	   /* the count of samples is complete */
	__u64 went, came;  /* times a CPU went offline, and came (back) online */
};

#endif
