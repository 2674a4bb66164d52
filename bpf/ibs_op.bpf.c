// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From a sample to a counter, or to a record. The entries get at the registers, each in its way;
 * what happens then is op_sample(), the same lines for the kernel's samples, the simulated ones and
 * the tests. Adding up and forwarding are programs of their own: what is a constant at compile time
 * costs nothing.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <ibscope/sim.h>
#include <ibscope/predicate.h>
#include "forward.bpf.h"
#include "who.bpf.h"
#include "group.bpf.h"

const volatile struct ibs_cpu cfg_ibs;	     /* of this machine */
const volatile struct ibs_filter cfg_filter; /* of --filter */
const volatile __u32 cfg_metric = IBS_METRIC_DC_MISS_LAT;
const volatile __u32 cfg_slot_words = 1;
const volatile __u16 cfg_layout[IBS_LAYOUT_ENTRIES];
const volatile bool cfg_lat_select = false;
const volatile bool cfg_weigh = false;	     /* periods vary: each sample's is added up */
const volatile bool cfg_tlb = false;	     /* TLB misses are counted */
const volatile bool cfg_kind_select = false; /* cfg_layout refuses some */
const volatile __u64 cfg_sim_seed = 1;

static __always_inline struct ibs_cpu_state *cpu_state(void)
{
	struct ibs_cpu_state *st = &cpu_states[bpf_get_smp_processor_id() & (IBS_MAX_CPUS - 1)];

	barrier_var(st); /* else clang works it out anew at each use */
	return st;
}

static __always_inline void count(struct ibs_cpu_state *st, __u32 outcome)
{
	if (outcome < IBS_OUTCOME_N)
		st->outcome[outcome]++;
}

static __always_inline struct ibs_cgroup_cached *
current_cgroup(struct ibs_cpu_state *st, const struct ibs_twin_who *who, bool v1)
{
	__u64 id = who_cgroup_id(st, who, v1);
	struct ibs_cgroup_cached *c = &st->cache[id & (IBS_CGROUP_CACHE - 1)];
	__u32 gen = control.gen;

	barrier_var(c);
	if (c->cgroup_id != id || c->gen != gen)
		cgroup_lookup(st, c, id, gen, who);
	return c;
}

/*
 * What needs no registers, before any is read: IBS_OUTCOME_AGGREGATED if the sample may go on.
 * *min_lat is set if the cgroup has one of its own.
 */
static __always_inline __u32 select_task(struct ibs_cpu_state *st, const struct ibs_twin_who *who,
					 __u32 *min_lat)
{
	const __u8 select = cfg_task_select;

	if (!select)
		return IBS_OUTCOME_AGGREGATED;
	if (select > IBS_TASK_CGROUPS) {
		if ((select & IBS_TASK_TGID) && tgid_left_out(who_pid_tgid(who) >> 32))
			return IBS_OUTCOME_FILTERED_PID;
		if ((select & IBS_TASK_TID) && !tid_selected(who_pid_tgid(who)))
			return IBS_OUTCOME_FILTERED_TID;
		if ((select & IBS_TASK_COMM) && !comm_selected(who))
			return IBS_OUTCOME_FILTERED_COMM;
	}
	if (select & IBS_TASK_CGROUP) {
		struct ibs_cgroup_cached *c = current_cgroup(st, who, select & IBS_TASK_CGROUP_V1);

		if (!c->selected)
			return IBS_OUTCOME_FILTERED_CGROUP;
		if (c->min_lat)
			*min_lat = c->min_lat;
	}
	return IBS_OUTCOME_AGGREGATED;
}

static __always_inline __u32 slot_index(struct ibs_cpu_state *st, const __u64 *regs,
					const struct ibs_twin_who *who)
{
	const __u32 by = cfg_by;

	if (by == IBS_BY_CGROUP)
		return current_cgroup(st, who, cfg_cgroup_v1)->index;
	if (by)
		return group_lookup(st, who,
				    by & IBS_BY_MODE ? ibs_op_mode(cfg_ibs.caps, regs) : 0);
	return st->shard * cfg_max_slots + 1;
}

