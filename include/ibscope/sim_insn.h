/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which memory an x86-64 instruction is about to access: enough of the instruction set to compute
 * addresses where a task was interrupted, in the BPF program of `--source sim` (sim.h). Encodings
 * are those of the AMD64 Architecture Programmer's Manual, volume 3, appendix A.
 *
 * The includer defines sim_insn_fs_base(state), and sim_insn_load(state, address, value), which reads
 * 8 bytes and returns whether that was possible; @state is passed on to them.
 */
#ifndef IBSCOPE_SIM_INSN_H
#define IBSCOPE_SIM_INSN_H

#include <ibscope/types.h>

#if !defined(sim_insn_load) || !defined(sim_insn_fs_base)
#error "define sim_insn_load() and sim_insn_fs_base() first"
#endif

enum sim_insn_does {
	SIM_INSN_DOES_READ = 1,
	SIM_INSN_DOES_WRITE = 2,
	SIM_INSN_DOES_PREFETCH = 4,
	SIM_INSN_DOES_LOCK = 8,
	SIM_INSN_DOES_BRANCH = 16, /* a jump, call or return, conditional or not */
	SIM_INSN_DOES_MEM = SIM_INSN_DOES_READ | SIM_INSN_DOES_WRITE | SIM_INSN_DOES_PREFETCH,
};

struct sim_insn_access {
	__u32 does;   /* enum sim_insn_does bits; 0: nothing, or the instruction is not known */
	bool located; /* @address is known */
	__u64 address;
	__u32 width; /* bytes: 1, 2, 4 or 8; 0: unknown */
	__u32 uses;  /* general registers that the address depends on: 1 << number */
};

#include <ibscope/sim_insn_maps.h>

/* General registers, by their numbers in ModRM: 0 is rax, 4 rsp, 8 to 15 are r8 to r15. */
struct sim_insn_state {
	__u64 reg[16];
	__u32 unknown; /* registers whose value is not known: 1 << number */
};

/* The compiler must not know the range of @number: it would leave out the mask that verifiers need. */
static __always_inline __u64 *sim_insn_register(struct sim_insn_state *s, __u32 number)
{
	__asm__ __volatile__("" : "+r"(number));
	return &s->reg[number & 15];
}

/* Bytes that are not decoded yet, the next one lowest. */
struct sim_insn_bytes {
	__u64 low, high;
	__u32 used;
};

static __always_inline __u32 sim_insn_take(struct sim_insn_bytes *b)
{
	const __u32 byte = b->low & 0xff;

	b->low = b->low >> 8 | b->high << 56;
	b->high >>= 8;
	b->used++;
	return byte;
}

/*
 * The verifier follows each value that it knows through all paths; it knows nothing of what was
 * written to a map. The barrier makes the compiler write it.
 */
#define sim_insn_forget() __asm__ __volatile__("" ::: "memory")

/* An instruction up to its opcode, and what the opcode does. */
struct sim_insn_head {
	struct sim_insn_bytes rest;
	__u32 map;    /* 0: one byte, 1: behind 0F, 2: 0F 38, 3: 0F 3A */
	__u32 opcode;
	__u32 flags;  /* of the tables above */
	__u32 rex;    /* W 8, R 4, X 2, B 1, also of VEX and EVEX */
	__u32 modrm;  /* the byte behind the opcode */
	bool vex, evex, lock, size16, address32, fs, gs, f2, f3;
};

static __always_inline bool sim_insn_prefix(struct sim_insn_head *h, __u32 byte)
{
	switch (byte) {
	case 0x66:
		h->size16 = true;
		return true;
	case 0x67:
		h->address32 = true;
		return true;
	case 0xf0:
		h->lock = true;
		return true;
	case 0xf2:
		h->f2 = true;
		return true;
	case 0xf3:
		h->f3 = true;
		return true;
	case 0x64:
		h->fs = true;
		return true;
	case 0x65:
		h->gs = true;
		return true;
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		return true;
	}
	return false;
}

/* The rest of a VEX (C4, C5) or EVEX (62) prefix. */
static __always_inline void sim_insn_vex(struct sim_insn_head *h, __u32 first)
{
	const __u32 p = sim_insn_take(&h->rest);
	__u32 w = 0;

	h->vex = true;
	if (first == 0xc5) {
		h->map = 1;
		h->rex = (~p >> 7 & 1) << 2;
		h->size16 = (p & 3) == 1;
		h->f3 = (p & 3) == 2;
	} else {
		w = sim_insn_take(&h->rest);
		h->map = p & (first == 0x62 ? 7 : 31);
		h->rex = (w >> 7) << 3 | (~p >> 5 & 7);
		h->size16 = (w & 3) == 1;
		h->f3 = (w & 3) == 2;
	}
	if (first == 0x62) {
		h->evex = true;
		sim_insn_take(&h->rest);
	}
	h->opcode = sim_insn_take(&h->rest);
}

