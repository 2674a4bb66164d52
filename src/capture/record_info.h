/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What record writes about itself into the head of a recording. */
#ifndef IBSCOPE_RECORD_INFO_H
#define IBSCOPE_RECORD_INFO_H

#include "session/session.h"
#include "trace/trace.h"

/* The command line as one can paste it, cut to what there is room for. */
void record_command(struct trace_info *info, int argc, char **argv);

/*
 * All else, from a sampling that is open. @pmu lives as long as @info. @second: of the other event, for
 * which there is a second @pmu; or NULL.
 */
void record_info(struct trace_info *info, struct trace_pmu *pmu, const struct sampling *s,
		 const struct sampling *second);

/* The topology of this machine, and the nodes of its memory in @memory, of MEMORY_RANGES; @info points to both. */
void record_topology(struct trace_info *info, struct trace_topology *topology,
		     struct memory_range *memory);

#endif
