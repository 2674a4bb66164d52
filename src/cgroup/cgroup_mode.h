/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the cgroup v2 hierarchy of this machine is, and what is mounted beside it. */
#ifndef IBSCOPE_CGROUP_MODE_H
#define IBSCOPE_CGROUP_MODE_H

struct err;

enum cgroup_mode {
	CGROUP_MODE_NONE,   /* no cgroup file system is mounted */
	CGROUP_MODE_V1,	    /* v1 hierarchies only: every task is in the v2 root */
	CGROUP_MODE_HYBRID, /* v1 hierarchies, and v2 with its own tree */
	CGROUP_MODE_V2,
};

struct cgroup_fs {
	enum cgroup_mode mode;
	char path[256];	 /* where v2 is mounted, without the root prefix; "" if it is not */
	char inner[256]; /* which cgroup is the root of that mount; "/" unless in a container */
	char controller[32]; /* of the v1 hierarchy that this is about; "": v2 */
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

/**
 * cgroup_mode_v1() - where the v1 hierarchy of a controller is mounted
 * @controller: as mount options have it; named hierarchies, which have none, are not found
 * @out:        as of cgroup_mode_detect(), but for @path and @inner; "" if it is not mounted
 *
 * Return: as cgroup_mode_detect().
 */
int cgroup_mode_v1(const char *root, const char *controller, struct cgroup_fs *out, struct err *e);

/* "none", "v1", "hybrid", "v2" */
const char *cgroup_mode_name(enum cgroup_mode mode);

#endif