static __always_inline void sim_insn_head(struct sim_insn_head *h)
{
	__u32 byte = sim_insn_take(&h->rest);

	for (int i = 0; i < 4 && sim_insn_prefix(h, byte); i++) {
		byte = sim_insn_take(&h->rest);
		sim_insn_forget();
	}
	if ((byte & 0xf0) == 0x40) {
		h->rex = byte & 15;
		byte = sim_insn_take(&h->rest);
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
		sim_insn_vex(h, byte);
		return;
	}
	if (byte == 0x0f) {
		h->map = 1;
		byte = sim_insn_take(&h->rest);
		if (byte == 0x38 || byte == 0x3a) {
			h->map = byte == 0x38 ? 2 : 3;
			byte = sim_insn_take(&h->rest);
		}
	}
	h->opcode = byte;
}

/* Opcodes whose operand depends on more than the opcode. @modrm: the byte behind it */
static __always_inline __u32 sim_insn_flags_one_byte(__u32 opcode, __u32 modrm)
{
	const __u32 flags = sim_insn_one_byte[opcode & 0xff], reg = modrm >> 3 & 7;

	switch (opcode) {
	case 0x80:
	case 0x81:
	case 0x83: /* cmp */
		return reg == 7 ? flags & ~SIM_INSN_W : flags;
	case 0xd9:
	case 0xdb:
	case 0xdd:
	case 0xdf: /* x87: loads, else stores */
		return flags | (reg == 0 || reg == 4 || reg == 5 ? SIM_INSN_R : SIM_INSN_W);
	case 0xf6: /* test, not and neg, mul and div */
		return reg < 2 ? SIM_INSN_MR | SIM_INSN_I8 : reg < 4 ? SIM_INSN_RW : SIM_INSN_MR;
	case 0xf7:
		return reg < 2 ? SIM_INSN_MR | SIM_INSN_IZ : reg < 4 ? SIM_INSN_RW : SIM_INSN_MR;
	case 0xff: /* inc and dec, call, jmp, push */
		if (reg < 2)
			return SIM_INSN_RW;
		return reg < 6 ? SIM_INSN_MR | SIM_INSN_B : SIM_INSN_MR;
	}
	return flags;
}

static __always_inline __u32 sim_insn_flags_two_byte(const struct sim_insn_head *h, __u32 modrm)
{
	const __u32 flags = sim_insn_two_byte[h->opcode & 0xff], reg = modrm >> 3 & 7;

	switch (h->opcode) {
	case 0x7e: /* movq xmm, m64, else a store */
		return h->f3 ? SIM_INSN_MR : flags;
	case 0x90: /* kmov k, m */
		return h->vex ? SIM_INSN_MR : flags;
	case 0xae: /* ldmxcsr, stmxcsr */
		return SIM_INSN_M | (reg == 2 ? SIM_INSN_R : 0) | (reg == 3 ? SIM_INSN_W : 0);
	case 0xba: /* bt */
		return reg == 4 ? flags & ~SIM_INSN_W : flags;
	case 0xc7: /* cmpxchg8b and cmpxchg16b */
		return reg == 1 ? SIM_INSN_RW : SIM_INSN_M;
	}
	return flags;
}

/* 0F 38 reads and 0F 3A reads with an immediate, but for these. */
static __always_inline __u32 sim_insn_flags_other(const struct sim_insn_head *h)
{
	const __u32 op = h->opcode;

	if (h->map == 3) {
		if ((op >= 0x14 && op <= 0x17) || op == 0x1d ||
		    (h->vex && (op == 0x19 || op == 0x1b || op == 0x39 || op == 0x3b)))
			return SIM_INSN_MW | SIM_INSN_I8;
		return SIM_INSN_MR | SIM_INSN_I8;
	}
	if (op == 0xf1 && !h->vex) /* movbe, crc32 */
		return h->f2 ? SIM_INSN_MR : SIM_INSN_MW;
	if (h->vex && !h->evex && (op == 0x2e || op == 0x2f || op == 0x8e)) /* masked moves */
		return SIM_INSN_MW;
	/* converting, compressing and scattering stores */
	if (h->evex && ((h->f3 && op >= 0x10 && op <= 0x35 && (op & 15) < 6) || op == 0x63 ||
			op == 0x8a || op == 0x8b || (op >= 0xa0 && op <= 0xa3)))
		return SIM_INSN_MW;
	return SIM_INSN_MR;
}

