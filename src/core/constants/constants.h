/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Constant folding for BPF programs, between libbpf's relocation and the load.
 *
 * Why. A program is compiled once for all selections; the parameters of a selection are constants
 * in a read-only map, known when the program is loaded. The verifier follows only the branches that
 * are taken and drops the others, but it keeps the loads of constants, the arithmetic on them and
 * the comparisons, which cost instructions and cache lines in each sample: tests/bench/COST.md has
 * the figures. Compiling at run time would need clang on the machine; one program for each
 * combination of options would be thousands.
 *
 * How. A program is an array of instructions with its functions one after another. Five steps:
 *
 *  1. Values (constants_values.c). For each instruction, what each register holds before it:
 *     nothing yet, a number, an address in the constants, or anything. Begin with "anything" at the
 *     first instruction, execute each reached instruction on these values, and join the result into
 *     its successors: two different values become "anything". A branch on known values has one
 *     successor. Values only rise in the order nothing, known, anything, so this ends. A called
 *     function gets the join of the arguments of its callers; a callback gets "anything".
 *     Only loads from the read-only map yield numbers. The stack is not followed.
 *  2. Use (the same file). An instruction whose result is known becomes a move; a known second
 *     operand becomes an immediate; a branch that is always taken becomes a jump; one that is never
 *     taken, and what was not reached, goes.
 *  3. Liveness (constants.c). Backwards, which registers are read later; an instruction that only
 *     sets a register that nobody reads goes. Stores, calls and atomics always stay.
 *  4. Jumps to the next instruction go.
 *  5. The rest is moved together; jumps, calls and the records of function and line information
 *     get the new offsets. Records of removed instructions go.
 *
 * What must hold: for every input, the folded program has the same effects as the program as
 * compiled. tests/bpf/test_constants.c compares both over random selections and samples. An
 * instruction that this code does not know makes its result "anything" and stays. The verifier
 * checks the folded program like any other, so an error here can miscount, not harm the kernel.
 *
 * Maps with one value. The address of such a map in a program is replaced by that of its value, so
 * that programs reach it without a lookup (MAP_VALUE() in bpf/maps.bpf.h).
 */
#ifndef IBSCOPE_CONSTANTS_H
#define IBSCOPE_CONSTANTS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>

struct constants {
	/* read-only map, and its value: loads from it are known */
	int map_fd;
	const char *value;
	size_t bytes;
	/* maps: their address in a program is replaced by that of their value, plus `at` */
	struct {
		int map_fd;
		__u32 at;
	} by_value[3];
	bool unfolded; /* for tests: only replace the addresses of maps */
};

/*
 * Fold constants before @prog is loaded with @opts; call it from a libbpf_prog_prepare_load_fn_t.
 * Returns 0 or a negative errno.
 */
int constants_use(struct bpf_program *prog, struct bpf_prog_load_opts *opts,
		  const struct constants *known);

#endif
