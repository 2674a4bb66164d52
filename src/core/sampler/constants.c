// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "constants.h"

#include "base/std.h"

#include <linux/bpf.h>

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

static const struct value any = { .kind = ANY };

static struct value number(__u64 n)
{
	return (struct value){ .kind = NUMBER, .n = n };
}

static __u8 class_of(const struct bpf_insn *i)
{
	return BPF_CLASS(i->code);
}

static bool is_alu(const struct bpf_insn *i)
{
	return class_of(i) == BPF_ALU || class_of(i) == BPF_ALU64;
}

static bool is_load64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_load(const struct bpf_insn *i)
{
	return class_of(i) == BPF_LDX && BPF_MODE(i->code) == BPF_MEM;
}

static bool is_jump(const struct bpf_insn *i)
{
	return (class_of(i) == BPF_JMP || class_of(i) == BPF_JMP32) &&
	       BPF_OP(i->code) != BPF_CALL && BPF_OP(i->code) != BPF_EXIT;
}

static bool is_branch(const struct bpf_insn *i)
{
	return is_jump(i) && BPF_OP(i->code) != BPF_JA;
}

static bool is_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL);
}

/* True for a call or a callback address that refers to a function of this program. */
static bool names_function(const struct bpf_insn *i)
{
	return (is_call(i) && i->src_reg == BPF_PSEUDO_CALL) ||
	       (is_load64(i) && i->src_reg == BPF_PSEUDO_FUNC);
}

