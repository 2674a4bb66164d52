/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decision core: cgroups and other groups, and the slots that they have. */
#ifndef IBSCOPE_DECIDE_CGROUP_H
#define IBSCOPE_DECIDE_CGROUP_H

#include <ibscope/decide_slots.h>
#include <ibscope/fetch.h>
#include <ibscope/memory_nodes.h>

#define CGROUP_MAX_DEPTH 32

/*
 * The deepest ancestor that the selection names decides; a filter predicate holds if it holds for
 * any ancestor. Returns the bytes of a struct ibs_selected_cgroup. The verifier checks this
 * function separately: its loop, followed through each caller, is over a million instructions.
 */
IBS_GLOBAL_FUNC __u32 cgroup_select(core_arg_t core)
{
	__u32 selected = READ_ONCE(core_control(core)->cgroup_default), min_lat = 0, filter = 0;
	int level;

	for (level = 0; level < CGROUP_MAX_DEPTH; level++) {
		__u64 id = task_ancestor_id(core, level);
		struct ibs_selected_cgroup *sel;

		if (!id)
			break;
		sel = map_find(core, selected_cgroups, &id);
		if (!sel)
			continue;
		filter |= sel->filter;
		if (sel->selected == IBS_CGROUP_AS_ABOVE)
			continue;
		selected = sel->selected;
		min_lat = sel->min_lat;
	}
	return min_lat | selected << 16 | filter << 24;
}

/* Another CPU may be writing the entry: `gen` is written last and read first. */
static __always_inline void cgroup_read(const struct ibs_cgroup *cg, struct ibs_cgroup *out)
{
	out->gen = READ_ONCE(cg->gen);
	barrier();
	out->slot = READ_ONCE(cg->slot);
	out->min_lat = READ_ONCE(cg->min_lat);
	out->selected = READ_ONCE(cg->selected);
	out->filter = READ_ONCE(cg->filter);
}

static __always_inline void cgroup_write(struct ibs_cgroup *cg, const struct ibs_cgroup *from)
{
	WRITE_ONCE(cg->slot, from->slot);
	WRITE_ONCE(cg->selected, from->selected);
	WRITE_ONCE(cg->min_lat, from->min_lat);
	WRITE_ONCE(cg->filter, from->filter);
	barrier();
	WRITE_ONCE(cg->gen, from->gen);
}

/*
 * First sample of a cgroup on this CPU, or first one after the selection changed. Entries are
 * updated in place: replacing one would give its memory to another cgroup while another CPU reads
 * it. A cgroup without a slot is cached with IBS_SLOT_OTHER until user space changes the
 * generation. If not all slots were tried, or the map update failed (map full, or lock held by
 * another CPU), the next sample tries again. When two CPUs allocate a slot for a known cgroup at
 * once, the later one frees its slot; in a race both keep theirs until sampler_fold().
 */
static __noinline int cgroup_lookup(core_t core, struct ibs_cgroup_cached *c, __u32 live)
{
	core_cfg *cfg = core_config(core);
	const __u32 gen = live & IBS_LIVE_GEN;
	__u64 id = task_cgroup_id(core, cfg->cgroup_v1);
	struct ibs_group_key group = { .cgroup_id = id };
	struct ibs_cgroup fresh = {}, *cg;
	__u32 slot = IBS_SLOT_OTHER;
	bool keep = true;

	cg = map_find(core, cgroups, &id);
	if (cg)
		cgroup_read(cg, &fresh);
	if (!cg || fresh.gen != gen) {
		fresh.slot = cg ? slot_kept(core, fresh.slot, id) : IBS_SLOT_OTHER;
		fresh.gen = gen;
		fresh.selected = 1;
		fresh.min_lat = 0;
		fresh.filter = 0;
		if ((cfg->task_select & IBS_TASK_CGROUP) || cfg->cgroup_filter) {
			const __u32 select = cgroup_select(core_arg(core));

			fresh.min_lat = select;
			fresh.selected = select >> 16;
			fresh.filter = select >> 24;
		}
		if (cfg->by == IBS_BY_CGROUP && fresh.selected && fresh.slot == IBS_SLOT_OTHER) {
			fresh.slot = slot = slot_alloc(core);
			slot_own(core, slot, &group);
			if (slot == IBS_SLOT_OTHER &&
			    READ_ONCE(core_control(core)->next_slot) < cfg->max_slots) {
				fresh.gen = gen - 1;
				keep = false;
			}
		}
		barrier();
		if (cg && (__s32)(READ_ONCE(cg->gen) - gen) >= 0 &&
		    READ_ONCE(cg->slot) != IBS_SLOT_OTHER) {
			slot_free(core, slot); /* another CPU was first */
			cgroup_read(cg, &fresh);
		} else if (cg) {
			cgroup_write(cg, &fresh);
		} else if (map_add(core, cgroups, &id, &fresh)) {
			slot_free(core, slot);
			fresh.slot = IBS_SLOT_OTHER;
			cg = map_find(core, cgroups, &id); /* another CPU was first */
			if (cg)
				cgroup_read(cg, &fresh);
			else
				keep = false;
		}
	}
	c->live = keep ? live : 0;
	c->min_lat = fresh.min_lat;
	c->filter = fresh.filter;
	c->index = fresh.selected ? core_state(core)->shard * cfg->max_slots + fresh.slot
				  : IBS_INDEX_LEFT_OUT;
	return 0;
}

