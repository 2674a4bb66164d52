/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes a sample as a record to the CPU's ring: stores to an array that the reader maps, then an
 * update of the count. Only x86 has IBS, and x86 makes stores visible in order.
 */
#ifndef IBSCOPE_FORWARD_BPF_H
#define IBSCOPE_FORWARD_BPF_H

#include "access.bpf.h"
#include <ibscope/record.h>

const volatile bool cfg_record_raw = false; /* struct ibs_record_raw, not struct ibs_record */
/* A struct ibs_record_extra follows, with these members set. */
const volatile bool cfg_stacks = false;
const volatile bool cfg_task_pt_regs = false;  /* bpf_task_pt_regs() */
const volatile bool cfg_stacks_kernel = false; /* the event has PERF_SAMPLE_CALLCHAIN */
const volatile bool cfg_slabs = false;
/* A struct ibs_user_copy and so many bytes follow the extra. */
const volatile __u32 cfg_copy_bytes = 0;

/* Rings keep the last records: a new one replaces the oldest, and the reader is never woken. */
const volatile bool cfg_ring_overwrites;

/* Registers that can be read in place: the size of the kernel's array. */
#define IN_PLACE_REGS 8

static __always_inline __u32 ring_unread(const struct ibs_ring *ring)
{
	return ring->written - READ_ONCE(ring->taken);
}

/* Make the next record visible to the reader. */
static __always_inline void ring_publish(struct ibs_ring *ring)
{
	__u32 next = ring->next + 1, written = ring->written + 1;
	__u64 any = 0;

	ring->next = next == ring->slots ? 0 : next;
	barrier();
	WRITE_ONCE(ring->written, written);
	if (cfg_ring_overwrites)
		return;
	/* fails in an NMI while another CPU rings the bell (before v6.15) */
	if ((cfg_copy_bytes || !(written & (IBS_RING_CHECK - 1))) &&
	    ring_unread(ring) > ring->slots / 2)
		bpf_ringbuf_output(&bell, &any, sizeof(any), BPF_RB_FORCE_WAKEUP);
}

/* Layouts of a slot, so that the verifier knows the size. */
struct packed_extra {
	struct ibs_record rec;
	struct ibs_record_extra extra;
	struct ibs_user_copy copy;
};

struct raw_extra {
	struct ibs_record_raw rec;
	struct ibs_record_extra extra;
	struct ibs_user_copy copy;
};

/* Saved frame pointers and other addresses of the stack are no return addresses, nor are numbers. */
#define STACK_SPAN  (64ull << 20)
#define FIRST_PAGES (64ull << 10)
#define NOT_USER    (~0ull << 47)

static __always_inline void put_stack_top(struct ibs_record_extra *out, __u64 sp)
{
	bpf_probe_read_user(out->top, sizeof(out->top), (void *)sp); /* 0 if it fails */
#pragma unroll
	for (int i = 0; i < IBS_STACK_TOP; i++) {
		const __u64 word = out->top[i];

		if (word - sp < STACK_SPAN || word < FIRST_PAGES || (word & NOT_USER))
			out->top[i] = 0;
	}
}

#define EEXIST 17

static __always_inline __s32 chain_id(void *ctx, __u64 flags)
{
	__s64 id = bpf_get_stackid(ctx, &stacks, flags);

	if (id != -EEXIST)
		return id;
	id = bpf_get_stackid(ctx, &more_stacks, flags);
	return id < 0 ? id : id + IBS_STACKS;
}

#define CODE_IS_USER(ctx) ((ctx)->regs.cs & 3)
#define CODE_IS_64(cs)	  (((cs)&0xffff) == 0x33) /* segment of 64-bit code in user space */

