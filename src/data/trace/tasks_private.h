/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that answer for processes; tasks.h goes before it. */
#ifndef IBSCOPE_TASKS_PRIVATE_H
#define IBSCOPE_TASKS_PRIVATE_H

#include "base/intern.h"
#include "map_tree.h"

struct event {
	__u64 time;
	size_t seq;
	enum trace_kind kind;
	__u32 tgid, tid, parent_tgid, parent_tid;
	bool exec, omp, end;
	__u16 number;
	__u32 what; /* text of a name, or number of a map or cgroup */
	__u32 team;
	__u64 cgroup_id, addr;
};

/* State from a time on. */
struct version {
	__u64 time;
	bool born;	  /* the time before is unknown */
	__u32 tgid, name; /* of a thread; INTERN_NONE: unknown */
	__u32 root;	  /* maps of a process */
	__u32 stamp;	  /* 0: shared with another process, so copy before changing */
};

/* The names of a thread, or the maps of a process. */
struct history {
	struct version *version; /* by time */
	size_t n, room;
	bool exited;
};

struct map {
	struct task_map map; /* without its build id */
	unsigned char build_id[20];
};

struct tasks {
	struct event *events; /* not applied yet */
	size_t n_events, events_room;
	size_t seq;
	bool has_times, has_data, has_ranks, has_regions;
	__u64 state; /* as of tasks_state() */

	struct intern texts;
	struct map *maps;
	size_t n_maps, maps_room;
	struct map_pool pool;
	struct history *histories;
	size_t n_histories, histories_room;
	struct u64_map history_of;
	struct task_cgroup *cgroups;
	size_t n_cgroups, cgroups_room;
	struct u64_map cgroup_of; /* by id */
	struct slab_list slabs;
	struct task_rank *ranks;
	size_t n_ranks, ranks_room;
	struct u64_map rank_at; /* in `ranks`, by rank */
	struct region_tree regions;
	struct u64_map started; /* number of threads after the first one, by tgid */
	struct heap *heap;	/* NULL: it is not kept */
	struct u64_map dumps;	/* of generated code: path in `texts`, by tgid */
};

/* Take an event of any kind; only those of the heap change anything. */
void tasks_add_to_heap(struct heap *h, const struct trace_event *ev);

#endif