/* The last sample was of another cgroup, or taken under another selection than @live. */
static __noinline int cgroup_switch(core_t core, __u64 key, __u32 live)
{
	struct ibs_cpu_state *st = core_state(core);
	struct ibs_cgroup_cached *c = &st->cache[key & (IBS_CGROUP_CACHE - 1)];

	if (c->key != key || c->live != live)
		cgroup_lookup(core, c, live);
	st->key = c->key = key;
	st->key_live = c->live;
	st->index = c->index;
	st->min_lat = c->min_lat;
	st->filter = c->filter;
	return 0;
}

/* Slot index of the current task's cgroup; the CPU's state gets the selection's verdict on it. */
static __always_inline __u32 current_cgroup(core_t core, bool v1)
{
	struct ibs_cpu_state *st = core_state(core);
	__u64 key = task_cgroup_key(core, v1);
	__u32 live = READ_ONCE(st->live);

	if (__builtin_expect(st->key != key || st->key_live != live, 0))
		cgroup_switch(core, key, live);
	return st->index;
}

/* Slab cache of the op's data address. */
static __always_inline __u64 group_slab(core_t core, const __u64 *regs)
{
	const __u64 data3 = regs[IBS_OP_DATA3], addr = regs[IBS_DC_LINADDR];

	if (!(data3 & IBS_OP_DATA3_MEM) || !(data3 & IBS_OP_DATA3_LIN_VALID))
		return IBS_KEY_SLAB_UNKNOWN;
	return (__s64)addr < 0 ? address_slab(core, addr) : IBS_KEY_SLAB_USER;
}

/* Slot index of a group by other labels than cgroup; @mode: only if needed; @mem_node and @slab: 0 if not. */
static __noinline __u32 group_lookup(core_t core, __u32 mode, __u32 mem_node, __u64 slab)
{
	core_cfg *cfg = core_config(core);
	struct ibs_group_key key = {};
	__u32 slot, *known, by = cfg->by;

	if (by & IBS_BY_CGROUP)
		key.cgroup_id = task_cgroup_id(core, cfg->cgroup_v1);
	if (by & IBS_BY_PID)
		key.tgid = task_pid_tgid(core) >> 32;
	if (by & IBS_BY_TID)
		key.tid = task_pid_tgid(core);
	if (by & IBS_BY_NODE)
		key.node = core_state(core)->node;
	if (by & IBS_BY_COMPLEX)
		key.complex = core_state(core)->complex;
	if (by & IBS_BY_CPU)
		key.cpu = task_cpu(core);
	if (by & IBS_BY_MODE)
		key.mode = mode;
	key.mem_node = mem_node;
	key.slab = slab;
	if (by & IBS_BY_COMM)
		task_comm(core, (__u64 *)key.comm);
	known = map_find(core, groups, &key);
	if (known) {
		slot = *known;
	} else {
		slot = slot_alloc(core);
		slot_own(core, slot, &key);
		if (slot != IBS_SLOT_OTHER && map_add(core, groups, &key, &slot)) {
			slot_free(core, slot);
			known = map_find(core, groups, &key);
			slot = known ? *known : IBS_SLOT_OTHER;
		}
	}
	return core_state(core)->shard * cfg->max_slots + slot;
}

static __always_inline __u32 slot_index(core_t core, const __u64 *regs, bool fetch)
{
	const __u32 by = core_config(core)->by, caps = core_config(core)->ibs.caps;

	if (by == IBS_BY_CGROUP)
		return current_cgroup(core, core_config(core)->cgroup_v1);
	if (by && fetch)
		return group_lookup(core, ibs_fetch_mode(regs[IBS_FETCH_LINADDR]),
				    by & IBS_BY_MEM_NODE ? ibs_memory_node(core_memory_nodes(core),
									   caps, regs, true)
							 : 0,
				    0);
	if (by)
		return group_lookup(core, by & IBS_BY_MODE ? ibs_op_mode(caps, regs) : 0,
				    by & IBS_BY_MEM_NODE ? ibs_memory_node(core_memory_nodes(core),
									   caps, regs, false)
							 : 0,
				    by & IBS_BY_SLAB ? group_slab(core, regs) : 0);
	return core_state(core)->shard * core_config(core)->max_slots + 1;
}

#endif
