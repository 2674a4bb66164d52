/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nested regions as nodes of a tree, each with the one around it. Node 0 is outside of all. */
#ifndef IBSCOPE_REGION_TREE_H
#define IBSCOPE_REGION_TREE_H

#include "base/intern.h"

struct region_node {
	__u32 parent, depth;
	__u32 path;	    /* in `texts`, "outer/inner" */
	__u32 team, number; /* of OpenMP: who began the team, and the place in it */
	__u64 addr;	    /* 0: no region */
};

/* The zero value has node 0 alone. */
struct region_tree {
	struct region_node *nodes;
	size_t n, room;
	struct u64_map node_of;
	struct intern texts;
};

/* Threads times regions of a large program, and 20 MB */
#define REGION_NODES_MAX (1u << 18)

/*
 * The region in @parent of a name, or of OpenMP, which has none: "". When there are too many nodes, as of
 * a program that begins regions and never ends them, this is @parent.
 */
__u32 region_tree_begin(struct region_tree *t, __u32 parent, const char *name, __u32 team,
			__u32 number, __u64 addr);

struct region_node region_tree_node(const struct region_tree *t, __u32 node);

/* The last name of the path; "": none, or left out. */
const char *region_tree_name(const struct region_tree *t, __u32 node);

/* NULL: node 0 */
const char *region_tree_path(const struct region_tree *t, __u32 node);

void region_tree_free(struct region_tree *t);

#endif
