/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names in --cgroup, --container and --filter, one term each. */
#ifndef IBSCOPE_CGROUP_TERMS_H
#define IBSCOPE_CGROUP_TERMS_H

#include "cgroup_source.h"
#include "cgroup/cgroup.h"

/* The first two kinds must all select a cgroup; terms of a filter are only evaluated. */
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
	char *path;	 /* NULL: unknown, a pattern, or a container */
	size_t path_len; /* 0: the root */
	bool named;	 /* a container has this name, so do not match ids */
	/* the given digits begin this id, and this other one */
	char container_id[CONTAINER_ID_MAX + 1], second_id[CONTAINER_ID_MAX + 1];
	unsigned int
		/* if several containers have this id, the user's, or the nested one */
		container_uid;
	bool nested;
	bool pinned; /* `container_id` is fixed */
};

struct terms {
	struct term *term;
	size_t n, room;
	bool selects, containers, patterns;
	bool wanted[TERM_FILTER]; /* the kind lists cgroups to keep, not only some to exclude */
};

/* Return: 0, or with @err -EINVAL, -ERANGE. Call terms_free() in any case. */
int terms_parse(struct terms *ts, const struct cgroup_source *src,
		const struct cgroup_select_opts *opts, struct err *err);

/* True if @t names this container by its name, or the pod by its uid. */
bool term_names(const struct term *t, const struct container *c, const struct container_name *name);

/* True if @t names this container by its id. */
bool term_has_id(const struct term *t, const struct container *c,
		 const struct container_name *name);

void terms_free(struct terms *ts);

#endif
