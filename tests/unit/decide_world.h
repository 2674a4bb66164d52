/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An environment of the decision core whose maps fail on demand, and in which another CPU acts in
 * the middle of a decision: what happens in the kernel only now and then.
 */
#ifndef IBSCOPE_TESTS_DECIDE_WORLD_H
#define IBSCOPE_TESTS_DECIDE_WORLD_H

#include "replay/core_env.h"

#include <ibscope/config.h>
#include <ibscope/hot_lines.h>
#include <ibscope/memory_nodes.h>

#include <errno.h>
#include <string.h>

#define WORLD_SLOTS   32
#define WORLD_WORDS   512
#define WORLD_CGROUPS 8
#define WORLD_LEVELS  40
#define WORLD_BLOCK   3 /* of pids: the only one that the maps have */

struct world {
	struct ibs_config config;
	struct ibs_memory_nodes nodes;
	__u16 fetch_layout[IBS_FETCH_LAYOUT_ENTRIES];
	struct ibs_control control;
	struct ibs_cpu_state cpu;

	/* the task that runs */
	__u64 pid_tgid, uid_gid, cgroup_id, cgroup_v1_id, ancestors[WORLD_LEVELS];
	__u32 on_cpu;
	char comm[16];
	bool no_comm;
	__u64 slab, slab_addr; /* answer and question of address_slab() */

	__u64 selected_ids[WORLD_CGROUPS];
	struct ibs_selected_cgroup selected_cgroups[WORLD_CGROUPS];
	__u64 cgroup_ids[WORLD_CGROUPS];
	struct ibs_cgroup cgroups[WORLD_CGROUPS];
	struct ibs_group_key group_keys[WORLD_SLOTS];
	__u32 group_slots[WORLD_SLOTS], n_groups;
	__u8 slots[WORLD_SLOTS], tids[IBS_PID_BLOCK], tgids[IBS_PID_BLOCK];
	struct ibs_slot_owner slot_owners[WORLD_SLOTS];
	__u64 series[WORLD_SLOTS * WORLD_WORDS];
	bool no_series;

	/* how often the core asked */
	unsigned int slot_adds, cgroup_finds;
	/* what the next calls return instead of adding */
	unsigned int slots_busy;
	int cgroup_error, group_error;
	/* what another CPU does just before this one gets its answer; once */
	void (*at_slot)(struct world *w), (*at_cgroup)(struct world *w),
		(*at_group)(struct world *w);
};

typedef struct world *core_t;
#define core_t core_t /* for decide_env.h */

#define core_config(w)		   (&(w)->config)
#define core_memory_nodes(w)	   (&(w)->nodes)
#define core_fetch_layout(w)	   ((w)->fetch_layout)
#define core_control(w)		   (&(w)->control)
#define core_layout(w)		   ((w)->config.layout)
#define core_state(w)		   (&(w)->cpu)
#define task_pid_tgid(w)	   ((w)->pid_tgid)
#define task_uid_gid(w)		   ((w)->uid_gid)
#define task_cpu(w)		   ((w)->on_cpu)
#define task_cgroup_id(w, v1)	   ((v1) ? (w)->cgroup_v1_id : (w)->cgroup_id)
#define task_cgroup_key(w, v1)	   task_cgroup_id(w, v1)
#define task_ancestor_id(w, level) ((w)->ancestors[level])
#define address_slab(w, addr)	   ((w)->slab_addr = (addr), (w)->slab)
#define map_delete(w, map, key)	   ((w)->map[*(key)] = 0)

#define task_comm task_comm
static int task_comm(struct world *w, __u64 *words)
{
	if (!w->no_comm)
		memcpy(words, w->comm, sizeof(w->comm));
	return w->no_comm ? -EFAULT : 0;
}

static void others_act(struct world *w, void (**act)(struct world *w))
{
	void (*now)(struct world * w) = *act;

	*act = NULL;
	if (now)
		now(w);
}

static __u8 *find_tgids(struct world *w, const __u32 *block)
{
	return *block == WORLD_BLOCK ? w->tgids : NULL;
}

static __u8 *find_tids(struct world *w, const __u32 *block)
{
	return *block == WORLD_BLOCK ? w->tids : NULL;
}

static struct ibs_selected_cgroup *find_selected_cgroups(struct world *w, const __u64 *id)
{
	for (int i = 0; i < WORLD_CGROUPS; i++)
		if (w->selected_ids[i] == *id)
			return &w->selected_cgroups[i];
	return NULL;
}

static struct ibs_cgroup *find_cgroups(struct world *w, const __u64 *id)
{
	w->cgroup_finds++;
	for (int i = 0; i < WORLD_CGROUPS; i++)
		if (w->cgroup_ids[i] == *id)
			return &w->cgroups[i];
	return NULL;
}

static void put_cgroup(struct world *w, __u64 id, struct ibs_cgroup value)
{
	int i = 0;

	while (w->cgroup_ids[i] && w->cgroup_ids[i] != id)
		i++;
	assert_true(i < WORLD_CGROUPS);
	w->cgroup_ids[i] = id;
	w->cgroups[i] = value;
}

static int add_cgroups(struct world *w, const __u64 *id, const struct ibs_cgroup *value)
{
	const int error = w->cgroup_error;

	others_act(w, &w->at_cgroup);
	w->cgroup_error = 0;
	if (!error)
		put_cgroup(w, *id, *value);
	return error;
}

static __u32 *find_groups(struct world *w, const struct ibs_group_key *key)
{
	for (__u32 i = 0; i < w->n_groups; i++)
		if (!memcmp(&w->group_keys[i], key, sizeof(*key)))
			return &w->group_slots[i];
	return NULL;
}

static int add_groups(struct world *w, const struct ibs_group_key *key, const __u32 *slot)
{
	const int error = w->group_error;

	others_act(w, &w->at_group);
	w->group_error = 0;
	if (!error) {
		assert_true(w->n_groups < WORLD_SLOTS);
		w->group_keys[w->n_groups] = *key;
		w->group_slots[w->n_groups++] = *slot;
	}
	return error;
}

static int add_slots(struct world *w, const __u32 *slot, const __u8 *used)
{
	assert_true(*slot < w->config.max_slots);
	w->slot_adds++;
	others_act(w, &w->at_slot);
	if (w->slots_busy) {
		w->slots_busy--;
		return -EBUSY;
	}
	if (w->slots[*slot])
		return -EEXIST;
	assert_int_equal(*used, 1);
	w->slots[*slot] = *used;
	return 0;
}

static struct ibs_slot_owner *find_slot_owners(struct world *w, const __u32 *slot)
{
	return *slot < WORLD_SLOTS ? &w->slot_owners[*slot] : NULL;
}

static __u64 *find_series(struct world *w, const __u32 *index)
{
	return w->no_series ? NULL : &w->series[*index % WORLD_SLOTS * WORLD_WORDS];
}

#include <ibscope/decide.h>

#endif
