/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs of `--source sim`: the software clock interrupts a task, and the op is the instruction
 * that the task is about to execute, with the address that this would access (sim_insn.h). Only
 * whether it misses, where the data comes from and how long that takes are the model's (sim.h).
 */
#ifndef IBSCOPE_SIM_BPF_H
#define IBSCOPE_SIM_BPF_H

#include "compat.bpf.h"
#include <ibscope/sim.h>

/* Set by the loader. No initializers: they must lie after `config`, whose hot line is full. */
const volatile __u64 cfg_sim_seed;
const volatile bool cfg_sim_tasks; /* ops of the interrupted tasks, else drawn at random */
const volatile bool cfg_sim_contended; /* these wait for each other */

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct___thread {
	struct thread_struct thread;
} __attribute__((preserve_access_index));

/*
 * Word of struct pt_regs that has a general register, by the register's number in ModRM. No array:
 * libbpf 1.1 does not place static variables in BTF, so that the kernel refuses all of it.
 */
static __always_inline __u32 sim_register_word(__u32 reg)
{
	return (reg < 8 ? 0x0e0d0413050c0b0aULL : 0x0001020306070809ULL) >> reg % 8 * 8 & 0xff;
}

static __always_inline __u64 sim_word(const __u64 *pt_regs, __u32 word)
{
	__u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), pt_regs + word);
	return v;
}

static __always_inline __u64 sim_fs_base(void)
{
	struct task_struct___thread *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.fsbase);
}

/* User memory, or that of the kernel for its own code: a sign extends kernel addresses. */
static __always_inline bool sim_load(__u64 address, __u64 *value)
{
	return !(address >> 63 ? bpf_probe_read_kernel(value, 8, (void *)address) :
				 bpf_probe_read_user(value, 8, (void *)address));
}

#define sim_insn_fs_base(state)		      ((void)(state), sim_fs_base())
#define sim_insn_load(state, address, value) ((void)(state), sim_load(address, value))
#include <ibscope/sim_insn.h>

#define SIM_LINES 16384 /* of 64 bytes: what the model remembers having been accessed */

struct sim_line {
	__u32 tag;    /* 0: none */
	__u32 writer; /* CPU of the last store, plus one; 0: none */
};

/* Created only for simulated ops of tasks. CPUs race for its words; it decides only what is drawn. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SIM_LINES);
	__type(key, __u32);
	__type(value, struct sim_line);
} sim_lines SEC(".maps");

#define SIM_QUEUES 256 /* more complexes share them */

struct sim_queue {
	__u64 at_ns, miss_ns; /* see ibs_sim_wait() */
};

/* By complex. CPUs race here, too. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SIM_QUEUES);
	__type(key, __u32);
	__type(value, struct sim_queue);
} sim_queues SEC(".maps");

static __always_inline struct sim_queue *sim_queue(void)
{
	__u32 at = core_state(this_core(core_config(0)))->complex % SIM_QUEUES;

	return cfg_sim_contended ? bpf_map_lookup_elem(&sim_queues, &at) : NULL;
}

/* Let the queue drain since the last access. Return: see ibs_sim_wait() */
static __always_inline __u32 sim_queue_wait(struct sim_queue *q, __u64 now)
{
	__u64 left, at;

	if (!q)
		return IBS_SIM_WAIT_UNIT;
	at = READ_ONCE(q->at_ns);
	left = now < at ? READ_ONCE(q->miss_ns) : ibs_sim_queue_left(READ_ONCE(q->miss_ns), now - at);
	WRITE_ONCE(q->miss_ns, left);
	WRITE_ONCE(q->at_ns, now);
	return ibs_sim_wait(left);
}

/* What a CPU's sample is made of. In a map, where the verifier does not follow each value. */
struct sim_op {
	__u64 regs[IBS_OP_REG_FIXED];
	__u64 ip; /* the instruction that is looked at */
	struct sim_insn_state state;
	struct sim_insn_head insn;
	struct sim_insn_access access, chosen;
	__u64 chosen_ip;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sim_op);
} sim_ops SEC(".maps");

