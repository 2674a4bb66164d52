// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cgroups by what a person typed. */
#include "cgroup.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "num.h"

/* @s behind @prefix, which must end there or at a slash; else NULL. */
static const char *below(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!n || strncmp(s, prefix, n) || (s[n] && s[n] != '/'))
		return NULL;
	return s + n;
}

/* "/a/b" of "a//b/" and of "/sys/fs/cgroup/a/b"; the caller frees it. Return: 0, -EINVAL, -ENOMEM. */
static int canonical(const struct cgroup_tree *t, const char *text, char **out, struct err *e)
{
	const struct cgroup_fs *fs = cgroup_tree_fs(t);
	const char *s, *end;
	char *path, *d;

	s = below(text, cgroup_tree_mount(t));
	if (!s)
		s = below(text, fs->path);
	if (!s && fs->mode != CGROUP_MODE_V2 && below(text, "/sys/fs/cgroup"))
		return err_set(e, -EINVAL,
			       "cgroup '%.256s': that is in another hierarchy; cgroups are told "
			       "by %s%s%s (--cgroup-hierarchy)",
			       text, *fs->controller ? fs->controller : "v2",
			       *fs->path ? " at " : ", which is not mounted", fs->path);
	if (!s)
		s = text;
	d = path = malloc(strlen(s) + 2);
	if (!path)
		return err_set(e, -ENOMEM, "cgroup: out of memory");
	for (; *s; s = end) {
		s += strspn(s, "/");
		end = strchrnul(s, '/');
		if (end == s || (end - s == 1 && *s == '.'))
			continue;
		if (end - s == 2 && !strncmp(s, "..", 2)) {
			free(path);
			return err_set(e, -EINVAL, "cgroup '%.256s': '..' has no place in it",
				       text);
		}
		*d++ = '/';
		d = mempcpy(d, s, end - s);
	}
	if (d == path)
		*d++ = '/';
	*d = 0;
	*out = path;
	return 0;
}

/* Cut @path to what exists of it. */
static void cut_to_nearest(struct cgroup_tree *t, char *path)
{
	uint64_t id;

	while (path[1] && cgroup_tree_lookup(t, path, &id)) {
		char *slash = strrchr(path, '/');

		slash[slash == path] = 0;
	}
}

static int find_path(struct cgroup_tree *t, const char *path, uint64_t *id, struct err *e)
{
	char *near;
	int err;

	err = cgroup_tree_lookup(t, path, id);
	if (!err)
		return 0;
	if (!cgroup_tree_per_cgroup(t))
		return err_set(
			e, -EOPNOTSUPP,
			"cgroup '%.256s': no cgroup v2 is mounted, so there is only the root; "
			"see `ibscope doctor`",
			path);
	near = strdup(path);
	if (!near)
		return err_set(e, -ENOMEM, "cgroup: out of memory");
	cut_to_nearest(t, near);
	if (err == -ENOENT)
		err_set(e, err, "no cgroup '%.256s' below %s; the nearest that exists is '%.256s'",
			path, cgroup_tree_mount(t), near);
	else
		err_set(e, err, "cgroup '%.256s' below %s: %s; '%.256s' can be read", path,
			cgroup_tree_mount(t), strerror(-err), near);
	free(near);
	return err;
}

int cgroup_id_of_path(struct cgroup_tree *t, const char *text, uint64_t *id, struct err *e)
{
	const struct num_arg arg = { "cgroup id", NULL, 1, UINT64_MAX };
	char *path;
	int err;

	if (!*text)
		return err_set(e, -EINVAL, "cgroup: the name is empty; the root is '/'");
	if (!text[strspn(text, "0123456789")]) {
		err = num_parse(&arg, text, id, e);
		if (!err && !cgroup_tree_path(t, *id))
			err = err_set(e, -ENOENT,
				      "no cgroup has the id %s; a directory of that name is '/%s'",
				      text, text);
		return err;
	}
	err = canonical(t, text, &path, e);
	if (err)
		return err;
	err = find_path(t, path, id, e);
	free(path);
	return err;
}

/* Cut off the first name of @s ("/a/b"), which must have one, and leave @s behind it. */
static char *next_name(const char **s, char *buf, size_t size)
{
	const char *start = *s + 1, *end = strchrnul(start, '/');

	snprintf(buf, size, "%.*s", (int)(end - start), start);
	*s = end;
	return buf;
}

/*
 * A name of the pattern fits a name of the path, and "**" any number of them: after a mismatch the
 * last "**" takes one more, which is enough, as with "*" in names.
 */
bool cgroup_path_matches(const char *pattern, const char *path)
{
	const char *retry_pattern = NULL, *retry_path = NULL, *pattern_rest, *path_rest;
	char want[PATH_MAX], have[NAME_MAX + 1];

	for (;;) {
		pattern_rest = pattern;
		path_rest = path;
		if (*pattern && !strcmp(next_name(&pattern_rest, want, sizeof(want)), "**")) {
			retry_pattern = pattern = pattern_rest;
			retry_path = path;
		} else if (*pattern && *path &&
			   !fnmatch(want, next_name(&path_rest, have, sizeof(have)),
				    FNM_NOESCAPE)) {
			pattern = pattern_rest;
			path = path_rest;
		} else if (!*pattern && !*path) {
			return true;
		} else if (retry_path && *retry_path) {
			next_name(&retry_path, have, sizeof(have));
			pattern = retry_pattern;
			path = retry_path;
		} else {
			return false;
		}
	}
}

struct match {
	uint64_t id;
	const char *path;
};

struct matches {
	const char *pattern;
	struct match *list;
	size_t n, room;
};

static int collect(uint64_t id, const char *path, void *arg)
{
	struct matches *m = arg;
	struct match *list;

	if (!cgroup_path_matches(m->pattern, path[1] ? path : ""))
		return 0;
	if (m->n == m->room) {
		m->room = m->room * 2 + 16;
		list = reallocarray(m->list, m->room, sizeof(*list));
		if (!list)
			return -ENOMEM;
		m->list = list;
	}
	m->list[m->n++] = (struct match){ id, path };
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int cgroup_glob(struct cgroup_tree *t, const char *pattern, cgroup_cb *cb, void *arg)
{
	struct matches m = { 0 };
	struct err e;
	char *whole;
	size_t i;
	int ret;

	ret = canonical(t, pattern, &whole, &e);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	m.pattern = whole[1] ? whole : "";
	ret = cgroup_tree_each(t, collect, &m);
	free(whole);
	if (m.n)
		qsort(m.list, m.n, sizeof(*m.list), by_path);
	for (i = 0; !ret && i < m.n; i++)
		ret = cb(m.list[i].id, m.list[i].path, arg);
	free(m.list);
	return ret ?: (int)m.n;
}
