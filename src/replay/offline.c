// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "offline.h"

#include "counts/counts.h"
#include "base/key_map.h"
#include "counts/layout.h"
#include "sampler/sampler_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The maps of the program and its constants, in plain memory. Names are those of bpf/. */
struct offline {
	const struct sampler_opts *opts;
	struct layout layout;
	__u8 *tgids, *tids; /* IBS_PID_MAX bytes each; NULL: not tested */
	bool pid_but;
	__u64 comms[IBS_COMMS_MAX][2];
	bool cgroup_select, cgroup_filter, cgroup_default;
	struct key_map selected; /* by number: opts->sel.cgroups */
	bool lat_select;

	struct key_map cgroups, groups;
	struct ibs_cgroup *cgroup; /* by number in `cgroups` */
	size_t room_cgroups;
	__u32 *group_slot; /* by number in `groups` */
	size_t room_groups;
	__u32 next_slot, max_slots, max_cgroups;

	__u64 *series;
	size_t series_bytes;
	struct ibs_slot_owner *owners;
	struct ibs_cpu_state *cpu;
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}

static int set_pids(__u8 **bytes, const struct selected_pids *set, const char *what,
		    struct err *err)
{
	*bytes = calloc(IBS_PID_MAX, 1);
	if (!*bytes)
		return no_memory(err);
	for (size_t i = 0; i < set->n; i++) {
		if (set->pids[i] >= IBS_PID_MAX)
			return err_set(err, -ERANGE, "%s %u: this kernel numbers them below %d",
				       what, set->pids[i], IBS_PID_MAX);
		(*bytes)[set->pids[i]] = 1;
	}
	return 0;
}

static int set_cgroups(struct offline *o, struct err *err)
{
	const struct selection *sel = &o->opts->sel;
	bool any_in = false;

	for (size_t i = 0; i < sel->n_cgroups; i++) {
		any_in |= !sel->cgroups[i].out && !sel->cgroups[i].filter_only;
		o->cgroup_select |= !sel->cgroups[i].filter_only;
		if (key_map_add_id(&o->selected, sel->cgroups[i].id) < 0)
			return no_memory(err);
	}
	o->cgroup_default = !any_in;
	return 0;
}

static int set_selection(struct offline *o, struct err *err)
{
	const struct selection *sel = &o->opts->sel;
	int ret = 0;

	o->pid_but = sel->processes.but || !sel->processes.n;
	o->cgroup_filter = sel->filter && sel->filter->needs & IBS_FILTER_NEEDS_CGROUP;
	o->lat_select = sel->min_lat || sel->max_lat;
	for (size_t i = 0; i < sel->n_cgroups; i++)
		o->lat_select |= sel->cgroups[i].min_lat != 0;
	for (size_t i = 0; i < sel->n_comms && i < IBS_COMMS_MAX; i++)
		memcpy(o->comms[i], sel->comms[i], strnlen(sel->comms[i], 15));
	if (sel->processes.n || sel->processes.but)
		ret = set_pids(&o->tgids, &sel->processes, "process", err);
	if (sel->threads.n)
		ret = ret ?: set_pids(&o->tids, &sel->threads, "thread", err);
	return ret ?: set_cgroups(o, err);
}