/* Apart, so that filters that do not ask need no registers for it. */
static __noinline __u32 filter_cgroups(const struct ibs_twin_who *who)
{
	return current_cgroup(cpu_state(), who, cfg_cgroup_v1)->filter;
}

/* One copy for all callers: the evaluator is long until the verifier has cut it to the filter. */
static __noinline __u32 filter_outcome(const __u64 *regs, const struct ibs_twin_who *who)
{
	struct ibs_filter_sample s = { .regs = regs, .ibs = &cfg_ibs };
	const __u32 needs = cfg_filter.needs;

	if (needs & IBS_FILTER_NEEDS_MORE) {
		if (needs & IBS_FILTER_NEEDS_SRC)
			s.src = ibs_filter_src(&s);
		if (needs & IBS_FILTER_NEEDS_CONTEXT) {
			if (needs & IBS_FILTER_NEEDS_TASK)
				s.pid_tgid = who_pid_tgid(who);
			if (needs & IBS_FILTER_NEEDS_UID)
				s.uid_gid = who_uid_gid(who);
			if (needs & IBS_FILTER_NEEDS_CPU)
				s.cpu = who_cpu(who);
			if (needs & IBS_FILTER_NEEDS_CGROUP)
				s.cgroups = filter_cgroups(who);
		}
	}
	return ibs_filter_outcome(&cfg_filter, &s);
}

/* The entry in the layout, or, below IBS_LAYOUT_FIRST, what becomes of the sample. */
static __always_inline __u32 op_place(const __u64 *regs, __u64 data3)
{
	__u32 pair, src = IBS_SRC_L1;

	/* two calls, so that each is folded to the half that can apply */
	if (data3 & IBS_OP_DATA3_MEM) {
		if (!ibs_op_hit_l1(data3)) { /* only then is the processor read, and asked for */
			const struct ibs_cpu cpu = { .caps = cfg_ibs.caps,
						     .quirks = cfg_ibs.quirks };

			src = ibs_op_src(cpu, regs);
		}
		pair = IBS_LAYOUT_IDX(ibs_op_kind(0, data3), src);
	} else {
		pair = IBS_LAYOUT_IDX(ibs_op_kind(regs[IBS_OP_DATA], data3), IBS_SRC_NONE);
	}
	return cfg_layout[pair & (IBS_LAYOUT_ENTRIES - 1)];
}

/*
 * Everything that needs registers; @regs has at least IBS_OP_REG_FIXED. IBS_OUTCOME_AGGREGATED if
 * the sample is to be kept, and then *@place, unless it is NULL, is its entry in the layout.
 */
static __always_inline __u32 op_select(const __u64 *regs, __u32 min_lat,
				       const struct ibs_twin_who *who, __u32 *place)
{
	/*
	 * Each read of a cfg_ constant is two instructions, also where the verifier folds away what
	 * hangs on it: read late and once.
	 */
	__u32 word, lat, metric;
	__u64 data3 = place ? regs[IBS_OP_DATA3] : 0;

	if (cfg_lat_select) {
		__u64 range = *(volatile __u64 *)&control.lat;
		__u32 max_lat = range >> IBS_LAT_MAX_SHIFT;

		if (!min_lat)
			min_lat = range;
		if (min_lat | max_lat) {
			if (!place)
				data3 = regs[IBS_OP_DATA3];
			metric = cfg_metric;
			lat = ibs_op_metric(metric, regs, data3);
			if (!ibs_op_metric_valid(metric, cfg_ibs.caps, data3) || lat < min_lat ||
			    (max_lat && lat > max_lat))
				return IBS_OUTCOME_FILTERED_LAT;
		}
	}
	if (place || cfg_kind_select) {
		word = op_place(regs, place ? data3 : regs[IBS_OP_DATA3]);
		if (word < IBS_LAYOUT_FIRST)
			return word;
		if (place)
			*place = word;
	}
	/* n first: without a filter not even the call is left */
	if (cfg_filter.n) {
		__u32 out = filter_outcome(regs, who);

		if (out != IBS_OUTCOME_AGGREGATED)
			return out;
	}
	return IBS_OUTCOME_AGGREGATED;
}

