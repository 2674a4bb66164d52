/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of cgroup paths. "*", "?" and "[...]" match within a name, as in fnmatch(3) with
 * FNM_PATHNAME; "**" as a whole name matches any number of names, including none. A backslash is an
 * ordinary character: systemd uses it in names.
 */
#ifndef IBSCOPE_CGROUP_PATTERN_H
#define IBSCOPE_CGROUP_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CGROUP_PATTERN_MAX 1024 /* bytes of a pattern */

struct cgroup_pattern;

/**
 * cgroup_pattern_new() - compile a pattern
 * @text: begins with a slash and has no empty names; "/" alone is the root
 *
 * Return: 0; -E2BIG if longer than CGROUP_PATTERN_MAX.
 */
int cgroup_pattern_new(const char *text, struct cgroup_pattern **out);

/**
 * cgroup_pattern_deepest() - find the deepest of a path and its ancestors that matches
 * @path: as cgroup_tree_path() returns it
 *
 * Takes time linear in the length of @path, whatever the pattern. A name of PATH_MAX or more
 * matches nothing.
 *
 * Return: the length of the matching part of @path, 0 for the root; -1 if nothing matches.
 */
ssize_t cgroup_pattern_deepest(const struct cgroup_pattern *p, const char *path);

void cgroup_pattern_free(struct cgroup_pattern *p); /* accepts NULL */

#endif
