/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a selection of cgroups is made from: the options, and the cgroups there are. */
#ifndef IBSCOPE_CGROUP_SOURCE_H
#define IBSCOPE_CGROUP_SOURCE_H

#include "cgroup/cgroup.h"
#include "cgroup/container.h"
#include "filter/filter.h"

/* Where cgroups are looked up. */
struct cgroup_source {
	void *arg, *names;
	/* of a recording: none will appear, those above the known ones may not be listed */
	bool recorded;

	/* The cgroup of that path or id; the caller frees *path. *id is 0 or *path NULL if not known. */
	int (*find)(void *arg, const char *text, __u64 *id, char **path, struct err *err);
	/* From what a person wrote to a path; the caller frees *path. */
	int (*path_of)(void *arg, const char *text, char **path, struct err *err);
	/* All of them. @path is NULL where it is not known. */
	int (*each)(void *arg, cgroup_cb *cb, void *cb_arg);
	/* Who made up the names on its path; NULL: as container_of_path() has it. */
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
	bool wait;   /* names that do not exist are no error: they may appear */
	bool names;  /* containers are named in the output, so look for names that are missing */
	__u64 other; /* recorded: the id of samples whose cgroup is not known; never selected */
};

#endif
