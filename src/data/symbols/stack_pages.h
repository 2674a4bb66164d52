/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of memory that are stacks of threads, by accesses through the stack pointer.
 *
 * Such an access proves nothing of the mapping around it: the kernel joins a stack with the block of memory
 * beside it, and coroutines have stacks among other data. So a page belongs to a thread from its first such
 * access to its last one, unless another thread has one to it meanwhile. Nothing is believed of a thread
 * whose stack pointer was in several mappings: it switches stacks, and may use their memory for something
 * else in between.
 *
 * The answers do not depend on the order in which accesses are added.
 */
#ifndef IBSCOPE_STACK_PAGES_H
#define IBSCOPE_STACK_PAGES_H

#include "base/u64_map.h"

#define STACK_PAGE_THREADS 16 /* of a page that more of them use none is known */

/* Zero is empty. */
struct stack_pages {
	struct stack_use *use;
	size_t n, room;
	struct u64_map of; /* several by the hash of a page */
	struct stack_thread *thread;
	size_t n_threads, threads_room;
	struct u64_map thread_of; /* by tgid and tid */
};

/*
 * A thread accessed an address through the stack pointer. Not the first thread of a process, whose own stack the
 * kernel names: it is in other memory only if it switches stacks.
 */
void stack_pages_add(struct stack_pages *p, __u32 tgid, __u32 tid, __u64 addr, __u64 time);

/**
 * stack_pages_find() - whose stack an address was in at a time
 * @start: of the mapping that has the address,
 * @end:   and behind it
 *
 * Return: the tid; 0 if nothing proves that it was one.
 */
__u32 stack_pages_find(const struct stack_pages *p, __u32 tgid, __u64 addr, __u64 time, __u64 start,
		       __u64 end);

/* Begin to load what stack_pages_find() reads first; @near: what it reads then. */
void stack_pages_expect(const struct stack_pages *p, __u32 tgid, __u64 addr, bool near);
void stack_pages_free(struct stack_pages *p);

#endif
