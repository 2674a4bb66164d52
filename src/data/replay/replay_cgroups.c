// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replay_cgroups.h"

#include "base/array.h"
#include "base/num.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void replay_cgroups_add(struct replay_cgroups *c, __u64 id, const char *path)
{
	long n = key_map_find_id(&c->ids, id);

	if (n < 0)
		n = key_map_add_id(&c->ids, id);
	array_reserve_zero(c->paths, c->room, (size_t)n + 1);
	if (!path || (c->paths[n] && !strcmp(c->paths[n], path)))
		return;
	free(c->paths[n]);
	c->paths[n] = xstrdup(path);
}

void replay_cgroups_name(struct replay_cgroups *c, const char *path, const char *container,
			 const char *pod, const char *ns)
{
	struct replay_container n = {
		.container = intern_get(&c->texts, container ?: ""),
		.pod = intern_get(&c->texts, pod ?: ""),
		.ns = intern_get(&c->texts, ns ?: ""),
	};
	struct container of;
	char *own;
	__u32 i;

	if (!container_of_path(path, NULL, &of))
		return;
	own = xstrndup(path, of.path_len);
	i = intern_get(&c->named, own);
	free(own);
	array_reserve(c->names, c->names_room, i + 1);
	c->names[i] = n;
}

/* Of the container or pod @of, which is @path or around it. */
static struct container_name name_of(const struct replay_cgroups *c, const char *path,
				     const struct container *of)
{
	char *own = c->named.n ? xstrndup(path, of->path_len) : NULL;
	__u32 i = own ? intern_find(&c->named, own) : INTERN_NONE;

	free(own);
	if (i == INTERN_NONE)
		return (struct container_name){ "", "", "" };
	return (struct container_name){ intern_text(&c->texts, c->names[i].container),
					intern_text(&c->texts, c->names[i].pod),
					intern_text(&c->texts, c->names[i].ns) };
}

const char *replay_cgroups_label(struct replay_cgroups *c, const char *path, bool pod,
				 char buf[CONTAINER_LABEL])
{
	struct container_name name;
	struct container of;

	if (!container_of_path(path, NULL, &of))
		return "";
	name = name_of(c, path, &of);
	snprintf(buf, CONTAINER_LABEL, "%s",
		 pod ? container_pod_label(&of, &name, (char[CONTAINER_LABEL]){ 0 })
		     : container_label(&of, &name, (char[CONTAINER_LABEL]){ 0 }));
	return buf;
}

const char *replay_cgroups_path(const struct replay_cgroups *c, __u64 id)
{
	long n = key_map_find_id(&c->ids, id);

	return n < 0 ? NULL : c->paths[n];
}

void replay_cgroups_free(struct replay_cgroups *c)
{
	for (size_t i = 0; i < c->room; i++)
		free(c->paths[i]);
	free(c->paths);
	key_map_free(&c->ids);
	intern_free(&c->named);
	intern_free(&c->texts);
	free(c->names);
	memset(c, 0, sizeof(*c));
}

static bool only_digits(const char *s)
{
	return *s && !s[strspn(s, "0123456789")];
}

/* The mount point on the recorded machine is unknown: accept the usual one as a prefix. */
static int path_of(void *arg, const char *text, char **path, struct err *err)
{
	const char *s = cgroup_path_below(text, "/sys/fs/cgroup/unified")
				?: cgroup_path_below(text, "/sys/fs/cgroup");

	(void)arg;
	return cgroup_path_clean(s ?: text, path, err);
}

static int find_id(const struct replay_cgroups *c, const char *text, __u64 *id, char **path,
		   struct err *err)
{
	const struct num_arg num = { .name = "cgroup id", .min = 1, .max = UINT64_MAX };
	const char *known;
	uint64_t v;
	int ret = num_parse(&num, text, &v, err);

	if (ret)
		return ret;
	if (key_map_find_id(&c->ids, v) < 0)
		return err_set(err, -ENOENT, "no cgroup in the recording has the id %s", text);
	*id = v;
	known = replay_cgroups_path(c, v);
	*path = known ? xstrdup(known) : NULL;
	return 0;
}

/* A cgroup above a known one existed, too. */
static int find(void *arg, const char *text, __u64 *id, char **path, struct err *err)
{
	const struct replay_cgroups *c = arg;
	size_t len, known = 0;
	int ret;

	*id = 0;
	*path = NULL;
	if (only_digits(text))
		return find_id(c, text, id, path, err);
	ret = path_of(NULL, text, path, err);
	if (ret)
		return ret;
	len = (*path)[1] ? strlen(*path) : 0;
	for (size_t i = 0; i < c->ids.n; i++) {
		if (!c->paths[i])
			continue;
		known++;
		if (!len || (!strncmp(c->paths[i], *path, len) &&
			     (!c->paths[i][len] || c->paths[i][len] == '/')))
			return 0;
	}
	ret = err_set(err, -ENOENT,
		      "no cgroup '%.256s' in the recording, which has the paths of %zu cgroups",
		      *path, known);
	free(*path);
	*path = NULL;
	return ret;
}

static int each(void *arg, cgroup_cb *cb, void *cb_arg)
{
	const struct replay_cgroups *c = arg;
	int ret = 0;

	for (size_t i = 0; !ret && i < c->ids.n; i++)
		ret = cb(c->ids.keys[i].cgroup_id, c->paths[i], cb_arg);
	return ret;
}

static const struct container_name *find_name(void *names, const char *path,
					      const struct container *of)
{
	struct replay_cgroups *c = names;

	c->found = name_of(c, path, of);
	return &c->found;
}

void replay_cgroups_source(struct replay_cgroups *c, struct cgroup_source *out)
{
	*out = (struct cgroup_source){ .arg = c,
				       .names = c,
				       .recorded = true,
				       .find = find,
				       .path_of = path_of,
				       .each = each,
				       .name = find_name };
}
