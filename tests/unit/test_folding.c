// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What constant folding makes of programs that are written here, instruction by instruction. None is loaded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "constants/constants.h"
#include "constants/constants_private.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define MAP   77 /* with the constants */
#define OTHER 78 /* one whose value is known by its address */

#define INSN(code_, dst, src, off_, imm_)     \
	((struct bpf_insn){ .code = (code_),  \
			    .dst_reg = (dst), \
			    .src_reg = (src), \
			    .off = (off_),    \
			    .imm = (imm_) })
#define MOVE(dst, n)		  INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, n)
#define MOVE32(dst, n)		  INSN(BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, n)
#define COPY(dst, src)		  INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define LOAD(size, dst, src, off) INSN(BPF_LDX | BPF_MEM | (size), dst, src, off, 0)
#define STORE(dst, off, src)	  INSN(BPF_STX | BPF_MEM | BPF_DW, dst, src, off, 0)
#define JUMP(off)		  INSN(BPF_JMP | BPF_JA, 0, 0, off, 0)
#define EXIT			  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Both halves of a load of 64 bits */
#define WIDE(dst, src, low, high) \
	INSN(BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, low), INSN(0, 0, 0, 0, high)
#define CONSTANTS(dst, at) WIDE(dst, BPF_PSEUDO_MAP_VALUE, MAP, at)

static struct bpf_prog_load_opts opts;

static const unsigned char values[] = { 0xf1, 0xf2, 0xf3, 0xf4, 0x15, 0x26, 0x37, 0x48,
					0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10 };
static const struct constants known = { .map_fd = MAP,
					.value = (const char *)values,
					.bytes = sizeof(values),
					.by_value = { { -1 }, { OTHER, 24 }, { -1 } } };

static int no_records(void **state)
{
	(void)state;
	opts = (struct bpf_prog_load_opts){ .sz = sizeof(opts) };
	return 0;
}

static void folds(const struct bpf_insn *from, size_t n, const struct bpf_insn *to, size_t n_to)
{
	struct bpf_insn *insns = malloc(n * sizeof(*insns));

	assert_non_null(insns);
	memcpy(insns, from, n * sizeof(*insns));
	constants_place(insns, n, &known);
	assert_int_equal(constants_fold(insns, n, &opts, &known), n_to);
	assert_memory_equal(insns, to, n_to * sizeof(*to));
	free(insns);
}

#define PROGRAM(...)	 ((const struct bpf_insn[]){ __VA_ARGS__ })
#define FOLDED(from, to) folds(from, COUNT(from), to, COUNT(to))

/* A load of a constant becomes the number if one instruction can hold it. */
static void test_loads(void **state)
{
	(void)state;
	FOLDED(PROGRAM(CONSTANTS(1, 0), LOAD(BPF_B, 0, 1, 1), EXIT),
	       PROGRAM(MOVE32(0, 0xf2), EXIT));
	FOLDED(PROGRAM(CONSTANTS(1, 2), LOAD(BPF_H, 0, 1, 0), EXIT),
	       PROGRAM(MOVE32(0, 0xf4f3), EXIT));
	FOLDED(PROGRAM(CONSTANTS(1, 8), LOAD(BPF_W, 0, 1, -8), EXIT),
	       PROGRAM(MOVE32(0, (__s32)0xf4f3f2f1), EXIT));
	/* the address is computed */
	FOLDED(PROGRAM(CONSTANTS(1, 2), INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 3),
		       LOAD(BPF_B, 0, 1, 1), EXIT),
	       PROGRAM(MOVE32(0, 0x37), EXIT));
	/* eight bytes are too large a number; they are known nevertheless */
	FOLDED(PROGRAM(CONSTANTS(1, 8), LOAD(BPF_DW, 0, 1, 0), EXIT),
	       PROGRAM(CONSTANTS(1, 8), LOAD(BPF_DW, 0, 1, 0), EXIT));
	FOLDED(PROGRAM(CONSTANTS(1, 8), LOAD(BPF_DW, 0, 1, 0),
		       INSN(BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 56), EXIT),
	       PROGRAM(MOVE32(0, 0x10), EXIT));
	/* the last byte, and what is not all there */
	FOLDED(PROGRAM(CONSTANTS(1, 15), LOAD(BPF_B, 0, 1, 0), EXIT),
	       PROGRAM(MOVE32(0, 0x10), EXIT));
	FOLDED(PROGRAM(CONSTANTS(1, 15), LOAD(BPF_H, 0, 1, 0), EXIT),
	       PROGRAM(CONSTANTS(1, 15), LOAD(BPF_H, 0, 1, 0), EXIT));
	FOLDED(PROGRAM(CONSTANTS(1, 0), LOAD(BPF_B, 0, 1, -1), EXIT),
	       PROGRAM(CONSTANTS(1, 0), LOAD(BPF_B, 0, 1, -1), EXIT));
	/* of another map nothing is known, nor of the context */
	FOLDED(PROGRAM(WIDE(1, BPF_PSEUDO_MAP_VALUE, MAP + 5, 0), LOAD(BPF_B, 0, 1, 1), EXIT),
	       PROGRAM(WIDE(1, BPF_PSEUDO_MAP_VALUE, MAP + 5, 0), LOAD(BPF_B, 0, 1, 1), EXIT));
	FOLDED(PROGRAM(LOAD(BPF_B, 0, 1, 1), EXIT), PROGRAM(LOAD(BPF_B, 0, 1, 1), EXIT));
}

