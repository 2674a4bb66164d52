/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which allocation has an address of a process at a time. Events may be added in any order, but all of them before
 * the first query; queries may be of any time and in any order.
 */
#ifndef IBSCOPE_HEAP_BLOCKS_H
#define IBSCOPE_HEAP_BLOCKS_H

#include "base/std.h"

struct heap;

#define HEAP_STACK 24 /* innermost addresses of a stack that are kept: allocators have few frames */

/* An allocation. `weight`: as in struct trace_alloc. */
struct heap_block {
	__u64 time, addr, size, weight;
	const __u64 *stack; /* return addresses, innermost first */
	unsigned int n_stack;
	__u32 tgid, tid; /* that allocated it: of a block that was inherited, those of the parent */
	bool mapped;	 /* by mmap; else by malloc and its family */
	__u32 number;	 /* of the block; less than heap_counts().events */
};

struct heap_counts {
	__u64 events;	 /* that were kept */
	__u64 left_out;	 /* beyond the limit */
	__u64 unmatched; /* frees of what was not known to be allocated */
	__u64 missed;	 /* allocations where another one still was: its free was missed */
};

/* @max_events: limit of what is kept; 0: the default, which takes at most 600 MB */
struct heap *heap_new(size_t max_events);
void heap_free(struct heap *h); /* accepts NULL */

/* @b: its number is not read */
void heap_add(struct heap *h, const struct heap_block *b);

/* @size: of a range that was unmapped, which may be part of a block or several; 0: what malloc gave at @addr */
void heap_add_free(struct heap *h, __u64 time, __u32 tgid, __u64 addr, __u64 size);

/* @parent: whose allocations the process inherits; 0: none */
void heap_add_fork(struct heap *h, __u64 time, __u32 tgid, __u32 parent);

/* All memory of the process is gone. */
void heap_add_exec(struct heap *h, __u64 time, __u32 tgid);

/* The process has ended: what follows is of another one with its number. */
void heap_add_exit(struct heap *h, __u64 time, __u32 tgid);

/**
 * heap_find() - the allocation that has an address
 * @time: 0: the last of all
 *
 * What malloc gave goes before the mapping around it, which an allocator may have mapped.
 */
bool heap_find(const struct heap *h, __u32 tgid, __u64 addr, __u64 time, struct heap_block *out);

struct heap_counts heap_counts(const struct heap *h);

#endif
