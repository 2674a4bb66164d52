/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internals of constant folding: instructions, and what is known about each. */
#ifndef IBSCOPE_CONSTANTS_PRIVATE_H
#define IBSCOPE_CONSTANTS_PRIVATE_H

#include "base/std.h"

#include <linux/bpf.h>

struct bpf_prog_load_opts;
struct constants;

#define REGS	  11
#define ARGS	  0x3e /* r1 to r5 */
#define SCRATCHED 0x3f /* r0 to r5, by calls */

/* Contents of a register: not reached yet, a number, an offset in the constants, anything. */
enum kind { UNSEEN, NUMBER, ADDRESS, ANY };

struct value {
	__u8 kind;
	__u64 n;
};

struct state {
	bool reached;
	struct value reg[REGS];
};

struct folder {
	struct bpf_insn *insns;
	size_t n;
	const struct constants *known;
	struct state *before; /* each instruction */
	__u16 *live; /* registers that are read later, one bit each, before each instruction */
	bool *gone;
	/* index of each instruction after removal of others; one entry more than instructions */
	__u32 *place;
	bool changed;
};

static inline __u8 class_of(const struct bpf_insn *i)
{
	return BPF_CLASS(i->code);
}

static inline bool is_alu(const struct bpf_insn *i)
{
	return class_of(i) == BPF_ALU || class_of(i) == BPF_ALU64;
}

static inline bool is_load64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static inline bool is_load(const struct bpf_insn *i)
{
	return class_of(i) == BPF_LDX && BPF_MODE(i->code) == BPF_MEM;
}

static inline bool is_jump(const struct bpf_insn *i)
{
	return (class_of(i) == BPF_JMP || class_of(i) == BPF_JMP32) &&
	       BPF_OP(i->code) != BPF_CALL && BPF_OP(i->code) != BPF_EXIT;
}

static inline bool is_branch(const struct bpf_insn *i)
{
	return is_jump(i) && BPF_OP(i->code) != BPF_JA;
}

static inline bool is_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL);
}

/* True for a call or a callback address that refers to a function of this program. */
static inline bool names_function(const struct bpf_insn *i)
{
	return (is_call(i) && i->src_reg == BPF_PSEUDO_CALL) ||
	       (is_load64(i) && i->src_reg == BPF_PSEUDO_FUNC);
}

static inline bool from_register(const struct bpf_insn *i)
{
	return BPF_SRC(i->code) == BPF_X;
}

static inline size_t function_of(size_t at, const struct bpf_insn *i)
{
	return at + 1 + (__s64)i->imm;
}

/* Replace the addresses of maps with one value by those of their values. */
void constants_place(struct bpf_insn *insns, size_t n, const struct constants *known);

/* All steps below. Return: the number of instructions left of @n, which are all functions of a program. */
long constants_fold(struct bpf_insn *insns, size_t n, struct bpf_prog_load_opts *opts,
		    const struct constants *known);

/* Find the values of registers before each instruction, and which instructions can be reached. */
void constants_find(struct folder *f);

/* Put known values into the instructions, and mark those that become unused as gone. */
void constants_rewrite(struct folder *f);

#endif