/* Either part of a wide load moves with the other. */
static void test_moved(void **state)
{
	(void)state;
	FOLDED(PROGRAM(MOVE(3, 7), WIDE(0, 0, 0x55667788, 0x11223344), EXIT),
	       PROGRAM(WIDE(0, 0, 0x55667788, 0x11223344), EXIT));
	FOLDED(PROGRAM(WIDE(3, 0, 1, 2), MOVE(0, 1), EXIT), PROGRAM(MOVE32(0, 1), EXIT));
	/* a branch over what went */
	FOLDED(PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 3, 9), MOVE(4, 1), MOVE(0, 1), EXIT,
		       MOVE(0, 2), EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2, 9), MOVE32(0, 1), EXIT,
		       MOVE32(0, 2), EXIT));
	/* stores stay */
	FOLDED(PROGRAM(MOVE(2, 5), STORE(10, -8, 2), MOVE(0, 0), EXIT),
	       PROGRAM(MOVE32(2, 5), STORE(10, -8, 2), MOVE32(0, 0), EXIT));
}

/* Jumps to what comes next anyway. */
static void test_jumps(void **state)
{
	(void)state;
	FOLDED(PROGRAM(MOVE(0, 1), JUMP(0), EXIT), PROGRAM(MOVE32(0, 1), EXIT));
	FOLDED(PROGRAM(MOVE(0, 1), JUMP(1), MOVE(0, 2), EXIT), PROGRAM(MOVE32(0, 1), EXIT));
	/* the first one goes after the second */
	FOLDED(PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1, 9), JUMP(1), JUMP(0), MOVE(0, 1),
		       EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0, 9), MOVE32(0, 1), EXIT));
}

/* The addresses of maps with one value, wherever they are used. */
static void test_by_value(void **state)
{
	(void)state;
	FOLDED(PROGRAM(WIDE(1, BPF_PSEUDO_MAP_FD, OTHER, 0), LOAD(BPF_DW, 0, 1, 0), EXIT),
	       PROGRAM(WIDE(1, BPF_PSEUDO_MAP_VALUE, OTHER, 24), LOAD(BPF_DW, 0, 1, 0), EXIT));
	FOLDED(PROGRAM(WIDE(1, BPF_PSEUDO_MAP_FD, OTHER + 1, 0), LOAD(BPF_DW, 0, 1, 0), EXIT),
	       PROGRAM(WIDE(1, BPF_PSEUDO_MAP_FD, OTHER + 1, 0), LOAD(BPF_DW, 0, 1, 0), EXIT));
}

