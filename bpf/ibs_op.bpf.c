// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The BPF programs: from a sample to a counter or a record. The entry points differ in how they get
 * the registers; the rest is the same code for the kernel's samples, simulated ones and the tests.
 * Counting and forwarding are separate programs, since compile-time constants cost nothing.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <ibscope/predicate.h>
#include "access.bpf.h"
#include <ibscope/decide.h>
#include <ibscope/line_feed.h>
#include "forward.bpf.h"
#include "lease.bpf.h"
#include "sim.bpf.h"

const volatile bool cfg_pid_follow = false; /* children of selected tasks are selected, too */

/* Variant of a program; all members are compile-time constants. */
struct path {
	bool direct;   /* read registers in place */
	bool forwards; /* send samples as records, do not count them */
	bool copies;   /* count samples, and send copies while user space wants some */
	bool fetch;    /* samples are of ibs_fetch */
	bool twin;     /* samples are the tests', without an event */
};

/* Return: what the program returns. */
static __always_inline int count(core_t core, void *ctx, __u64 outcome, struct path path)
{
	struct ibs_cpu_state *st = core_state(core);
	const __u64 seen = st->seen + 1;

	st->seen = seen;
	if (path.forwards && outcome == IBS_OUTCOME_FORWARDED) {
		st->ring.forwarded++;
		return 0;
	}
	barrier_var(st);
	st->outcome[outcome]++;
	return path.forwards || path.twin ? 0 : lease_check(seen, ctx);
}

/* Test a sample's registers, then count it or send it as a record. */
static __always_inline __u64 decide(core_t core, const struct sample *s, struct path path)
{
	struct place at;
	__u32 out = regs_select(core, s->regs, path.forwards ? NULL : &at, path.fetch);

	if (out == IBS_OUTCOME_AGGREGATED && path.forwards)
		return forward(core_state(core), s, path.fetch);
	if (out == IBS_OUTCOME_AGGREGATED) {
		/* first, since it needs the most registers */
		if (!path.fetch && core_config(core)->line_sets)
			line_feed(core, s, at.status, at.word);
		out = aggregate(core, &at, s, path.fetch);
	}
	if (out == IBS_OUTCOME_AGGREGATED && path.copies)
		copy(core_state(core), s);
	return out < IBS_OUTCOME_N ? out : IBS_OUTCOME_LOST_INTERNAL;
}

static __always_inline bool raw_size_ok(core_t core, __u32 bytes, bool fetch)
{
	return fetch ? ibs_fetch_raw_size_ok(core_config(core)->ibs.caps, bytes)
		     : ibs_op_raw_size_ok(bytes);
}

/* Not inlined, so that the code of most samples is contiguous. */
static __noinline __u32 bad_raw(const void *raw)
{
	return raw ? IBS_OUTCOME_LOST_BAD_RAW : IBS_OUTCOME_LOST_NO_RAW;
}

/* Path for v6.2 and later: reads registers in place. */
static __always_inline __u64 sample_direct(core_t core, void *ctx, struct path path)
{
	struct bpf_perf_event_data_kern *kctx = bpf_cast_to_kern_ctx(ctx);
	struct perf_raw_record *raw = kctx->data->raw;
	struct perf_ibs_data *ibs;

	/* a null pointer reads as zeros, thus as a record too short */
	if (!raw_size_ok(core, raw->frag.size, path.fetch))
		return bad_raw(raw);
	ibs = bpf_rdonly_cast(raw->frag.data - bpf_core_field_offset(struct perf_ibs_data, caps),
			      bpf_core_type_id_kernel(struct perf_ibs_data));

	const struct sample s = {
		.regs = ibs->regs, .ctx = ctx, .bytes = &raw->frag.size, .caps = &ibs->caps
	};

	return decide(core, &s, path);
}

/* The members of perf_raw_frag in use; `size` follows `data` in every kernel. */
struct frag {
	__u64 data;
	__u32 size;
};
#define FRAG_BYTES 12

/* Registers that only filters need (or --by mode, for which the loader sets `needs`). */
#define FIRST_REGS (IBS_FILTER_NEEDS_REG(IBS_OP_CTL) | IBS_FILTER_NEEDS_REG(IBS_OP_RIP))
#define LAST_REGS  (IBS_FILTER_NEEDS_REG(IBS_DC_LINADDR) | IBS_FILTER_NEEDS_REG(IBS_DC_PHYSADDR))

/* Follow the pointers from context to sample to raw record. Later samples reuse the distances. */
static __noinline int find_raw(struct bpf_perf_event_data_kern *kctx, struct ibs_raw_place *place,
			       struct frag *frag)
{
	struct perf_raw_record *raw = BPF_CORE_READ(kctx, data, raw);
	__u64 at = (__u64)raw + bpf_core_field_offset(raw->frag.data);