/* Physical page of a virtual one: the same for all threads of a process. */
static __always_inline __u64 sim_physical(__u64 address, __u32 tgid)
{
	__u64 space = address >> 63 ? 0 : (__u64)tgid << 36;

	return 0x100000000 | (ibs_sim_mix(space ^ address >> 12) & 0xffffff) << 12 |
	       (address & 4095);
}

/* Note an access to the line of a physical address. Return: what was known of it before. */
static __always_inline enum ibs_sim_line sim_touch(__u64 physical, bool write)
{
	__u64 mixed = ibs_sim_mix(physical >> 6);
	__u32 at = mixed % SIM_LINES, tag = mixed >> 32 | 1, cpu = bpf_get_smp_processor_id() + 1;
	struct sim_line *line = bpf_map_lookup_elem(&sim_lines, &at);
	enum ibs_sim_line was = IBS_SIM_TOUCHED;

	if (!line)
		return IBS_SIM_ANY;
	if (READ_ONCE(line->tag) != tag) {
		WRITE_ONCE(line->tag, tag);
		WRITE_ONCE(line->writer, 0);
		was = IBS_SIM_COLD;
	} else if (READ_ONCE(line->writer) && READ_ONCE(line->writer) != cpu) {
		was = IBS_SIM_FOREIGN;
	}
	if (write)
		WRITE_ONCE(line->writer, cpu);
	return was;
}

/* Read the instruction at @ip. Return: false if that is not possible, as where its page is not present. */
static __always_inline bool sim_read_code(struct sim_insn_bytes *b, __u64 ip, bool user)
{
	const __u32 left = 4096 - (ip & 4095);

	if (left >= 16)
		return !(user ? bpf_probe_read_user(b, 16, (void *)ip) :
				bpf_probe_read_kernel(b, 16, (void *)ip));
	/* the next page may not exist */
	return !(user ? bpf_probe_read_user(b, left & 15, (void *)ip) :
			bpf_probe_read_kernel(b, left & 15, (void *)ip));
}

static __always_inline __u64 sim_data3(const struct sim_insn_access *a)
{
	__u64 data3 = 0;

	if (a->does & (SIM_INSN_DOES_READ | SIM_INSN_DOES_PREFETCH))
		data3 |= IBS_OP_DATA3_LD_OP;
	if (a->does & SIM_INSN_DOES_WRITE)
		data3 |= IBS_OP_DATA3_ST_OP;
	if (a->does & SIM_INSN_DOES_LOCK)
		data3 |= IBS_OP_DATA3_LOCKED_OP;
	if (a->does & SIM_INSN_DOES_PREFETCH)
		data3 |= IBS_OP_DATA3_SW_PF;
	return data3;
}

/* IbsOpMemWidth: 1 for a byte, one more for each doubling; 0: not reported */
static __always_inline __u64 sim_width(__u32 bytes)
{
	return (__u64)(bytes == 8 ? 4 : bytes == 4 ? 3 : bytes) << 22;
}

/*
 * Look at the instruction at op->ip, choose it unless its address depends on a register that has
 * changed, and go to the next one. Verified separately, once for all steps.
 *
 * Return: 0; 1 if the next one is not known.
 */
__noinline int sim_step(struct bpf_perf_event_data *ctx)
{
	const __u64 code = ctx->regs.cs;
	const __u32 zero = 0;
	struct sim_op *op = bpf_map_lookup_elem(&sim_ops, &zero);

	if (!op)
		return 1;
	__builtin_memset(&op->insn, 0, sizeof(op->insn));
	if (code == 0x23 || /* 32-bit code */
	    !sim_read_code(&op->insn.rest, op->ip, code & 3))
		return 1;
	sim_insn_access(&op->insn, &op->state, op->ip, &op->access);
	sim_insn_forget();
	if (!(op->access.uses & op->state.unknown)) {
		op->chosen = op->access;
		op->chosen_ip = op->ip;
	}
	sim_insn_execute(&op->insn, &op->state, &op->access);
	sim_insn_forget();
	return !sim_insn_next(&op->insn, &op->ip);
}

