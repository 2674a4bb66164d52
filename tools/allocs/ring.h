/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes events to the file of this process. Any thread may call these functions; they never wait. */
#ifndef IBSCOPE_ALLOCS_RING_H
#define IBSCOPE_ALLOCS_RING_H

#include <ibscope/alloc_file.h>

#include <stdbool.h>

/* @dir: for the files, must stay valid; @bytes and @own_malloc: what the file says of them */
void ring_init(const char *dir, uint64_t bytes, bool own_malloc);

/* Create the file now, not with the first event. */
void ring_open(void);

/* @e: its check is set here; @stack: e->n_stack addresses */
void ring_put(struct ibscope_alloc_event *e, const uint64_t *stack);

/* An event that is not known to the caller any more. */
void ring_lose(void);

/* In a child after fork(): it has a file of its own. */
void ring_forked(void);

#endif
