/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What instructions do to registers, and which is next. Private to sim_insn.h, which includes it. */
#ifndef IBSCOPE_SIM_INSN_FOLLOW_H
#define IBSCOPE_SIM_INSN_FOLLOW_H

/* Bytes behind the operand: immediates, targets, and addresses without ModRM. */
static __always_inline __u32 sim_insn_tail(const struct sim_insn_head *h)
{
	const __u32 op = h->opcode, word = h->size16 ? 2 : 4;

	if (h->map == 1 && op >= 0x80 && op <= 0x8f)
		return 4;
	if (h->map)
		return sim_insn_immediate(h);
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xb0 && op <= 0xb7) || (op >= 0xe0 && op <= 0xe7))
		return 1;
	if (op >= 0xb8 && op <= 0xbf)
		return h->rex & 8 ? 8 : word;
	if (op >= 0xa0 && op <= 0xa3)
		return h->address32 ? 4 : 8;
	switch (op) {
	case 0x6a:
	case 0xa8:
	case 0xcd:
	case 0xeb:
		return 1;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0x68:
	case 0xa9:
		return word;
	}
	return sim_insn_immediate(h);
}

#define SIM_INSN_BIT(number) (1u << ((number) & 15))

/* General registers that an opcode changes without naming them: 1 << number */
static __always_inline __u32 sim_insn_fixed_writes(const struct sim_insn_head *h)
{
	const __u32 op = h->opcode, low = SIM_INSN_BIT((op & 7) | (h->rex & 1) << 3);

	if (h->map == 2) /* mulx and its like name a register in the prefix */
		return h->vex && op >= 0xf0 && op <= 0xf7 ? 0xffff : 0;
	if (h->map == 1)
		return op == 0x01 || op == 0x31 || op == 0xa2 || op == 0xc7 ? 0x000f :
		       op == 0xb0 || op == 0xb1			    ? 0x0001 :
		       op >= 0xc8 && op <= 0xcf			    ? low :
		       (op & 0xf6) == 0xa0			    ? 0x0010 :
									  0;
	if (h->map)
		return op >= 0x60 && op <= 0x63 ? 0x0002 : 0; /* string comparisons count in rcx */
	if (op >= 0x50 && op <= 0x5f)
		return 0x0010 | (op >= 0x58 ? low : 0);
	if (op >= 0x90 && op <= 0x97)
		return 0x0001 | low;
	if (op >= 0xb0 && op <= 0xbf)
		return low | (h->rex ? 0 : SIM_INSN_BIT(op & 3));
	if (op == 0xf6 || op == 0xf7 || op == 0x98 || op == 0x99)
		return 0x0005;
	if ((op >= 0xa0 && op <= 0xaf) || (op >= 0x6c && op <= 0x6f) || (op >= 0xe0 && op <= 0xe7))
		return 0x00c7; /* of strings: rax, rcx, rdx, rsi, rdi */
	if (op == 0xc9 || op == 0xc8)
		return 0x0030;
	return h->flags & (SIM_INSN_PUSH | SIM_INSN_POP) || op == 0xff || op == 0x8f ? 0x0010 :
	       (op & 6) == 4 && op < 0x40					   ? 0x0001 :
										     0;
}

/* Which of the operands of ModRM are general registers that change: reg 1, r/m 2; 3 if in doubt. */
static __always_inline __u32 sim_insn_modrm_writes(const struct sim_insn_head *h, __u32 ext)
{
	const __u32 op = h->opcode;

	if (h->map == 1)
		return (op >= 0x40 && op <= 0x4f) || (op & 0xf6) == 0xb6 || op == 0xaf ? 1 :
		       op >= 0x90 && op <= 0x9f					     ? 2 :
		       (op >= 0x10 && op <= 0x17) || op == 0x28 || op == 0x29 ||
				       (op >= 0x51 && op <= 0x70) || op == 0x7f ?
										     0 :
										     3;
	if (h->map)
		return 3;
	if (op < 0x40) /* r/m,r and r,r/m; cmp changes nothing */
		return op >= 0x38 ? 0 : (op & 2) ? 1 : 2;
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return 1;
	case 0x80:
	case 0x81:
	case 0x83:
		return ext == 7 ? 0 : 2;
	case 0x84:
	case 0x85:
		return 0;
	case 0xf6:
	case 0xf7:
		return ext < 2 ? 0 : 2;
	case 0x86:
	case 0x87:
		return 3;
	}
	return op >= 0xd8 && op <= 0xdf ? 3 : 2;
}

