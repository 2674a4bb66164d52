// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cgroup_table.h"

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

static uint64_t key_of(const struct cgroup_node *n, enum cgroup_index index)
{
	if (index == CGROUP_BY_PATH)
		return hash_text(n->path, strlen(n->path));
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

void cgroup_table_free(struct cgroup_table *t)
{
	struct cgroup_node *n, *next;
	size_t i;
	int index;

	for (i = 0; i < t->size; i++) {
		for (n = t->heads[CGROUP_BY_ID][i]; n; n = next) {
			next = n->chain[CGROUP_BY_ID];
			free(n->path);
			free(n);
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

struct cgroup_node *cgroup_table_by_path(const struct cgroup_table *t, const char *path, size_t len)
{
	struct cgroup_node *n = *head(t, CGROUP_BY_PATH, hash_text(path, len));

	while (n && (strncmp(n->path, path, len) || n->path[len]))
		n = n->chain[CGROUP_BY_PATH];
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

struct cgroup_node *cgroup_table_put(struct cgroup_table *t, uint64_t id, char *path, bool *is_new)
{
	struct cgroup_node *n = cgroup_table_by_id(t, id);

	*is_new = !n || n->died_ns || strcmp(n->path, path);
	if (!*is_new) {
		free(path);
		return n;
	}
	if (!n) {
		if (t->n >= t->size)
			resize(t, t->size * 2); /* failing, the chains get longer */
		n = calloc(1, sizeof(*n));
		if (!n) {
			free(path);
			return NULL;
		}
		n->id = id;
		n->wd = -1;
		insert(t, CGROUP_BY_ID, n);
		t->n++;
	} else if (n->died_ns) {
		unbury(t, n);
		n->died_ns = 0;
	} else {
		erase(t, CGROUP_BY_PATH, n);
	}
	free(n->path);
	n->path = path;
	insert(t, CGROUP_BY_PATH, n);
	return n;
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
	erase(t, CGROUP_BY_PATH, n);
	n->died_ns = now_ns;
	bury(t, n);
}

static void drop_oldest(struct cgroup_table *t)
{
	struct cgroup_node *n = t->oldest;

	unbury(t, n);
	erase(t, CGROUP_BY_ID, n);
	t->n--;
	free(n->path);
	free(n);
}

size_t cgroup_table_forget(struct cgroup_table *t, uint64_t until_ns)
{
	size_t n;

	for (n = 0; t->oldest && t->oldest->died_ns <= until_ns; n++)
		drop_oldest(t);
	return n;
}

void cgroup_table_trim(struct cgroup_table *t, size_t max)
{
	while (t->n_dead > max)
		drop_oldest(t);
}
