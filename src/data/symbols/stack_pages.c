// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stack_pages.h"

#include "base/array.h"

#define PAGE_BYTES 4096

/* A page as the stack of a thread. */
struct stack_use {
	__u64 page, first,
		last; /* page: address / PAGE_BYTES; time of the first and the last access */
	__u32 tgid, tid;
	bool many; /* the page has more than STACK_PAGE_THREADS */
};

/* Everything that its stack pointer accessed. */
struct stack_thread {
	__u64 lowest, highest;
};

static __u64 page_key(__u32 tgid, __u64 page)
{
	return words_hash((const __u64[]){ tgid, page }, 2);
}

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

static void add_thread(struct stack_pages *p, __u32 tgid, __u32 tid, __u64 addr)
{
	__u32 i = u64_map_get(&p->thread_of, thread_key(tgid, tid));
	struct stack_thread *t;

	if (i == U64_MAP_NONE) {
		if (p->n_threads == U64_MAP_NONE - 1)
			out_of_memory();
		i = p->n_threads++;
		array_reserve(p->thread, p->threads_room, p->n_threads);
		p->thread[i] = (struct stack_thread){ addr, addr };
		u64_map_put(&p->thread_of, thread_key(tgid, tid), i);
	}
	t = &p->thread[i];
	t->lowest = addr < t->lowest ? addr : t->lowest;
	t->highest = addr > t->highest ? addr : t->highest;
}

void stack_pages_add(struct stack_pages *p, __u32 tgid, __u32 tid, __u64 addr, __u64 time)
{
	__u64 page = addr / PAGE_BYTES, key = page_key(tgid, page);
	struct stack_use *of_page = NULL;
	unsigned int n = 0;
	__u32 i;

	add_thread(p, tgid, tid, addr);
	u64_map_for_each(i, &p->of, key)
	{
		struct stack_use *u = &p->use[i];

		if (u->page != page || u->tgid != tgid)
			continue;
		of_page = u;
		n++;
		if (u->tid != tid)
			continue;
		u->first = time < u->first ? time : u->first;
		u->last = time > u->last ? time : u->last;
		return;
	}
	if (n == STACK_PAGE_THREADS) {
		of_page->many = true;
		return;
	}
	if (p->n == U64_MAP_NONE - 1)
		out_of_memory();
	array_reserve(p->use, p->room, p->n + 1);
	p->use[p->n] = (struct stack_use){ page, time, time, tgid, tid, false };
	u64_map_add(&p->of, key, p->n++);
}

__u32 stack_pages_find(const struct stack_pages *p, __u32 tgid, __u64 addr, __u64 time, __u64 start,
		       __u64 end)
{
	__u64 page = addr / PAGE_BYTES;
	const struct stack_thread *t;
	__u32 i, tid = 0;

	u64_map_for_each(i, &p->of, page_key(tgid, page))
	{
		const struct stack_use *u = &p->use[i];

		if (u->page != page || u->tgid != tgid)
			continue;
		if (u->many)
			return 0;
		if (time < u->first || time > u->last)
			continue;
		if (tid)
			return 0;
		tid = u->tid;
	}
	if (!tid)
		return 0;
	t = &p->thread[u64_map_get(&p->thread_of, thread_key(tgid, tid))];
	return t->lowest >= start && t->highest < end ? tid : 0;
}

void stack_pages_expect(const struct stack_pages *p, __u32 tgid, __u64 addr, bool near)
{
	const __u64 key = page_key(tgid, addr / PAGE_BYTES);
	const __u32 first = near ? u64_map_get(&p->of, key) : U64_MAP_NONE;

	if (!near)
		u64_map_prefetch(&p->of, key);
	else if (first != U64_MAP_NONE)
		__builtin_prefetch(&p->use[first]);
}

void stack_pages_free(struct stack_pages *p)
{
	free(p->use);
	free(p->thread);
	u64_map_free(&p->of);
	u64_map_free(&p->thread_of);
	memset(p, 0, sizeof(*p));
}
