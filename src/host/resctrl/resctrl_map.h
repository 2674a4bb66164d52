/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Monitoring groups and whose they are. */
#ifndef IBSCOPE_RESCTRL_MAP_H
#define IBSCOPE_RESCTRL_MAP_H

#include "base/intern.h"
#include "cgroup/cgroup.h"
#include "cgroup/container.h"

#include <dirent.h>

#define RESCTRL_NOBODY INTERN_NONE /* no container, or several */

struct resctrl_group {
	char *name;   /* of a control group; "": the root */
	char *inside; /* of a monitoring group in it; NULL: the control group */
	__u64 id;     /* differs if it is made anew with the same name */
	bool known;   /* its tasks were read */
	__u32 *task;
	size_t n, room;
	__u32 owner;
};

struct resctrl_map {
	struct resctrl_group *group; /* control groups, each followed by those in it */
	size_t n, room;
	size_t tasks;		/* read so far */
	bool complete;		/* no control group was left out */
	struct u64_map partial; /* containers with tasks that no group of theirs counts */
};

/* What is needed to find the container of a task. */
struct resctrl_tasks {
	int proc;
	struct cgroup_fs fs;
	struct container_names *names;
	struct intern *containers;
};

/* Open a file or directory in a directory; never a link or a pipe. Return: -1 on failure. */
int resctrl_open_dir(int dir, const char *name);
/* Return: the text, freed by the caller; NULL if unreadable, or with @max bytes or more. */
char *resctrl_read_file(int dir, const char *name, size_t max);
/* Names of directories in one, freed by the caller. Closes @dir. Return: how many, at most @max. */
size_t resctrl_list(int dir, char **names, size_t max);

int resctrl_open_group(int top, const struct resctrl_group *g);
void resctrl_map_read(struct resctrl_map *m, int top, const struct resctrl_tasks *tasks);
void resctrl_map_free(struct resctrl_map *m);

#endif
