// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cgroups of the running system. */
#include "cgroup_source.h"

#include "base/std.h"

static int tree_find(void *arg, const char *text, __u64 *id, char **path, struct err *err)
{
	const char *known;
	uint64_t v;
	int ret = cgroup_id_of_path(arg, text, &v, err);

	if (ret)
		return ret;
	*id = v;
	known = cgroup_tree_path(arg, v);
	*path = known ? xstrdup(known) : NULL;
	return 0;
}

static int tree_path_of(void *arg, const char *text, char **path, struct err *err)
{
	return cgroup_path_of_text(arg, text, path, err);
}

static int tree_each(void *arg, cgroup_cb *cb, void *cb_arg)
{
	return cgroup_tree_each(arg, cb, cb_arg);
}

static const struct container_name *tree_name(void *names, const char *path,
					      const struct container *c)
{
	(void)path;
	return container_names_find(names, c);
}

static void tree_owner(void *arg, __u64 id, struct container_owner *out)
{
	cgroup_tree_owner(arg, id, out);
}

void cgroup_source_of_tree(struct cgroup_source *out, struct cgroup_tree *tree,
			   struct container_names *names)
{
	*out = (struct cgroup_source){ .arg = tree,
				       .names = names,
				       .find = tree_find,
				       .path_of = tree_path_of,
				       .each = tree_each,
				       .owner = tree_owner,
				       .name = tree_name };
}
