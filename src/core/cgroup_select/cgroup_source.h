/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inputs of a selection of cgroups: the options, and the existing cgroups. */
#ifndef IBSCOPE_CGROUP_SOURCE_H
#define IBSCOPE_CGROUP_SOURCE_H

#include "cgroup/cgroup.h"
#include "cgroup/container.h"
#include "filter/filter.h"

/* Where cgroups are looked up. */
struct cgroup_source {
	void *arg, *names;
	/* a recording: no cgroups will appear; ancestors of the known ones may not be listed */
	bool recorded;

	/* Find a cgroup by path or id; the caller frees *path. Unknown: *id 0, *path NULL. */
	int (*find)(void *arg, const char *text, __u64 *id, char **path, struct err *err);
	/* Convert user input to a path; the caller frees *path. */
	int (*path_of)(void *arg, const char *text, char **path, struct err *err);
	/* Call @cb for all cgroups. @path is NULL if unknown. */
	int (*each)(void *arg, cgroup_cb *cb, void *cb_arg);
	/* Owner of the names on the cgroup's path; NULL: as in container_of_path(). */
	void (*owner)(void *arg, __u64 id, struct container_owner *out);
	const struct container_name *(*name)(void *names, const char *path,
					     const struct container *c);
};

/* The running system; @tree and @names must live as long. */
void cgroup_source_of_tree(struct cgroup_source *out, struct cgroup_tree *tree,
			   struct container_names *names);

struct cgroup_select_opts {
	char *const *cgroups; /* of --cgroup: [!]PATH|PATTERN|ID[:MIN],.. */
	size_t n_cgroups;
	char *const *containers; /* of --container: [!]NAME|PATTERN|ID[:MIN],.. */
	size_t n_containers;
	__u64 command;		     /* cgroup of the measured command; 0: none */
	const struct filter *filter; /* NULL: none */
	bool wait;		     /* names that do not exist yet are no error */
	bool names;  /* the output shows container names, so look for missing ones */
	__u64 other; /* recordings: id of samples with unknown cgroup; never selected */
};

#endif
