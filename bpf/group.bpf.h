/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which group a sample belongs to, and whether its process and cgroup are selected. */
#ifndef IBSCOPE_GROUP_BPF_H
#define IBSCOPE_GROUP_BPF_H

#include "compat.bpf.h"
#include "maps.bpf.h"
#include "who.bpf.h"

const volatile __u32 cfg_by = IBS_BY_CGROUP; /* enum ibs_by bits */
const volatile __u32 cfg_max_slots = 1;	     /* per shard */
const volatile __u8 cfg_task_select = 0;       /* enum ibs_task_select bits */
const volatile bool cfg_pid_follow = false;    /* children of what is selected are, too */
const volatile bool cfg_cgroup_filter = false; /* the filter asks for cgroups */
const volatile __u32 cfg_n_comms = 0;
const volatile bool cfg_comm_but = false;
const volatile __u64 cfg_comms[IBS_COMMS_MAX][2]; /* 16 bytes each, padded with zeros */

#define CGROUP_MAX_DEPTH 32

/* Other CPUs take slots at the same time, so the hint is only a hint; but it must not fall back. */
static __noinline __u32 slot_alloc(void)
{
	__u32 slot = control.next_slot;
	__u8 used = 1;
	int i;

	for (i = 0; i < 16 && slot < cfg_max_slots; i++, slot++) {
		if (!bpf_map_update_elem(&slots, &slot, &used, BPF_NOEXIST)) {
			if (control.next_slot <= slot)
				control.next_slot = slot + 1;
			return slot;
		}
	}
	if (control.next_slot < slot)
		control.next_slot = slot; /* all that were tried are taken */
	return IBS_SLOT_OTHER;
}

/* Before the slot is to be found in a map, so that no reader misses what is counted in it. */
static __always_inline void slot_own(__u32 slot, const struct ibs_group_key *key)
{
	struct ibs_slot_owner *owner = bpf_map_lookup_elem(&slot_owners, &slot);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	owner->key = *key;
	barrier();
	owner->used = IBS_SLOT_USED;
}

static __always_inline void slot_free(__u32 slot)
{
	struct ibs_slot_owner *owner = bpf_map_lookup_elem(&slot_owners, &slot);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	owner->used = IBS_SLOT_FREE;
	bpf_map_delete_elem(&slots, &slot);
	if (slot < control.next_slot)
		control.next_slot = slot;
}

/* The slot that a cgroup had, if user space has not taken it away since. */
static __always_inline __u32 slot_kept(__u32 slot, __u64 cgroup_id)
{
	struct ibs_slot_owner *owner = bpf_map_lookup_elem(&slot_owners, &slot);

	if (owner && owner->used == IBS_SLOT_USED && owner->key.cgroup_id == cgroup_id)
		return slot;
	return IBS_SLOT_OTHER;
}

/* The byte of a pid, NULL if it is beyond what the machine can number. */
static __always_inline __u8 *pid_byte(void *set, __u32 pid)
{
	__u32 block = pid / IBS_PID_BLOCK;
	__u8 *bytes = bpf_map_lookup_elem(set, &block);

	return bytes ? &bytes[pid % IBS_PID_BLOCK] : NULL;
}

static __always_inline bool tid_selected(__u32 tid)
{
	__u8 *byte = pid_byte(&tids, tid);

	return byte && *byte;
}

static __always_inline bool tgid_left_out(__u32 tgid)
{
	__u8 *byte = pid_byte(&tgids, tgid);
	__u32 test = control.pid_test;

	return ((byte ? *byte : 0) & test) == test >> 8;
}

/*
 * A new one takes after its parent if children are followed; else nobody has named it, also if its
 * number was named before that process died.
 */
static __always_inline void pid_born(void *set, __u32 child, __u32 parent)
{
	__u8 *byte = pid_byte(set, child), *from = cfg_pid_follow ? pid_byte(set, parent) : NULL;

	if (byte)
		*byte = from ? *from : 0;
}

/* Names are compared as two words; cfg_comms beyond cfg_n_comms is not even looked at. */
static __always_inline bool comm_selected(const struct ibs_twin_who *who)
{
	__u64 comm[2] = {}; /* v6.1 writes nothing behind the end of the name */
	__u32 i;

	if (who_comm(who, comm))
		return false;
#pragma unroll
	for (i = 0; i < IBS_COMMS_MAX; i++) {
		if (i >= cfg_n_comms)
			break;
		if (comm[0] == cfg_comms[i][0] && comm[1] == cfg_comms[i][1])
			return !cfg_comm_but;
	}
	return cfg_comm_but;
}

/*
 * The deepest ancestor that the selection names rules; what a filter asks holds of any of them. For
 * a recording's cgroup both are worked out before.
 */
