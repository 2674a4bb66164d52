// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "map_tree.h"

#include "base/intern.h"

__u32 map_pool_stamp(struct map_pool *p)
{
	return ++p->last_stamp;
}

/* Node 0 means no node. */
static __u32 new_node(struct map_pool *p, const struct map_node *like, __u32 stamp)
{
	if (p->n == U64_MAP_NONE)
		out_of_memory();
	array_reserve_zero(p->nodes, p->room, p->n + 2);
	p->n += !p->n;
	p->nodes[p->n] = *like;
	p->nodes[p->n].stamp = stamp;
	return p->n++;
}

/* Unpredictable to whoever crafts the input: it decides the depth. */
static __u32 random_priority(struct map_pool *p)
{
	if (!p->random)
		p->random = (size_t)p;
	p->random = u64_hash(p->random + 0x9e3779b97f4a7c15ull);
	return p->random;
}

static __u32 own(struct map_pool *p, __u32 n, __u32 stamp)
{
	struct map_node copy = p->nodes[n];

	return copy.stamp == stamp ? n : new_node(p, &copy, stamp);
}

/* All of @a is below all of @b. */
static __u32 join(struct map_pool *p, __u32 a, __u32 b, __u32 stamp)
{
	__u32 n, part;

	if (!a || !b)
		return a ? a : b;
	if (p->nodes[a].priority > p->nodes[b].priority) {
		n = own(p, a, stamp);
		part = join(p, p->nodes[n].right, b, stamp);
		p->nodes[n].right = part;
	} else {
		n = own(p, b, stamp);
		part = join(p, a, p->nodes[n].left, stamp);
		p->nodes[n].left = part;
	}
	return n;
}

/* Split at an address; a node across it is cut. */
static void split(struct map_pool *p, __u32 n, __u32 stamp, __u64 at, __u32 *below, __u32 *above)
{
	struct map_node *node;
	__u32 part;

	*below = *above = 0;
	if (!n)
		return;
	n = own(p, n, stamp);
	node = &p->nodes[n];
	if (node->end <= at) {
		split(p, node->right, stamp, at, &part, above);
		p->nodes[n].right = part;
		*below = n;
	} else if (node->start >= at) {
		split(p, node->left, stamp, at, below, &part);
		p->nodes[n].left = part;
		*above = n;
	} else {
		struct map_node upper = { .start = at, .end = node->end, .value = node->value };
		__u32 right = node->right;

		node->end = at;
		node->right = 0;
		*below = n;
		upper.priority = random_priority(p);
		*above = join(p, new_node(p, &upper, stamp), right, stamp);
	}
}

__u32 map_tree_set(struct map_pool *p, __u32 root, __u32 stamp, __u64 start, __u64 end, __u32 value)
{
	struct map_node node = { .start = start, .end = end, .value = value };
	__u32 below, inside, above, n;

	node.priority = random_priority(p);
	n = new_node(p, &node, stamp);
	split(p, root, stamp, start, &below, &above);
	split(p, above, stamp, end, &inside, &above);
	return join(p, join(p, below, n, stamp), above, stamp);
}

const struct map_node *map_tree_find(const struct map_pool *p, __u32 root, __u64 addr)
{
	while (root) {
		const struct map_node *n = &p->nodes[root];

		if (addr < n->start)
			root = n->left;
		else if (addr >= n->end)
			root = n->right;
		else
			return n;
	}
	return NULL;
}

const struct map_node *map_tree_near(const struct map_pool *p, __u32 root, __u64 addr, bool above)
{
	const struct map_node *best = NULL;

	while (root) {
		const struct map_node *n = &p->nodes[root];
		bool is_above = n->start > addr;

		if (is_above == above)
			best = n;
		root = is_above ? n->left : n->right;
	}
	return best;
}

void map_pool_free(struct map_pool *p)
{
	free(p->nodes);
	memset(p, 0, sizeof(*p));
}
