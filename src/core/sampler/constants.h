/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Constant folding for BPF programs. A program is compiled once for all selections; the parameters
 * of a selection are constants, known when the program is loaded. The verifier drops branches that
 * are not taken, but it keeps the loads of constants and the arithmetic on them, which cost
 * instructions and cache lines in each sample.
 */
#ifndef IBSCOPE_CONSTANTS_H
#define IBSCOPE_CONSTANTS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

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
};

/*
 * Fold constants before @prog is loaded with @opts: replaces map addresses and loads by values, and
 * removes unreachable and unused instructions. Returns 0 or a negative errno.
 */
int constants_use(struct bpf_program *prog, struct bpf_prog_load_opts *opts,
		  const struct constants *known);

#endif
