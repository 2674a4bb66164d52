/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thread names and process maps over time, from the events of a recording. Events may be added in any
 * order, but all of them before the first query, so a reader goes through a recording twice.
 */
#ifndef IBSCOPE_TASKS_H
#define IBSCOPE_TASKS_H

#include "machine/kernel.h"
#include "trace.h"

struct tasks;

struct tasks *tasks_new(void);
void tasks_free(struct tasks *t); /* accepts NULL */

/* Add an event that is not a sample. */
void tasks_add(struct tasks *t, const struct trace_event *ev);

/**
 * tasks_read() - add all such events of a recording, which is rewound before and after
 *
 * Return: 0 or what trace_next() returned.
 */
int tasks_read(struct tasks *t, struct trace *trace, struct err *err);

/**
 * tasks_comm() - the name of a thread at a time
 * @time: 0: the last name
 *
 * A thread without a name of its own has the name that its creator had at its start.
 *
 * Return: NULL if unknown; lives as long as @t.
 */
const char *tasks_comm(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time);

struct task_map {
	__u64 start, end, pgoff;
	const char *path;
	const unsigned char *build_id; /* NULL: unknown */
	unsigned int build_id_len;
	bool kernel, exec;
};

/**
 * tasks_map() - find the map of an address
 *
 * A process has the maps of its parent from its fork until it execs.
 *
 * Return: false if nothing was mapped there.
 */
bool tasks_map(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool kernel,
	       struct task_map *out);

/* The next map above or below an unmapped address of a process. Return: false if there is none. */
bool tasks_map_near(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool above,
		    struct task_map *out);

/* Is it the map of the kernel itself? Modules have maps of their own. */
static inline bool task_map_is_kernel(const struct task_map *map)
{
	return !strncmp(map->path, "[kernel", strlen("[kernel"));
}

/* The map of the kernel itself. Return: false if it was not recorded. */
bool tasks_kernel(const struct tasks *t, struct task_map *out);

/* Does the recording have maps of anything but code? */
bool tasks_have_data(const struct tasks *t);

/* The MPI rank of a process, its own or that of its parent. Return: false if unknown. */
bool tasks_rank(const struct tasks *t, __u32 tgid, __u64 time, __u32 *rank);

/*
 * The regions of a thread, "outer/inner", or if it had none, those of the thread that began its OpenMP team.
 * Return: NULL if it was in no region.
 */
const char *tasks_region(const struct tasks *t, __u32 tid, __u64 time);

/**
 * tasks_omp() - the OpenMP region of a thread
 * @number: of the thread in its team, or in its last team
 * @addr:   in the function with the region; 0: in no region
 *
 * Return: false if no runtime reported regions of this thread.
 */
bool tasks_omp(const struct tasks *t, __u32 tid, __u64 time, __u32 *number, __u64 *addr);

/* *place: number of threads that its process started before it. Return: false if its start is unknown. */
bool tasks_started(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time, __u32 *place);

/* One rank of a recording. */
struct task_rank {
	__u32 rank;
	bool ended; /* with the wait status `status` */
	int status;
};

/* All ranks, in the order of their first event. */
const struct task_rank *tasks_ranks(const struct tasks *t, size_t *n);

struct task_cgroup {
	const char *path;
	const char *container, *pod, *ns; /* "": unknown */
};

/* A cgroup with its last name. Return: false if it is unknown. */
bool tasks_cgroup(const struct tasks *t, __u64 id, struct task_cgroup *out);

/* The recorded slab caches. */
const struct slab_list *tasks_slabs(const struct tasks *t);

#endif
