/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision core: whether a sample is selected, which group it belongs to, where it is counted.
 * The BPF program runs this code in the NMI, user space for recordings. Before including this
 * header, define what differs:
 *
 *   core_t core		handle of the CPU that samples, one word
 *   core_config(core)		constants; each call and each read costs an instruction
 *   core_control(core)		shared words
 *   core_state(core), core_layout(core)	the CPU's state, the configured layout
 *   core_memory_nodes(core)	struct ibs_memory_nodes
 *   core_fetch_layout(core)	IBS_FETCH_LAYOUT_ENTRIES of config_fetch_layout()
 *   task_pid_tgid(core), task_uid_gid(core), task_cpu(core)
 *   task_comm(core, words)	16 bytes padded with zeros; returns nonzero if there is no name
 *   task_cgroup_id(core, v1)	never 0
 *   task_cgroup_key(core, v1)	never reused for another cgroup; cheaper than the id
 *   task_ancestor_id(core, level)	0 below the task's cgroup
 *   struct sample, sample_period(s)	registers, and the ops that the sample counts for
 *   map_find(core, map, key)	pointer to the value, or NULL
 *   map_add(core, map, key, value)	0, -EEXIST, or another negative error
 *   map_delete(core, map, key), count_add(word, n)
 *
 * Maps are those of bpf/maps.bpf.h. @fetch is a constant of the caller: registers of ibs_fetch.
 */
#ifndef IBSCOPE_DECIDE_H
#define IBSCOPE_DECIDE_H

#include <ibscope/config.h>
#include <ibscope/fetch.h>
#include <ibscope/memory_nodes.h>
#include <linux/errno.h>

typedef const volatile struct ibs_config core_cfg;

/* Not inlined; in BPF the verifier checks it separately. */
#ifdef __bpf__
#define IBS_APART __noinline
#else
#define IBS_APART   static
#define APART_T	    core_t
#define apart(core) (core)
#endif

#define CGROUP_MAX_DEPTH 32

/*
 * Other CPUs take slots concurrently, so next_slot is only a hint, but it must not move backwards.
 * In an NMI a map update fails while the map's lock is held; that does not mean the slot is taken.
 */
static __noinline __u32 slot_alloc(core_t core)
{
	struct ibs_control *control = core_control(core);
	const __u32 max_slots = core_config(core)->max_slots;
	__u32 slot = READ_ONCE(control->next_slot);
	__u8 used = 1;
	int i;

	for (i = 0; i < 16 && slot < max_slots; i++) {
		/* before v6.4 the upper half of what a map returns is undefined */
		int ret = map_add(core, slots, &slot, &used);

		if (!ret) {
			if (READ_ONCE(control->next_slot) <= slot)
				WRITE_ONCE(control->next_slot, slot + 1);
			return slot;
		}
		if (ret == -EEXIST)
			slot++;
	}
	if (READ_ONCE(control->next_slot) < slot)
		WRITE_ONCE(control->next_slot, slot); /* all lower slots are taken */
	return IBS_SLOT_OTHER;
}

/* Set the owner before the slot appears in a map, so that no reader misses its counts. */
static __always_inline void slot_own(core_t core, __u32 slot, const struct ibs_group_key *key)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	owner->key = *key;
	barrier();
	WRITE_ONCE(owner->used, IBS_SLOT_USED);
}

static __always_inline void slot_free(core_t core, __u32 slot)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);
	struct ibs_control *control = core_control(core);

	if (!owner || slot == IBS_SLOT_OTHER)
		return;
	WRITE_ONCE(owner->used, IBS_SLOT_FREE);
	map_delete(core, slots, &slot);
	if (slot < READ_ONCE(control->next_slot))
		WRITE_ONCE(control->next_slot, slot);
}

/* The cgroup's previous slot, unless user space has freed it since. */
static __always_inline __u32 slot_kept(core_t core, __u32 slot, __u64 cgroup_id)
{
	struct ibs_slot_owner *owner = map_find(core, slot_owners, &slot);

	if (owner && READ_ONCE(owner->used) == IBS_SLOT_USED &&
	    READ_ONCE(owner->key.cgroup_id) == cgroup_id)
		return slot;
	return IBS_SLOT_OTHER;
}

/* The byte of a pid in a map, or NULL if the pid exceeds the machine's maximum. */
#define PID_BYTE(core, map, pid)                                \
	({                                                      \
		__u32 block_ = (pid) / IBS_PID_BLOCK;           \
		__u8 *bytes_ = map_find(core, map, &block_);    \
                                                                \
		bytes_ ? &bytes_[(pid) % IBS_PID_BLOCK] : NULL; \
	})

