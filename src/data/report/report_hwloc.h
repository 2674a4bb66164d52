/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The machine of a recording in the XML of hwloc, which lstopo and programs with that library read. */
#ifndef IBSCOPE_REPORT_HWLOC_H
#define IBSCOPE_REPORT_HWLOC_H

#include "report.h"

/* Is there a topology, as the kernel may have it? */
bool report_hwloc_can(const struct trace_info *info);

/**
 * report_hwloc() - write the topology, and what the samples of each CPU add up to
 * @info: report_hwloc_can()
 * @cpus: rows by LABEL_CPU
 *
 * A CPU with samples has the infos "ibscope.samples" and "ibscope.miss_cycles". Cores are not recorded.
 */
void report_hwloc(FILE *f, const struct trace_info *info, const struct report_table *cpus);

#endif
