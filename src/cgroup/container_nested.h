/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State files of runtimes that run in containers (Docker in Docker, kind). They are in the root directory
 * of such a container, whose users decide what reading there does: a file system of theirs may never
 * answer. So processes of their own read it, one for each container.
 */
#ifndef IBSCOPE_CONTAINER_NESTED_H
#define IBSCOPE_CONTAINER_NESTED_H

#include "container_files.h"

struct nested;

/* Name a container by the files below "/", where the process of the scope is. */
typedef void nested_resolve(const struct container_scope *scope, const struct container *c,
			    struct container_text *out);

/* @root: as of container_names_open(). */
struct nested *nested_new(const char *root, nested_resolve *resolve);

/**
 * nested_ask() - what the runtimes in a container say
 * @c:   as a runtime in there knows it
 * @out: filled, or all empty
 *
 * Takes at most two seconds. A container that does not answer in that time is not asked for five
 * minutes, nor is any while four do not. The other calls together take at most 1 % of the time, after
 * the first two seconds.
 */
void nested_ask(struct nested *n, const struct container_scope *scope, const struct container *c,
		struct container_text *out);
void nested_free(struct nested *n); /* accepts NULL */

#endif
