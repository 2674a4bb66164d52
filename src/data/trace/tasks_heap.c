// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Allocations of a recording. Mappings are not followed: what a process maps and unmaps comes as allocations, too, and
 * the kernel reports a mapping again when its protection changes, as that of arenas does while they grow.
 */
#include "tasks.h"
#include "tasks_private.h"

#include "heap/heap_blocks.h"

void tasks_keep_heap(struct tasks *t)
{
	t->heap = t->heap ?: heap_new(0);
}

const struct heap *tasks_heap(const struct tasks *t)
{
	return t ? t->heap : NULL;
}

static void add_alloc(struct heap *h, __u64 time, const struct trace_alloc *a)
{
	heap_add(h, &(struct heap_block){ .time = time,
					  .addr = a->addr,
					  .size = a->size,
					  .weight = a->weight,
					  .stack = a->stack,
					  .n_stack = a->n_stack,
					  .tgid = a->tgid,
					  .tid = a->tid,
					  .mapped = a->mapped });
}

void tasks_add_to_heap(struct heap *h, const struct trace_event *ev)
{
	switch (ev->kind) {
	case TRACE_ALLOC:
		add_alloc(h, ev->time, &ev->alloc);
		break;
	case TRACE_FREE:
		heap_add_free(h, ev->time, ev->free.tgid, ev->free.addr, ev->free.size);
		break;
	case TRACE_FORK: /* only of processes, not of threads */
		if (ev->fork.tid == ev->fork.tgid && ev->fork.tgid != ev->fork.parent_tgid)
			heap_add_fork(h, ev->time, ev->fork.tgid, ev->fork.parent_tgid);
		break;
	case TRACE_EXIT:
		if (ev->fork.tid == ev->fork.tgid)
			heap_add_exit(h, ev->time, ev->fork.tgid);
		break;
	case TRACE_COMM:
		if (ev->comm.exec)
			heap_add_exec(h, ev->time, ev->comm.tgid);
		break;
	default:
		break;
	}
}
