/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of threads and cgroups from the events added so far, for samples that are printed at once. If a
 * recording can be read twice, tasks.h knows more.
 */
#ifndef IBSCOPE_LIVE_NAMES_H
#define IBSCOPE_LIVE_NAMES_H

#include "trace/trace.h"

struct live_names;

/* Reserves address space for every possible thread; only the used part takes memory. */
struct live_names *live_names_new(void);
void live_names_free(struct live_names *n); /* accepts NULL */

/* Add an event; those without names are ignored. */
void live_names_add(struct live_names *n, const struct trace_event *ev);

/* The result lives until the next event. NULL: unknown. */
const char *live_names_comm(const struct live_names *n, __u32 tid);
const char *live_names_cgroup(const struct live_names *n, __u64 id);

/* Was an event of this cgroup added, even one with an empty path? */
bool live_names_has_cgroup(const struct live_names *n, __u64 id);

/* Forget all cgroups. */
void live_names_forget_cgroups(struct live_names *n);

#endif