static __always_inline void cgroup_select(struct ibs_cgroup *cg, const struct ibs_twin_who *who)
{
	int level;

	cg->selected = control.cgroup_default;
	cg->min_lat = 0;
	cg->filter = 0;
	for (level = 0; level < CGROUP_MAX_DEPTH; level++) {
		struct ibs_selected_cgroup *sel;
		__u64 id;

		if (who)
			id = level ? 0 : who->cgroup_id;
		else
			id = current_ancestor_cgroup_id(level);
		if (!id)
			break;
		sel = bpf_map_lookup_elem(&selected_cgroups, &id);
		if (!sel)
			continue;
		cg->filter |= sel->filter;
		if (sel->selected == IBS_CGROUP_AS_ABOVE)
			continue;
		cg->selected = sel->selected;
		cg->min_lat = sel->min_lat;
	}
}

/*
 * First sample of a cgroup on this CPU, or first after a change of selection. An entry is changed in
 * place: replacing it would hand its memory to another cgroup while another CPU reads it. A cgroup
 * without a slot is remembered as one of IBS_SLOT_OTHER until user space bumps control.gen. It asks
 * again at the next sample while not all slots were tried, or if the map refuses, be it full or its
 * lock held by another CPU. Of two CPUs that meet a known cgroup at once the later one gives its
 * slot back; what slips through has two of them until sampler_fold().
 */
static __noinline int cgroup_lookup(struct ibs_cpu_state *st, struct ibs_cgroup_cached *c, __u64 id,
				    __u32 gen, const struct ibs_twin_who *who)
{
	struct ibs_group_key key = { .cgroup_id = id };
	struct ibs_cgroup fresh = {}, *cg;
	__u32 slot = IBS_SLOT_OTHER;
	bool keep = true;

	cg = bpf_map_lookup_elem(&cgroups, &id);
	if (cg && cg->gen == gen) {
		fresh = *cg;
	} else {
		fresh.gen = gen;
		fresh.selected = 1;
		if ((cfg_task_select & IBS_TASK_CGROUP) || cfg_cgroup_filter)
			cgroup_select(&fresh, who);
		fresh.slot = cg ? slot_kept(cg->slot, id) : IBS_SLOT_OTHER;
		if (cfg_by == IBS_BY_CGROUP && fresh.selected && fresh.slot == IBS_SLOT_OTHER) {
			fresh.slot = slot = slot_alloc();
			slot_own(slot, &key);
			if (slot == IBS_SLOT_OTHER && control.next_slot < cfg_max_slots) {
				fresh.gen = gen - 1;
				keep = false;
			}
		}
		barrier();
		if (cg && (__s32)(cg->gen - gen) >= 0 && cg->slot != IBS_SLOT_OTHER) {
			slot_free(slot); /* another CPU was first */
			fresh = *cg;
		} else if (cg) {
			cg->slot = fresh.slot;
			cg->selected = fresh.selected;
			cg->min_lat = fresh.min_lat;
			cg->filter = fresh.filter;
			barrier();
			cg->gen = fresh.gen;
		} else if (bpf_map_update_elem(&cgroups, &id, &fresh, BPF_NOEXIST)) {
			slot_free(slot);
			fresh.slot = IBS_SLOT_OTHER;
			cg = bpf_map_lookup_elem(&cgroups, &id); /* another CPU was first */
			if (cg)
				fresh = *cg;
			else
				keep = false;
		}
	}
	c->cgroup_id = keep ? id : 0;
	c->gen = gen;
	c->selected = fresh.selected;
	c->min_lat = fresh.min_lat;
	c->filter = fresh.filter;
	c->index = st->shard * cfg_max_slots + fresh.slot;
	return 0;
}

/* The slot index of a group other than a plain cgroup; @mode only if it is asked for. */
static __noinline __u32 group_lookup(struct ibs_cpu_state *st, const struct ibs_twin_who *who,
				     __u32 mode)
{
	struct ibs_group_key key = {};
	__u32 slot, *known;

	if (cfg_by & IBS_BY_CGROUP)
		key.cgroup_id = who_cgroup_id(st, who, cfg_cgroup_v1);
	if (cfg_by & IBS_BY_PID)
		key.tgid = who_pid_tgid(who) >> 32;
	if (cfg_by & IBS_BY_TID)
		key.tid = who_pid_tgid(who);
	if (cfg_by & IBS_BY_NODE)
		key.node = st->node;
	if (cfg_by & IBS_BY_COMPLEX)
		key.complex = st->complex;
	if (cfg_by & IBS_BY_CPU)
		key.cpu = who_cpu(who);
	if (cfg_by & IBS_BY_MODE)
		key.mode = mode;
	if (cfg_by & IBS_BY_COMM)
		who_comm(who, (__u64 *)key.comm);
	known = bpf_map_lookup_elem(&groups, &key);
	if (known) {
		slot = *known;
	} else {
		slot = slot_alloc();
		slot_own(slot, &key);
		if (slot != IBS_SLOT_OTHER &&
		    bpf_map_update_elem(&groups, &key, &slot, BPF_NOEXIST)) {
			slot_free(slot);
			known = bpf_map_lookup_elem(&groups, &key);
			slot = known ? *known : IBS_SLOT_OTHER;
		}
	}
	return st->shard * cfg_max_slots + slot;
}

#endif
