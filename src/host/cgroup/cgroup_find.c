// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds cgroups by user input. */
#include "cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "base/num.h"

const char *cgroup_path_below(const char *s, const char *mount)
{
	size_t n = strlen(mount);

	if (!n || strncmp(s, mount, n) || (s[n] && s[n] != '/'))
		return NULL;
	return s + n;
}

int cgroup_path_clean(const char *text, char **out, struct err *e)
{
	char *path = xrealloc(NULL, strlen(text) + 2), *d = path;
	const char *end;

	for (const char *s = text; *s; s = end) {
		s += strspn(s, "/");
		end = strchrnul(s, '/');
		if (end == s || (end - s == 1 && *s == '.'))
			continue;
		if (end - s == 2 && !strncmp(s, "..", 2)) {
			free(path);
			return err_set(e, -EINVAL, "cgroup '%.256s': '..' is not allowed", text);
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

int cgroup_path_of_text(const struct cgroup_tree *t, const char *text, char **out, struct err *e)
{
	const struct cgroup_fs *fs = cgroup_tree_fs(t);
	const char *s;

	s = cgroup_path_below(text, cgroup_tree_mount(t)) ?: cgroup_path_below(text, fs->path);
	if (!s && fs->mode != CGROUP_MODE_V2 && cgroup_path_below(text, "/sys/fs/cgroup"))
		return err_set(e, -EINVAL,
			       "cgroup '%.256s' is in another hierarchy than %s%s%s; choose one "
			       "with --cgroup-hierarchy",
			       text, *fs->controller ? fs->controller : "v2",
			       *fs->path ? " at " : ", which is not mounted", fs->path);
	return cgroup_path_clean(s ?: text, out, e);
}

/* Cut @path to its longest existing prefix. */
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
	near = xstrdup(path);
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
	err = cgroup_path_of_text(t, text, &path, e);
	if (err)
		return err;
	err = find_path(t, path, id, e);
	free(path);
	return err;
}
