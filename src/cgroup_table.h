/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What cgroup.c knows: cgroups by id, the living ones by path, the watched ones by watch. */
#ifndef IBSCOPE_CGROUP_TABLE_H
#define IBSCOPE_CGROUP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cgroup_index { CGROUP_BY_ID, CGROUP_BY_PATH, CGROUP_BY_WD, CGROUP_N_INDEXES };

struct cgroup_node {
	uint64_t id;
	char *path;
	uint64_t died_ns;  /* CLOCK_MONOTONIC; 0: alive */
	unsigned int walk; /* number of the last walk that met it */
	int wd;		   /* inotify's; -1: not watched */
	bool queued;
	struct cgroup_node *next_queued;
	struct cgroup_node *chain[CGROUP_N_INDEXES];
	struct cgroup_node *older, *newer; /* the dead, by time of death */
};

struct cgroup_table {
	struct cgroup_node **heads[CGROUP_N_INDEXES];
	size_t size; /* of each; a power of two */
	size_t n, n_dead, n_watched;
	struct cgroup_node *oldest, *newest;
};

/* Return: 0 or -ENOMEM. */
int cgroup_table_init(struct cgroup_table *t);
void cgroup_table_free(struct cgroup_table *t);

/* Dead or alive. */
struct cgroup_node *cgroup_table_by_id(const struct cgroup_table *t, uint64_t id);
/* Alive. @len: of @path, which need not end there. */
struct cgroup_node *cgroup_table_by_path(const struct cgroup_table *t, const char *path,
					 size_t len);
struct cgroup_node *cgroup_table_by_wd(const struct cgroup_table *t, int wd);

/**
 * cgroup_table_put() - note that @path has @id now
 * @path: the table's from here on, also on failure
 * @is_new: whether it was not known so: a new id, one that was dead, or another path
 *
 * Whatever else had that path must have been killed before.
 *
 * Return: NULL when out of memory.
 */
struct cgroup_node *cgroup_table_put(struct cgroup_table *t, uint64_t id, char *path, bool *is_new);

/* @wd: -1 when it is not watched any more */
void cgroup_table_watch(struct cgroup_table *t, struct cgroup_node *n, int wd);
void cgroup_table_kill(struct cgroup_table *t, struct cgroup_node *n, uint64_t now_ns);

/* Drop those that died at @until_ns or before. Return: how many. */
size_t cgroup_table_forget(struct cgroup_table *t, uint64_t until_ns);
/* Drop the longest dead until there are only @max. */
void cgroup_table_trim(struct cgroup_table *t, size_t max);

#endif
