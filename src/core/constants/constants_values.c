// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steps 1 and 2: propagate constants, and use them. */
#include "constants.h"
#include "constants_private.h"

static const struct value any = { .kind = ANY };

static struct value number(__u64 n)
{
	return (struct value){ .kind = NUMBER, .n = n };
}

/* The second operand of arithmetic, or of a comparison. */
static struct value operand(const struct state *s, const struct bpf_insn *i)
{
	return from_register(i) ? s->reg[i->src_reg] : number((__s64)i->imm);
}

/* False: the result cannot be known, also of a shift by more than the register's size. */
static bool compute(const struct bpf_insn *i, __u64 a, __u64 b, __u64 *out)
{
	const bool narrow = class_of(i) == BPF_ALU;

	if (narrow)
		a = (__u32)a, b = (__u32)b;
	switch (BPF_OP(i->code)) {
	case BPF_MOV:
		*out = b;
		break;
	case BPF_ADD:
		*out = a + b;
		break;
	case BPF_SUB:
		*out = a - b;
		break;
	case BPF_AND:
		*out = a & b;
		break;
	case BPF_OR:
		*out = a | b;
		break;
	case BPF_XOR:
		*out = a ^ b;
		break;
	case BPF_MUL:
		*out = a * b;
		break;
	case BPF_LSH:
	case BPF_RSH:
		if (b >= (narrow ? 32 : 64))
			return false;
		*out = BPF_OP(i->code) == BPF_LSH ? a << b : a >> b;
		break;
	default:
		return false;
	}
	if (narrow)
		*out = (__u32)*out;
	return !i->off; /* nonzero: a move with sign extension */
}

static struct value result(const struct state *s, const struct bpf_insn *i)
{
	const struct value a = s->reg[i->dst_reg], b = operand(s, i);
	const __u8 op = BPF_OP(i->code);
	__u64 n;

	if (op == BPF_MOV && class_of(i) == BPF_ALU64 && !i->off)
		return b;
	if ((op == BPF_MOV || a.kind == NUMBER) && b.kind == NUMBER && compute(i, a.n, b.n, &n))
		return number(n);
	if (op == BPF_ADD && class_of(i) == BPF_ALU64 && a.kind == ADDRESS && b.kind == NUMBER)
		return (struct value){ .kind = ADDRESS, .n = a.n + b.n };
	return any;
}

static size_t bytes_of(const struct bpf_insn *i)
{
	switch (BPF_SIZE(i->code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	default:
		return 8;
	}
}

static struct value loaded(const struct folder *f, const struct state *s, const struct bpf_insn *i)
{
	const struct value at = s->reg[i->src_reg];
	const __u64 offset = at.n + (__s64)i->off;
	const size_t bytes = bytes_of(i);
	__u64 n = 0;

	if (!is_load(i) || at.kind != ADDRESS || offset > f->known->bytes ||
	    bytes > f->known->bytes - offset)
		return any;
	memcpy(&n, f->known->value + offset, bytes);
	return number(n);
}

/* 1 if a branch is taken, 0 if not, -1 if unknown. */
static int taken(const struct state *s, const struct bpf_insn *i)
{
	const struct value va = s->reg[i->dst_reg], vb = operand(s, i);
	const bool narrow = class_of(i) == BPF_JMP32;
	__u64 a = narrow ? (__u32)va.n : va.n, b = narrow ? (__u32)vb.n : vb.n;
	__s64 sa = narrow ? (__s32)va.n : (__s64)va.n, sb = narrow ? (__s32)vb.n : (__s64)vb.n;

	if (va.kind != NUMBER || vb.kind != NUMBER)
		return -1;
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return !!(a & b);
	case BPF_JSGT:
		return sa > sb;
	case BPF_JSGE:
		return sa >= sb;
	case BPF_JSLT:
		return sa < sb;
	case BPF_JSLE:
		return sa <= sb;
	default:
		return -1;
	}
}

/* Record that an instruction can also be reached with these values. */
static void reach(struct folder *f, size_t at, const struct state *with)
{
	struct state *s = &f->before[at];

	f->changed |= !s->reached;
	s->reached = true;
	for (int r = 0; r < REGS; r++) {
		const struct value v = with->reg[r];

		if (s->reg[r].kind == ANY || v.kind == UNSEEN ||
		    (s->reg[r].kind == v.kind && s->reg[r].n == v.n))
			continue;
		s->reg[r] = s->reg[r].kind == UNSEEN ? v : any;
		f->changed = true;
	}
}

/* A call passes r1 to r5; at any other use of the function's address, nothing is known. */
static void enter_function(struct folder *f, size_t at, const struct state *s)
{
	const struct bpf_insn *i = &f->insns[at];
	struct state entry;

	for (int r = 0; r < REGS; r++)
		entry.reg[r] = is_call(i) && (ARGS & 1 << r) ? s->reg[r] : any;
	reach(f, function_of(at, i), &entry);
}