int offline_open(const struct sampler_opts *opts, struct offline **out, struct err *err)
{
	struct offline *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return no_memory(err);
	o->opts = opts;
	layout_init(&o->layout, opts->metric, opts->ibs.caps);
	layout_filter(&o->layout, opts->sel.op_mask ? opts->sel.op_mask : ~0U,
		      opts->sel.src_mask ? opts->sel.src_mask : ~0U);
	o->max_slots = (opts->max_groups ? opts->max_groups : SAMPLER_MAX_GROUPS) + 1;
	o->max_cgroups = sampler_max_cgroups(opts);
	o->next_slot = IBS_SLOT_OTHER + 1 + !opts->by;
	o->series_bytes = (size_t)o->max_slots * o->layout.words * sizeof(__u64);
	/* most of it is never touched, and so never there */
	o->series = mmap(NULL, o->series_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (o->series == MAP_FAILED)
		o->series = NULL;
	o->owners = calloc(o->max_slots, sizeof(*o->owners));
	o->cpu = aligned_alloc(_Alignof(struct ibs_cpu_state), sizeof(*o->cpu));
	if (o->cpu)
		memset(o->cpu, 0, sizeof(*o->cpu));
	ret = o->series && o->owners && o->cpu ? set_selection(o, err) : no_memory(err);
	if (ret)
		offline_close(o);
	else
		*out = o;
	return ret;
}

void offline_close(struct offline *o)
{
	if (!o)
		return;
	if (o->series)
		munmap(o->series, o->series_bytes);
	key_map_free(&o->selected);
	key_map_free(&o->cgroups);
	key_map_free(&o->groups);
	free(o->cgroup);
	free(o->group_slot);
	free(o->owners);
	free(o->cpu);
	free(o->tgids);
	free(o->tids);
	free(o);
}

static bool pid_selected(const __u8 *bytes, __u32 pid)
{
	return pid < IBS_PID_MAX && bytes[pid];
}

static bool comm_selected(const struct offline *o, const struct ibs_twin_who *who)
{
	const struct selection *sel = &o->opts->sel;

	for (size_t i = 0; i < sel->n_comms && i < IBS_COMMS_MAX; i++)
		if (who->comm[0] == o->comms[i][0] && who->comm[1] == o->comms[i][1])
			return !sel->comms_but;
	return sel->comms_but;
}

static __u32 slot_alloc(struct offline *o, const struct ibs_group_key *key)
{
	struct ibs_slot_owner *owner;

	if (o->next_slot >= o->max_slots)
		return IBS_SLOT_OTHER;
	owner = &o->owners[o->next_slot];
	owner->key = *key;
	owner->used = 1;
	return o->next_slot++;
}

/* Room for one more element of a table that goes with a key map. */
static int reserve(void **table, size_t *room, size_t n, size_t size)
{
	size_t more = *room ? 2 * *room : 64;
	void *bigger;

	if (n < *room)
		return 0;
	bigger = reallocarray(*table, more, size);
	if (!bigger)
		return -ENOMEM;
	*table = bigger;
	*room = more;
	return 0;
}

static void cgroup_select(const struct offline *o, __u64 id, struct ibs_cgroup *cg)
{
	long n = key_map_find_id(&o->selected, id);
	const struct selected_cgroup *sel;

	cg->selected = o->cgroup_default;
	if (n < 0)
		return;
	sel = &o->opts->sel.cgroups[n];
	cg->filter = sel->filter;
	if (sel->filter_only)
		return;
	cg->selected = !sel->out;
	cg->min_lat = sel->min_lat;
}

/* What is known of a cgroup, from its first sample on. */
static int cgroup_lookup(struct offline *o, __u64 id, struct ibs_cgroup *cg)
{
	const struct ibs_group_key key = { .cgroup_id = id };
	long n = key_map_find(&o->cgroups, &key);

	if (n >= 0) {
		*cg = o->cgroup[n];
		return 0;
	}
	*cg = (struct ibs_cgroup){ .selected = 1, .slot = IBS_SLOT_OTHER };
	if (o->cgroup_select || o->cgroup_filter)
		cgroup_select(o, id, cg);
	if (o->cgroups.n >= o->max_cgroups)
		return 0;
	if (o->opts->by == IBS_BY_CGROUP && cg->selected)
		cg->slot = slot_alloc(o, &key);
	if (reserve((void **)&o->cgroup, &o->room_cgroups, o->cgroups.n, sizeof(*o->cgroup)) ||
	    key_map_add(&o->cgroups, &key) < 0)
		return -ENOMEM;
	o->cgroup[o->cgroups.n - 1] = *cg;
	return 0;
}

static int group_lookup(struct offline *o, const __u64 *regs, const struct ibs_twin_who *who,
			__u32 *slot)
{
	struct ibs_group_key key = {};
	__u32 by = o->opts->by;
	long n;

	if (by & IBS_BY_CGROUP)
		key.cgroup_id = who->cgroup_id;
	if (by & IBS_BY_PID)
		key.tgid = who->pid_tgid >> 32;
	if (by & IBS_BY_TID)
		key.tid = who->pid_tgid;
	if (by & IBS_BY_CPU)
		key.cpu = who->cpu;
	if (by & IBS_BY_MODE)
		key.mode = ibs_op_mode(o->opts->ibs.caps, regs);
	if (by & IBS_BY_COMM)
		memcpy(key.comm, who->comm, sizeof(key.comm));
	n = key_map_find(&o->groups, &key);
	if (n >= 0) {
		*slot = o->group_slot[n];
		return 0;
	}
	*slot = slot_alloc(o, &key);
	if (*slot == IBS_SLOT_OTHER)
		return 0;
	if (reserve((void **)&o->group_slot, &o->room_groups, o->groups.n,
		    sizeof(*o->group_slot)) ||
	    key_map_add(&o->groups, &key) < 0)
		return -ENOMEM;
	o->group_slot[o->groups.n - 1] = *slot;
	return 0;
}

static int slot_index(struct offline *o, const __u64 *regs, const struct ibs_twin_who *who,
		      __u32 *slot)
{
	struct ibs_cgroup cg;
	int ret;

	if (o->opts->by && o->opts->by != IBS_BY_CGROUP)
		return group_lookup(o, regs, who, slot);
	if (!o->opts->by) {
		*slot = IBS_SLOT_OTHER + 1;
		return 0;
	}
	ret = cgroup_lookup(o, who->cgroup_id, &cg);
	*slot = cg.slot;
	return ret;
}

/* An outcome, or -ENOMEM. */
static int select_task(struct offline *o, const struct ibs_twin_who *who, __u32 *min_lat)
{
	if (o->tgids && pid_selected(o->tgids, who->pid_tgid >> 32) == o->pid_but)
		return IBS_OUTCOME_FILTERED_PID;
	if (o->tids && !pid_selected(o->tids, who->pid_tgid))
		return IBS_OUTCOME_FILTERED_TID;
	if (o->opts->sel.n_comms && !comm_selected(o, who))
		return IBS_OUTCOME_FILTERED_COMM;
	if (o->cgroup_select) {
		struct ibs_cgroup cg;

		if (cgroup_lookup(o, who->cgroup_id, &cg))
			return -ENOMEM;
		if (!cg.selected)
			return IBS_OUTCOME_FILTERED_CGROUP;
		if (cg.min_lat)
			*min_lat = cg.min_lat;
	}
	return IBS_OUTCOME_AGGREGATED;
}

static int filter_outcome(struct offline *o, const __u64 *regs, const struct ibs_twin_who *who)
{
	const struct ibs_filter *filter = o->opts->sel.filter;
	struct ibs_filter_sample s = {
		.regs = regs, .ibs = &o->opts->ibs, .pid_tgid = who->pid_tgid, .cpu = who->cpu
	};
	struct ibs_cgroup cg;

	if (filter->needs & IBS_FILTER_NEEDS_SRC)
		s.src = ibs_filter_src(&s);
	if (o->cgroup_filter) {
		if (cgroup_lookup(o, who->cgroup_id, &cg))
			return -ENOMEM;
		s.cgroups = cg.filter;
	}
	return ibs_filter_outcome(filter, &s);
}

static bool latency_selected(const struct offline *o, const __u64 *regs, __u32 min_lat)
{
	const struct sampler_opts *opts = o->opts;
	__u32 lat, max_lat = opts->sel.max_lat;

	if (!min_lat)
		min_lat = opts->sel.min_lat;
	if (!min_lat && !max_lat)
		return true;
	lat = ibs_op_metric(opts->metric, regs, regs[IBS_OP_DATA3]);
	return ibs_op_metric_valid(opts->metric, opts->ibs.caps, regs[IBS_OP_DATA3]) &&
	       lat >= min_lat && (!max_lat || lat <= max_lat);
}

static void count_latency(const struct offline *o, __u64 *words, bool hist, const __u64 *regs,
			  __u64 period)
{
	const struct sampler_opts *opts = o->opts;
	__u32 lat;

	if (!hist || !ibs_op_metric_valid(opts->metric, opts->ibs.caps, regs[IBS_OP_DATA3])) {
		words[IBS_PAIR_SAMPLES]++;
		return;
	}
	lat = ibs_op_metric(opts->metric, regs, regs[IBS_OP_DATA3]);
	words[IBS_HIST_BUCKET + ibs_lat_bucket(lat)]++;
	words[IBS_HIST_SUM] += lat;
	if (opts->count_ops)
		words[IBS_HIST_CYCLES] += lat * period;
}

static void count_tlb(const struct offline *o, __u64 *slot, __u64 data3, __u64 weight)
{
	const __u32 caps = o->opts->ibs.caps;
	__u32 word = data3 & IBS_OP_DATA3_L2TLB_MISS ? IBS_TLB_L2_MISS : IBS_TLB_L2_HIT;

	if (!ibs_op_tlb_valid(caps, data3) || !(data3 & IBS_OP_DATA3_L1TLB_MISS))
		return;
	slot[word]++;
	if (o->opts->count_ops)
		slot[word + IBS_TLB_L2_HIT_OPS] += weight;
	if (ibs_op_tlb_refill_lat_valid(caps, data3)) {
		slot[IBS_TLB_REFILL_N]++;
		slot[IBS_TLB_REFILL_SUM] += ibs_op_metric(IBS_METRIC_TLB_REFILL_LAT, NULL, data3);
	}
}

static int op_sample(struct offline *o, const struct ibs_twin_sample *sample, __u32 min_lat,
		     const struct ibs_twin_who *who)
{
	const __u64 *regs = sample->regs;
	__u32 pair, entry, slot;
	__u64 *words;
	int ret;

	if (o->lat_select && !latency_selected(o, regs, min_lat))
		return IBS_OUTCOME_FILTERED_LAT;
	pair = IBS_LAYOUT_IDX(ibs_op_kind(regs[IBS_OP_DATA], regs[IBS_OP_DATA3]),
			      ibs_op_src(o->opts->ibs, regs));
	entry = o->layout.entry[pair];
	if (entry < IBS_LAYOUT_FIRST)
		return entry;
	if (o->opts->sel.filter && o->opts->sel.filter->n) {
		ret = filter_outcome(o, regs, who);
		if (ret != IBS_OUTCOME_AGGREGATED)
			return ret;
	}
	ret = slot_index(o, regs, who, &slot);
	if (ret)
		return ret;
	words = o->series + (size_t)slot * o->layout.words;
	if (o->opts->tlb)
		count_tlb(o, words, regs[IBS_OP_DATA3], sample->period);
	words += entry & IBS_LAYOUT_WORD;
	if (o->opts->count_ops)
		words[IBS_PAIR_OPS] += sample->period;
	count_latency(o, words, entry & IBS_LAYOUT_HIST, regs, sample->period);
	return IBS_OUTCOME_AGGREGATED;
}

int offline_judge(struct offline *o, const struct ibs_twin_sample *sample,
		  const struct ibs_twin_who *who, enum ibs_outcome *outcome, struct err *err)
{
	__u32 min_lat = 0;
	int out = select_task(o, who, &min_lat);

	if (out == IBS_OUTCOME_AGGREGATED && sample)
		out = op_sample(o, sample, min_lat, who);
	if (out < 0)
		return no_memory(err);
	*outcome = out;
	if (sample) {
		o->cpu->seen++;
		o->cpu->outcome[out]++;
	}
	return 0;
}

int offline_run(struct offline *o, const struct ibs_twin_sample *samples,
		const struct ibs_twin_who *who, size_t n, struct err *err)
{
	enum ibs_outcome out;
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = offline_judge(o, &samples[i], &who[i], &out, err);
	return ret;
}

int offline_snapshot(struct offline *o, struct snapshot *out, struct err *err)
{
	static const struct ibs_control control; /* nothing is ever folded */
	const struct counts counts = { .series = o->series,
				       .owners = o->owners,
				       .cpus = o->cpu,
				       .control = &control,
				       .n_cpus = 1,
				       .shards = 1,
				       .max_slots = o->max_slots,
				       .one_group = !o->opts->by,
				       .has_ops = o->opts->count_ops,
				       .period =
					       o->opts->attr.freq ? 0 : o->opts->attr.sample_period,
				       .tlb = o->opts->tlb,
				       .layout = &o->layout };

	memset(out, 0, sizeof(*out));
	return counts_read(&counts, out, err);
}
