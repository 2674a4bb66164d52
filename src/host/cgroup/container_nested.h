/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State files of runtimes that run in containers (Docker in Docker, kind). They are in the root
 * directory of the container, where users control what a read does: a file system of theirs may
 * never answer. So a separate process per container reads them.
 */
#ifndef IBSCOPE_CONTAINER_NESTED_H
#define IBSCOPE_CONTAINER_NESTED_H

#include "container_files.h"

struct nested;

/* Name a container by the files below "/", in the process that has entered the scope. */
typedef void nested_resolve(const struct container_scope *scope, const struct container *c,
			    struct container_text *out);

/* @root: as of container_names_open(). */
struct nested *nested_new(const char *root, nested_resolve *resolve);

/**
 * nested_ask() - ask the runtimes in a container
 * @c:   as seen by a runtime in there
 * @out: filled, or all empty
 *
 * Takes at most two seconds. A container that does not answer in that time is not asked for five
 * minutes, nor is any while four do not answer. Other calls together take at most 1 % of the time,
 * after the first two seconds.
 */
void nested_ask(struct nested *n, const struct container_scope *scope, const struct container *c,
		struct container_text *out);
void nested_free(struct nested *n); /* accepts NULL */

#endif
