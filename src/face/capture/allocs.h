/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocations of the command's processes: libibscope-alloc.so, loaded into each of them, writes them to files in the
 * directory of their regions. Their contents are not trusted. Or programs report them by probes.
 */
#ifndef IBSCOPE_ALLOCS_H
#define IBSCOPE_ALLOCS_H

#include "obstacles.h"
#include "probes/probes.h"
#include "trace/tasks.h"

/* Functions accept NULL and then do nothing. */
struct allocs;

struct allocs *allocs_new(void);

/* Also collect from this directory. */
void allocs_add(struct allocs *a, const char *dir);

/* Also collect what these probes report of chosen processes. Both must stay valid; the probes are closed with @a. */
void allocs_add_probes(struct allocs *a, struct probes *probes, const struct task_choice *choice);
void allocs_free(struct allocs *a);

/* Read new events. @last: writing has ended. */
void allocs_refresh(struct allocs *a, bool last);

/* A process of the command has begun another program. */
void allocs_note_exec(struct allocs *a, __u32 tgid);

/* Time of the next event, CLOCK_MONOTONIC; UINT64_MAX: none. */
__u64 allocs_peek(const struct allocs *a);

/*
 * The next event in order of time; its stack is valid until the next call. There must be one. Return: false if it is of
 * a process that is not recorded.
 */
bool allocs_next(struct allocs *a, struct trace_event *ev);

/* Maximum time until the next allocs_refresh(), so that rings do not overflow; seconds. */
double allocs_delay_s(const struct allocs *a);

struct allocs_counts {
	__u64 events;	  /* allocations and frees that were read */
	__u64 lost;	  /* those that found no room, or were invalid */
	__u64 programs;	  /* that wrote some: processes, and again after each exec */
	__u64 own_malloc; /* of which those that define malloc themselves, so that it is not noted */
	__u64 probes;	  /* files that have probes */
	__u64 obstacle[OBSTACLES]; /* processes whose allocations cannot be noted; [NONE]: 0 */
};

struct allocs_counts allocs_counts(const struct allocs *a);

#endif
