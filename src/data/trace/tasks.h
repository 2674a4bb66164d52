/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes, threads and their regions. */
#ifndef IBSCOPE_TASKS_H
#define IBSCOPE_TASKS_H

#include "base/intern.h"
#include "machine/kernel.h"
#include "trace.h"

struct tasks;
struct heap;

/* A tree of nested regions; the parent of a node is the enclosing region. Node 0 is outside all regions. */

struct region_node {
	__u32 parent, depth;
	__u32 path, name;   /* in `texts`, "outer/inner"; the last name */
	__u32 team, number; /* OpenMP: thread that began the team, and number in the team */
	__u64 addr;	    /* 0: no region */
};

/* The zero value has only node 0. */
struct region_tree {
	struct region_node *nodes;
	size_t n, room;
	struct u64_map node_of;
	struct intern texts;
};

/* enough for threads times regions of a large program; 20 MB */
#define REGION_NODES_MAX (1u << 18)

/*
 * Begin a region inside @parent. @name: "" for OpenMP regions. Return: its node; @parent if there are too many
 * nodes, as in a program that begins regions and never ends them.
 */
__u32 region_tree_begin(struct region_tree *t, __u32 parent, const char *name, __u32 team,
			__u32 number, __u64 addr);

struct region_node region_tree_node(const struct region_tree *t, __u32 node);

/* The last name of the path; "": no name, or left out. */
const char *region_tree_name(const struct region_tree *t, __u32 node);

/* NULL: node 0 */
const char *region_tree_path(const struct region_tree *t, __u32 node);

void region_tree_free(struct region_tree *t);

/*
 * Thread names and process maps over time, from the events of a recording. Events may be added in any
 * order, but all of them before the first query, so a reader goes through a recording twice.
 */

struct tasks *tasks_new(void);

/* Also keep allocations, which takes up to 0.6 GB: call it before events are added. */
void tasks_keep_heap(struct tasks *t);
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

/*
 * A number for the maps of a process at a time. While it and tasks_state() stay the same, tasks_map() gives the
 * same answers; 0: the process has none.
 */
__u32 tasks_maps(const struct tasks *t, __u32 tgid, __u64 time);

/* Changes with the events that were added, and differs between any two struct tasks with events. */
__u64 tasks_state(const struct tasks *t);

/* The next map above or below an unmapped address of a process. Return: false if there is none. */
bool tasks_map_near(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool above,
		    struct task_map *out);

/* The last file named jit-NUMBER.dump that a process mapped: how it says where it lists generated code. NULL: none. */
const char *tasks_code_dump(const struct tasks *t, __u32 tgid);

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

/* The allocations of all processes; NULL: they are not kept. */
const struct heap *tasks_heap(const struct tasks *t);

/* The recorded slab caches. */
const struct slab_list *tasks_slabs(const struct tasks *t);

/* The processes that a recording describes, and their state when it began. */

/* A set of processes. The zero value: all. */
struct task_choice {
	unsigned char *pids; /* one bit each; NULL: all */
	bool follow;	     /* also their children */
};

/* @n 0 chooses all. Return: 0. */
int task_choice_init(struct task_choice *c, const __u32 *tgids, size_t n, bool follow);
bool task_choice_has(const struct task_choice *c, __u32 tgid);
void task_choice_add(struct task_choice *c, __u32 tgid);
void task_choice_free(struct task_choice *c);

/* Return: 0 to continue, or a negative errno with @err. */
typedef int trace_event_cb(const struct trace_event *ev, void *arg, struct err *err);

/**
 * task_events_now() - report the current thread names and accessible maps from /proc
 * @root: prefix of the file system, "" for the real one
 * @data: also report maps of memory that is not executable
 * @time: time of the events
 *
 * Also reports the kernel's text and its modules, with their build ids, if the kernel shows addresses
 * (CAP_SYSLOG, kernel.kptr_restrict). Leaves out processes that exit or cannot be read.
 * Reads one file per thread and one per process, at some 20 us each.
 *
 * Return: 0; what @cb returned; or a negative errno with @err if there is no /proc.
 */
int task_events_now(const char *root, const struct task_choice *choice, bool data, __u64 time,
		    trace_event_cb *cb, void *arg, struct err *err);

/*
 * Read where the text of the running kernel is, for all later calls of task_events_now(), and of those of child
 * processes: it takes longer than everything else.
 */
void task_events_remember_kernel(void);

/* The build id in a file of ELF notes, as /sys/kernel/notes. Return: its length; 0: none. */
unsigned int notes_build_id(const char *path, unsigned char id[20]);

#endif
