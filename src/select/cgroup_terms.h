/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What --cgroup, --container and --filter name, one term each. */
#ifndef IBSCOPE_CGROUP_TERMS_H
#define IBSCOPE_CGROUP_TERMS_H

#include "cgroup_source.h"
#include "cgroup/cgroup_pattern.h"

/* All options of the first two kinds must agree; a filter's term is only asked about. */
enum term_kind { TERM_CGROUP, TERM_CONTAINER, TERM_FILTER };

struct term {
	enum term_kind kind;
	const char *option; /* for messages */
	char *text;
	bool container, glob, out;
	__u16 min_lat;
	__u8 filter; /* its bit in struct selected_cgroup */
	struct cgroup_pattern *pattern;

	/* as of the last update */
	bool found;
	__u64 id;
	char *path;	 /* NULL: not known, or a pattern, or a container */
	size_t path_len; /* 0: the root */
	bool named;	 /* a container has that name, so it is no beginning of an id */
	/* first digits were given of this id, and of this other one */
	char container_id[CONTAINER_ID_MAX + 1], second_id[CONTAINER_ID_MAX + 1];
	unsigned int
		container_uid; /* and if two have this id, of this user, or inside another one */
	bool nested;
	bool pinned; /* `container_id` is the one that is meant */
};

struct terms {
	struct term *term;
	size_t n, room;
	bool selects, containers, patterns;
	bool wanted[TERM_FILTER]; /* the kind lists cgroups to keep, not only some to exclude */
};

/* Return: 0, or with @err -EINVAL, -ERANGE. @ts is to be freed in any case. */
int terms_parse(struct terms *ts, const struct cgroup_source *src,
		const struct cgroup_select_opts *opts, struct err *err);

/* Does @t name this container by its name, or the pod by its uid? */
bool term_names(const struct term *t, const struct container *c, const struct container_name *name);

/* Does @t name it by its id? */
bool term_has_id(const struct term *t, const struct container *c,
		 const struct container_name *name);

void terms_free(struct terms *ts);

#endif
