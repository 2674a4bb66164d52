/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of numbers by key, each in the order of time, that find the last one up to a time. Each link has the one
 * before it and one further back, so that the search takes logarithmic time and nothing is ever sorted or moved.
 */
#ifndef IBSCOPE_HEAP_CHAINS_H
#define IBSCOPE_HEAP_CHAINS_H

#include "base/u64_map.h"

#define CHAIN_NONE U64_MAP_NONE

struct chain_link {
	__u64 time;
	__u32 value, depth;
	__u32 before, further; /* the first one has itself before it */
	__u32 after;	       /* the last one has itself after it */
};

/* The zero value is empty. */
struct chains {
	struct u64_map chain_of; /* by key */
	struct chain {
		__u32 last;
		__u32 found; /* by the last search: the next one is often for the same or the next time */
	} * chains;
	struct chain_link *links;
	size_t n, room, n_chains, chains_room;
};

/* @time: not before that of the last link of @key */
void chains_add(struct chains *c, __u64 key, __u64 time, __u32 value);

/* The last value of a key; CHAIN_NONE if there is none. */
__u32 chains_last(const struct chains *c, __u64 key);

/* *value: of the last link up to a time, or CHAIN_NONE. Return: whether the key has any. */
bool chains_at(struct chains *c, __u64 key, __u64 time, __u32 *value);

void chains_free(struct chains *c);

#endif