static bool from_register(const struct bpf_insn *i)
{
	return BPF_SRC(i->code) == BPF_X;
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

static size_t function_of(size_t at, const struct bpf_insn *i)
{
	return at + 1 + (__s64)i->imm;
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

static void find_values(struct folder *f)
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

static void rewrite(struct folder *f)
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

/* True if the only effect is to set a register. */
static bool only_sets(const struct bpf_insn *i)
{
	return is_alu(i) || is_load64(i) || is_load(i);
}

/* A helper without arguments; kfuncs have some. */
static bool takes_nothing(const struct bpf_insn *i)
{
	return !i->src_reg &&
	       (i->imm == BPF_FUNC_get_current_task_btf || i->imm == BPF_FUNC_get_current_pid_tgid);
}

static __u16 reads(const struct bpf_insn *i)
{
	const __u16 dst = 1 << i->dst_reg, src = 1 << i->src_reg;

	if (is_alu(i))
		return (BPF_OP(i->code) == BPF_MOV ? 0 : dst) | (from_register(i) ? src : 0);
	if (is_load64(i))
		return 0;
	if (is_call(i))
		return takes_nothing(i) ? 0 : ARGS;
	if (i->code == (BPF_JMP | BPF_EXIT))
		return 1 << BPF_REG_0;
	if (is_jump(i))
		return is_branch(i) ? dst | (from_register(i) ? src : 0) : 0;
	if (class_of(i) == BPF_ST)
		return dst;
	return class_of(i) == BPF_LDX ? src : dst | src | 1 << BPF_REG_0;
}

static __u16 sets(const struct bpf_insn *i)
{
	return is_call(i)				? SCRATCHED
	       : only_sets(i) || class_of(i) == BPF_LDX ? 1 << i->dst_reg
							: 0;
}

/* Registers that are read after an instruction. */
static __u16 live_after(const struct folder *f, size_t at)
{
	const struct bpf_insn *i = &f->insns[at];
	size_t next = at + 1 + is_load64(i);
	__u16 live = 0;

	if (f->gone[at])
		return f->live[next];
	if (is_jump(i))
		live = f->live[at + 1 + i->off];
	if ((!is_jump(i) || is_branch(i)) && i->code != (BPF_JMP | BPF_EXIT))
		live |= f->live[next];
	return live;
}

/*
 * Arguments that a called function reads. If the verifier checks the function separately, it
 * requires the first argument even if it is not read.
 */
static __u16 call_reads(const struct folder *f, size_t at)
{
	const struct bpf_insn *i = &f->insns[at];

	return is_call(i) && names_function(i)
		       ? (f->live[function_of(at, i)] & ARGS) | 1 << BPF_REG_1
		       : reads(i);
}

/* Iterate backwards until nothing changes: an instruction that only feeds unused registers is unused, too. */
static void find_live(struct folder *f)
{
	do {
		f->changed = false;
		for (size_t at = f->n; at-- > 0;) {
			const struct bpf_insn *i = &f->insns[at];
			__u16 live;

			if (!f->before[at].reached)
				continue;
			live = live_after(f, at);
			if (!f->gone[at] && (!only_sets(i) || (live & sets(i))))
				live = (live & ~sets(i)) | call_reads(f, at);
			f->changed |= live != f->live[at];
			f->live[at] = live;
		}
	} while (f->changed);
	for (size_t at = 0; at < f->n; at++)
		if (!f->gone[at] && only_sets(&f->insns[at]) &&
		    !(live_after(f, at) & sets(&f->insns[at]))) {
			f->gone[at] = true;
			if (is_load64(&f->insns[at]))
				f->gone[++at] = true;
		}
}

static void find_places(struct folder *f)
{
	__u32 left = 0;

	for (size_t at = 0; at < f->n; at++) {
		f->place[at] = left;
		left += !f->gone[at];
	}
	f->place[f->n] = left;
}

/* Drop jumps to the next instruction. */
static void drop_jumps(struct folder *f)
{
	do {
		f->changed = false;
		find_places(f);
		for (size_t at = 0; at < f->n; at++) {
			const struct bpf_insn *i = &f->insns[at];

			if (!f->gone[at] && is_jump(i) && !is_branch(i) &&
			    f->place[at + 1 + i->off] == f->place[at] + 1)
				f->changed = f->gone[at] = true;
			at += is_load64(i);
		}
	} while (f->changed);
}

static void compact(struct folder *f)
{
	for (size_t at = 0; at < f->n; at++) {
		struct bpf_insn i = f->insns[at];
		const __u32 to = f->place[at];

		if (f->gone[at])
			continue;
		if (is_jump(&i))
			i.off = f->place[at + 1 + i.off] - to - 1;
		if (names_function(&i))
			i.imm = f->place[function_of(at, &i)] - to - 1;
		f->insns[to] = i;
		if (is_load64(&i))
			f->insns[to + 1] = f->insns[++at];
	}
}

/*
 * Records begin with the offset of their instruction. Of several with the same new offset keep the
 * last: the others belong to removed instructions. Returns the number of records left.
 */
static __u32 move_records(const struct folder *f, const void *records, __u32 n, __u32 bytes)
{
	char *first = (char *)records, *to = first;

	for (__u32 k = 0; k < n; k++) {
		const char *from = first + (size_t)k * bytes;
		__u32 at, last;

		memcpy(&at, from, sizeof(at));
		at = f->place[at];
		if (at == f->place[f->n])
			break;
		if (to != first) {
			memcpy(&last, to - bytes, sizeof(last));
			if (last == at)
				to -= bytes;
		}
		memmove(to, from, bytes);
		memcpy(to, &at, sizeof(at));
		to += bytes;
	}
	return bytes ? (to - first) / bytes : 0;
}

/* Returns the number of instructions left of @n, which are all functions of a program. */
static long fold(struct bpf_insn *insns, size_t n, struct bpf_prog_load_opts *opts,
		 const struct constants *known)
{
	struct folder f = { .insns = insns, .n = n, .known = known };
	long left;

	f.before = xcalloc(n + 1, sizeof(*f.before));
	f.live = xcalloc(n + 1, sizeof(*f.live));
	f.gone = xcalloc(n + 1, sizeof(*f.gone));
	f.place = xcalloc(n + 1, sizeof(*f.place));
	find_values(&f);
	rewrite(&f);
	find_live(&f);
	drop_jumps(&f);
	compact(&f);
	opts->func_info_cnt =
		move_records(&f, opts->func_info, opts->func_info_cnt, opts->func_info_rec_size);
	opts->line_info_cnt =
		move_records(&f, opts->line_info, opts->line_info_cnt, opts->line_info_rec_size);
	left = f.place[n];
	free(f.before);
	free(f.live);
	free(f.gone);
	free(f.place);
	return left;
}

int constants_use(struct bpf_program *prog, struct bpf_prog_load_opts *opts,
		  const struct constants *known)
{
	size_t n = bpf_program__insn_cnt(prog);
	struct bpf_insn *insns = xrealloc(NULL, n * sizeof(*insns));
	long left;

	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(known->by_value); k++)
			if (is_load64(&insns[i]) && insns[i].src_reg == BPF_PSEUDO_MAP_FD &&
			    insns[i].imm == known->by_value[k].map_fd) {
				insns[i].src_reg = BPF_PSEUDO_MAP_VALUE;
				insns[i + 1].imm = known->by_value[k].at;
			}
	left = fold(insns, n, opts, known);
	left = bpf_program__set_insns(prog, insns, left);
	free(insns);
	return left;
}
