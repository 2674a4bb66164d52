/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of cgroups: by id, living ones by parent and name, watched ones by watch. The owner of
 * a delegated cgroup can create any number below it, so depth, number and bytes are limited.
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

#define CGROUP_DEPTH_MAX 64	     /* names in a path, which is also shorter than PATH_MAX */
#define CGROUP_USER_MAX	 4096	     /* living cgroups below a delegated one */
#define CGROUP_BYTES_MAX (32u << 20) /* in total, including dead ones */

struct cgroup_node {
	uint64_t id;
	char *name;
	struct cgroup_node *parent; /* NULL: the root */
	struct cgroup_node
		*delegate;	   /* topmost ancestor (or self) not owned by root; NULL: none */
	unsigned int owner_uid;	   /* owner of the delegate, also if this is dead; 0: root */
	unsigned short owner_len;  /* length of the delegate's path */
	uint64_t died_ns;	   /* CLOCK_MONOTONIC; 0: alive */
	unsigned int children;	   /* child nodes, including dead ones */
	unsigned int user_cgroups; /* living nodes with this delegate */
	unsigned int walk;	   /* number of the last walk that found it */
	int wd;			   /* inotify's; -1: not watched */
	bool queued;
	bool forgotten; /* kept only for the paths of its children */
	bool refused;	/* a delegate below which cgroups were left out */
	struct cgroup_node *next_queued;
	unsigned int at;		   /* index in the table */
	struct cgroup_node *older, *newer; /* list of the dead, by time of death */
};

struct cgroup_table {
	struct cgroup_node **node;	      /* NULL: free; includes forgotten nodes */
	size_t size, room, free;	      /* free: all lower indexes are in use */
	struct u64_map by_id, by_name, by_wd; /* indexes; names by hash */
	size_t n, n_dead, n_watched, bytes;
	struct cgroup_node *root, *oldest, *newest;
};

/* The zero value is empty. */
void cgroup_table_free(struct cgroup_table *t);

/* Dead or alive. */
struct cgroup_node *cgroup_table_by_id(const struct cgroup_table *t, uint64_t id);
/* Alive. @len: of @name, which need not be terminated. */
struct cgroup_node *cgroup_table_child(const struct cgroup_table *t,
				       const struct cgroup_node *parent, const char *name,
				       size_t len);
struct cgroup_node *cgroup_table_by_wd(const struct cgroup_table *t, int wd);

/* Write the path, which is shorter than PATH_MAX. Return: @buf. */
char *cgroup_table_path(const struct cgroup_node *n, char buf[PATH_MAX]);

/* Return: 0 if @parent can have a child with a name of @len bytes; -ENAMETOOLONG; -ENOSPC. */
int cgroup_table_room(const struct cgroup_table *t, const struct cgroup_node *parent, size_t len);

/**
 * cgroup_table_put() - record that @parent has a cgroup @name with @id
 * @parent:    NULL for the root, which has the name ""
 * @uid:       owner
 * @is_new:    set to whether this is new: a new id, one that was dead, or another path
 *
 * Any other cgroup of that name must have been killed before.
 *
 * Return: 0, or what cgroup_table_room() returns.
 */
int cgroup_table_put(struct cgroup_table *t, uint64_t id, struct cgroup_node *parent,
		     const char *name, unsigned int uid, struct cgroup_node **out, bool *is_new);

/* Root gave @n to @uid after it was added. */
void cgroup_table_delegate(struct cgroup_node *n, unsigned int uid);

/* @wd: -1: no longer watched */
void cgroup_table_watch(struct cgroup_table *t, struct cgroup_node *n, int wd);
void cgroup_table_kill(struct cgroup_table *t, struct cgroup_node *n, uint64_t now_ns);

/* Drop cgroups that died at @until_ns or before. Return: their number. */
size_t cgroup_table_forget(struct cgroup_table *t, uint64_t until_ns);
/* Drop the longest dead until at most @max remain, using at most half of the bytes. */
void cgroup_table_trim(struct cgroup_table *t, size_t max);

/* The directories of a cgroup hierarchy, by path below the mount (under PATH_MAX) or by id. */

struct cgroup_dirs {
	int fd; /* of the mount; -1: not open */
	dev_t dev;
	/* its path in /proc/self/fd, for comparison with its directories; NULL: unknown */
	char *real;
	bool kernfs; /* file handles are ids */
};

/* @mount: mount point. Return: 0 or a negative errno; call cgroup_dirs_close() in both cases. */
int cgroup_dirs_open(struct cgroup_dirs *d, const char *mount);
void cgroup_dirs_close(struct cgroup_dirs *d);

/* Return: an fd that the caller closes, or a negative errno. */
int cgroup_dirs_open_path(const struct cgroup_dirs *d, const char *path);

/*
 * Return: 0 with the inode of the directory, which has the id as its number, or a negative errno;
 * -ENOENT also for other files.
 */
int cgroup_dirs_stat(const struct cgroup_dirs *d, const char *path, struct stat *st);

/* The same for @name in the directory with fd @at. */
int cgroup_dirs_stat_at(const struct cgroup_dirs *d, int at, const char *name, struct stat *st);

/**
 * cgroup_dirs_path() - ask the kernel for the path of an id (CAP_DAC_READ_SEARCH)
 * @out: freed by the caller
 *
 * Return: 0, even if it died meanwhile; -ESTALE if it is dead; -EXDEV if the mount does not show
 * it; -ENAMETOOLONG; other errors if the kernel cannot be asked.
 */
int cgroup_dirs_path(const struct cgroup_dirs *d, uint64_t id, char **out);

/*
 * Watches on directories, and a CPU budget for processing their events, since anyone who may create
 * cgroups can cause them. When the budget is used up, events wait in the kernel; if its queue
 * overflows, the tree must be read again, once.
 */

struct cgroup_watch {
	int inotify, epoll, timer; /* -1: nothing is watched */
	int64_t budget_ns;
	uint64_t refilled_ns, started_ns;
	bool paused, warned;
};

/* If nothing can be watched, warns and only keeps the budget. */
void cgroup_watch_open(struct cgroup_watch *w);
void cgroup_watch_close(struct cgroup_watch *w);

/* Readable if there are events and budget; -1 if nothing is watched. */
int cgroup_watch_fd(const struct cgroup_watch *w);

/* Watch the directory open as @fd. Return: a watch or a negative errno. */
int cgroup_watch_add(struct cgroup_watch *w, int fd);
void cgroup_watch_remove(struct cgroup_watch *w, int wd);

/* Read events of inotify(7). Return: bytes; 0 if there are none. */
size_t cgroup_watch_read(struct cgroup_watch *w, char *buf, size_t size);

/* Return: whether there is budget. If so, its use is measured until cgroup_watch_end(). */
bool cgroup_watch_begin(struct cgroup_watch *w);
void cgroup_watch_end(struct cgroup_watch *w);
/* Between the two: true if the budget is used up. */
bool cgroup_watch_spent(const struct cgroup_watch *w);

#endif
