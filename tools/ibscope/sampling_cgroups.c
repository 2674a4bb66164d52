// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From what --cgroup says to cgroup ids. */
#include "sampling_private.h"

#include "cgroup_hierarchy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sampling_open_tree(struct sampling *s, struct err *err)
{
	struct cgroup_fs fs;
	int ret = cgroup_hierarchy_choose("", s->hierarchy ? s->hierarchy : "auto", &fs, err);

	if (ret) {
		err_prefix(err, "--cgroup-hierarchy");
		return sampling_usage_error(s, ret == -ENOENT ? -EINVAL : ret);
	}
	ret = cgroup_tree_open_at("", &fs, &s->tree, err);
	if (ret)
		return ret;
	if (*fs.controller)
		log_info("cgroups are those of the v1 hierarchy of %s at %s", fs.controller,
			 fs.path);
	s->opts.cgroup_controller = cgroup_tree_fs(s->tree)->controller;
	if ((s->opts.by & IBS_BY_CGROUP) && !cgroup_tree_per_cgroup(s->tree))
		log_warn("no cgroup hierarchy is mounted: all samples belong to '/'");
	return 0;
}

/* What a path or pattern of --cgroup stands for. */
struct cgroup_arg {
	struct sampling *s;
	__u16 min_lat;
	bool out;
};

static int add_cgroup(uint64_t id, const char *path, void *arg)
{
	const struct cgroup_arg *a = arg;
	struct sampling *s = a->s;

	(void)path;
	if (s->n_selected == s->room_selected) {
		size_t room = s->room_selected ? 2 * s->room_selected : 64;
		struct selected_cgroup *more = realloc(s->selected, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->selected = more;
		s->room_selected = room;
	}
	s->selected[s->n_selected++] =
		(struct selected_cgroup){ .id = id, .min_lat = a->min_lat, .out = a->out };
	return 0;
}

/* One of --cgroup: PATH or PATTERN, with :MIN behind it perhaps. */
static int select_cgroup(struct cgroup_arg *a, char *text, struct err *err)
{
	struct cgroup_tree *tree = a->s->tree;
	char *colon = strrchr(text, ':');
	__u32 min_lat = 0;
	uint64_t id;
	int ret = cgroup_id_of_path(tree, text, &id, NULL);

	/* a path can hold a colon: ours is one behind which stands a number, in no such path */
	if (ret && colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		ret = sampling_parse_latency("--cgroup", colon + 1, &min_lat, err);
		if (ret)
			return ret;
		*colon = 0;
	}
	a->min_lat = min_lat;
	if (strpbrk(text, "*?[")) {
		ret = cgroup_glob(tree, text, add_cgroup, a);
		if (!ret)
			return err_set(err, -ENOENT, "--cgroup: no cgroup matches '%s'", text);
		return ret < 0 ? err_set(err, ret, "--cgroup: %s", strerror(-ret)) : 0;
	}
	ret = cgroup_id_of_path(tree, text, &id, err);
	if (ret) {
		err_prefix(err, "--cgroup");
		return ret;
	}
	return add_cgroup(id, text, a);
}

int sampling_select_cgroups(struct sampling *s, struct err *err)
{
	for (size_t i = 0; i < s->n_cgroups; i++) {
		char *save, *list = s->cgroups[i];
		struct cgroup_arg a = { .s = s, .out = *list == '!' };
		size_t before = s->n_selected;

		for (char *p = strtok_r(list + a.out, ",", &save); p;
		     p = strtok_r(NULL, ",", &save)) {
			int ret = select_cgroup(&a, p, err);

			if (ret)
				return sampling_usage_error(s, ret);
		}
		if (s->n_selected == before)
			return sampling_usage_error(
				s, err_set(err, -EINVAL, "--cgroup: no cgroup named"));
	}
	s->opts.sel.cgroups = s->selected;
	s->opts.sel.n_cgroups = s->n_selected;
	return 0;
}