/* With the registers that the task had when it entered the kernel. */
static __always_inline void put_entry_stack_top(struct ibs_record_extra *out)
{
	const struct pt_regs *regs;
	__u64 cs = 0, sp = 0;

	if (!cfg_task_pt_regs || out->user < 0)
		return;
	regs = (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	bpf_probe_read_kernel(&cs, sizeof(cs), &regs->cs);
	bpf_probe_read_kernel(&sp, sizeof(sp), &regs->rsp);
	if (CODE_IS_64(cs))
		put_stack_top(out, sp);
}

/*
 * Walk the stack by frame pointers, now that the sample is selected. The driver passes the registers
 * of the interrupt, with the op's address as that of the code. Frame pointers survive the
 * instructions in between, and many ops share the callers. The kernel's own frames do not: its
 * unwinder needs code address and stack pointer of the same moment.
 *
 * With PERF_SAMPLE_CALLCHAIN the driver has unwound everything, from the interrupt's address on.
 */
static __always_inline void put_stacks(struct ibs_record_extra *out, const struct sample *s,
				       bool fetch)
{
	const struct bpf_perf_event_data *ctx = s->ctx;
	const bool user = CODE_IS_USER(ctx);

	if (cfg_stacks_kernel)
		out->kernel = chain_id(s->ctx, 0);
	if (!cfg_stacks_kernel && user &&
	    ctx->regs.rip == s->regs[fetch ? (int)IBS_FETCH_LINADDR : (int)IBS_OP_RIP])
		out->callers = chain_id(s->ctx, BPF_F_USER_STACK | 1);
	else
		out->user = chain_id(s->ctx, BPF_F_USER_STACK);
	if (!user)
		put_entry_stack_top(out);
	else if (CODE_IS_64(ctx->regs.cs))
		put_stack_top(out, ctx->regs.rsp);
}

/* Before bpf_task_pt_regs(): where the kernel puts them, if a stack of it has the usual size. */
#define KERNEL_STACK_BYTES (16 << 10)

static __always_inline const void *task_regs(void)
{
	struct task_struct *task;

	if (cfg_task_pt_regs)
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	task = (void *)bpf_get_current_task();
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - sizeof(struct pt_regs);
}

/*
 * Stacks end within the room of a copy, too: what follows cannot be read. The outermost frames of a goroutine end with
 * a page, and so does its stack.
 */
static __always_inline __u32 copy_steps(char *to, __u64 sp)
{
	__u32 at, rest;

	for (at = 0; at < cfg_copy_bytes; at += IBS_COPY_STEP) {
		if (!bpf_probe_read_user(to + at, IBS_COPY_STEP, (void *)(sp + at)))
			continue;
		rest = -(sp + at) & (IBS_COPY_STEP - 1); /* of the page */
		return at + (bpf_probe_read_user(to + at, rest, (void *)(sp + at)) ? 0 : rest);
	}
	return at;
}

/*
 * The registers with which the task left user space. Those that the driver passes have the op's
 * address as that of the code, which does not fit the stack pointer of the interrupt.
 */
static __always_inline void put_copy(struct ibs_user_copy *out, const struct sample *s)
{
	const struct bpf_perf_event_data *ctx = s->ctx;
	char *stack = (char *)(out + 1);
	__u64 sp;

	out->flags = out->bytes = 0;
	if (bpf_probe_read_kernel(out->regs, sizeof(out->regs), task_regs()))
		return;
	sp = out->regs[IBS_USER_RSP];
	if (!CODE_IS_64(out->regs[IBS_USER_CS]) || (CODE_IS_USER(ctx) && ctx->regs.rsp != sp))
		return;
	out->flags = IBS_COPY_REGS;
	if (bpf_probe_read_user(stack, cfg_copy_bytes, (void *)sp))
		out->bytes = copy_steps(stack, sp);
	else
		out->bytes = cfg_copy_bytes;
	if (out->bytes == cfg_copy_bytes)
		out->flags |= IBS_COPY_CUT;
}

static __always_inline void put_extra(struct ibs_record_extra *out, const struct sample *s,
				      bool fetch)
{
	out->kernel = out->user = out->callers = -1;
	out->zero = 0;
#pragma unroll
	for (int i = 0; i < IBS_STACK_TOP; i++)
		out->top[i] = 0;
	if (cfg_stacks)
		put_stacks(out, s, fetch);
	out->slab = 0;
	if (cfg_slabs && !fetch && (s->regs[IBS_OP_DATA3] & IBS_OP_DATA3_LIN_VALID) &&
	    (__s64)s->regs[IBS_DC_LINADDR] < 0)
		put_slab(&out->slab, s->regs[IBS_DC_LINADDR]);
}

_Static_assert(__builtin_offsetof(struct ibs_record, tid) ==
			       __builtin_offsetof(struct ibs_record_raw, tid) &&
		       __builtin_offsetof(struct ibs_record, ip) ==
			       __builtin_offsetof(struct ibs_record_raw, cpu),
	       "both kinds of record must begin alike");

/* Samples come in runs of one cgroup: look up its id only if the cgroup differs from the last. */
static __always_inline __u64 record_cgroup(struct ibs_ring *ring)
{
	__u64 key = cgroup_key_of(config.cgroup_v1) + 1;

	if (ring->cgroup_key != key) {
		ring->cgroup_id = cgroup_id_of(config.cgroup_v1);
		ring->cgroup_key = key;
	}
	return ring->cgroup_id;
}

/* Set time, cgroup and task; @rec is of either kind. */
static __always_inline void put_task(struct ibs_cpu_state *st, struct ibs_record *rec)
{
	__u64 pid_tgid = current_pid_tgid();

	rec->time = bpf_ktime_get_ns();
	rec->cgroup_id = record_cgroup(&st->ring);
	rec->tgid = pid_tgid >> 32;
	rec->tid = pid_tgid;
}

static __always_inline bool has_extd(void)
{
	return config.ibs.caps & IBS_CAPS_FETCHCTLEXTD;
}

static __always_inline __u32 forward_packed(struct ibs_cpu_state *st, struct ibs_record *rec,
					    const struct sample *s, bool fetch)
{
	const __u64 *regs = s->regs;

	put_task(st, rec);
	if (fetch) {
		rec->ip = regs[IBS_FETCH_LINADDR];
		rec->addr = has_extd() ? regs[IBS_FETCH_EXTD] : 0;
		rec->phys = regs[IBS_FETCH_PHYSADDR];
		rec->data3 = regs[IBS_FETCH_CTL];
		rec->packed = ibs_record_pack(0, 0, st->ring.cpu) | IBS_RECORD_FETCH;
	} else {
		rec->ip = regs[IBS_OP_RIP];
		rec->addr = regs[IBS_DC_LINADDR];
		rec->phys = regs[IBS_DC_PHYSADDR];
		rec->data3 = regs[IBS_OP_DATA3];
		rec->packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], st->ring.cpu);
	}
	if (cfg_stacks || cfg_slabs || cfg_copy_bytes)
		put_extra(&((struct packed_extra *)rec)->extra, s, fetch);
	if (cfg_copy_bytes)
		put_copy(&((struct packed_extra *)rec)->copy, s);
	ring_publish(&st->ring);
	return IBS_OUTCOME_FORWARDED;
}

