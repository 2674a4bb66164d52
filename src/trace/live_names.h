/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of threads and cgroups as of the events added so far, for samples that are printed as they
 * come. Where a recording can be read twice, tasks.h knows more.
 */
#ifndef IBSCOPE_LIVE_NAMES_H
#define IBSCOPE_LIVE_NAMES_H

#include "trace.h"

struct live_names;

/* Address space for every thread there can be, of which only what is used becomes memory. */
struct live_names *live_names_new(void);
void live_names_free(struct live_names *n); /* accepts NULL */

/* Take in an event; those without names are ignored. */
void live_names_add(struct live_names *n, const struct trace_event *ev);

/* Lives until the next event. NULL: not known. */
const char *live_names_comm(const struct live_names *n, __u32 tid);
const char *live_names_cgroup(const struct live_names *n, __u64 id);

/* Was an event of this cgroup added, be it with an empty path, which names nothing? */
bool live_names_has_cgroup(const struct live_names *n, __u64 id);

/* As if no cgroup had been added. */
void live_names_forget_cgroups(struct live_names *n);

#endif
