/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for cgroup ids, those of v2 or of one v1 hierarchy, also of cgroups that died meanwhile. An id is the inode number of the
 * cgroup's directory and its 8-byte file handle (kernfs). A path is as seen from the mount:
 * "/" is the root, no slash at the end. A path made again has a new id, and both are known by it.
 */
#ifndef IBSCOPE_CGROUP_H
#define IBSCOPE_CGROUP_H

#include "cgroup_hierarchy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup_tree;
struct container_owner;
struct err;

/* The path of cgroups that are beyond the limits of the tree. */
#define CGROUP_OTHER "other"

struct cgroup_stats {
	size_t alive, dead, watched;
	uint64_t rescans;
	uint64_t missed;  /* created, but gone before the id could be read */
	uint64_t changes; /* cgroups that came or went, since the tree was opened */
	uint64_t refused; /* times that one was left out: too deep, or too many */
	bool unwatched;	  /* some directories are not watched: only rescans see what they get */
};

/**
 * cgroup_tree_open() - find the v2 mount, read all of it, and watch it
 * @root: prefix of the file system, "" for the real one
 *
 * Holds four fds, one kernel watch a cgroup (about 1 KiB of kernel memory each, charged to the user)
 * and some 200 bytes a cgroup. What is nested deeper than 64 names, has a path of PATH_MAX or more, or
 * is one more than 4,096 below a cgroup that root gave to somebody, is left out, and all of them take
 * at most 32 MiB. Events and questions take at most 2 % of a CPU, after a second for the first of
 * them; what comes meanwhile waits. Without v2 (v1 hosts, or no cgroups at all) it succeeds with only
 * id 1, "/". Not for use by several threads at a time.
 *
 * Return: 0, or with @e set what opening the mount failed with.
 */
int cgroup_tree_open(const char *root, struct cgroup_tree **out, struct err *e);

/* The same of the hierarchy that cgroup_hierarchy_choose() found. */
int cgroup_tree_open_at(const char *root, const struct cgroup_fs *fs, struct cgroup_tree **out,
			struct err *e);
void cgroup_tree_close(struct cgroup_tree *t); /* accepts NULL */

const struct cgroup_fs *cgroup_tree_fs(const struct cgroup_tree *t);
/* The directory, with the root prefix; "" without v2. */
const char *cgroup_tree_mount(const struct cgroup_tree *t);

/* False where no v2 is mounted: all tasks have id 1, so there are no results per cgroup. */
bool cgroup_tree_per_cgroup(const struct cgroup_tree *t);

/* Readable when cgroup_tree_update() has something to do; -1 if nothing can be watched. */
int cgroup_tree_fd(const struct cgroup_tree *t);

/**
 * cgroup_tree_update() - take in what was created and removed
 *
 * Call it as soon as cgroup_tree_fd() is readable: a cgroup that lives shorter than it takes to get
 * here has no name.
 */
void cgroup_tree_update(struct cgroup_tree *t);

/**
 * cgroup_tree_path() - the path of a cgroup, alive or dead
 *
 * An id that is not known is asked of the kernel by file handle (CAP_DAC_READ_SEARCH), else looked
 * for in new events and by reading the tree again, which is done at most once a second.
 *
 * Return: CGROUP_OTHER if it is beyond the limits; NULL if not known. Valid until the next call that
 * is not for const.
 */
const char *cgroup_tree_path(struct cgroup_tree *t, uint64_t id);

/* Who made its name up. */
void cgroup_tree_owner(const struct cgroup_tree *t, uint64_t id, struct container_owner *out);

/* Is the cgroup there now? Looks at the directory, not only at what is known. */
bool cgroup_tree_alive(struct cgroup_tree *t, uint64_t id);

/**
 * cgroup_tree_died() - has a cgroup been dead for @older_than_ns or longer?
 *
 * One that nobody knows, neither the tree nor, by its file handle, the kernel, may have died just
 * before the tree was opened: it counts as dead since then.
 */
bool cgroup_tree_died(struct cgroup_tree *t, uint64_t id, uint64_t older_than_ns);

/**
 * cgroup_tree_forget_dead() - free what is known of cgroups that died @older_than_ns ago or earlier
 *
 * The 65,536 that died last are kept at most, also without it.
 *
 * Return: how many.
 */
size_t cgroup_tree_forget_dead(struct cgroup_tree *t, uint64_t older_than_ns);

/**
 * cgroup_tree_lookup() - the id of a directory that exists
 * @path: as cgroup_tree_path() gives them; cgroup_id_of_path() takes what people write
 *
 * Return: 0; -ENOENT; -ENAMETOOLONG or -ENOSPC beyond the limits; other errors of stat().
 */
int cgroup_tree_lookup(struct cgroup_tree *t, const char *path, uint64_t *id);

/* @path is valid during the call. Return: 0 to continue. Must not call anything that changes the tree. */
typedef int cgroup_cb(uint64_t id, const char *path, void *arg);

/* Call @cb for all living cgroups, in no order. Return: 0, or what @cb returned if not 0. */
int cgroup_tree_each(struct cgroup_tree *t, cgroup_cb *cb, void *arg);

/**
 * cgroup_id_of_path() - the id of a cgroup that a person named
 * @text: "/a/b", "a/b", the directory below the mount, or a number, which is an id that is known
 *
 * Return: 0, or with @e set: -ENOENT (naming the nearest parent that exists), -EINVAL, -EOPNOTSUPP
 * without v2, other errors of stat().
 */
int cgroup_id_of_path(struct cgroup_tree *t, const char *text, uint64_t *id, struct err *e);

/* What is left of @s below the directory @mount; NULL if it is not there, or @mount is "". */
const char *cgroup_path_below(const char *s, const char *mount);

/**
 * cgroup_path_clean() - "/a/b" from "a//b/."
 *
 * Return: 0, the caller frees *out; or with @e -EINVAL for "..".
 */
int cgroup_path_clean(const char *text, char **out, struct err *e);

/* The same of what a person wrote, perhaps with the mount in front. -EINVAL also if that is another. */
int cgroup_path_of_text(const struct cgroup_tree *t, const char *text, char **out, struct err *e);

void cgroup_tree_stats(const struct cgroup_tree *t, struct cgroup_stats *out);

#endif
