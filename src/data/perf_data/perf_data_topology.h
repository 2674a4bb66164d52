/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Features of a perf.data that say which CPUs and which memory are near each other. */
#ifndef IBSCOPE_PERF_DATA_TOPOLOGY_H
#define IBSCOPE_PERF_DATA_TOPOLOGY_H

#include "perf_data_format.h"
#include "trace/trace.h"

struct perf_topology {
	struct trace_topology t;
	bool has_nodes, has_ccx; /* a topology is both */
	struct memory_range memory[MEMORY_RANGES];
};

/*
 * NUMA_TOPOLOGY, CACHE, MEM_TOPOLOGY. @info gets pointers into @p as soon as something is known.
 * Return: false if the feature is damaged.
 */
bool perf_topology_nodes(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info);
bool perf_topology_caches(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info);
bool perf_topology_memory(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info);

#endif