	if (!raw)
		return IBS_OUTCOME_LOST_NO_RAW;
	if (bpf_probe_read_kernel(frag, FRAG_BYTES, (void *)at))
		return IBS_OUTCOME_LOST_READ;
	place->raw_delta = at - place->ctx;
	place->data_delta = frag->data - place->ctx;
	return IBS_OUTCOME_AGGREGATED;
}

/*
 * Path for every kernel: copies registers by bpf_probe_read_kernel(), a hundred instructions per
 * call. The context and the raw record are locals of functions that always call each other in the
 * same way, so their distance on the stack stays that of the first sample, which saves two of four
 * reads. If not, the record's pointer to its data does not match.
 */
static __always_inline __u64 sample_probe(core_t core, void *ctx, struct path path)
{
	struct ibs_raw_place *place =
		MAP_VALUE(raw_places) + this_cpu(&config) * sizeof(struct ibs_raw_place);
	__u64 regs[IBS_OP_REG_FIXED];
	struct frag frag;
	__u64 at;

	place->ctx = (__u64)ctx;
	barrier();
	at = place->ctx; /* the same as a plain number, which may be added to */
	if (bpf_probe_read_kernel(&frag, FRAG_BYTES, (void *)(at + place->raw_delta)) ||
	    frag.data != at + place->data_delta) {
		__u32 out = find_raw(ctx, place, &frag);

		if (out != IBS_OUTCOME_AGGREGATED)
			return out;
	}
	if (!raw_size_ok(core, frag.size, path.fetch))
		return IBS_OUTCOME_LOST_BAD_RAW;
	/* read only what is needed: each word costs instructions */
	if (path.fetch) {
		const bool extd = core_config(core)->ibs.caps & IBS_CAPS_FETCHCTLEXTD;

		if (!extd)
			regs[IBS_FETCH_EXTD] = 0;
		if (bpf_probe_read_kernel(regs, (extd ? IBS_FETCH_REG_N : IBS_FETCH_REG_FIXED) * 8,
					  (void *)(frag.data + sizeof(__u32))))
			return IBS_OUTCOME_LOST_READ;
	} else if (path.forwards || path.copies || core_config(core)->line_sets ||
		   (core_config(core)->filter.needs & FIRST_REGS)) {
		if (bpf_probe_read_kernel(regs, sizeof(regs), (void *)(frag.data + sizeof(__u32))))
			return IBS_OUTCOME_LOST_READ;
	} else {
		const void *from =
			(void *)(frag.data + sizeof(__u32) + IBS_OP_DATA * sizeof(regs[0]));
		const long failed = core_config(core)->filter.needs & LAST_REGS
					    ? bpf_probe_read_kernel(&regs[IBS_OP_DATA],
								    5 * sizeof(regs[0]), from)
					    : bpf_probe_read_kernel(&regs[IBS_OP_DATA],
								    3 * sizeof(regs[0]), from);

		if (failed)
			return IBS_OUTCOME_LOST_READ;
	}

	const struct sample s = {
		.regs = regs, .ctx = ctx, .copy = true, .copy_from = frag.data, .bytes = &frag.size
	};

	return decide(core, &s, path);
}

/* Process a sample of the kernel and count its outcome. @outcome: NULL, or where to put it */
static __always_inline int run_event(void *ctx, struct path path, __u32 *outcome)
{
	const volatile struct ibs_config *cfg = &config;
	core_t core;
	__u64 out;

	barrier_var(cfg); /* load the address once for both constants */
	core = this_core(cfg);
	out = select_task(core, cfg->task_select);

	if (out == IBS_OUTCOME_AGGREGATED)
		out = path.direct ? sample_direct(core, ctx, path) : sample_probe(core, ctx, path);
	if (outcome)
		*outcome = out;
	return count(core, ctx, out, path);
}

/* The same for a sample with known registers. @period: NULL if @ctx has it */
static __always_inline int run_regs(core_t core, void *ctx, const __u64 *regs, const __u64 *period,
				    struct path path, __u32 *outcome)
{
	__u32 out = select_task(core, core_config(core)->task_select);

	if (out == IBS_OUTCOME_AGGREGATED) {
		const __u32 bytes = IBS_OP_RAW_MIN, caps = core_config(core)->ibs.caps;
		const struct sample s = {
			.regs = regs, .ctx = ctx, .period = period, .bytes = &bytes, .caps = &caps
		};

		out = decide(core, &s, path);
	}
	if (outcome)
		*outcome = out;
	return count(core, ctx, out, path);
}

/* All return 0, so that perf writes no sample: the maps are the output. 1 ends it: lease.bpf.h */
#define NMI_PROGRAM(name, ...)                                             \
	SAMPLE_SECTION                                                     \
	int name(void *ctx)                                                \
	{                                                                  \
		return run_event(ctx, (struct path){ __VA_ARGS__ }, NULL); \
	}