/* @slot: its first words; every kind of sample comes by here, most have nothing to count. */
static __always_inline void count_tlb(__u64 *slot, __u64 data3, __u64 weight)
{
	const __u32 caps = cfg_ibs.caps;
	__u32 word = data3 & IBS_OP_DATA3_L2TLB_MISS ? IBS_TLB_L2_MISS : IBS_TLB_L2_HIT;

	if (!ibs_op_tlb_valid(caps, data3) || !(data3 & IBS_OP_DATA3_L1TLB_MISS))
		return;
	__sync_fetch_and_add(&slot[word], 1);
	if (cfg_weigh)
		__sync_fetch_and_add(&slot[word + IBS_TLB_L2_HIT_OPS], weight);
	if (ibs_op_tlb_refill_lat_valid(caps, data3)) {
		__sync_fetch_and_add(&slot[IBS_TLB_REFILL_N], 1);
		__sync_fetch_and_add(&slot[IBS_TLB_REFILL_SUM],
				     ibs_op_metric(IBS_METRIC_TLB_REFILL_LAT, NULL, data3));
	}
}

/*
 * @word is of op_select(). *@weight is read only where it is needed, and here: it may be of the
 * program's context, to which the verifier allows no pointers.
 */
static __always_inline __u32 op_aggregate(struct ibs_cpu_state *st, const __u64 *regs, __u32 word,
					  const struct ibs_twin_who *who, const __u64 *weight)
{
	__u32 index, lat, hist, lat_bucket, metric;
	__u64 data3 = regs[IBS_OP_DATA3], *words;

	hist = word & IBS_LAYOUT_HIST;
	word &= IBS_LAYOUT_WORD;
	index = slot_index(st, regs, who);
	words = bpf_map_lookup_elem(&series, &index);
	if (!words || word > cfg_slot_words - IBS_HIST_REACH)
		return IBS_OUTCOME_LOST_INTERNAL;
	if (cfg_tlb)
		count_tlb(words, data3, cfg_weigh ? *weight : 0);
	words += word;
	if (cfg_weigh)
		__sync_fetch_and_add(&words[IBS_PAIR_OPS], *weight);
	metric = cfg_metric;
	if (hist && ibs_op_metric_valid(metric, cfg_ibs.caps, data3)) {
		lat = ibs_op_metric(metric, regs, data3);
		/* the mask is for the verifier, which cannot follow the bucket's arithmetic */
		lat_bucket = ibs_lat_bucket(lat) & IBS_HIST_BUCKET_MASK;
		if (cfg_weigh)
			__sync_fetch_and_add(&words[IBS_HIST_CYCLES], lat * *weight);
		__sync_fetch_and_add(&words[IBS_HIST_BUCKET + lat_bucket], 1);
		__sync_fetch_and_add(&words[IBS_HIST_SUM], lat);
	} else {
		__sync_fetch_and_add(&words[IBS_PAIR_SAMPLES], 1);
	}
	return IBS_OUTCOME_AGGREGATED;
}

/* @whole: NULL if samples are added up rather than forwarded. */
static __always_inline __u32 op_sample(struct ibs_cpu_state *st, const __u64 *regs, __u32 min_lat,
				       const struct ibs_twin_who *who, const __u64 *weight,
				       const struct whole_sample *whole)
{
	__u32 word, out = op_select(regs, min_lat, who, whole ? NULL : &word);

	if (out != IBS_OUTCOME_AGGREGATED)
		return out;
	return whole ? forward(st, whole) : op_aggregate(st, regs, word, who, weight);
}

static __always_inline const __u64 *period_of(void *ctx)
{
	return &((struct bpf_perf_event_data *)ctx)->sample_period;
}

