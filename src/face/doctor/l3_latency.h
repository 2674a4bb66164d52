/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The latency of L3 misses as sampled by the L3 cache itself, on Zen 4 and later. Written from the
 * descriptions of the events and of the driver's sysfs files; never run on hardware.
 */
#ifndef IBSCOPE_L3_LATENCY_H
#define IBSCOPE_L3_LATENCY_H

#include "base/cpulist.h"
#include "event/cpu.h"

#include <ibscope/op.h>
#include <linux/perf_event.h>

struct err;

/* The sum of latencies is in units of ten: ns according to Linux 7, core clocks in older ones. */
#define L3_LATENCY_UNIT 10

/*
 * X(NAME, unit mask, sources of samples): where the data came from. Of Linux tools/perf/pmu-events/arch/x86,
 * amdzen4/cache.json, amdzen5/l3-cache.json and amdzen6/l3-cache.json, which agree: dram_near, dram_far, near_cache,
 * far_cache, ext_near, ext_far ("extension memory (CXL)") and all.
 */
#define L3_SOURCE_TABLE(X)                                                                 \
	X(ALL, 0x3f,                                                                       \
	  L3_SRC(DRAM) | L3_SRC(REMOTE_DRAM) | L3_SRC(NEAR_CACHE) | L3_SRC(REMOTE_CACHE) | \
		  L3_SRC(CXL) | L3_SRC(REMOTE_CXL))                                        \
	X(DRAM, 0x01, L3_SRC(DRAM))                                                        \
	X(REMOTE_DRAM, 0x02, L3_SRC(REMOTE_DRAM))                                          \
	X(NEAR_CACHE, 0x04, L3_SRC(NEAR_CACHE))                                            \
	X(REMOTE_CACHE, 0x08, L3_SRC(REMOTE_CACHE))                                        \
	X(CXL, 0x10, L3_SRC(CXL))                                                          \
	X(REMOTE_CXL, 0x20, L3_SRC(REMOTE_CXL))
#define L3_SRC(name) (1U << IBS_SRC_##name)

enum l3_source {
#define L3_SOURCE_ENUM(NAME, ...) L3_SOURCE_##NAME,
	L3_SOURCE_TABLE(L3_SOURCE_ENUM)
#undef L3_SOURCE_ENUM
		L3_SOURCE_N
};

struct l3_latency {
	struct {
		struct perf_event_attr sum, requests; /* for counting; one group */
	} of[L3_SOURCE_N];
	struct cpulist cpus; /* one CPU per L3, which counts for all of them */
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