/* Both operands are known: one by an instruction of its own, the other also. */
static void test_arithmetic(void **state)
{
	static const struct {
		__u8 op;
		__s32 a, b, wide, narrow;
	} rows[] = {
		{ BPF_ADD, 5, -7, -2, -2 },
		{ BPF_SUB, 5, 7, -2, -2 },
		{ BPF_AND, 12, 10, 8, 8 },
		{ BPF_OR, 12, 10, 14, 14 },
		{ BPF_XOR, 12, 10, 6, 6 },
		{ BPF_MUL, 3, -4, -12, -12 },
		{ BPF_LSH, 3, 4, 48, 48 },
		{ BPF_RSH, 48, 4, 3, 3 },
		{ BPF_LSH, 1, 31, INT32_MIN, INT32_MIN }, /* as 32 bits: 0x80000000 */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const __s32 wide = rows[i].wide, narrow = rows[i].narrow;
		const struct bpf_insn wide_number =
			rows[i].op == BPF_LSH || wide >= 0 ? MOVE32(0, wide) : MOVE(0, wide);

		for (int by_register = 0; by_register < 2; by_register++) {
			const __u8 how = rows[i].op | (by_register ? BPF_X : BPF_K);
			const __s32 imm = by_register ? 0 : rows[i].b;

			FOLDED(PROGRAM(MOVE(0, rows[i].a), MOVE(2, rows[i].b),
				       INSN(BPF_ALU64 | how, 0, by_register ? 2 : 0, 0, imm), EXIT),
			       PROGRAM(wide_number, EXIT));
			FOLDED(PROGRAM(MOVE(0, rows[i].a), MOVE(2, rows[i].b),
				       INSN(BPF_ALU | how, 0, by_register ? 2 : 0, 0, imm), EXIT),
			       PROGRAM(MOVE32(0, narrow), EXIT));
		}
	}
	/* a shift by all bits is not known */
	FOLDED(PROGRAM(MOVE(0, 1), INSN(BPF_ALU | BPF_LSH | BPF_K, 0, 0, 0, 32), EXIT),
	       PROGRAM(MOVE32(0, 1), INSN(BPF_ALU | BPF_LSH | BPF_K, 0, 0, 0, 32), EXIT));
	FOLDED(PROGRAM(MOVE(0, 1), INSN(BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 63), EXIT),
	       PROGRAM(MOVE32(0, 0), EXIT));
	/* a division is not computed, and one operand alone may be known */
	FOLDED(PROGRAM(MOVE(2, 3), COPY(0, 1), INSN(BPF_ALU64 | BPF_DIV | BPF_X, 0, 2, 0, 0), EXIT),
	       PROGRAM(MOVE32(2, 3), COPY(0, 1), INSN(BPF_ALU64 | BPF_DIV | BPF_X, 0, 2, 0, 0),
		       EXIT));
	FOLDED(PROGRAM(MOVE(2, 3), COPY(0, 1), INSN(BPF_ALU64 | BPF_ADD | BPF_X, 0, 2, 0, 0), EXIT),
	       PROGRAM(COPY(0, 1), INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 3), EXIT));
	/* what changes nothing goes */
	FOLDED(PROGRAM(MOVE(2, 0), COPY(0, 1), INSN(BPF_ALU64 | BPF_ADD | BPF_X, 0, 2, 0, 0), EXIT),
	       PROGRAM(COPY(0, 1), EXIT));
	FOLDED(PROGRAM(COPY(0, 1), INSN(BPF_ALU64 | BPF_LSH | BPF_K, 0, 0, 0, 0), EXIT),
	       PROGRAM(COPY(0, 1), EXIT));
	/* unless it clears the upper half */
	FOLDED(PROGRAM(COPY(0, 1), INSN(BPF_ALU | BPF_ADD | BPF_K, 0, 0, 0, 0), EXIT),
	       PROGRAM(COPY(0, 1), INSN(BPF_ALU | BPF_ADD | BPF_K, 0, 0, 0, 0), EXIT));
}

