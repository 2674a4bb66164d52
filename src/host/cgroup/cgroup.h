/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for cgroup ids, of v2 or of one v1 hierarchy, including dead cgroups. An id is the inode
 * number of the cgroup's directory and its 8-byte file handle (kernfs). A path is relative to the
 * mount: "/" is the root, without trailing slash. A recreated path has several ids, old and new.
 */
#ifndef IBSCOPE_CGROUP_H
#define IBSCOPE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_tree;
struct container_owner;
struct err;

/*
 * Finds the mounted cgroup hierarchies, and the one to group by: v2, or the v1 hierarchy of a
 * controller if containers exist only there. A run uses one hierarchy.
 */

enum cgroup_mode {
	CGROUP_MODE_NONE,   /* no cgroup file system is mounted */
	CGROUP_MODE_V1,	    /* v1 hierarchies only: every task is in the v2 root */
	CGROUP_MODE_HYBRID, /* v1 hierarchies, and v2 with its own tree */
	CGROUP_MODE_V2,
};

struct cgroup_fs {
	enum cgroup_mode mode;
	char path[256];	     /* mount point, without the root prefix; "": not mounted */
	char inner[256];     /* cgroup at the root of the mount; "/" unless in a container */
	char controller[32]; /* controller of a v1 hierarchy; "": v2 */
};

/**
 * cgroup_mode_detect() - read /proc/self/mountinfo, or without it check the usual places
 * @root: prefix of the file system, "" for the real one
 *
 * Of several v2 mounts the one that shows the most wins: the whole hierarchy before a subtree, then
 * /sys/fs/cgroup before others.
 *
 * Return: 0, even if nothing is mounted; or with @e set the error of reading mountinfo.
 */
int cgroup_mode_detect(const char *root, struct cgroup_fs *out, struct err *e);

/*
 * The same for the v1 hierarchy of a controller, named as in mount options; named hierarchies,
 * which have no controller, are not found.
 */
int cgroup_mode_v1(const char *root, const char *controller, struct cgroup_fs *out, struct err *e);

/* "none", "v1", "hybrid", "v2" */
const char *cgroup_mode_name(enum cgroup_mode mode);

/**
 * cgroup_hierarchy_choose() - choose a mount by name
 * @root: prefix of the file system, "" for the real one
 * @name: "v2"; a controller such as "memory", for its v1 hierarchy; or "auto": v2 if there is no
 *        v1; else the first of v2, memory, pids, cpu, cpuacct, blkio, devices, freezer, perf_event
 *        and cpuset that has a container in it; else the first that has any cgroup besides the
 *        root; else v2 (or the first that exists)
 *
 * Reads a few thousand directories at most.
 *
 * Return: 0, even if nothing is mounted (@out->path is "" then); or with @e set: -ENOENT if v2 or
 * the controller is not mounted, naming those that are; the error of reading mountinfo.
 */
int cgroup_hierarchy_choose(const char *root, const char *name, struct cgroup_fs *out,
			    struct err *e);

/**
 * cgroup_of_process() - the cgroup of a process in the hierarchy mounted at @fs
 * @proc: fd of its directory in /proc, which always refers to the same process
 *
 * Return: its path below the mount, "" for the top, freed by the caller; NULL: outside or unknown.
 */
char *cgroup_of_process(const struct cgroup_fs *fs, int proc);

/* The path of cgroups beyond the limits of the tree. */
#define CGROUP_OTHER "other"

struct cgroup_stats {
	size_t alive, dead, watched;
	uint64_t rescans;
	uint64_t missed;  /* removed before their id could be read */
	uint64_t changes; /* cgroups created or removed since the tree was opened */
	uint64_t refused; /* number left out: too deep, or too many */
	bool unwatched;	  /* some directories are not watched: only rescans see their changes */
};

/**
 * cgroup_tree_open() - find the v2 mount, read the tree, and watch it
 * @root: prefix of the file system, "" for the real one
 *
 * Holds four fds, one kernel watch per cgroup (about 1 KiB of kernel memory each, charged to the
 * user) and some 200 bytes per cgroup, 32 MiB in total. Left out are cgroups nested deeper than 64
 * names, with a path of PATH_MAX or more, or beyond 4,096 below a delegated cgroup. Events and
 * queries use at most 2 % of a CPU, after one second initially; further ones wait. Without v2 (v1
 * hosts, or no cgroups at all) it succeeds with only id 1, "/". Not thread-safe.
 *
 * Return: 0, or with @e set the error of opening the mount.
 */
int cgroup_tree_open(const char *root, struct cgroup_tree **out, struct err *e);

/* The same for the hierarchy that cgroup_hierarchy_choose() found. */
int cgroup_tree_open_at(const char *root, const struct cgroup_fs *fs, struct cgroup_tree **out,
			struct err *e);
void cgroup_tree_close(struct cgroup_tree *t); /* accepts NULL */

const struct cgroup_fs *cgroup_tree_fs(const struct cgroup_tree *t);
/* The directory, with the root prefix; "" without v2. */
const char *cgroup_tree_mount(const struct cgroup_tree *t);

