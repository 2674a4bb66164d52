/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that user space can run on demand, for tests and benchmarks. It calls the functions of
 * ibs_op.bpf.c, with the caller as the current task. Needs bpf_loop() (v5.17); the loader creates
 * program and map only on request.
 */
#ifndef IBSCOPE_TWIN_BPF_H
#define IBSCOPE_TWIN_BPF_H

#include <ibscope/twin_area.h>

const volatile bool cfg_twin_forward = false;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ibs_twin_area);
} twin SEC(".maps");

/* Parameters of a run: a copy of the context, which cannot be passed to callbacks. */
struct twin_run {
	struct ibs_twin_area *area;
	__u32 mask;
	__u32 tell;
	__u32 ctx_at;
};

static __always_inline void twin_put_outcome(const struct twin_run *run, __u32 i, __u32 out)
{
	if (run->tell)
		run->area->outcome[i & (IBS_TWIN_SAMPLES - 1)] = out;
}

static long twin_regs(__u32 i, struct twin_run *run)
{
	__u32 n = i & run->mask & (IBS_TWIN_SAMPLES - 1);

	const struct ibs_twin_sample *s = &run->area->sample[n];
	__u32 out;

	if (cfg_twin_forward)
		run_regs(this_core(core_config(0)), NULL, s->regs, &s->period,
			 (struct path){ .forwards = true, .twin = true }, &out);
	else
		run_regs(this_core(core_config(0)), NULL, s->regs, &s->period, (struct path){ .twin = true },
			 &out);
	twin_put_outcome(run, i, out);
	return 0;
}

static long twin_raw(__u32 i, struct twin_run *run)
{
	void *ctx = &run->area->stage[run->ctx_at & (IBS_TWIN_STAGE - 8)];
	__u32 out;

	if (cfg_twin_forward)
		run_event(ctx, (struct path){ .forwards = true, .twin = true }, &out);
	else
		run_event(ctx, (struct path){ .twin = true }, &out);
	twin_put_outcome(run, i, out);
	return 0;
}

static long twin_floor(__u32 i, struct twin_run *run)
{
	twin_put_outcome(run, i, IBS_OUTCOME_AGGREGATED);
	return 0;
}

/* Neither kernels nor programs have memory there. */
#define TWIN_BAD_POINTER 0xdead000000000000ULL

static __always_inline void twin_put(struct ibs_twin_area *area, __u32 at, __u32 offset,
				     __u64 value)
{
	*(__u64 *)(&area->stage[at & (IBS_TWIN_STAGE - 8)] + offset) = value;
}

/* Build what the kernel's IBS driver has on its stack when it calls the program. */
static __always_inline void twin_build(struct ibs_twin_area *area, const struct ibs_twin_ctx *c)
{
	__u64 stage = (__u64)area->stage, data, raw, bytes;
	__u32 size = c->bytes;

	data = c->fault == IBS_TWIN_BAD_DATA ? TWIN_BAD_POINTER : stage + c->data_at;
	raw = c->fault == IBS_TWIN_BAD_RAW ? TWIN_BAD_POINTER : stage + c->raw_at;
	bytes = c->fault == IBS_TWIN_BAD_BYTES ? TWIN_BAD_POINTER : stage + c->bytes_at;
	if (c->fault == IBS_TWIN_NO_RAW || c->fault == IBS_TWIN_LEFT_OVERS)
		raw = 0;
	if (c->fault == IBS_TWIN_NO_RAW)
		bytes = size = 0;
	twin_put(area, c->ctx_at, bpf_core_field_offset(struct bpf_perf_event_data_kern, data),
		 data);
	twin_put(area, c->data_at, bpf_core_field_offset(struct perf_sample_data, raw), raw);
	twin_put(area, c->raw_at,
		 bpf_core_field_offset(struct perf_raw_record, frag) +
			 bpf_core_field_offset(struct perf_raw_frag, data),
		 bytes);
	twin_put(area, c->raw_at,
		 bpf_core_field_offset(struct perf_raw_record, frag) +
			 bpf_core_field_offset(struct perf_raw_frag, size),
		 size);
}

SAMPLE_SECTION
int ibs_op_twin(struct ibs_twin_ctx *c)
{
	struct twin_run run = { .mask = c->mask, .tell = c->tell, .ctx_at = c->ctx_at };
	__u32 repeat = c->repeat, zero = 0;
	__u64 start;
	long made;

	run.area = bpf_map_lookup_elem(&twin, &zero);
	if (!run.area)
		return 1; /* for the verifier: index 0 exists */
	if (c->mode == IBS_TWIN_RAW && c->fault != IBS_TWIN_AS_IS)
		twin_build(run.area, c);
	start = bpf_ktime_get_ns();
	if (c->mode == IBS_TWIN_REGS)
		made = bpf_loop(repeat, twin_regs, &run, 0);
	else if (c->mode == IBS_TWIN_RAW)
		made = bpf_loop(repeat, twin_raw, &run, 0);
	else
		made = bpf_loop(repeat, twin_floor, &run, 0);
	c->ns = bpf_ktime_get_ns() - start;
	return made != repeat;
}

#endif
