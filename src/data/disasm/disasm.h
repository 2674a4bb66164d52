/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decodes one x86-64 instruction: length, text, memory operands, and effect on registers. The bytes are not
 * trusted.
 */
#ifndef IBSCOPE_DISASM_H
#define IBSCOPE_DISASM_H

#include "base/std.h"

#define INSN_BYTES_MAX 15
#define INSN_MEM_MAX   2 /* string instructions have two */

/* General registers have their numbers in DWARF: 0 is rax, 6 rbp, 7 rsp, 8 to 15 are r8 to r15. */
enum { INSN_RSP = 7, INSN_RIP = 16, INSN_NO_REG = -1 };

enum insn_access { INSN_READ = 1, INSN_WRITE = 2 };

/* An operand in memory: segment + base + index * scale + displacement. */
struct insn_mem {
	short base, index;    /* INSN_NO_REG: none, or an index that is a vector */
	unsigned char scale;  /* 1, 2, 4 or 8 */
	unsigned char access; /* enum insn_access bits; 0: prefetched */
	unsigned char size;   /* bytes; 0: unknown */
	char segment;	      /* 'f', 'g', or 0: the base of others is 0 */
	__s64 displacement;   /* of INSN_RIP: from the end of the instruction */
};

enum insn_flow { INSN_NEXT, INSN_JUMP, INSN_BRANCH, INSN_CALL, INSN_RETURN };

/* The new value of all 8 bytes of the register `to`. */
enum insn_effect {
	INSN_OTHER,
	INSN_MOVE,    /* register `from` */
	INSN_LOAD,    /* mem[0] */
	INSN_ADDRESS, /* address of mem[0]; n_mem is 0 */
	INSN_ADD,     /* old value plus `from`; else plus mem[0] if n_mem is 1; else plus `value` */
	INSN_SET,     /* `value` */
};

struct insn {
	unsigned int len;    /* bytes */
	char text[96];	     /* AT&T or Intel syntax */
	enum insn_flow flow; /* INSN_BRANCH is conditional */
	bool has_target;     /* of a jump, branch or call */
	__u64 target;
	unsigned int n_mem; /* operands in memory, without the stack of push, call and return */
	struct insn_mem mem[INSN_MEM_MAX]; /* written operands first */
	unsigned char stack;		   /* enum insn_access bits of push, pop, call and return */
	__u16 writes; /* general registers that change, at least in part: 1 << number */
	enum insn_effect effect;
	short from, to; /* `to`: the written register, if there is only one */
	__s64 value;	/* of INSN_SET and INSN_ADD */
};

struct disasm;

/* Return: NULL if the disassembler cannot be set up. */
struct disasm *disasm_new(bool intel);
void disasm_free(struct disasm *d); /* accepts NULL */

/**
 * disasm_decode() - decode the instruction at the start of @n bytes
 * @addr: address of the first byte, for targets and text
 *
 * Unknown vector instructions have only a length and the text "(vector)" with the bytes.
 *
 * Return: false if the instruction is invalid or incomplete; then *out is zero.
 */
bool disasm_decode(struct disasm *d, const unsigned char *bytes, size_t n, __u64 addr,
		   struct insn *out);

/**
 * insn_stack_access() - how an instruction accesses nothing but memory that the stack pointer addresses
 *
 * `push (%rax)` reads other memory, so it is INSN_WRITE of this one.
 *
 * Return: enum insn_access bits.
 */
unsigned int insn_stack_access(const struct insn *in);

#endif