/* Path for v6.2 and later: registers read in place. */
static __always_inline __u32 sample_direct(void *ctx, struct ibs_cpu_state *st, __u32 min_lat,
					   bool forwards)
{
	struct bpf_perf_event_data_kern *kctx = bpf_cast_to_kern_ctx(ctx);
	struct perf_raw_record *raw = kctx->data->raw;
	struct perf_ibs_data *ibs;

	/* a null pointer reads as zeros, and so as a record too short */
	if (!ibs_op_raw_size_ok(raw->frag.size))
		return raw ? IBS_OUTCOME_LOST_BAD_RAW : IBS_OUTCOME_LOST_NO_RAW;
	ibs = bpf_rdonly_cast(raw->frag.data - bpf_core_field_offset(struct perf_ibs_data, caps),
			      bpf_core_type_id_kernel(struct perf_ibs_data));
	if (forwards) {
		const struct whole_sample whole = {
			.regs = ibs->regs,
			.bytes = &raw->frag.size,
			.caps = &ibs->caps,
			.ctx = ctx,
		};

		return op_sample(st, ibs->regs, min_lat, NULL, NULL, &whole);
	}
	return op_sample(st, ibs->regs, min_lat, NULL, period_of(ctx), NULL);
}

/* The members of perf_raw_frag that matter; `size` follows `data` in every kernel. */
struct frag {
	__u64 data;
	__u32 size;
};
#define FRAG_BYTES 12

/* Registers that only a filter asks for (or --by mode, for which the loader sets `needs`). */
#define FILTER_OTHER_REGS                                                      \
	(IBS_FILTER_NEEDS_REG(IBS_OP_CTL) | IBS_FILTER_NEEDS_REG(IBS_OP_RIP) | \
	 IBS_FILTER_NEEDS_REG(IBS_DC_LINADDR) | IBS_FILTER_NEEDS_REG(IBS_DC_PHYSADDR))

/* By the pointers: context, sample, raw record. What is found holds for later samples too. */
static __noinline int find_raw(struct bpf_perf_event_data_kern *kctx, struct ibs_cpu_state *st,
			       struct frag *frag)
{
	struct perf_raw_record *raw = BPF_CORE_READ(kctx, data, raw);
	__u64 at = (__u64)raw + bpf_core_field_offset(raw->frag.data);

	if (!raw)
		return IBS_OUTCOME_LOST_NO_RAW;
	if (bpf_probe_read_kernel(frag, FRAG_BYTES, (void *)at))
		return IBS_OUTCOME_LOST_READ;
	st->raw_delta = at - st->ctx;
	st->data_delta = frag->data - st->ctx;
	return IBS_OUTCOME_AGGREGATED;
}

/*
 * Path for every kernel: registers copied by bpf_probe_read_kernel(), of which each call costs a
 * hundred instructions. The context and the raw record are locals of functions that always call
 * each other in the same way, so that their distance on the stack is that of the first sample, and
 * two of four reads can be left out. The record's pointer to its bytes tells if it is not so.
 */
static __always_inline __u32 sample_probe(void *ctx, struct ibs_cpu_state *st, __u32 min_lat,
					  bool forwards)
{
	__u64 regs[IBS_OP_REG_FIXED];
	struct frag frag;
	__u64 at;

	st->ctx = (__u64)ctx;
	barrier();
	at = st->ctx; /* the same as a plain number, which the verifier lets us add to */
	if (bpf_probe_read_kernel(&frag, FRAG_BYTES, (void *)(at + st->raw_delta)) ||
	    frag.data != at + st->data_delta) {
		__u32 out = find_raw(ctx, st, &frag);

		if (out != IBS_OUTCOME_AGGREGATED)
			return out;
	}
	if (!ibs_op_raw_size_ok(frag.size))
		return IBS_OUTCOME_LOST_BAD_RAW;
	/* only what is looked at: each word is instructions too */
	if (forwards || (cfg_filter.needs & FILTER_OTHER_REGS)) {
		if (bpf_probe_read_kernel(regs, sizeof(regs), (void *)(frag.data + sizeof(__u32))))
			return IBS_OUTCOME_LOST_READ;
	} else if (bpf_probe_read_kernel(
			   &regs[IBS_OP_DATA], 3 * sizeof(regs[0]),
			   (void *)(frag.data + sizeof(__u32) + IBS_OP_DATA * sizeof(regs[0])))) {
		return IBS_OUTCOME_LOST_READ;
	}
	if (forwards) {
		const struct whole_sample whole = {
			.regs = regs,
			.copy = true,
			.copy_from = frag.data,
			.bytes = &frag.size,
			.ctx = ctx,
		};

		return op_sample(st, regs, min_lat, NULL, NULL, &whole);
	}
	return op_sample(st, regs, min_lat, NULL, period_of(ctx), NULL);
}

