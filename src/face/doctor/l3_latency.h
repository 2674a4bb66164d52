/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The latency of L3 misses as sampled by the L3 cache itself, on Zen 4 and later. Written from the
 * descriptions of the events and of the driver's sysfs files; never run on hardware.
 */
#ifndef IBSCOPE_L3_LATENCY_H
#define IBSCOPE_L3_LATENCY_H

#include "base/cpulist.h"
#include "event/cpu.h"

#include <linux/perf_event.h>

struct err;

/* The sum of latencies is in units of ten: ns according to Linux 7, core clocks in older ones. */
#define L3_LATENCY_UNIT 10

struct l3_latency {
	struct perf_event_attr sum, requests; /* for counting; one group */
	struct cpulist cpus;		      /* one CPU per L3, which counts for all of them */
};

/**
 * l3_latency_describe() - make the events from the description of the PMU in sysfs
 * @root: prefix of the file system, "" for the real one
 *
 * Return: 0, or with @e set: -EOPNOTSUPP the processor has no such events; -ENODEV the kernel has
 * no L3 PMU, or one without a required term; else the error of reading a file.
 */
int l3_latency_describe(const char *root, const struct cpu_info *cpu, struct l3_latency *out,
			struct err *e);

#endif
