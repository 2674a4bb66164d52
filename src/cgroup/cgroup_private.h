/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cgroups that cgroup.c knows: by id, the living ones by parent and name, the watched ones by
 * watch. Whoever owns a delegated cgroup can make as many below it as they like, so that depth,
 * number and bytes are limited.
 */
#ifndef IBSCOPE_CGROUP_PRIVATE_H
#define IBSCOPE_CGROUP_PRIVATE_H

#include "base/u64_map.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CGROUP_DEPTH_MAX 64	     /* of names in a path, which is shorter than PATH_MAX, too */
#define CGROUP_USER_MAX	 4096	     /* living cgroups below one that root gave to somebody */
#define CGROUP_BYTES_MAX (32u << 20) /* of all, the dead ones included */

struct cgroup_node {
	uint64_t id;
	char *name;
	struct cgroup_node *parent; /* NULL: the root */
	struct cgroup_node
		*delegate;	   /* the topmost, from here up, that is not root's; NULL: none */
	unsigned int owner_uid;	   /* whose that one is, also when this is dead; 0: root's */
	unsigned short owner_len;  /* length of its path */
	uint64_t died_ns;	   /* CLOCK_MONOTONIC; 0: alive */
	unsigned int children;	   /* nodes that have this for a parent, the dead ones, too */
	unsigned int user_cgroups; /* living nodes that have this for a delegate */
	unsigned int walk;	   /* number of the last walk that met it */
	int wd;			   /* inotify's; -1: not watched */
	bool queued;
	bool forgotten; /* kept for the paths of its children only */
	bool refused;	/* as a delegate: cgroups were left out */
	struct cgroup_node *next_queued;
	unsigned int at;		   /* in the table */
	struct cgroup_node *older, *newer; /* the dead, by time of death */
};

struct cgroup_table {
	struct cgroup_node **node;	      /* NULL: a free place; the forgotten are among them */
	size_t size, room, free;	      /* free: all places below it are taken */
	struct u64_map by_id, by_name, by_wd; /* places; of names by hash */
	size_t n, n_dead, n_watched, bytes;
	struct cgroup_node *root, *oldest, *newest;
};

/* The zero value is empty. */
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
 * Return: 0, or what cgroup_table_room() returns.
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

/*
 * The directories of a cgroup hierarchy as the kernel names them: by paths below the
 * mount, which is "/" here, and by ids. A path has at most PATH_MAX - 1 bytes.
 */

struct cgroup_dirs {
	int fd; /* of the mount; -1: not open */
	dev_t dev;
	char *real;  /* what /proc says of it, as it does of its directories; NULL: not known */
	bool kernfs; /* so file handles are ids */
};

/* @mount: its directory. Return: 0 or a negative errno; cgroup_dirs_close() in both cases. */
int cgroup_dirs_open(struct cgroup_dirs *d, const char *mount);
void cgroup_dirs_close(struct cgroup_dirs *d);

/* Return: an fd, the caller's to close, or a negative errno. */
int cgroup_dirs_open_path(const struct cgroup_dirs *d, const char *path);

/* Return: 0 with the inode of the directory, whose number is the id, or a negative errno; -ENOENT
 * also for other files. */
int cgroup_dirs_stat(const struct cgroup_dirs *d, const char *path, struct stat *st);

/* The same of @name in the directory @at, an fd. */
int cgroup_dirs_stat_at(const struct cgroup_dirs *d, int at, const char *name, struct stat *st);

/**
 * cgroup_dirs_path() - ask the kernel for the path of an id (CAP_DAC_READ_SEARCH)
 * @out: the caller's to free
 *
 * Return: 0, also for one that died while it was looked at; -ESTALE if it is dead; -EXDEV if the
 * mount does not show it; -ENAMETOOLONG; other errors if the kernel cannot be asked.
 */
int cgroup_dirs_path(const struct cgroup_dirs *d, uint64_t id, char **out);

/*
 * What the kernel reports of watched directories, and a budget of CPU time for acting on it. Anyone
 * who may make cgroups decides how much there is to do. When the budget is used up, events wait in
 * the kernel; if they are too many for its queue, the tree has to be read again, once.
 */

struct cgroup_watch {
	int inotify, epoll, timer; /* -1: nothing is watched */
	int64_t budget_ns;
	uint64_t refilled_ns, started_ns;
	bool paused, warned;
};

/* Where nothing can be watched it warns, and only keeps the budget. */
void cgroup_watch_open(struct cgroup_watch *w);
void cgroup_watch_close(struct cgroup_watch *w);

/* Readable when there are events and budget; -1 if nothing is watched. */
int cgroup_watch_fd(const struct cgroup_watch *w);

/* Watch the directory that @fd has open. Return: a watch or a negative errno. */
int cgroup_watch_add(struct cgroup_watch *w, int fd);
void cgroup_watch_remove(struct cgroup_watch *w, int wd);

/* Events of inotify(7). Return: bytes; 0 if there are none. */
size_t cgroup_watch_read(struct cgroup_watch *w, char *buf, size_t size);

/* Return: whether there is budget. Then its use is counted until cgroup_watch_end(). */
bool cgroup_watch_begin(struct cgroup_watch *w);
void cgroup_watch_end(struct cgroup_watch *w);
/* Between the two: is the budget used up? */
bool cgroup_watch_spent(const struct cgroup_watch *w);

#endif