static void branch(__u8 op, __s32 a, __s32 b, bool wide, bool narrow)
{
	for (int by_register = 0; by_register < 2; by_register++)
		for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
			const __u8 how = (is_narrow ? BPF_JMP32 : BPF_JMP) | op |
					 (by_register ? BPF_X : BPF_K);
			const bool taken = is_narrow ? narrow : wide;

			FOLDED(PROGRAM(MOVE(1, a), MOVE(2, b),
				       INSN(how, 1, by_register ? 2 : 0, 2, by_register ? 0 : b),
				       MOVE(0, 10), EXIT, MOVE(0, 11), EXIT),
			       PROGRAM(MOVE32(0, 10 + taken), EXIT));
		}
}

static void test_branches(void **state)
{
	(void)state;
	branch(BPF_JEQ, 5, 5, true, true);
	branch(BPF_JEQ, 5, 6, false, false);
	branch(BPF_JNE, 5, 6, true, true);
	branch(BPF_JNE, 5, 5, false, false);
	branch(BPF_JGT, 6, 5, true, true);
	branch(BPF_JGT, 5, 5, false, false);
	branch(BPF_JGT, -1, 5, true, true); /* unsigned */
	branch(BPF_JGE, 5, 5, true, true);
	branch(BPF_JGE, 4, 5, false, false);
	branch(BPF_JLT, 4, 5, true, true);
	branch(BPF_JLT, 5, 5, false, false);
	branch(BPF_JLE, 5, 5, true, true);
	branch(BPF_JLE, 6, 5, false, false);
	branch(BPF_JSET, 6, 2, true, true);
	branch(BPF_JSET, 5, 2, false, false);
	branch(BPF_JSGT, 5, -1, true, true);
	branch(BPF_JSGT, 5, 5, false, false);
	branch(BPF_JSGE, -1, -1, true, true);
	branch(BPF_JSGE, -2, -1, false, false);
	branch(BPF_JSLT, -2, -1, true, true);
	branch(BPF_JSLT, -1, -1, false, false);
	branch(BPF_JSLE, -1, -1, true, true);
	branch(BPF_JSLE, 0, -1, false, false);
	/* half of a number is another one */
	FOLDED(PROGRAM(WIDE(1, 0, 5, 1), INSN(BPF_JMP32 | BPF_JEQ | BPF_K, 1, 0, 2, 5), MOVE(0, 0),
		       EXIT, MOVE(0, 1), EXIT),
	       PROGRAM(MOVE32(0, 1), EXIT));
	FOLDED(PROGRAM(WIDE(1, 0, 5, 1), INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2, 5), MOVE(0, 0),
		       EXIT, MOVE(0, 1), EXIT),
	       PROGRAM(MOVE32(0, 0), EXIT));
	/* one that is not known stays; what both ways set alike is known behind it */
	FOLDED(PROGRAM(MOVE(2, 5), INSN(BPF_JMP | BPF_JEQ | BPF_X, 1, 2, 2, 0), MOVE(0, 3), JUMP(1),
		       MOVE(0, 3), INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1), EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0, 5), MOVE32(0, 4), EXIT));
	FOLDED(PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2, 5), MOVE(0, 3), JUMP(1), MOVE(0, 4),
		       INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1), EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 2, 5), MOVE32(0, 3), JUMP(1),
		       MOVE32(0, 4), INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1), EXIT));
}

/* A helper may change r0 to r5, and an atomic its register; nothing is known of these then. */
static void test_calls(void **state)
{
	const struct bpf_insn helper = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns);

	(void)state;
	FOLDED(PROGRAM(MOVE(6, 3), helper, COPY(0, 6), EXIT), PROGRAM(helper, MOVE32(0, 3), EXIT));
	FOLDED(PROGRAM(MOVE(0, 3), helper, INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1), EXIT),
	       PROGRAM(helper, INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1), EXIT));
	/* its arguments are read; those of one without arguments are not */
	FOLDED(PROGRAM(MOVE(1, 4), helper, EXIT), PROGRAM(MOVE32(1, 4), helper, EXIT));
	FOLDED(PROGRAM(MOVE(1, 4), INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		       EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid), EXIT));
	FOLDED(PROGRAM(MOVE(2, 1),
		       INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 10, 2, -8, BPF_ADD | BPF_FETCH),
		       COPY(0, 2), EXIT),
	       PROGRAM(MOVE32(2, 1),
		       INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 10, 2, -8, BPF_ADD | BPF_FETCH),
		       COPY(0, 2), EXIT));
}