static __always_inline bool tid_selected(core_t core, __u32 tid)
{
	__u8 *byte = PID_BYTE(core, tids, tid);

	return byte && READ_ONCE(*byte);
}

static __always_inline bool tgid_left_out(core_t core, __u32 tgid)
{
	__u8 *byte = PID_BYTE(core, tgids, tgid);
	__u8 test = READ_ONCE(core_state(core)->live);

	return ((byte ? READ_ONCE(*byte) : 0) & test) == test >> IBS_PID_SHIFT;
}

/* Compare names as two words; names beyond n_comms are not read. */
static __always_inline bool comm_selected(core_t core)
{
	core_cfg *cfg = core_config(core);
	__u64 comm[2] = {}; /* v6.1 does not write past the end of the name */
	__u32 i;

	if (task_comm(core, comm))
		return false;
	IBS_UNROLL
	for (i = 0; i < IBS_COMMS_MAX; i++) {
		if (i >= cfg->n_comms)
			break;
		if (comm[0] == cfg->comms[i][0] && comm[1] == cfg->comms[i][1])
			return !cfg->comm_but;
	}
	return cfg->comm_but;
}

/*
 * The deepest ancestor that the selection names decides; a filter predicate holds if it holds for
 * any ancestor. Returns the bytes of a struct ibs_selected_cgroup. The verifier checks this
 * function separately: its loop, followed through each caller, is over a million instructions.
 */
IBS_APART __u32 cgroup_select(APART_T core)
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
			const __u32 select = cgroup_select(apart(core));

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

/* Slot index of a group by other labels than cgroup; @mode, @mem_node and @slab only if needed. */
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
	if (by & IBS_BY_MEM_NODE)
		key.mem_node = mem_node;
	if (by & IBS_BY_SLAB)
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

/*
 * Test the conditions that need no registers, before any register is read.
 * @select: ibs_config.task_select
 *
 * Return: IBS_OUTCOME_AGGREGATED if the sample passes.
 */
