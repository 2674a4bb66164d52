/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which hierarchy tells cgroups apart: v2, or where containers are in v1 only that of a controller.
 * A task is in one cgroup of each; a run looks at one hierarchy alone.
 */
#ifndef IBSCOPE_CGROUP_HIERARCHY_H
#define IBSCOPE_CGROUP_HIERARCHY_H

#include "cgroup_mode.h"

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

#endif