/* General registers that may change: at least those that do: 1 << number */
static __always_inline __u32 sim_insn_writes(const struct sim_insn_head *h)
{
	const __u32 modrm = h->modrm, ext = modrm >> 3 & 7;
	const __u32 reg = ext | (h->rex & 4) << 1, rm = (modrm & 7) | (h->rex & 1) << 3;
	__u32 writes = sim_insn_fixed_writes(h), which, change = 0;

	if (!(h->flags & SIM_INSN_M))
		return writes;
	which = sim_insn_modrm_writes(h, ext);
	if (which & 1)
		change |= SIM_INSN_BIT(reg) | (h->rex ? 0 : SIM_INSN_BIT(reg & 3)); /* ah to bh */
	if ((which & 2) && modrm >> 6 == 3)
		change |= SIM_INSN_BIT(rm) | (h->rex ? 0 : SIM_INSN_BIT(rm & 3));
	return writes | change;
}

/*
 * Follow what the instruction does to general registers: moves, additions of constants, loads and
 * the stack pointer. The value of other registers that change is unknown.
 */
static __always_inline void sim_insn_execute(const struct sim_insn_head *h, struct sim_insn_state *s,
					     const struct sim_insn_access *a)
{
	const __u32 op = h->opcode, modrm = h->modrm, ext = modrm >> 3 & 7, number = modrm & 7;
	const __u32 reg = ext | (h->rex & 4) << 1, rm = number | (h->rex & 1) << 3;
	const bool wide = h->rex & 8, in_memory = modrm >> 6 != 3;
	__u32 to = 16, from = 16;
	__u64 value = 0;

	if (h->flags & (SIM_INSN_PUSH | SIM_INSN_POP) && !h->size16 && !h->map && op != 0xc2) {
		to = 4;
		from = 4;
		value = h->flags & SIM_INSN_PUSH ? -8 : 8;
	} else if (h->map || h->vex || h->size16) {
		to = 16;
	} else if (op == 0x8d && in_memory) { /* lea */
		to = reg;
		value = a->address;
	} else if (op == 0x8b && in_memory && wide && a->located) {
		if (sim_insn_load(s, a->address, &value))
			to = reg;
	} else if (op == 0x8b && !in_memory) {
		to = reg;
		from = rm;
	} else if (op == 0x89 && !in_memory) {
		to = rm;
		from = reg;
	} else if ((op == 0x31 || op == 0x33) && !in_memory && reg == rm) { /* xor: 0 */
		to = rm;
	} else if ((op == 0x83 || op == 0x81) && !in_memory && (ext == 0 || ext == 5)) {
		to = rm;
		from = rm;
		value = op == 0x83 ? (__s64)(__s8)h->rest.low : (__s64)(__s32)h->rest.low;
		value = ext ? -value : value;
	} else if (op == 0xff && !in_memory && ext < 2) { /* inc, dec */
		to = rm;
		from = rm;
		value = ext ? -1 : 1;
	}
	s->unknown |= sim_insn_writes(h) & ~(to < 16 ? 1u << to : 0);
	if (to > 15)
		return;
	if (from < 16) {
		value += *sim_insn_register(s, from);
		s->unknown = (s->unknown & ~(1u << to)) | (s->unknown >> from & 1) << to;
	} else {
		s->unknown &= ~(1u << to);
		if (op == 0x8d && (a->uses & s->unknown))
			s->unknown |= 1u << to;
	}
	*sim_insn_register(s, to) = wide || to == 4 ? value : (__u32)value;
}

/**
 * sim_insn_next() - the instruction that will probably be executed behind one
 * @h:  after sim_insn_access()
 * @ip: its address; becomes that of the next one
 *
 * Conditional jumps are taken if they go backwards, as in loops.
 *
 * Return: false if it is not known, as behind a return or an indirect jump.
 */
static __always_inline bool sim_insn_next(const struct sim_insn_head *h, __u64 *ip)
{
	const __u32 op = h->opcode, tail = sim_insn_tail(h);
	__s64 jump = 0;

	if (!h->flags && !h->map && (op == 0xcc || op == 0xcd || op == 0xcf || op == 0xf4))
		return false;
	if (h->map == 1 && (op == 0x05 || op == 0x07 || op == 0x0b || op == 0x34 || op == 0x35))
		return false;
	if (h->map > 3 || (!h->map && h->vex))
		return false;
	if (h->flags & SIM_INSN_B) {
		if (tail != 1 && tail != 4)
			return false;
		jump = tail == 1 ? (__s64)(__s8)h->rest.low : (__s64)(__s32)h->rest.low;
		if (jump > 0 && (h->map || op < 0x80 || (op >= 0xe0 && op <= 0xe3)))
			jump = 0;
	}
	*ip += h->rest.used + tail + jump;
	return true;
}

#endif
