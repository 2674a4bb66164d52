// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_private.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static __u64 name_key(const struct cgroup_node *parent, const char *name, size_t len)
{
	return bytes_hash(name, len) + (parent ? parent->id : 0);
}

/* Approximate size in malloc(). */
static size_t bytes_of(const char *name)
{
	return sizeof(struct cgroup_node) + strlen(name) + 32;
}

static void free_node(struct cgroup_table *t, struct cgroup_node *n)
{
	t->bytes -= bytes_of(n->name);
	t->node[n->at] = NULL;
	t->free = n->at < t->free ? n->at : t->free;
	free(n->name);
	free(n);
}

/* @n has one child less; free it if it was only kept for that. */
static void release(struct cgroup_table *t, struct cgroup_node *n)
{
	while (n && !--n->children && n->forgotten) {
		struct cgroup_node *parent = n->parent;

		free_node(t, n);
		n = parent;
	}
}

void cgroup_table_free(struct cgroup_table *t)
{
	for (size_t i = 0; i < t->size; i++)
		if (t->node[i])
			free_node(t, t->node[i]);
	free(t->node);
	u64_map_free(&t->by_id);
	u64_map_free(&t->by_name);
	u64_map_free(&t->by_wd);
	memset(t, 0, sizeof(*t));
}

static struct cgroup_node *node_at(const struct cgroup_table *t, __u32 at)
{
	return at == U64_MAP_NONE ? NULL : t->node[at];
}

struct cgroup_node *cgroup_table_by_id(const struct cgroup_table *t, uint64_t id)
{
	return node_at(t, u64_map_get(&t->by_id, id));
}

struct cgroup_node *cgroup_table_child(const struct cgroup_table *t,
				       const struct cgroup_node *parent, const char *name,
				       size_t len)
{
	__u32 at;

	u64_map_for_each(at, &t->by_name, name_key(parent, name, len))
	{
		struct cgroup_node *n = t->node[at];

		if (n->parent == parent && !strncmp(n->name, name, len) && !n->name[len])
			return n;
	}
	return NULL;
}

struct cgroup_node *cgroup_table_by_wd(const struct cgroup_table *t, int wd)
{
	return node_at(t, u64_map_get(&t->by_wd, wd));
}

static void list_dead(struct cgroup_table *t, struct cgroup_node *n)
{
	n->older = t->newest;
	n->newer = NULL;
	*(t->newest ? &t->newest->newer : &t->oldest) = n;
	t->newest = n;
	t->n_dead++;
}

static void unlist_dead(struct cgroup_table *t, struct cgroup_node *n)
{
	*(n->older ? &n->older->newer : &t->oldest) = n->newer;
	*(n->newer ? &n->newer->older : &t->newest) = n->older;
	t->n_dead--;
}

char *cgroup_table_path(const struct cgroup_node *n, char buf[PATH_MAX])
{
	char *p = buf + PATH_MAX - 1;

	*p = 0;
	if (!n->parent)
		*--p = '/';
	for (; n->parent; n = n->parent) {
		size_t len = strlen(n->name);

		p -= len;
		memcpy(p, n->name, len);
		*--p = '/';
	}
	return memmove(buf, p, buf + PATH_MAX - p);
}

int cgroup_table_room(const struct cgroup_table *t, const struct cgroup_node *parent, size_t len)
{
	const struct cgroup_node *delegate = parent ? parent->delegate : NULL;
	size_t depth = 1, path_len = len + 1;

	for (const struct cgroup_node *n = parent; n && n->parent; n = n->parent) {
		path_len += strlen(n->name) + 1;
		depth++;
	}
	if (depth > CGROUP_DEPTH_MAX || path_len >= PATH_MAX)
		return -ENAMETOOLONG;
	if (t->bytes > CGROUP_BYTES_MAX || (delegate && delegate->user_cgroups >= CGROUP_USER_MAX))
		return -ENOSPC;
	return 0;
}

static void set_delegate(struct cgroup_node *n, struct cgroup_node *delegate)
{
	if (n->delegate)
		n->delegate->user_cgroups--;
	n->delegate = delegate;
	if (delegate)
		delegate->user_cgroups++;
}

