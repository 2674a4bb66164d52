/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Disjoint address ranges in versions that share equal parts: a new version costs a few nodes, and older
 * ones stay unchanged. These are treaps that copy nodes before changing them.
 *
 * A sorted array for each version would be simpler, but each fork() makes a version: for 10,000 processes that
 * inherit 1,000 maps and change three, the nodes take 16 MB, and such arrays would take 200 MB.
 */
#ifndef IBSCOPE_MAP_TREE_H
#define IBSCOPE_MAP_TREE_H

#include "base/std.h"

struct map_node {
	__u64 start, end; /* end excluded */
	__u32 value;
	__u32 left, right; /* 0: none */
	__u32 priority;
	__u32 stamp; /* of the version that created it; only that version may change it */
};

/* All nodes of all versions. Zero is none. */
struct map_pool {
	struct map_node *nodes;
	size_t n, room;
	__u64 random;
	__u32 last_stamp;
};

/* A stamp for a new version. */
__u32 map_pool_stamp(struct map_pool *p);

/**
 * map_tree_set() - make a version in which [@start, @end) has a value, replacing earlier ranges
 * @root:  the version to start from, 0 for the empty one; unchanged except for nodes of @stamp
 * @stamp: from map_pool_stamp(); with an earlier stamp, that version is changed in place
 *
 * Return: the root of the new version.
 */
__u32 map_tree_set(struct map_pool *p, __u32 root, __u32 stamp, __u64 start, __u64 end,
		   __u32 value);

/* The node that contains an address, or NULL; valid until the next change of any version. */
const struct map_node *map_tree_find(const struct map_pool *p, __u32 root, __u64 addr);

/* The node next to an address: the first one that begins above it, or the last one that begins below. */
const struct map_node *map_tree_near(const struct map_pool *p, __u32 root, __u64 addr, bool above);

void map_pool_free(struct map_pool *p);

#endif
