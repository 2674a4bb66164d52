/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metadata that record writes to the head of a recording. */
#ifndef IBSCOPE_RECORD_INFO_H
#define IBSCOPE_RECORD_INFO_H

#include "session/session.h"
#include "trace/trace.h"

/* The command line, quoted for a shell and truncated if needed. */
void record_command(struct trace_info *info, int argc, char **argv);

/*
 * Everything else, from an open session. @pmu: for the first @n_events events of the session; must
 * live as long as @info.
 */
void record_info(struct trace_info *info, struct trace_pmu *pmu, const struct session *s,
		 unsigned int n_events);

/* After that, of a session with strata: the event of the miss stratum, too. */
void record_strata(struct trace_info *info, struct trace_pmu pmu[STRATUM_N],
		   const struct session *s);

/* The topology of this machine, and its MEMORY_RANGES @memory nodes; @info points to both. */
void record_topology(struct trace_info *info, struct trace_topology *topology,
		     struct memory_range *memory);

#endif