static __always_inline __u64 select_task(core_t core, __u8 select)
{
	if (!select)
		return IBS_OUTCOME_AGGREGATED;
	if (select > IBS_TASK_CGROUPS) {
		if ((select & IBS_TASK_TGID) && tgid_left_out(core, task_pid_tgid(core) >> 32))
			return IBS_OUTCOME_FILTERED_PID;
		if ((select & IBS_TASK_TID) && !tid_selected(core, task_pid_tgid(core)))
			return IBS_OUTCOME_FILTERED_TID;
		if ((select & IBS_TASK_COMM) && !comm_selected(core))
			return IBS_OUTCOME_FILTERED_COMM;
	}
	if ((select & IBS_TASK_CGROUP) &&
	    current_cgroup(core, select & IBS_TASK_CGROUP_V1) == IBS_INDEX_LEFT_OUT)
		return IBS_OUTCOME_FILTERED_CGROUP;
	return IBS_OUTCOME_AGGREGATED;
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

/* Not inlined, so that filters without cgroup terms do not pay registers for it. */
static __noinline __u32 filter_cgroups(core_t core)
{
	current_cgroup(core, core_config(core)->cgroup_v1);
	return core_state(core)->filter;
}

static __always_inline __u32 run_filter(core_t core, const __u64 *regs, bool fetch)
{
	core_cfg *cfg = core_config(core);
	struct ibs_filter_sample s = { .regs = regs, .ibs = &cfg->ibs };
	const __u32 needs = cfg->filter.needs;

	if (needs & IBS_FILTER_NEEDS_MORE) {
		if (!fetch && (needs & IBS_FILTER_NEEDS_SRC))
			s.src = ibs_filter_src(&s);
		if (needs & IBS_FILTER_NEEDS_CONTEXT) {
			if (needs & IBS_FILTER_NEEDS_TASK)
				s.pid_tgid = task_pid_tgid(core);
			if (needs & IBS_FILTER_NEEDS_UID)
				s.uid_gid = task_uid_gid(core);
			if (needs & IBS_FILTER_NEEDS_CPU)
				s.cpu = task_cpu(core);
			if (needs & IBS_FILTER_NEEDS_CGROUP)
				s.cgroups = filter_cgroups(core);
		}
	}
	return ibs_filter_run(&cfg->filter, &s, fetch);
}

/* One copy for all callers: the evaluator is long until the verifier reduces it to the filter. */
static __noinline __u32 filter_outcome(core_t core, const __u64 *regs)
{
	return run_filter(core, regs, false);
}

static __noinline __u32 fetch_filter_outcome(core_t core, const __u64 *regs)
{
	return run_filter(core, regs, true);
}

/* Memory accesses that are no plain L1 hits. Not inlined: keeps the common code contiguous. */
static __noinline __u32 far_pair(core_t core, const __u64 *regs)
{
	const struct ibs_cpu cpu = { core_config(core)->ibs.caps, core_config(core)->ibs.quirks };

	return IBS_LAYOUT_IDX(ibs_op_kind(0, regs[IBS_OP_DATA3]), ibs_op_src(cpu, regs));
}

/* The layout entry; a value below IBS_LAYOUT_FIRST is the sample's outcome. */
static __always_inline __u32 op_place(core_t core, const __u64 *regs, __u64 data3)
{
	__u32 pair;

	if (!(data3 & IBS_OP_DATA3_MEM))
		pair = IBS_LAYOUT_IDX(ibs_op_kind(regs[IBS_OP_DATA], data3), IBS_SRC_NONE);
	else if (ibs_op_plain_l1(data3))
		pair = IBS_LAYOUT_IDX(ibs_op_kind(0, data3 & IBS_OP_DATA3_MEM), IBS_SRC_L1);
	else
		pair = far_pair(core, regs);
	return core_layout(core)[pair & (IBS_LAYOUT_ENTRIES - 1)];
}

static __always_inline __u32 fetch_place(core_t core, __u64 ctl)
{
	const __u16 *places = core_fetch_layout(core);

	return places[ctl >> IBS_FETCH_CTL_STATUS & (IBS_FETCH_LAYOUT_ENTRIES - 1)];
}

/*
 * @first: IBS_OP_DATA3 or IBS_FETCH_CTL. The first test is the one that most samples fail: few ops
 *         have a latency, most fetches a short one.
 */
static __always_inline bool latency_selected(core_cfg *cfg, const __u64 *regs, __u64 first,
					     __u32 min_lat, __u32 max_lat, bool fetch)
{
	const __u32 metric = cfg->metric;
	const __u32 lat =
		fetch ? ibs_fetch_metric(metric, regs, first) : ibs_op_metric(metric, regs, first);

	if (!fetch && !ibs_op_metric_valid(metric, cfg->ibs.caps, first))
		return false;
	if (lat < min_lat || (max_lat && lat > max_lat))
		return false;
	return !fetch ||
	       ibs_fetch_metric_valid(
		       metric, (struct ibs_cpu){ .caps = cfg->ibs.caps, .quirks = cfg->ibs.quirks },
		       first);
}

/* A layout entry, and IBS_OP_DATA3 or IBS_FETCH_CTL: reading it again costs ten instructions. */
struct placed {
	__u32 word;
	__u64 first;
};

/*
 * Test the conditions that need registers. @regs has at least the registers of every record.
 *
 * Return: IBS_OUTCOME_AGGREGATED if the sample passes; *@place is then set, unless @place is NULL.
 */
static __always_inline __u32 regs_select(core_t core, const __u64 *regs, struct placed *place,
					 bool fetch)
{
	core_cfg *cfg = core_config(core);
	const int at = fetch ? (int)IBS_FETCH_CTL : (int)IBS_OP_DATA3;
	__u64 first = place ? regs[at] : 0;
	__u32 word;

	if (cfg->lat_select) {
		__u32 range = READ_ONCE(core_state(core)->lat);
		__u32 max_lat = range >> IBS_LAT_MAX_SHIFT, min_lat = 0;

		if (cfg->task_select & IBS_TASK_CGROUP)
			min_lat = core_state(core)->min_lat; /* set by select_task() */
		min_lat = min_lat ?: (__u16)range;
		if ((min_lat | max_lat) &&
		    !latency_selected(cfg, regs, place ? first : regs[at], min_lat, max_lat, fetch))
			return IBS_OUTCOME_FILTERED_LAT;
	}
	if (place || cfg->kind_select) {
		first = place ? first : regs[at];
		word = fetch ? fetch_place(core, first) : op_place(core, regs, first);
		if (word < IBS_LAYOUT_FIRST)
			return word;
		if (place)
			*place = (struct placed){ .word = word, .first = first };
	}
	/* test n here: without a filter even the call is dropped */
	if (!core_config(core)->filter.n)
		return IBS_OUTCOME_AGGREGATED;
	return fetch ? fetch_filter_outcome(core, regs) : filter_outcome(core, regs);
}

/* Ops that a sample counts for; needs cfg->weigh. */
static __always_inline __u64 sample_ops(core_t core, const struct sample *s)
{
	if (core_config(core)->weigh == IBS_WEIGH_TAG)
		return READ_ONCE(core_control(core)->tag_ops);
	return sample_period(s);
}

/* Called for every kind of sample; most have nothing to count. @slot: first words of the slot */
static __always_inline void count_tlb(core_t core, __u64 *slot, __u64 data3, const struct sample *s)
{
	core_cfg *cfg = core_config(core);
	const __u32 caps = cfg->ibs.caps;
	__u32 word = data3 & IBS_OP_DATA3_L2TLB_MISS ? IBS_TLB_L2_MISS : IBS_TLB_L2_HIT;

	if (!ibs_op_tlb_valid(caps, data3) || !(data3 & IBS_OP_DATA3_L1TLB_MISS))
		return;
	count_add(&slot[word], 1);
	if (cfg->weigh)
		count_add(&slot[word + IBS_TLB_L2_HIT_OPS], sample_ops(core, s));
	if (ibs_op_tlb_refill_lat_valid(caps, data3)) {
		count_add(&slot[IBS_TLB_REFILL_N], 1);
		count_add(&slot[IBS_TLB_REFILL_SUM],
			  ibs_op_metric(IBS_METRIC_TLB_REFILL_LAT, NULL, data3));
	}
}

/* @miss: words of the pair; @cycles: miss cycles of this load, which missed L1, DcMissLat valid */
static __always_inline void count_miss(core_cfg *cfg, __u64 *miss, const __u64 *regs, __u64 data3,
				       __u64 cycles)
{
	const struct ibs_cpu cpu = { .caps = cfg->ibs.caps, .quirks = cfg->ibs.quirks };
	__u64 data2 = data3 & IBS_OP_DATA3_L2_MISS ? regs[IBS_OP_DATA2] : 0;
	__u64 open = IBS_OP_DATA3_OPEN_REQS(data3);

	if (ibs_op_erratum_1293(cpu.quirks, data3))
		return;
	if (open) {
		count_add(&miss[IBS_MISS_OPEN_N], 1);
		count_add(&miss[IBS_MISS_OPEN], open);
	}
	if (ibs_op_reports_state(cpu, data2)) {
		count_add(&miss[IBS_MISS_STATE_N], 1);
		if (!(data2 & IBS_OP_DATA2_OWNED))
			count_add(&miss[IBS_MISS_HITM], cycles);
	}
}

/* @words: words of the pair; @ops: sample_ops(), if cfg->weigh */
static __always_inline void count_hist(core_t core, __u64 *words, const __u64 *regs, __u64 first,
				       __u64 ops, bool fetch)
{
	core_cfg *cfg = core_config(core);
	const __u32 metric = cfg->metric;
	__u32 lat =
		fetch ? ibs_fetch_metric(metric, regs, first) : ibs_op_metric(metric, regs, first);
	/* for the verifier, which cannot follow the bucket arithmetic */
	__u32 bucket = ibs_lat_bucket(lat) & IBS_HIST_BUCKET_MASK;
	__u64 cycles = cfg->weigh ? lat * ops : lat;

	if (cfg->weigh)
		count_add(&words[IBS_HIST_CYCLES], cycles);
	if (!fetch && metric == IBS_METRIC_DC_MISS_LAT)
		count_miss(cfg, words + IBS_HIST_MISS, regs, first, cycles);
	count_add(&words[IBS_HIST_BUCKET + bucket], 1);
	count_add(&words[IBS_HIST_SUM], lat);
}

/* Few ops have a latency. Not inlined, so that the code of the others is contiguous. */
static __noinline int count_op_hist(core_t core, __u64 *words, const __u64 *regs, __u64 data3,
				    __u64 ops)
{
	if (ibs_op_metric_valid(core_config(core)->metric, core_config(core)->ibs.caps, data3))
		count_hist(core, words, regs, data3, ops, false);
	else
		count_add(&words[IBS_PAIR_SAMPLES], 1);
	return 0;
}

/* @place: set by regs_select() */
static __always_inline __u32 aggregate(core_t core, const struct placed *place,
				       const struct sample *s, bool fetch)
{
	__u32 index = slot_index(core, s->regs, fetch), hist = place->word & IBS_LAYOUT_HIST;
	__u64 first = place->first, ops = 0, *words = map_find(core, series, &index);
	__u32 word = place->word & IBS_LAYOUT_WORD;
	core_cfg *cfg = core_config(core);

	if (!words || word > cfg->slot_words - IBS_HIST_REACH)
		return IBS_OUTCOME_LOST_INTERNAL;
	if (!fetch && cfg->tlb)
		count_tlb(core, words, first, s);
	words += word;
	if (cfg->weigh) {
		ops = sample_ops(core, s);
		count_add(&words[IBS_PAIR_OPS], ops);
	}
	if (!hist)
		count_add(&words[IBS_PAIR_SAMPLES], 1);
	else if (fetch)
		count_hist(core, words, s->regs, first, ops, true);
	else
		count_op_hist(core, words, s->regs, first, ops);
	return IBS_OUTCOME_AGGREGATED;
}

#endif