/* @uid: owner, unless an ancestor is delegated. */
static void set_owner(struct cgroup_node *n, unsigned int uid)
{
	const struct cgroup_node *parent = n->parent;

	n->owner_uid = n->owner_len = 0;
	if (parent && parent->delegate) {
		n->owner_uid = parent->owner_uid;
		n->owner_len = parent->owner_len;
		set_delegate(n, parent->delegate);
	} else if (uid) {
		n->owner_uid = uid;
		for (const struct cgroup_node *p = n; p->parent; p = p->parent)
			n->owner_len += strlen(p->name) + 1;
		set_delegate(n, n);
	} else {
		set_delegate(n, NULL);
	}
}

void cgroup_table_delegate(struct cgroup_node *n, unsigned int uid)
{
	if (!n->delegate)
		set_owner(n, uid);
}

static struct cgroup_node *new_node(struct cgroup_table *t, uint64_t id)
{
	struct cgroup_node *n = xcalloc(1, sizeof(*n));

	while (t->free < t->size && t->node[t->free])
		t->free++;
	array_reserve(t->node, t->room, t->free + 1);
	n->name = xstrdup("");
	u64_map_put(&t->by_id, id, t->free);
	n->id = id;
	n->wd = -1;
	n->died_ns = 1;
	n->at = t->free++;
	t->node[n->at] = n;
	t->size = t->free > t->size ? t->free : t->size;
	t->bytes += bytes_of(n->name);
	list_dead(t, n);
	t->n++;
	return n;
}

static void remove_name(struct cgroup_table *t, struct cgroup_node *n)
{
	u64_map_remove(&t->by_name, name_key(n->parent, n->name, strlen(n->name)), n->at);
}

/* Set the parent and name of @n. */
static void place(struct cgroup_table *t, struct cgroup_node *n, struct cgroup_node *parent,
		  const char *name)
{
	struct cgroup_node *old_parent = n->parent;
	char *copy = xstrdup(name);

	u64_map_add(&t->by_name, name_key(parent, name, strlen(name)), n->at);
	if (n->died_ns)
		unlist_dead(t, n);
	else
		remove_name(t, n);
	n->died_ns = 0;
	t->bytes += strlen(copy) - strlen(n->name);
	free(n->name);
	n->name = copy;
	n->parent = parent;
	if (parent)
		parent->children++;
	else
		t->root = n;
	release(t, old_parent);
}

void cgroup_table_watch(struct cgroup_table *t, struct cgroup_node *n, int wd)
{
	if (n->wd >= 0) {
		u64_map_remove(&t->by_wd, n->wd, n->at);
		t->n_watched--;
	}
	n->wd = wd;
	if (wd < 0)
		return;
	u64_map_add(&t->by_wd, wd, n->at);
	t->n_watched++;
}

void cgroup_table_kill(struct cgroup_table *t, struct cgroup_node *n, uint64_t now_ns)
{
	if (n->died_ns)
		return;
	cgroup_table_watch(t, n, -1);
	remove_name(t, n);
	set_delegate(n, NULL);
	n->died_ns = now_ns;
	list_dead(t, n);
}

/* @n is dead. */
static void drop(struct cgroup_table *t, struct cgroup_node *n)
{
	struct cgroup_node *parent = n->parent;

	unlist_dead(t, n);
	u64_map_remove(&t->by_id, n->id, n->at);
	t->n--;
	n->forgotten = true;
	if (n->children)
		return;
	free_node(t, n);
	release(t, parent);
}

int cgroup_table_put(struct cgroup_table *t, uint64_t id, struct cgroup_node *parent,
		     const char *name, unsigned int uid, struct cgroup_node **out, bool *is_new)
{
	struct cgroup_node *n = cgroup_table_by_id(t, id);
	int err;

	*out = n;
	*is_new = !n || n->died_ns || n->parent != parent || strcmp(n->name, name);
	if (!*is_new)
		return 0;
	err = cgroup_table_room(t, parent, strlen(name));
	if (err)
		return err;
	/* a node with children stays, so that their paths stay valid and no cycles arise */
	if (n && n->children) {
		cgroup_table_kill(t, n, 1);
		drop(t, n);
		n = NULL;
	}
	*out = n = n ?: new_node(t, id);
	place(t, n, parent, name);
	set_owner(n, uid);
	return 0;
}

size_t cgroup_table_forget(struct cgroup_table *t, uint64_t until_ns)
{
	size_t n;

	for (n = 0; t->oldest && t->oldest->died_ns <= until_ns; n++)
		drop(t, t->oldest);
	return n;
}

void cgroup_table_trim(struct cgroup_table *t, size_t max)
{
	while (t->n_dead > max || (t->n_dead && t->bytes > CGROUP_BYTES_MAX / 2))
		drop(t, t->oldest);
}
