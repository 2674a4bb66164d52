/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decision core: whether a sample is selected, by its task and by its registers. */
#ifndef IBSCOPE_DECIDE_FILTER_H
#define IBSCOPE_DECIDE_FILTER_H

#include <ibscope/decide_cgroup.h>
#include <ibscope/fetch.h>

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
 * @status: IBS_OP_DATA3 or IBS_FETCH_CTL. The first test is the one that most samples fail: few ops
 *          have a latency, most fetches a short one.
 */
static __always_inline bool latency_selected(core_cfg *cfg, const __u64 *regs, __u64 status,
					     __u32 min_lat, __u32 max_lat, bool fetch)
{
	const __u32 metric = cfg->metric;
	const __u32 lat = fetch ? ibs_fetch_metric(metric, regs, status)
				: ibs_op_metric(metric, regs, status);

	if (!fetch && !ibs_op_metric_valid(metric, cfg->ibs.caps, status))
		return false;
	if (lat < min_lat || (max_lat && lat > max_lat))
		return false;
	return !fetch ||
	       ibs_fetch_metric_valid(
		       metric, (struct ibs_cpu){ .caps = cfg->ibs.caps, .quirks = cfg->ibs.quirks },
		       status);
}

/* A layout entry, and IBS_OP_DATA3 or IBS_FETCH_CTL: reading it again costs ten instructions. */
struct place {
	__u32 word;
	__u64 status;
};

/*
 * Test the conditions that need registers. @regs has at least the registers of every record.
 *
 * Return: IBS_OUTCOME_AGGREGATED if the sample passes; *@place is then set, unless @place is NULL.
 */
static __always_inline __u32 regs_select(core_t core, const __u64 *regs, struct place *place,
					 bool fetch)
{
	core_cfg *cfg = core_config(core);
	const int at = fetch ? (int)IBS_FETCH_CTL : (int)IBS_OP_DATA3;
	__u64 status = place ? regs[at] : 0;
	__u32 word;

	if (cfg->lat_select) {
		__u32 range = READ_ONCE(core_state(core)->lat);
		__u32 max_lat = range >> IBS_LAT_MAX_SHIFT, min_lat = 0;

		if (cfg->task_select & IBS_TASK_CGROUP)
			min_lat = core_state(core)->min_lat; /* set by select_task() */
		min_lat = min_lat ?: (__u16)range;
		if ((min_lat | max_lat) && !latency_selected(cfg, regs, place ? status : regs[at],
							     min_lat, max_lat, fetch))
			return IBS_OUTCOME_FILTERED_LAT;
	}
	if (place || cfg->kind_select) {
		status = place ? status : regs[at];
		word = fetch ? fetch_place(core, status) : op_place(core, regs, status);
		if (word < IBS_LAYOUT_FIRST)
			return word;
		if (place)
			*place = (struct place){ .word = word, .status = status };
	}
	/* test n here: without a filter even the call is dropped */
	if (!core_config(core)->filter.n)
		return IBS_OUTCOME_AGGREGATED;
	return fetch ? fetch_filter_outcome(core, regs) : filter_outcome(core, regs);
}

#endif
