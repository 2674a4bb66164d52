/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of noted allocations that are not freed yet. Any thread may call these functions. */
#ifndef IBSCOPE_ALLOCS_LIVE_H
#define IBSCOPE_ALLOCS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#define LIVE_BITS 14

/* How many noted addresses have each hash: of most addresses to be freed it is 0. */
extern uint16_t live_hashes[1u << LIVE_BITS];

static inline uint64_t live_hash(const void *p)
{
	return ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ull;
}

/* Can @p be noted? */
static inline bool live_may_have(const void *p)
{
	return __atomic_load_n(&live_hashes[live_hash(p) >> (64 - LIVE_BITS)], __ATOMIC_RELAXED);
}

/* Return: false if there is no room. */
bool live_add(const void *p);

/* Let live_may_have() be true for @p from now on. */
void live_mark(const void *p);

/* Return: whether it was there. */
bool live_remove(const void *p);

#endif