static void step(struct folder *f, size_t at)
{
	const struct bpf_insn *i = &f->insns[at];
	struct state s = f->before[at];
	size_t next = at + 1 + is_load64(i);
	int jumps = 0;

	if (names_function(i))
		enter_function(f, at, &s);
	if (is_alu(i)) {
		s.reg[i->dst_reg] = result(&s, i);
	} else if (is_load64(i)) {
		s.reg[i->dst_reg] = any;
		if (!i->src_reg)
			s.reg[i->dst_reg] = number((__u64)i[1].imm << 32 | (__u32)i->imm);
		else if (i->src_reg == BPF_PSEUDO_MAP_VALUE && i->imm == f->known->map_fd)
			s.reg[i->dst_reg] = (struct value){ .kind = ADDRESS, .n = (__u32)i[1].imm };
	} else if (class_of(i) == BPF_LDX) {
		s.reg[i->dst_reg] = loaded(f, &s, i);
	} else if (class_of(i) == BPF_STX && BPF_MODE(i->code) != BPF_MEM) { /* atomics may fetch */
		s.reg[i->src_reg] = s.reg[BPF_REG_0] = any;
	} else if (is_call(i)) {
		for (int r = 0; r < REGS; r++)
			if (SCRATCHED & 1 << r)
				s.reg[r] = any;
	} else if (is_jump(i)) {
		jumps = is_branch(i) ? taken(&s, i) : 1;
	} else if (i->code == (BPF_JMP | BPF_EXIT)) {
		return;
	}
	if (jumps)
		reach(f, at + 1 + i->off, &s);
	if (jumps <= 0)
		reach(f, next, &s);
}

void constants_find(struct folder *f)
{
	struct state entry = { .reached = true };

	for (int r = 0; r < REGS; r++)
		entry.reg[r] = any;
	f->before[0] = entry;
	do {
		f->changed = false;
		for (size_t at = 0; at < f->n; at++)
			if (f->before[at].reached)
				step(f, at);
	} while (f->changed);
}

/* True if @n can be an immediate operand of the instruction. */
static bool fits(const struct bpf_insn *i, __u64 n)
{
	const bool narrow = class_of(i) == BPF_ALU || class_of(i) == BPF_JMP32;

	if (is_alu(i) && i->off)
		return false;
	switch (is_alu(i) ? BPF_OP(i->code) : BPF_JEQ) {
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		return n < (narrow ? 32 : 64);
	case BPF_DIV:
	case BPF_MOD:
	case BPF_END:
		return false;
	default:
		return narrow || (__s64)n == (__s32)n;
	}
}

/* Use an immediate operand if the value @v of the second operand is known. */
static void use_immediate(struct bpf_insn *i, struct value v)
{
	if (!from_register(i) || v.kind != NUMBER || !fits(i, v.n))
		return;
	i->code = (i->code & ~BPF_X) | BPF_K;
	i->src_reg = 0;
	i->imm = (__s32)v.n;
}

/* True for 64-bit arithmetic that does not change the register. */
static bool is_idle(const struct bpf_insn *i)
{
	const __u8 op = BPF_OP(i->code);

	return class_of(i) == BPF_ALU64 && !from_register(i) && !i->imm &&
	       (op == BPF_ADD || op == BPF_SUB || op == BPF_OR || op == BPF_XOR || op == BPF_LSH ||
		op == BPF_RSH);
}

/* Load the number by a single instruction, if possible. */
static bool load_number(struct bpf_insn *i, struct value v)
{
	const bool wide = (__s64)v.n == (__s32)v.n && v.n != (__u32)v.n;

	if (v.kind != NUMBER || (!wide && v.n != (__u32)v.n))
		return false;
	*i = (struct bpf_insn){ .code = (wide ? BPF_ALU64 : BPF_ALU) | BPF_MOV | BPF_K,
				.dst_reg = i->dst_reg,
				.imm = (__s32)v.n };
	return true;
}

void constants_rewrite(struct folder *f)
{
	for (size_t at = 0; at < f->n; at++) {
		const struct state *s = &f->before[at];
		struct bpf_insn *i = &f->insns[at];

		if (!s->reached) {
			f->gone[at] = true;
		} else if (is_alu(i)) {
			if (!load_number(i, result(s, i)))
				use_immediate(i, operand(s, i));
			f->gone[at] = is_idle(i);
		} else if (is_load(i)) {
			load_number(i, loaded(f, s, i));
		} else if (is_branch(i)) {
			int jumps = taken(s, i);

			if (jumps < 0)
				use_immediate(i, operand(s, i));
			else if (jumps)
				*i = (struct bpf_insn){ .code = BPF_JMP | BPF_JA, .off = i->off };
			f->gone[at] = !jumps;
		}
		if (s->reached && is_load64(i))
			at++; /* also remove the second half */
	}
}
