/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program is compiled for every selection; what one selection is made of is constant, and known when
 * the program is loaded. The verifier drops the branches that are not taken, but it keeps the loads of the
 * constants and the arithmetic on them, which cost instructions and cache lines at each sample.
 */
#ifndef IBSCOPE_CONSTANTS_H
#define IBSCOPE_CONSTANTS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct constants {
	/* a map that nobody writes, and its value: loads from it are known */
	int map_fd;
	const char *value;
	size_t bytes;
	/* maps: their address in a program means that of their value, or of what is `at` in it */
	struct {
		int map_fd;
		__u32 at;
	} by_value[3];
};

/*
 * Before @prog is given to the kernel with @opts: puts values in the place of addresses and of loads, and
 * removes what is then unreachable or unused. Returns 0 or a negative errno.
 */
int constants_use(struct bpf_program *prog, struct bpf_prog_load_opts *opts,
		  const struct constants *known);

#endif
