/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tree of nested regions; the parent of a node is the enclosing region. Node 0 is outside all regions. */
#ifndef IBSCOPE_REGION_TREE_H
#define IBSCOPE_REGION_TREE_H

#include "base/intern.h"

struct region_node {
	__u32 parent, depth;
	__u32 path, name;   /* in `texts`, "outer/inner"; the last name */
	__u32 team, number; /* OpenMP: thread that began the team, and number in the team */
	__u64 addr;	    /* 0: no region */
};

/* The zero value has only node 0. */
struct region_tree {
	struct region_node *nodes;
	size_t n, room;
	struct u64_map node_of;
	struct intern texts;
};

/* enough for threads times regions of a large program; 20 MB */
#define REGION_NODES_MAX (1u << 18)

/*
 * Begin a region inside @parent. @name: "" for OpenMP regions. Return: its node; @parent if there are too many
 * nodes, as in a program that begins regions and never ends them.
 */
__u32 region_tree_begin(struct region_tree *t, __u32 parent, const char *name, __u32 team,
			__u32 number, __u64 addr);

struct region_node region_tree_node(const struct region_tree *t, __u32 node);

/* The last name of the path; "": no name, or left out. */
const char *region_tree_name(const struct region_tree *t, __u32 node);

/* NULL: node 0 */
const char *region_tree_path(const struct region_tree *t, __u32 node);

void region_tree_free(struct region_tree *t);

#endif