/* A function gets what all of its callers pass. */
static void test_functions(void **state)
{
	const struct bpf_insn add = INSN(BPF_ALU64 | BPF_ADD | BPF_X, 0, 2, 0, 0);

	(void)state;
	FOLDED(PROGRAM(COPY(6, 1), MOVE(2, 5), INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		       EXIT, COPY(0, 1), add, EXIT),
	       PROGRAM(INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1), EXIT, COPY(0, 1),
		       INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 5), EXIT));
	/* two that differ */
	FOLDED(PROGRAM(COPY(6, 1), MOVE(2, 5), INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 4),
		       COPY(1, 6), MOVE(2, 6), INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		       EXIT, COPY(0, 1), add, EXIT),
	       PROGRAM(COPY(6, 1), MOVE32(2, 5), INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 4),
		       COPY(1, 6), MOVE32(2, 6), INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		       EXIT, COPY(0, 1), add, EXIT));
}

/* What is not known stays as it is. */
static void test_unknown(void **state)
{
	const struct bpf_insn helper = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns);
	const struct bpf_insn loop = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_loop);
	const struct bpf_insn add = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 0, 0, 0, 1);
	const struct bpf_insn extend = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 0, 1, 8, 0);

	(void)state;
	/* an address with something added, or another map in place of a number */
	FOLDED(PROGRAM(COPY(2, 1), CONSTANTS(1, 0), INSN(BPF_ALU64 | BPF_ADD | BPF_X, 1, 2, 0, 0),
		       LOAD(BPF_B, 0, 1, 0), EXIT),
	       PROGRAM(COPY(2, 1), CONSTANTS(1, 0), INSN(BPF_ALU64 | BPF_ADD | BPF_X, 1, 2, 0, 0),
		       LOAD(BPF_B, 0, 1, 0), EXIT));
	FOLDED(PROGRAM(MOVE(0, 5), WIDE(0, BPF_PSEUDO_MAP_FD, OTHER + 1, 0), add, EXIT),
	       PROGRAM(WIDE(0, BPF_PSEUDO_MAP_FD, OTHER + 1, 0), add, EXIT));
	/* a move that extends the sign */
	FOLDED(PROGRAM(MOVE(1, 200), extend, EXIT), PROGRAM(MOVE32(1, 200), extend, EXIT));
	/* an argument of a helper behind it, and of a callback */
	FOLDED(PROGRAM(MOVE(1, 3), helper, COPY(0, 1), EXIT),
	       PROGRAM(MOVE32(1, 3), helper, COPY(0, 1), EXIT));
	FOLDED(PROGRAM(MOVE(1, 5), WIDE(2, BPF_PSEUDO_FUNC, 3, 0), loop, EXIT, COPY(0, 1), add,
		       EXIT),
	       PROGRAM(MOVE32(1, 5), WIDE(2, BPF_PSEUDO_FUNC, 3, 0), loop, EXIT, COPY(0, 1), add,
		       EXIT));
}

