/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroups of a recording, for selections and names. */
#ifndef IBSCOPE_REPLAY_CGROUPS_H
#define IBSCOPE_REPLAY_CGROUPS_H

#include "base/err.h"
#include "base/intern.h"
#include "base/key_map.h"
#include "cgroup/container.h"
#include "cgroup_select/cgroup_select.h"

/* The zero value is empty. */
struct replay_cgroups {
	struct key_map ids;
	char **paths; /* by number in `ids`; NULL: not known */
	size_t room;

	struct intern named; /* paths of containers' own cgroups that have names */
	struct replay_container {
		__u32 container, pod, ns; /* numbers in `texts` */
	} * names;			  /* by number in `named` */
	size_t names_room;
	struct intern texts;
	struct container_name found; /* last */
};

/* Add a cgroup; @path may be NULL if it is not known yet. */
void replay_cgroups_add(struct replay_cgroups *c, __u64 id, const char *path);

/* Set the runtime's names for the container of a path; NULL or "": unknown. */
void replay_cgroups_name(struct replay_cgroups *c, const char *path, const char *container,
			 const char *pod, const char *ns);

/* The label of the container or, with @pod, of the pod, as hist shows it; "" outside of containers. */
const char *replay_cgroups_label(struct replay_cgroups *c, const char *path, bool pod,
				 char buf[CONTAINER_LABEL]);

/* The path of a cgroup, or NULL if it is unknown. */
const char *replay_cgroups_path(const struct replay_cgroups *c, __u64 id);

/* Make a source of the cgroups in @c, which must outlive it. */
void replay_cgroups_source(struct replay_cgroups *c, struct cgroup_source *out);

void replay_cgroups_free(struct replay_cgroups *c);

#endif
