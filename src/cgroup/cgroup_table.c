// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_SIZE 256

/* FNV-1a */
static uint64_t hash_text(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	while (len--)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3;
	return h;
}

static struct cgroup_node **head(const struct cgroup_table *t, enum cgroup_index index,
				 uint64_t key)
{
	/* Multiplying spreads ids and watches, which count up, into the high bits (Fibonacci). */
	key *= 0x9e3779b97f4a7c15;
	return &t->heads[index][key >> 32 & (t->size - 1)];
}

static uint64_t name_key(const struct cgroup_node *parent, const char *name, size_t len)
{
	return hash_text(name, len) + (parent ? parent->id : 0);
}

static uint64_t key_of(const struct cgroup_node *n, enum cgroup_index index)
{
	if (index == CGROUP_BY_NAME)
		return name_key(n->parent, n->name, strlen(n->name));
	return index == CGROUP_BY_ID ? n->id : (uint64_t)n->wd;
}

static void insert(struct cgroup_table *t, enum cgroup_index index, struct cgroup_node *n)
{
	struct cgroup_node **h = head(t, index, key_of(n, index));

	n->chain[index] = *h;
	*h = n;
}

static void erase(struct cgroup_table *t, enum cgroup_index index, struct cgroup_node *n)
{
	struct cgroup_node **p = head(t, index, key_of(n, index));

	while (*p != n)
		p = &(*p)->chain[index];
	*p = n->chain[index];
}

static int resize(struct cgroup_table *t, size_t size)
{
	struct cgroup_table new = *t;
	struct cgroup_node *n, *next;
	size_t i;
	int index;

	new.size = size;
	for (index = 0; index < CGROUP_N_INDEXES; index++) {
		new.heads[index] = calloc(size, sizeof(*new.heads[index]));
		if (!new.heads[index]) {
			while (index--)
				free(new.heads[index]);
			return -ENOMEM;
		}
	}
	for (index = 0; index < CGROUP_N_INDEXES; index++) {
		for (i = 0; i < t->size; i++) {
			for (n = t->heads[index][i]; n; n = next) {
				next = n->chain[index];
				insert(&new, index, n);
			}
		}
		free(t->heads[index]);
	}
	*t = new;
	return 0;
}

int cgroup_table_init(struct cgroup_table *t)
{
	memset(t, 0, sizeof(*t));
	return resize(t, INITIAL_SIZE);
}

/* What malloc() takes for them, about. */
static size_t bytes_of(const char *name)
{
	return sizeof(struct cgroup_node) + strlen(name) + 32;
}

static void free_node(struct cgroup_table *t, struct cgroup_node *n)
{
	t->bytes -= bytes_of(n->name);
	free(n->name);
	free(n);
}

/* @n has one child less, and may have been kept for that one only. */
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
	struct cgroup_node *n, *next;
	size_t i;
	int index;

	for (i = 0; i < t->size; i++) {
		for (n = t->heads[CGROUP_BY_ID][i]; n; n = n->chain[CGROUP_BY_ID])
			if (n->parent && n->parent->forgotten)
				release(t, n->parent);
	}
	for (i = 0; i < t->size; i++) {
		for (n = t->heads[CGROUP_BY_ID][i]; n; n = next) {
			next = n->chain[CGROUP_BY_ID];
			free_node(t, n);
		}
	}
	for (index = 0; index < CGROUP_N_INDEXES; index++)
		free(t->heads[index]);
	memset(t, 0, sizeof(*t));
}

struct cgroup_node *cgroup_table_by_id(const struct cgroup_table *t, uint64_t id)
{
	struct cgroup_node *n = *head(t, CGROUP_BY_ID, id);

	while (n && n->id != id)
		n = n->chain[CGROUP_BY_ID];
	return n;
}

struct cgroup_node *cgroup_table_child(const struct cgroup_table *t,
				       const struct cgroup_node *parent, const char *name,
				       size_t len)
{
	struct cgroup_node *n = *head(t, CGROUP_BY_NAME, name_key(parent, name, len));

	while (n && (n->parent != parent || strncmp(n->name, name, len) || n->name[len]))
		n = n->chain[CGROUP_BY_NAME];
	return n;
}

struct cgroup_node *cgroup_table_by_wd(const struct cgroup_table *t, int wd)
{
	struct cgroup_node *n = *head(t, CGROUP_BY_WD, wd);

	while (n && n->wd != wd)
		n = n->chain[CGROUP_BY_WD];
	return n;
}

static void bury(struct cgroup_table *t, struct cgroup_node *n)
{
	n->older = t->newest;
	n->newer = NULL;
	*(t->newest ? &t->newest->newer : &t->oldest) = n;
	t->newest = n;
	t->n_dead++;
}

static void unbury(struct cgroup_table *t, struct cgroup_node *n)
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

/* @uid: whose it is; that of what is around it counts more. */
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
	struct cgroup_node *n;

	if (t->n >= t->size)
		resize(t, t->size * 2); /* failing, the chains get longer */
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->name = strdup("");
	if (!n->name) {
		free(n);
		return NULL;
	}
	n->id = id;
	n->wd = -1;
	n->died_ns = 1;
	t->bytes += bytes_of(n->name);
	insert(t, CGROUP_BY_ID, n);
	bury(t, n);
	t->n++;
	return n;
}

/* Give @n its place. */
static int place(struct cgroup_table *t, struct cgroup_node *n, struct cgroup_node *parent,
		 const char *name)
{
	struct cgroup_node *old_parent = n->parent;
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	if (n->died_ns)
		unbury(t, n);
	else
		erase(t, CGROUP_BY_NAME, n);
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
	insert(t, CGROUP_BY_NAME, n);
	return 0;
}

void cgroup_table_watch(struct cgroup_table *t, struct cgroup_node *n, int wd)
{
	if (n->wd >= 0) {
		erase(t, CGROUP_BY_WD, n);
		t->n_watched--;
	}
	n->wd = wd;
	if (wd >= 0) {
		insert(t, CGROUP_BY_WD, n);
		t->n_watched++;
	}
}

void cgroup_table_kill(struct cgroup_table *t, struct cgroup_node *n, uint64_t now_ns)
{
	if (n->died_ns)
		return;
	cgroup_table_watch(t, n, -1);
	erase(t, CGROUP_BY_NAME, n);
	set_delegate(n, NULL);
	n->died_ns = now_ns;
	bury(t, n);
}

/* @n is dead. */
static void drop(struct cgroup_table *t, struct cgroup_node *n)
{
	struct cgroup_node *parent = n->parent;

	unbury(t, n);
	erase(t, CGROUP_BY_ID, n);
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
	/* a node with children stays where it is, so that their paths do, and there are no circles */
	if (n && n->children) {
		cgroup_table_kill(t, n, 1);
		drop(t, n);
		n = NULL;
	}
	*out = n = n ?: new_node(t, id);
	if (!n)
		return -ENOMEM;
	err = place(t, n, parent, name);
	if (err)
		return err;
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
