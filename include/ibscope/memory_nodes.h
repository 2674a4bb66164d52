/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps a physical address to its NUMA node, in the same number of steps for every address. */
#ifndef IBSCOPE_MEMORY_NODES_H
#define IBSCOPE_MEMORY_NODES_H

#include <ibscope/fetch.h>

#define IBS_MEMORY_PARTS 512 /* a power of two */
#define IBS_MEMORY_END	 (~0ULL >> 1)

/*
 * Parts of the address space, without gaps: each extends to the start of the next, part 0 starts at
 * 0. Parts that only pad the number to a power of two start at IBS_MEMORY_END + 1.
 */
struct ibs_memory_nodes {
	__u32 n;			/* a power of two; 0: unknown */
	__u64 before[IBS_MEMORY_PARTS]; /* start of the part - 1; unused for part 0 */
	__u8 node[IBS_MEMORY_PARTS];	/* as ibs_memory_node() returns it */
};

/*
 * @fetch: compile-time constant: @regs are those of ibs_fetch, else of ibs_op
 *
 * A binary search without branches, since the verifier would follow every path through them; the
 * sign of a difference replaces the comparison.
 *
 * Return: node + 1, or 0 if unknown.
 */
static __always_inline __u8 ibs_memory_node(const volatile struct ibs_memory_nodes *m, __u32 caps,
					    const __u64 *regs, bool fetch)
{
	const __u64 phys = regs[fetch ? (int)IBS_FETCH_PHYSADDR : (int)IBS_DC_PHYSADDR];
	const __u32 n = m->n;
	__u64 at = 0; /* byte offset of the part in `before` */

	if (fetch ? !ibs_fetch_phys_valid(regs) : !ibs_op_phys_valid(caps, regs))
		return 0;
	IBS_UNROLL
	for (__u64 step = IBS_MEMORY_PARTS / 2; step; step /= 2) {
		const volatile char *middle = (const volatile char *)&m->before[step] + at;

		if (step < n)
			at += (*(const volatile __u64 *)middle - phys) >> 63 ? step * sizeof(__u64)
									     : 0;
	}
	return m->node[at / sizeof(__u64)];
}

#endif