/* Numbers of 64 bits, of which 32 may count; shifts by a register. */
static void test_halves(void **state)
{
	(void)state;
	FOLDED(PROGRAM(WIDE(0, 0, 5, 1), INSN(BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 32), EXIT),
	       PROGRAM(MOVE32(0, 1), EXIT));
	FOLDED(PROGRAM(MOVE(1, -1), INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 1, 0, 0), EXIT),
	       PROGRAM(MOVE32(0, -1), EXIT));
	FOLDED(PROGRAM(MOVE(0, 1), INSN(BPF_ALU64 | BPF_LSH | BPF_K, 0, 0, 0, 64), EXIT),
	       PROGRAM(MOVE32(0, 1), INSN(BPF_ALU64 | BPF_LSH | BPF_K, 0, 0, 0, 64), EXIT));
	for (int narrow = 0; narrow < 2; narrow++) {
		const __u8 left = (narrow ? BPF_ALU : BPF_ALU64) | BPF_LSH;
		const __s32 bits = narrow ? 32 : 64;

		FOLDED(PROGRAM(MOVE(2, bits - 1), COPY(0, 1), INSN(left | BPF_X, 0, 2, 0, 0), EXIT),
		       PROGRAM(COPY(0, 1), INSN(left | BPF_K, 0, 0, 0, bits - 1), EXIT));
		FOLDED(PROGRAM(MOVE(2, bits), COPY(0, 1), INSN(left | BPF_X, 0, 2, 0, 0), EXIT),
		       PROGRAM(MOVE32(2, bits), COPY(0, 1), INSN(left | BPF_X, 0, 2, 0, 0), EXIT));
	}
	/* the lower half of either operand alone is compared, with its sign */
	for (int second = 0; second < 2; second++) {
		const __u8 a = 1 + second, b = 2 - second;

		FOLDED(PROGRAM(WIDE(a, 0, 5, 1), MOVE(b, 5),
			       INSN(BPF_JMP32 | BPF_JEQ | BPF_X, 1, 2, 2, 0), MOVE(0, 10), EXIT,
			       MOVE(0, 11), EXIT),
		       PROGRAM(MOVE32(0, 11), EXIT));
		FOLDED(PROGRAM(WIDE(a, 0, 5, 1), MOVE(b, 5),
			       INSN(BPF_JMP | BPF_JEQ | BPF_X, 1, 2, 2, 0), MOVE(0, 10), EXIT,
			       MOVE(0, 11), EXIT),
		       PROGRAM(MOVE32(0, 10), EXIT));
		FOLDED(PROGRAM(MOVE32(a, -1), MOVE(b, 0),
			       INSN(BPF_JMP32 | BPF_JSLT | BPF_X, 1, 2, 2, 0), MOVE(0, 10), EXIT,
			       MOVE(0, 11), EXIT),
		       PROGRAM(MOVE32(0, 11 - second), EXIT));
		FOLDED(PROGRAM(MOVE32(a, -1), MOVE(b, 0),
			       INSN(BPF_JMP | BPF_JSLT | BPF_X, 1, 2, 2, 0), MOVE(0, 10), EXIT,
			       MOVE(0, 11), EXIT),
		       PROGRAM(MOVE32(0, 10 + second), EXIT));
	}
}

/* Records get the new offset of their instruction; of those that went the last one stays. */
static void test_records(void **state)
{
	struct bpf_line_info lines[] = {
		{ 0, 1, 1, 1 }, { 1, 2, 2, 2 }, { 2, 3, 3, 3 }, { 3, 4, 4, 4 }, { 4, 5, 5, 5 }
	};
	struct bpf_func_info functions[] = { { 0, 7 }, { 4, 8 } };

	(void)state;
	opts.line_info = lines;
	opts.line_info_cnt = COUNT(lines);
	opts.line_info_rec_size = sizeof(*lines);
	opts.func_info = functions;
	opts.func_info_cnt = COUNT(functions);
	opts.func_info_rec_size = sizeof(*functions);
	/* the second function is never called */
	FOLDED(PROGRAM(MOVE(0, 1), JUMP(1), MOVE(0, 2), EXIT, MOVE(0, 3), EXIT),
	       PROGRAM(MOVE32(0, 1), EXIT));
	assert_int_equal(opts.line_info_cnt, 2);
	assert_int_equal(lines[0].insn_off, 0);
	assert_int_equal(lines[0].line_off, 1);
	assert_int_equal(lines[1].insn_off, 1);
	assert_int_equal(lines[1].line_off, 4);
	assert_int_equal(opts.func_info_cnt, 1);
	assert_int_equal(functions[0].insn_off, 0);
	assert_int_equal(functions[0].type_id, 7);
}

#define T(f) cmocka_unit_test_setup(f, no_records)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_loads),	    T(test_moved),    T(test_jumps),  T(test_by_value),
		T(test_arithmetic), T(test_branches), T(test_calls),  T(test_functions),
		T(test_records),    T(test_unknown),  T(test_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