/* True if the index of the memory operand is a vector: gathers and scatters. */
static __always_inline bool sim_insn_vector_index(const struct sim_insn_head *h)
{
	return h->vex && h->map == 2 &&
	       ((h->opcode >= 0x90 && h->opcode <= 0x93) ||
		(h->evex && ((h->opcode >= 0xa0 && h->opcode <= 0xa3) || h->opcode >> 1 == 0x63)));
}

static __always_inline __u64 sim_insn_displacement(struct sim_insn_bytes *b, __u32 bytes)
{
	__u32 v = 0;

	if (!bytes)
		return 0;
	v = sim_insn_take(b);
	if (bytes == 1)
		return (__s64)(__s8)v;
	v |= sim_insn_take(b) << 8;
	v |= sim_insn_take(b) << 16;
	v |= sim_insn_take(b) << 24;
	return (__s64)(__s32)v;
}

/* Bytes of the immediate, which follows the displacement. */
static __always_inline __u32 sim_insn_immediate(const struct sim_insn_head *h)
{
	return h->flags & SIM_INSN_I8 ? 1 : h->flags & SIM_INSN_IZ ? h->size16 ? 2 : 4 : 0;
}

/*
 * The operand that ModRM describes. @ip: address of the first byte of the instruction
 *
 * Return: false if the operand is a register.
 */
static __always_inline bool sim_insn_operand(struct sim_insn_head *h, struct sim_insn_state *from, __u64 ip,
					 struct sim_insn_access *a)
{
	const __u32 modrm = sim_insn_take(&h->rest), mod = modrm >> 6;
	__u32 rm = modrm & 7, bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	bool relative = false, has_base = true;
	__u64 at = 0;

	if (mod == 3)
		return false;
	/* EVEX scales a byte by the size of the operand, which this does not know. */
	a->located = !(h->evex && mod == 1) && !sim_insn_vector_index(h) && !h->gs;
	if (rm == 4) {
		const __u32 sib = sim_insn_take(&h->rest), index = (sib >> 3 & 7) | (h->rex & 2) << 2;

		rm = sib & 7;
		if (index != 4) {
			at += *sim_insn_register(from, index) << (sib >> 6);
			a->uses |= 1u << index;
		}
		has_base = !(rm == 5 && mod == 0);
		bytes = has_base ? bytes : 4;
	} else if (rm == 5 && mod == 0) {
		relative = true;
		has_base = false;
		bytes = 4;
	}
	if (has_base) {
		rm |= (h->rex & 1) << 3;
		at += *sim_insn_register(from, rm);
		a->uses |= 1u << rm;
	}
	at += sim_insn_displacement(&h->rest, bytes);
	if (relative)
		at += ip + h->rest.used + sim_insn_immediate(h);
	if (h->address32)
		at = (__u32)at;
	a->address = at + (h->fs ? sim_insn_fs_base(from) : 0);
	return true;
}

/* Operands of the one-byte opcodes that ModRM does not describe. Return: false if there is none. */
static __always_inline bool sim_insn_implied(const struct sim_insn_head *h, struct sim_insn_state *from,
					 struct sim_insn_access *a)
{
	__u32 number = 4; /* rsp */

	if (h->flags & SIM_INSN_PUSH) {
		a->does |= SIM_INSN_DOES_WRITE;
		a->address = *sim_insn_register(from, number) - (h->size16 ? 2 : 8);
		a->uses = 1u << number;
		return true;
	}
	if (h->flags & SIM_INSN_POP) {
		a->does |= SIM_INSN_DOES_READ;
		a->address = *sim_insn_register(from, number);
		a->uses = 1u << number;
		return true;
	}
	if (h->map)
		return false;
	switch (h->opcode) {
	case 0xaa: /* stos */
	case 0xab:
		a->does |= SIM_INSN_DOES_WRITE;
		number = 7;
		break;
	case 0xa4: /* movs, cmps, lods: the operand that they read first */
	case 0xa5:
	case 0xa6:
	case 0xa7:
	case 0xac:
	case 0xad:
		a->does |= SIM_INSN_DOES_READ;
		number = 6;
		break;
	case 0xae: /* scas */
	case 0xaf:
		a->does |= SIM_INSN_DOES_READ;
		number = 7;
		break;
	case 0xc9: /* leave */
		a->does |= SIM_INSN_DOES_READ;
		number = 5;
		break;
	default:
		return false;
	}
	a->address = *sim_insn_register(from, number);
	a->uses = 1u << number;
	return true;
}