/* Constant sizes, for the verifier; a longer record is cut to the registers that have a name. */
static __always_inline long copy_raw(struct ibs_record_raw *rec, const struct sample *s)
{
	const void *from = (const void *)s->copy_from;
	__u32 bytes = *s->bytes;

	if (bytes >= IBS_OP_RAW_MIN + 16) {
		rec->bytes = IBS_OP_RAW_MIN + 16;
		return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN + 16, from);
	}
	rec->bytes = bytes;
	if (bytes == IBS_OP_RAW_MIN + 8)
		return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN + 8, from);
	return bpf_probe_read_kernel(&rec->caps, IBS_OP_RAW_MIN, from);
}

/* @s has all registers that the processor reports. */
static __always_inline void put_fetch_raw(struct ibs_record_raw *rec, const struct sample *s)
{
	rec->caps = config.ibs.caps;
	rec->bytes = IBS_FETCH_RAW_MIN + (has_extd() ? 8 : 0);
#pragma unroll
	for (int r = 0; r < IBS_FETCH_REG_FIXED; r++)
		rec->regs[r] = s->regs[r];
	rec->regs[IBS_FETCH_EXTD] = has_extd() ? s->regs[IBS_FETCH_EXTD] : 0;
#pragma unroll
	for (int r = IBS_FETCH_REG_N; r < IBS_OP_REG_N; r++)
		rec->regs[r] = 0;
}

static __always_inline __u32 forward_raw(struct ibs_cpu_state *st, struct ibs_record_raw *rec,
					 const struct sample *s, bool fetch)
{
	put_task(st, (struct ibs_record *)rec);
	rec->cpu = st->ring.cpu;
	rec->fetch = fetch;
	rec->regs[IBS_BRTARGET] = rec->regs[IBS_OP_DATA4] = 0;
	if (fetch) {
		put_fetch_raw(rec, s);
	} else if (s->copy) {
		if (copy_raw(rec, s))
			return IBS_OUTCOME_LOST_READ;
	} else {
		__u32 bytes = *s->bytes;

		rec->caps = *s->caps;
		rec->bytes = bytes;
#pragma unroll
		for (int r = 0; r < IBS_OP_REG_FIXED; r++)
			rec->regs[r] = s->regs[r];
		if (bytes > IBS_OP_RAW_MIN) {
			rec->bytes = IBS_OP_RAW_MIN + 8;
			rec->regs[IN_PLACE_REGS - 1] = s->regs[IN_PLACE_REGS - 1];
		}
	}
	if (cfg_stacks || cfg_slabs || cfg_copy_bytes)
		put_extra(&((struct raw_extra *)rec)->extra, s, fetch);
	if (cfg_copy_bytes)
		put_copy(&((struct raw_extra *)rec)->copy, s);
	ring_publish(&st->ring);
	return IBS_OUTCOME_FORWARDED;
}

static __always_inline __u32 forward(struct ibs_cpu_state *st, const struct sample *s, bool fetch)
{
	__u32 slot = st->ring.first + st->ring.next;
	void *rec;

	if (!cfg_ring_overwrites && ring_unread(&st->ring) >= st->ring.slots)
		return IBS_OUTCOME_LOST_RING_FULL;
	rec = bpf_map_lookup_elem(&records, &slot);
	if (!rec)
		return IBS_OUTCOME_LOST_INTERNAL;
	return cfg_record_raw ? forward_raw(st, rec, s, fetch) : forward_packed(st, rec, s, fetch);
}

/* Send a copy of a sample, which is counted in any case. */
static __always_inline void copy(struct ibs_cpu_state *st, const struct sample *s)
{
	if (READ_ONCE(st->ring.copies) && forward(st, s, false) != IBS_OUTCOME_FORWARDED)
		st->ring.dropped++;
}

#endif
