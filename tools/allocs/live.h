/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of noted allocations that are not freed yet. Any thread may call these functions. */
#ifndef IBSCOPE_ALLOCS_LIVE_H
#define IBSCOPE_ALLOCS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#define LIVE_BITS	14
#define LIVE_PIECE_BITS 6

/*
 * How many noted addresses are in each piece of memory, and in those that are a multiple of 1 MiB away: with most addresses to
 * be freed there is none. The index is the address itself: hashed, neighbouring addresses would have their counts in different
 * cache lines.
 */
extern uint32_t live_pieces[1u << LIVE_BITS];

static inline uint32_t *live_piece(const void *p)
{
	return &live_pieces[(uintptr_t)p >> LIVE_PIECE_BITS & ((1u << LIVE_BITS) - 1)];
}

/* Can @p be noted? */
static inline bool live_may_have(const void *p)
{
	return __atomic_load_n(live_piece(p), __ATOMIC_RELAXED);
}

/* Return: false if there is no room. */
bool live_add(const void *p);

/* Let live_may_have() be true for @p from now on. */
void live_mark(const void *p);

/* Return: whether it was there. */
bool live_remove(const void *p);

#endif
