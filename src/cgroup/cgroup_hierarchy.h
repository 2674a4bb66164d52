/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which cgroup hierarchies are mounted, and the one to group by: v2, or where containers are in v1
 * only that of a controller. A task is in one cgroup of each; a run looks at one hierarchy alone.
 */
#ifndef IBSCOPE_CGROUP_HIERARCHY_H
#define IBSCOPE_CGROUP_HIERARCHY_H

struct err;

enum cgroup_mode {
	CGROUP_MODE_NONE,   /* no cgroup file system is mounted */
	CGROUP_MODE_V1,	    /* v1 hierarchies only: every task is in the v2 root */
	CGROUP_MODE_HYBRID, /* v1 hierarchies, and v2 with its own tree */
	CGROUP_MODE_V2,
};

struct cgroup_fs {
	enum cgroup_mode mode;
	char path[256];	     /* where it is mounted, without the root prefix; "" if it is not */
	char inner[256];     /* which cgroup is the root of that mount; "/" unless in a container */
	char controller[32]; /* of a v1 hierarchy; "": v2 */
};

/**
 * cgroup_mode_detect() - look at /proc/self/mountinfo, and without it at the usual places
 * @root: prefix of the file system, "" for the real one
 *
 * Of several v2 mounts the one that shows the most wins: the whole hierarchy before a subtree, then
 * /sys/fs/cgroup before others.
 *
 * Return: 0, also when nothing is mounted; or with @e set what reading mountinfo failed with.
 */
int cgroup_mode_detect(const char *root, struct cgroup_fs *out, struct err *e);

/*
 * The same of the v1 hierarchy of a controller, as mount options have it; named hierarchies, which have
 * none, are not found.
 */
int cgroup_mode_v1(const char *root, const char *controller, struct cgroup_fs *out, struct err *e);

/* "none", "v1", "hybrid", "v2" */
const char *cgroup_mode_name(enum cgroup_mode mode);

/**
 * cgroup_hierarchy_choose() - from a name to a mount
 * @root: prefix of the file system, "" for the real one
 * @name: "v2"; a controller, as "memory", for the v1 hierarchy that it is mounted in; or "auto":
 *        v2 where there is no v1; else the first of v2, memory, pids, cpu, cpuacct, blkio, devices,
 *        freezer, perf_event and cpuset that has a container in it; if none has, the first that has
 *        any cgroup besides the root; if none has, v2 (or the first there is)
 *
 * Looks at no more than some thousand directories.
 *
 * Return: 0, also where nothing is mounted (@out->path is "" then); or with @e set: -ENOENT if v2 or
 * the controller is not mounted, naming those that are; what reading mountinfo failed with.
 */
int cgroup_hierarchy_choose(const char *root, const char *name, struct cgroup_fs *out,
			    struct err *e);

/**
 * cgroup_of_process() - the cgroup of a process in the hierarchy that is mounted at @fs
 * @proc: its directory in /proc, open: so it is the same process for all questions
 *
 * Return: its path below the mount, "" being the top, freed by the caller; NULL if it is outside or not known.
 */
char *cgroup_of_process(const struct cgroup_fs *fs, int proc);

#endif
