// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lines of text: a --cgroup, a --container, and paths of cgroups that a recording could know. No crash;
 * the result has each id once; and a pattern that is short enough to be tried in all ways matches what
 * fnmatch(3) matches name by name.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "cgroup_select/cgroup_select.h"

#define PATHS_MAX 64
#define SHORT	  40

struct paths {
	char *path[PATHS_MAX];
	size_t n;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
	if (!condition)
		abort();
}

static int find(void *arg, const char *text, __u64 *id, char **path, struct err *err)
{
	const struct paths *p = arg;

	*id = 0;
	*path = NULL;
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(text, p->path[i]))
			continue;
		*id = i + 1;
		*path = strdup(text);
		return 0;
	}
	return err_set(err, -ENOENT, "none");
}

static int path_of(void *arg, const char *text, char **path, struct err *err)
{
	(void)arg;
	return cgroup_path_clean(text, path, err);
}

static int each(void *arg, cgroup_cb *cb, void *cb_arg)
{
	const struct paths *p = arg;
	int ret = cb(PATHS_MAX + 1, NULL, cb_arg);

	for (size_t i = 0; !ret && i < p->n; i++)
		ret = cb(i + 1, p->path[i], cb_arg);
	return ret;
}

/* One of each three containers has a name. */
static const struct container_name *name(void *names, const char *path, const struct container *c)
{
	static const struct container_name some = { "web", "pod-0", "shop" }, none = { "", "", "" };

	(void)names;
	(void)path;
	return c->id[0] % 3 ? &none : &some;
}

static bool matches_slowly(const char *pattern, const char *path)
{
	const size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");
	const char *pattern_rest = pattern + n + (pattern[n] == '/');
	const char *path_rest = path + m + (path[m] == '/');
	char want[SHORT + 1], have[SHORT + 1];

	if (!*pattern)
		return !*path;
	memcpy(want, pattern, n);
	memcpy(have, path, m);
	want[n] = have[m] = 0;
	if (!strcmp(want, "**"))
		return matches_slowly(pattern_rest, path) ||
		       (*path && matches_slowly(pattern, path_rest));
	return *path && !fnmatch(want, have, FNM_NOESCAPE) &&
	       matches_slowly(pattern_rest, path_rest);
}

/* Where the two mean to differ, or need not agree: malformed brackets, what is not ASCII. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s > 126 || *s == '[')
			return false;
	return true;
}

static void check_pattern(const char *text, const struct paths *p)
{
	struct cgroup_pattern *pattern;
	char *clean = NULL;
	struct err err;

	if (cgroup_path_clean(text, &clean, &err))
		return;
	if (!cgroup_pattern_new(clean, &pattern)) {
		for (size_t i = 0; i < p->n; i++) {
			const char *path = p->path[i];
			size_t len = path[1] ? strlen(path) : 0;
			ssize_t deepest = cgroup_pattern_deepest(pattern, path);

			need(deepest <= (ssize_t)len);
			need(deepest < 1 || !path[deepest] || path[deepest] == '/');
			if (strlen(clean) > SHORT || len > SHORT || !is_plain(clean))
				continue;
			need((deepest == (ssize_t)len) == matches_slowly(clean + 1, path + 1));
		}
		cgroup_pattern_free(pattern);
	}
	free(clean);
}

static void check_result(const struct cgroup_select *s)
{
	size_t n;
	const struct selected_cgroup *sel = cgroup_select_result(s, &n);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			need(sel[i].id != sel[k].id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paths paths = { .n = 0 };
	struct cgroup_source src = { .arg = &paths,
				     .recorded = size & 1,
				     .find = find,
				     .path_of = path_of,
				     .each = each,
				     .name = name };
	struct cgroup_select *s;
	char *text = malloc(size + 1), *rest = text, *cgroup, *container, *line;
	struct err err;

	need(text != NULL);
	memcpy(text, data, size);
	text[size] = 0;
	cgroup = strsep(&rest, "\n");
	container = rest ? strsep(&rest, "\n") : "";
	while (rest && paths.n < PATHS_MAX) {
		line = strsep(&rest, "\n");
		if (!cgroup_path_clean(line, &paths.path[paths.n], &err))
			paths.n++;
	}
	check_pattern(cgroup, &paths);
	struct cgroup_select_opts opts = { .cgroups = &cgroup,
					   .n_cgroups = *cgroup != 0,
					   .containers = &container,
					   .n_containers = *container != 0,
					   .wait = true,
					   .other = PATHS_MAX + 2 };
	if (!cgroup_select_open(&src, &opts, &s, &err)) {
		check_result(s);
		need(!cgroup_select_update(s));
		cgroup_select_close(s);
	}
	for (size_t i = 0; i < paths.n; i++)
		free(paths.path[i]);
	free(text);
	return 0;
}
