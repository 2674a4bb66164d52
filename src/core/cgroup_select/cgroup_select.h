/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resolves --cgroup, --container and the cgroups in --filter to the ids that the sampler tests, for
 * the running system or a recording. A cgroup is selected if each option that lists cgroups lists
 * it or an ancestor of it, and none excludes it or an ancestor of it with '!'.
 */
#ifndef IBSCOPE_CGROUP_SELECT_H
#define IBSCOPE_CGROUP_SELECT_H

#include "cgroup_source.h"
#include "select/selection.h"

struct cgroup_select;

/**
 * cgroup_select_open() - parse and resolve
 * @src: copied
 *
 * Return: 0, *out to be closed; or with @err -EINVAL or -ERANGE for wrong usage, -ENOENT for a name
 * that does not exist, -ENOTUNIQ for digits that several ids begin with.
 */
int cgroup_select_open(const struct cgroup_source *src, const struct cgroup_select_opts *opts,
		       struct cgroup_select **out, struct err *err);

/**
 * cgroup_select_update() - resolve again, as cgroups come and go
 *
 * Return: whether the result differs.
 */
int cgroup_select_update(struct cgroup_select *s);

/* For struct selection; valid until the next update. */
const struct selected_cgroup *cgroup_select_result(const struct cgroup_select *s, size_t *n);

/* True if any option names cgroups. */
bool cgroup_select_any(const struct cgroup_select *s);

/* Which parts of the selection later updates may change: enum sampler_live bits. */
unsigned int cgroup_select_live(const struct cgroup_select *s);

/* Number of containers without a known name at the last update. */
size_t cgroup_select_nameless(const struct cgroup_select *s);

/* A name that matches no cgroup yet; @option is "--cgroup", "--container" or "--filter". */
typedef void missing_cb(void *arg, const char *option, const char *name);

/**
 * cgroup_select_missing() - list the names that matched nothing at the last update
 * @cb: may be NULL
 *
 * Return: their number.
 */
size_t cgroup_select_missing(const struct cgroup_select *s, missing_cb *cb, void *arg);

void cgroup_select_close(struct cgroup_select *s); /* accepts NULL */

#endif
