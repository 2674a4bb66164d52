// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tasks.h"

/* Limits of a path, so that hostile nesting costs no memory. */
#define PATH_DEPTH 32
#define PATH_BYTES 1024

struct region_node region_tree_node(const struct region_tree *t, __u32 node)
{
	return node ? t->nodes[node - 1] : (struct region_node){ 0 };
}

/* Is there room for one more name in a path? */
static bool fits(const struct region_tree *t, __u32 parent, const char *name)
{
	const char *outer = region_tree_path(t, parent);

	return !outer || (region_tree_node(t, parent).depth < PATH_DEPTH &&
			  strlen(outer) + strlen(name) < PATH_BYTES);
}

static __u32 path_of(struct region_tree *t, __u32 parent, const char *name)
{
	const char *outer = region_tree_path(t, parent);
	char *path;
	__u32 id;

	if (!outer)
		return intern_get(&t->texts, name);
	if (!fits(t, parent, name))
		return region_tree_node(t, parent).path;
	path = xasprintf("%s/%s", outer, name);
	id = intern_get(&t->texts, path);
	free(path);
	return id;
}

/* A known region is found by its parent and name, since building and hashing its path takes longer. */
__u32 region_tree_begin(struct region_tree *t, __u32 parent, const char *name, __u32 team,
			__u32 number, __u64 addr)
{
	struct region_node new = { .parent = parent,
				   .depth = region_tree_node(t, parent).depth + 1,
				   .name = intern_get(&t->texts, fits(t, parent, name) ? name : ""),
				   .team = team,
				   .number = number,
				   .addr = addr };
	__u64 words[] = { parent, new.name, (__u64)team << 32 | number, addr };
	__u64 hash = words_hash(words, ARRAY_SIZE(words));
	__u32 i;

	u64_map_for_each(i, &t->node_of, hash)
	{
		const struct region_node *n = &t->nodes[i - 1];

		if (n->parent == parent && n->name == new.name && n->team == team &&
		    n->number == number && n->addr == addr)
			return i;
	}
	if (t->n == REGION_NODES_MAX)
		return parent;
	new.path = path_of(t, parent, name);
	array_reserve(t->nodes, t->room, t->n + 1);
	t->nodes[t->n++] = new;
	u64_map_add(&t->node_of, hash, t->n);
	return t->n;
}

const char *region_tree_path(const struct region_tree *t, __u32 node)
{
	return node ? intern_text(&t->texts, region_tree_node(t, node).path) : NULL;
}

const char *region_tree_name(const struct region_tree *t, __u32 node)
{
	const char *path = region_tree_path(t, node) ?: "";
	const char *outer = region_tree_path(t, region_tree_node(t, node).parent);

	if (!outer)
		return path;
	return path[strlen(outer)] ? path + strlen(outer) + 1 : "";
}

void region_tree_free(struct region_tree *t)
{
	free(t->nodes);
	u64_map_free(&t->node_of);
	intern_free(&t->texts);
	*t = (struct region_tree){};
}