/* for kernels with bpf_rdonly_cast() */
NMI_PROGRAM(ibs_op_nmi, .direct = true)
NMI_PROGRAM(ibs_op_nmi_forward, .direct = true, .forwards = true)
NMI_PROGRAM(ibs_op_nmi_copied, .direct = true, .copies = true)
NMI_PROGRAM(ibs_fetch_nmi, .direct = true, .fetch = true)
NMI_PROGRAM(ibs_fetch_nmi_forward, .direct = true, .forwards = true, .fetch = true)
/* for kernels without it */
NMI_PROGRAM(ibs_op_nmi_copy, )
NMI_PROGRAM(ibs_op_nmi_copy_forward, .forwards = true)
NMI_PROGRAM(ibs_op_nmi_copy_copied, .copies = true)
NMI_PROGRAM(ibs_fetch_nmi_copy, .fetch = true)
NMI_PROGRAM(ibs_fetch_nmi_copy_forward, .forwards = true, .fetch = true)

/*
 * Always 0, but unknown to the verifier. XORed with it, registers become arbitrary values as in
 * hardware; otherwise the verifier follows each branch of the model through the rest of the
 * program: 450,000 instructions instead of 25,000.
 */
__u64 sim_blur;

static __always_inline int run_sim(void *ctx, struct path path)
{
	const core_t core = this_core(core_config(0));
	__u64 regs[IBS_OP_REG_FIXED];

	if (cfg_sim_tasks && !path.fetch) {
		const __u32 zero = 0;
		const struct sim_op *op;

		sim_task_op(ctx);
		op = bpf_map_lookup_elem(&sim_ops, &zero);
		return op ? run_regs(core, ctx, op->regs, NULL, path, NULL)
			  : count(core, ctx, IBS_OUTCOME_LOST_INTERNAL, path);
	}
	if (path.fetch) {
		ibs_sim_fetch(cfg_sim_seed, bpf_get_smp_processor_id(), core_state(core)->seen,
			      regs);
		if (cfg_sim_tasks)
			sim_task_fetch(ctx, regs);
	} else {
		ibs_sim_op(cfg_sim_seed, bpf_get_smp_processor_id(), core_state(core)->seen,
			   config.ibs.caps, regs);
	}
	for (int r = path.fetch ? 0 : IBS_OP_DATA; r <= (path.fetch ? 3 : IBS_OP_DATA3); r++) {
		regs[r] ^= sim_blur;
		barrier_var(regs[r]);
	}
	return run_regs(core, ctx, regs, NULL, path, NULL);
}

/* Programs that `--source sim` attaches to the software clock. */
#define SIM_PROGRAM(name, ...)                                     \
	SAMPLE_SECTION                                             \
	int name(void *ctx)                                        \
	{                                                          \
		return run_sim(ctx, (struct path){ __VA_ARGS__ }); \
	}

SIM_PROGRAM(ibs_op_sim, )
SIM_PROGRAM(ibs_op_sim_forward, .forwards = true)
SIM_PROGRAM(ibs_op_sim_copied, .copies = true)
SIM_PROGRAM(ibs_fetch_sim, .fetch = true)
SIM_PROGRAM(ibs_fetch_sim_forward, .forwards = true, .fetch = true)

/*
 * A new task inherits from its parent if children are followed; otherwise clear its byte, which may
 * be left over from an earlier process of the same number.
 */
#define PID_INHERIT(set, child, parent)                                        \
	({                                                                     \
		__u8 *byte = PID_BYTE(0, set, child);                          \
		__u8 *from = cfg_pid_follow ? PID_BYTE(0, set, parent) : NULL; \
                                                                               \
		if (byte)                                                      \
			WRITE_ONCE(*byte, from ? READ_ONCE(*from) : 0);        \
	})

/* Runs for each new process or thread. */
SEC("raw_tp/sched_process_fork")
int ibs_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 tgid = task_tid(BPF_CORE_READ(child, group_leader)), tid = task_tid(child);
	__u32 parent_tgid = task_tid(BPF_CORE_READ(parent, group_leader));
	__u32 parent_tid = task_tid(parent);

	if (!tid || !parent_tid)
		return 0;

	if ((config.task_select & IBS_TASK_TGID) && tgid == tid)
		PID_INHERIT(tgids, tgid, parent_tgid);
	if (config.task_select & IBS_TASK_TID)
		PID_INHERIT(tids, tid, parent_tid);
	return 0;
}

/* The baseline for cost measurements. */
SAMPLE_SECTION
int ibs_op_empty(void *ctx)
{
	(void)ctx;
	return 0;
}

#include "twin.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
