/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cgroups that cgroup.c knows: by id, the living ones by parent and name, the watched ones by
 * watch. Whoever owns a delegated cgroup can make as many below it as they like, so that depth,
 * number and bytes are limited.
 */
#ifndef IBSCOPE_CGROUP_TABLE_H
#define IBSCOPE_CGROUP_TABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_DEPTH_MAX 64	     /* of names in a path, which is shorter than PATH_MAX, too */
#define CGROUP_USER_MAX	 4096	     /* living cgroups below one that root gave to somebody */
#define CGROUP_BYTES_MAX (32u << 20) /* of all, the dead ones included */

enum cgroup_index { CGROUP_BY_ID, CGROUP_BY_NAME, CGROUP_BY_WD, CGROUP_N_INDEXES };

struct cgroup_node {
	uint64_t id;
	char *name;
	struct cgroup_node *parent; /* NULL: the root */
	struct cgroup_node
		*delegate;	   /* the topmost, from here up, that is not root's; NULL: none */
	unsigned int owner_uid;	      /* whose that one is, also when this is dead; 0: root's */
	unsigned short owner_len;     /* length of its path */
	uint64_t died_ns;	   /* CLOCK_MONOTONIC; 0: alive */
	unsigned int children;	   /* nodes that have this for a parent, the dead ones, too */
	unsigned int user_cgroups; /* living nodes that have this for a delegate */
	unsigned int walk;	   /* number of the last walk that met it */
	int wd;			   /* inotify's; -1: not watched */
	bool queued;
	bool forgotten; /* kept for the paths of its children only */
	bool refused;	/* as a delegate: cgroups were left out */
	struct cgroup_node *next_queued;
	struct cgroup_node *chain[CGROUP_N_INDEXES];
	struct cgroup_node *older, *newer; /* the dead, by time of death */
};

struct cgroup_table {
	struct cgroup_node **heads[CGROUP_N_INDEXES];
	size_t size; /* of each; a power of two */
	size_t n, n_dead, n_watched, bytes;
	struct cgroup_node *root, *oldest, *newest;
};

/* Return: 0 or -ENOMEM. */
int cgroup_table_init(struct cgroup_table *t);
void cgroup_table_free(struct cgroup_table *t);

/* Dead or alive. */
struct cgroup_node *cgroup_table_by_id(const struct cgroup_table *t, uint64_t id);
/* Alive. @len: of @name, which need not end there. */
struct cgroup_node *cgroup_table_child(const struct cgroup_table *t,
				       const struct cgroup_node *parent, const char *name,
				       size_t len);
struct cgroup_node *cgroup_table_by_wd(const struct cgroup_table *t, int wd);

/* Write the path, which stays below PATH_MAX. Return: @buf. */
char *cgroup_table_path(const struct cgroup_node *n, char buf[PATH_MAX]);

/* Return: 0 if @parent can have a child with a name of @len bytes; -ENAMETOOLONG; -ENOSPC. */
int cgroup_table_room(const struct cgroup_table *t, const struct cgroup_node *parent, size_t len);

/**
 * cgroup_table_put() - note that @parent has a cgroup @name with @id now
 * @parent:    NULL for the root, whose name is ""
 * @uid:       whose it is
 * @is_new:    whether it was not known so: a new id, one that was dead, or another path
 *
 * Whatever else had that name must have been killed before.
 *
 * Return: 0; what cgroup_table_room() returns; -ENOMEM.
 */
int cgroup_table_put(struct cgroup_table *t, uint64_t id, struct cgroup_node *parent,
		     const char *name, unsigned int uid, struct cgroup_node **out, bool *is_new);

/* Root gave @n to @uid after it was put here. */
void cgroup_table_delegate(struct cgroup_node *n, unsigned int uid);

/* @wd: -1 when it is not watched any more */
void cgroup_table_watch(struct cgroup_table *t, struct cgroup_node *n, int wd);
void cgroup_table_kill(struct cgroup_table *t, struct cgroup_node *n, uint64_t now_ns);

/* Drop those that died at @until_ns or before. Return: how many. */
size_t cgroup_table_forget(struct cgroup_table *t, uint64_t until_ns);
/* Drop the longest dead until there are only @max, and all take at most half of the bytes. */
void cgroup_table_trim(struct cgroup_table *t, size_t max);

#endif
