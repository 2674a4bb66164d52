/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a sample to a record in a ring buffer. Each CPU has a ring of its own: in an NMI a ring that
 * another CPU is writing to refuses (Linux before v6.15), however empty it is.
 */
#ifndef IBSCOPE_FORWARD_BPF_H
#define IBSCOPE_FORWARD_BPF_H

#include "compat.bpf.h"
#include "maps.bpf.h"
#include <ibscope/record.h>

const volatile bool cfg_record_raw = false; /* struct ibs_record_raw, not struct ibs_record */
const volatile bool cfg_stacks = false;	    /* with struct ibs_record_stacks behind it */
const volatile __u32 cfg_ring_wake = 0;	    /* bytes of unread records that wake the reader */

/* A sample that is to be forwarded. */
struct whole_sample {
	const __u64 *regs; /* IBS_OP_REG_FIXED of them, with !copy_from all that `bytes` says */
	__u64 copy_from;   /* where the raw record is, to be read by bpf_probe_read_kernel() */
	__u32 bytes;	   /* of the raw record, checked */
	__u32 caps;	   /* with !copy_from */
	void *ctx;	   /* of the program, for cfg_stacks */
};

/* What registers read in place can be: the kernel's own array has no more. */
#define IN_PLACE_REGS 8

static __always_inline __u64 ring_flags(const struct ibs_cpu_state *st, void *ring)
{
	if (st->outcome[IBS_OUTCOME_FORWARDED] & (IBS_RING_CHECK - 1))
		return BPF_RB_NO_WAKEUP;
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_ring_wake ? BPF_RB_FORCE_WAKEUP
									  : BPF_RB_NO_WAKEUP;
}

/* What is in a ring, in sizes that the verifier knows. */
struct packed_stacks {
	struct ibs_record rec;
	struct ibs_record_stacks stacks;
};

struct raw_stacks {
	struct ibs_record_raw rec;
	struct ibs_record_stacks stacks;
};

/*
 * With PERF_SAMPLE_CALLCHAIN the IBS driver has unwound from the interrupt's registers, and that is
 * what these take; the sample's own RIP does not go with that stack.
 */
static __always_inline void put_stacks(struct ibs_record_stacks *out, void *ctx)
{
	out->kernel = bpf_get_stackid(ctx, &stacks, 0);
	out->user = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
}

_Static_assert(__builtin_offsetof(struct ibs_record, tid) ==
			       __builtin_offsetof(struct ibs_record_raw, tid) &&
		       __builtin_offsetof(struct ibs_record, ip) ==
			       __builtin_offsetof(struct ibs_record_raw, cpu),
	       "both kinds of record begin alike");

/* When and whose; @rec is of either kind. */
static __always_inline void put_who(struct ibs_cpu_state *st, struct ibs_record *rec)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	rec->time = bpf_ktime_get_ns();
	rec->cgroup_id = current_cgroup_id(st);
	rec->tgid = pid_tgid >> 32;
	rec->tid = pid_tgid;
}

static __always_inline __u32 forward_packed(struct ibs_cpu_state *st, void *ring,
					    const struct whole_sample *s)
{
	const __u64 *regs = s->regs;
	struct ibs_record *rec;

	if (cfg_stacks)
		rec = bpf_ringbuf_reserve(ring, sizeof(struct packed_stacks), 0);
	else
		rec = bpf_ringbuf_reserve(ring, sizeof(*rec), 0);
	if (!rec)
		return IBS_OUTCOME_LOST_RING_FULL;
	put_who(st, rec);
	rec->ip = regs[IBS_OP_RIP];
	rec->addr = regs[IBS_DC_LINADDR];
	rec->phys = regs[IBS_DC_PHYSADDR];
	rec->data3 = regs[IBS_OP_DATA3];
	rec->packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2],
				      bpf_get_smp_processor_id());
	if (cfg_stacks)
		put_stacks(&((struct packed_stacks *)rec)->stacks, s->ctx);
	bpf_ringbuf_submit(rec, ring_flags(st, ring));
	return IBS_OUTCOME_FORWARDED;
}

/* Sizes that the verifier knows; what is longer is cut to the registers that have a name. */
static __always_inline long copy_raw(struct ibs_record_raw *rec, const struct whole_sample *s)
{
	const void *from = (const void *)s->copy_from;

	if (s->bytes >= IBS_OP_RAW_MIN + 16) {
		rec->bytes = IBS_OP_RAW_MIN + 16;
		return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN + 16, from);
	}
	rec->bytes = s->bytes;
	if (s->bytes == IBS_OP_RAW_MIN + 8)
		return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN + 8, from);
	return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN, from);
}

static __always_inline __u32 forward_raw(struct ibs_cpu_state *st, void *ring,
					 const struct whole_sample *s)
{
	struct ibs_record_raw *rec;

	if (cfg_stacks)
		rec = bpf_ringbuf_reserve(ring, sizeof(struct raw_stacks), 0);
	else
		rec = bpf_ringbuf_reserve(ring, sizeof(*rec), 0);
	if (!rec)
		return IBS_OUTCOME_LOST_RING_FULL;
	put_who(st, (struct ibs_record *)rec);
	rec->cpu = bpf_get_smp_processor_id();
	rec->pad = 0;
	rec->regs[IBS_BRTARGET] = rec->regs[IBS_OP_DATA4] = 0;
	if (s->copy_from) {
		if (copy_raw(rec, s)) {
			bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);
			return IBS_OUTCOME_LOST_READ;
		}
	} else {
		rec->caps = s->caps;
		rec->bytes = s->bytes;
#pragma unroll
		for (int r = 0; r < IBS_OP_REG_FIXED; r++)
			rec->regs[r] = s->regs[r];
		if (s->bytes > IBS_OP_RAW_MIN) {
			rec->bytes = IBS_OP_RAW_MIN + 8;
			rec->regs[IN_PLACE_REGS - 1] = s->regs[IN_PLACE_REGS - 1];
		}
	}
	if (cfg_stacks)
		put_stacks(&((struct raw_stacks *)rec)->stacks, s->ctx);
	bpf_ringbuf_submit(rec, ring_flags(st, ring));
	return IBS_OUTCOME_FORWARDED;
}

static __always_inline __u32 forward(struct ibs_cpu_state *st, const struct whole_sample *s)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &cpu);

	if (!ring)
		return IBS_OUTCOME_LOST_INTERNAL;
	return cfg_record_raw ? forward_raw(st, ring, s) : forward_packed(st, ring, s);
}

#endif
