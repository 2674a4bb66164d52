/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the mounted cgroup hierarchies, and the one to group by: v2, or the v1 hierarchy of a
 * controller if containers exist only there. A run uses one hierarchy.
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

#endif