/* False if no v2 is mounted: all tasks have id 1, so there are no results per cgroup. */
bool cgroup_tree_per_cgroup(const struct cgroup_tree *t);

/* Readable if cgroup_tree_update() has something to do; -1 if nothing can be watched. */
int cgroup_tree_fd(const struct cgroup_tree *t);

/**
 * cgroup_tree_update() - process created and removed cgroups
 *
 * Call it as soon as cgroup_tree_fd() is readable: a cgroup that is removed before has no name.
 */
void cgroup_tree_update(struct cgroup_tree *t);

/* From now on, find only what the tree knows already: for a child process that has closed the tree's descriptors. */
void cgroup_tree_freeze(struct cgroup_tree *t);

/**
 * cgroup_tree_path() - the path of a cgroup, alive or dead
 *
 * An unknown id is looked up in the kernel by file handle (CAP_DAC_READ_SEARCH), else in new events
 * and by reading the tree again, at most once a second.
 *
 * Return: CGROUP_OTHER if beyond the limits; NULL if unknown. Valid until the next non-const call.
 */
const char *cgroup_tree_path(struct cgroup_tree *t, uint64_t id);

/* The owner of the cgroup's name. */
void cgroup_tree_owner(const struct cgroup_tree *t, uint64_t id, struct container_owner *out);

/* True if the cgroup exists now: checks the directory, too. */
bool cgroup_tree_alive(struct cgroup_tree *t, uint64_t id);

/**
 * cgroup_tree_died() - check whether a cgroup has been dead for @older_than_ns or longer
 *
 * A cgroup unknown to both the tree and, by its file handle, the kernel may have died just before
 * the tree was opened: it counts as dead since then.
 */
bool cgroup_tree_died(struct cgroup_tree *t, uint64_t id, uint64_t older_than_ns);

/**
 * cgroup_tree_forget_dead() - forget cgroups that died @older_than_ns ago or earlier
 *
 * At most the 65,536 that died last are kept, even without this call.
 *
 * Return: their number.
 */
size_t cgroup_tree_forget_dead(struct cgroup_tree *t, uint64_t older_than_ns);

/**
 * cgroup_tree_lookup() - the id of an existing directory
 * @path: as from cgroup_tree_path(); cgroup_id_of_path() takes user input
 *
 * Return: 0; -ENOENT; -ENAMETOOLONG or -ENOSPC beyond the limits; other errors of stat().
 */
int cgroup_tree_lookup(struct cgroup_tree *t, const char *path, uint64_t *id);

/* @path is valid during the call. Return: 0 to continue. Must not modify the tree. */
typedef int cgroup_cb(uint64_t id, const char *path, void *arg);

/* Call @cb for all living cgroups, in any order. Return: 0, or what @cb returned if not 0. */
int cgroup_tree_each(struct cgroup_tree *t, cgroup_cb *cb, void *arg);

/**
 * cgroup_id_of_path() - the id of a cgroup named by the user
 * @text: "/a/b", "a/b", the directory below the mount, or a number: a known id
 *
 * Return: 0, or with @e set: -ENOENT (naming the nearest existing parent), -EINVAL, -EOPNOTSUPP
 * without v2, other errors of stat().
 */
int cgroup_id_of_path(struct cgroup_tree *t, const char *text, uint64_t *id, struct err *e);

/* The part of @s below the directory @mount; NULL if it is not there, or @mount is "". */
const char *cgroup_path_below(const char *s, const char *mount);

/**
 * cgroup_path_clean() - normalise "a//b/." to "/a/b"
 *
 * Return: 0, the caller frees *out; or with @e -EINVAL for "..".
 */
int cgroup_path_clean(const char *text, char **out, struct err *e);

/* The same for user input, which may include the mount. -EINVAL also for another mount. */
int cgroup_path_of_text(const struct cgroup_tree *t, const char *text, char **out, struct err *e);

void cgroup_tree_stats(const struct cgroup_tree *t, struct cgroup_stats *out);

/*
 * Patterns of cgroup paths. "*", "?" and "[...]" match within a name, as in fnmatch(3) with
 * FNM_PATHNAME; "**" as a whole name matches any number of names, including none. A backslash is an
 * ordinary character: systemd uses it in names.
 */

#define CGROUP_PATTERN_MAX 1024 /* bytes of a pattern */

struct cgroup_pattern;

/**
 * cgroup_pattern_new() - compile a pattern
 * @text: begins with a slash and has no empty names; "/" alone is the root
 *
 * Return: 0; -E2BIG if longer than CGROUP_PATTERN_MAX.
 */
int cgroup_pattern_new(const char *text, struct cgroup_pattern **out);

/**
 * cgroup_pattern_deepest() - find the deepest of a path and its ancestors that matches
 * @path: as cgroup_tree_path() returns it
 *
 * Takes time linear in the length of @path, whatever the pattern. A name of PATH_MAX or more
 * matches nothing.
 *
 * Return: the length of the matching part of @path, 0 for the root; -1 if nothing matches.
 */
ssize_t cgroup_pattern_deepest(const struct cgroup_pattern *p, const char *path);

void cgroup_pattern_free(struct cgroup_pattern *p); /* accepts NULL */

#endif