/* Bytes that a general instruction accesses; 0 for x87 and vectors. @reg: of ModRM */
static __always_inline __u32 sim_insn_width(const struct sim_insn_head *h, __u32 reg)
{
	const __u32 op = h->opcode, usual = h->rex & 8 ? 8 : h->size16 ? 2 : 4;

	if (h->flags & (SIM_INSN_PUSH | SIM_INSN_POP))
		return h->size16 ? 2 : 8;
	if (h->vex)
		return 0;
	if (h->map == 1) {
		if (op >= 0x90 && op <= 0x9f)
			return 1;
		if ((op & 0xf7) == 0xb6) /* movzx, movsx */
			return 1;
		if ((op & 0xf7) == 0xb7)
			return op == 0xb7 || op == 0xbf ? 2 : 0;
		if (op == 0xb0 || op == 0xc0)
			return 1;
		return (op & 0xf0) == 0x40 || op == 0xaf || op == 0xb1 || op == 0xc1 || op == 0xc3 ?
			       usual :
			       0;
	}
	if (h->map || (op >= 0xd8 && op <= 0xdf))
		return 0;
	if (op == 0x63)
		return 4;
	if (op == 0xff && reg >= 2) /* call, jmp, push */
		return 8;
	if (op == 0x69 || op == 0x6b || op == 0x8f)
		return op == 0x8f ? 8 : usual;
	return op & 1 || op == 0x8e || op == 0x8c ? (op == 0x8c || op == 0x8e ? 2 : usual) : 1;
}

/**
 * sim_insn_access() - what the instruction at @ip does with memory
 * @h:    zero, but for `rest`: bytes of the instruction, and any that follow. In a map for BPF
 * @from: registers before it. In a map for BPF
 * @a:    in a map for BPF
 *
 * Of an instruction with two operands in memory this is the one that it reads; of `push (%rax)` and
 * the like the one that ModRM describes. Unknown instructions do nothing.
 */
static __always_inline void sim_insn_access(struct sim_insn_head *h, struct sim_insn_state *from, __u64 ip,
					    struct sim_insn_access *a)
{
	__u32 modrm, reg;

	__builtin_memset(a, 0, sizeof(*a));
	sim_insn_head(h);
	sim_insn_forget();
	h->modrm = modrm = h->rest.low & 0xff;
	reg = modrm >> 3 & 7;
	if (h->map > 3 || (!h->map && h->vex))
		return;
	if (!h->map && h->opcode == 0x8f && reg) /* XOP */
		return;
	h->flags = h->map == 0 ? sim_insn_flags_one_byte(h->opcode, modrm) :
		   h->map == 1 ? sim_insn_flags_two_byte(h, modrm) :
				 sim_insn_flags_other(h);
	sim_insn_forget();
	if (h->flags & SIM_INSN_B)
		a->does |= SIM_INSN_DOES_BRANCH;
	if (!(h->flags & SIM_INSN_M)) {
		a->located = sim_insn_implied(h, from, a);
		a->width = a->located ? sim_insn_width(h, reg) : 0;
		return;
	}
	if (!sim_insn_operand(h, from, ip, a)) {
		if (!h->map && h->opcode == 0xff && (reg == 2 || reg == 6))
			h->flags |= SIM_INSN_PUSH; /* call and push of a register */
		a->located = sim_insn_implied(h, from, a);
		a->width = a->located ? 8 : 0;
		return;
	}
	sim_insn_forget();
	if (h->map == 1 && !h->vex && (h->opcode == 0x18 || h->opcode == 0x0d))
		a->does |= SIM_INSN_DOES_PREFETCH;
	a->does |= (h->flags & SIM_INSN_R ? SIM_INSN_DOES_READ : 0) |
		   (h->flags & SIM_INSN_W ? SIM_INSN_DOES_WRITE : 0);
	if (h->lock || (!h->map && (h->opcode == 0x86 || h->opcode == 0x87)))
		a->does |= SIM_INSN_DOES_LOCK;
	a->located = a->located && (a->does & SIM_INSN_DOES_MEM);
	a->width = a->located ? sim_insn_width(h, reg) : 0;
}

#include <ibscope/sim_insn_follow.h>

#undef SIM_INSN_8
#undef SIM_INSN_RW
#undef SIM_INSN_MR
#undef SIM_INSN_MW
#undef SIM_INSN_ARITH

#endif