/* The whole way of a sample of the kernel's; what it came to is counted. */
static __always_inline __u32 run_event(void *ctx, struct ibs_cpu_state *st, bool direct,
				       bool forwards)
{
	__u32 out, min_lat = 0;

	st->seen++;
	out = select_task(st, NULL, &min_lat);
	if (out == IBS_OUTCOME_AGGREGATED)
		out = direct ? sample_direct(ctx, st, min_lat, forwards)
			     : sample_probe(ctx, st, min_lat, forwards);
	count(st, out);
	return out;
}

/* The same of a sample whose registers are at hand. */
static __always_inline __u32 run_regs(void *ctx, struct ibs_cpu_state *st, const __u64 *regs,
				      const struct ibs_twin_who *who, const __u64 *weight,
				      bool forwards)
{
	__u32 out, min_lat = 0;

	st->seen++;
	out = select_task(st, who, &min_lat);
	if (out == IBS_OUTCOME_AGGREGATED) {
		const __u32 bytes = IBS_OP_RAW_MIN, caps = cfg_ibs.caps;
		const struct whole_sample whole = {
			.regs = regs,
			.bytes = &bytes,
			.caps = &caps,
			.ctx = ctx,
		};

		out = op_sample(st, regs, min_lat, who, weight, forwards ? &whole : NULL);
	}
	count(st, out);
	return out;
}

/* For kernels with bpf_rdonly_cast(). All return 0: perf writes nothing, the maps are the output. */
SEC("perf_event")
int ibs_op_nmi(void *ctx)
{
	run_event(ctx, cpu_state(), true, false);
	return 0;
}

SEC("perf_event")
int ibs_op_nmi_forward(void *ctx)
{
	run_event(ctx, cpu_state(), true, true);
	return 0;
}

/* For those without. */
SEC("perf_event")
int ibs_op_nmi_copy(void *ctx)
{
	run_event(ctx, cpu_state(), false, false);
	return 0;
}

SEC("perf_event")
int ibs_op_nmi_copy_forward(void *ctx)
{
	run_event(ctx, cpu_state(), false, true);
	return 0;
}

/*
 * Always 0, which the verifier does not know. Registers that went through it are any numbers to it,
 * as hardware's are; else it follows each branch of the model through all that comes after, for
 * 450,000 instructions instead of 25,000.
 */
__u64 sim_blur;

static __always_inline void run_sim(void *ctx, struct ibs_cpu_state *st, bool forwards)
{
	__u64 regs[IBS_OP_REG_FIXED];

	ibs_sim_op(cfg_sim_seed, bpf_get_smp_processor_id(), st->seen, cfg_ibs.caps, regs);
	for (int r = IBS_OP_DATA; r <= IBS_OP_DATA3; r++) {
		regs[r] ^= sim_blur;
		barrier_var(regs[r]);
	}
	run_regs(ctx, st, regs, NULL, period_of(ctx), forwards);
}

/* What `--source sim` attaches to the software clock. */
SEC("perf_event")
int ibs_op_sim(void *ctx)
{
	run_sim(ctx, cpu_state(), false);
	return 0;
}

SEC("perf_event")
int ibs_op_sim_forward(void *ctx)
{
	run_sim(ctx, cpu_state(), true);
	return 0;
}

/* A new process or thread. */
SEC("raw_tp/sched_process_fork")
int ibs_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 tgid = BPF_CORE_READ(child, tgid), tid = BPF_CORE_READ(child, pid);
	__u32 parent_tgid = BPF_CORE_READ(parent, tgid), parent_tid = BPF_CORE_READ(parent, pid);

	if ((cfg_task_select & IBS_TASK_TGID) && tgid == tid)
		pid_born(&tgids, tgid, parent_tgid);
	if (cfg_task_select & IBS_TASK_TID)
		pid_born(&tids, tid, parent_tid);
	return 0;
}

/* The floor against which costs are told. */
SEC("perf_event")
int ibs_op_empty(void *ctx)
{
	(void)ctx;
	return 0;
}

#include "twin.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