/*
 * Interrupts come more often behind some instructions than behind others. Up to this many further ones
 * are looked at, so that all of a loop are sampled.
 */
#define SIM_STEPS 16

/* Choose an instruction that the interrupted task is about to execute. */
__noinline int sim_choose(struct bpf_perf_event_data *ctx)
{
	const __u32 zero = 0, steps = bpf_get_prandom_u32() % SIM_STEPS;
	struct sim_op *op = bpf_map_lookup_elem(&sim_ops, &zero);
	const __u64 *pt_regs = NULL;

	if (!op)
		return 0;
	op->ip = op->chosen_ip = ctx->regs.rip;
	/* the context is a struct bpf_perf_event_data_kern: first a pointer to the registers */
	bpf_probe_read_kernel(&pt_regs, sizeof(pt_regs), ctx);
	for (__u32 i = 0; i < 16; i++)
		op->state.reg[i] = sim_word(pt_regs, sim_register_word(i));
	op->state.unknown = 0;
	__builtin_memset(&op->chosen, 0, sizeof(op->chosen));
	for (__u32 i = 0; i < SIM_STEPS; i++)
		if (sim_step(ctx) || i == steps)
			break;
	return 0;
}

/* Registers of the op of the interrupted task, in sim_ops. */
__noinline int sim_task_op(struct bpf_perf_event_data *ctx)
{
	const __u32 zero = 0, cpu = bpf_get_smp_processor_id();
	const __u64 now = bpf_ktime_get_ns();
	const struct ibs_sim_draw d = ibs_sim_draw(cfg_sim_seed, cpu, now);
	struct sim_op *op = bpf_map_lookup_elem(&sim_ops, &zero);
	const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
	enum ibs_sim_line line = IBS_SIM_ANY;
	const struct sim_insn_access *a;
	struct sim_queue *queue = sim_queue();
	__u64 data3;

	if (!op)
		return 0;
	sim_choose(ctx);
	a = &op->chosen;
	data3 = sim_data3(a);
	op->regs[IBS_DC_LINADDR] = 0;
	op->regs[IBS_DC_PHYSADDR] = 0;
	if (data3 && a->located) {
		op->regs[IBS_DC_LINADDR] = a->address;
		op->regs[IBS_DC_PHYSADDR] = sim_physical(a->address, tgid);
		line = sim_touch(op->regs[IBS_DC_PHYSADDR], data3 & IBS_OP_DATA3_ST_OP);
		data3 |= sim_width(a->width);
	}
	/* of a call or a return that accesses the stack, this is the op that does */
	ibs_sim_answer(&d, config.ibs.caps, line,
		       !data3 && (a->does & SIM_INSN_DOES_BRANCH) ? IBS_OP_DATA_BRN_RET : 0, data3,
		       sim_queue_wait(queue, now), op->regs);
	if (queue && op->regs[IBS_OP_DATA3] & IBS_OP_DATA3_L2_MISS)
		WRITE_ONCE(queue->miss_ns, queue->miss_ns + ctx->sample_period);
	if (data3 && !a->located)
		op->regs[IBS_OP_DATA3] &= ~(IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID);
	op->regs[IBS_OP_RIP] = op->chosen_ip;
	return 0;
}

/* The address of a simulated fetch: that of the interrupted task. */
static __always_inline void sim_task_fetch(const struct bpf_perf_event_data *ctx, __u64 *regs)
{
	regs[IBS_FETCH_LINADDR] = ctx->regs.rip;
	regs[IBS_FETCH_PHYSADDR] =
		sim_physical(ctx->regs.rip, bpf_get_current_pid_tgid() >> 32);
}

#endif
