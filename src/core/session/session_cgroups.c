// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The selected cgroups of a run, at the start and as cgroups come and go. */
#include "session.h"
#include "session_private.h"

#include "base/clock.h"
#include "cgroup/cgroup_hierarchy.h"
#include "cgroup/container.h"

#include <errno.h>
#include <math.h>

/* Search cgroups for at most a tenth of the time, and for names twice a second. */
#define LOOK_SHARE 10
#define NAMELESS_S 0.5

int sampling_open_tree(struct sampling *s, struct err *err)
{
	struct cgroup_fs fs;
	int ret = cgroup_hierarchy_choose("", *s->hierarchy ? s->hierarchy : "auto", &fs, err);

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

static uint64_t changes(const struct sampling *s)
{
	struct cgroup_stats st;

	cgroup_tree_stats(s->tree, &st);
	return st.changes;
}

static bool shows_containers(const struct sampling *s)
{
	return s->labels & (1U << LABEL_CONTAINER | 1U << LABEL_POD);
}

static int open_select(struct sampling *s, struct cgroup_select **out, struct err *err)
{
	const struct cgroup_select_opts opts = {
		.cgroups = s->select.cgroups,
		.n_cgroups = s->select.n_cgroups,
		.containers = s->select.containers,
		.n_containers = s->select.n_containers,
		.command = s->command_cgroup,
		.filter = &s->select.filter,
		.wait = s->wait_for_names,
		.names = shows_containers(s),
	};
	struct cgroup_source src;
	int ret;

	cgroup_source_of_tree(&src, s->tree, s->names);
	s->seen_changes = changes(s);
	ret = cgroup_select_open(&src, &opts, out, err);
	s->updated_s = now_s();
	return ret ? sampling_usage_error(s, ret) : 0;
}

static void use(struct sampling *s, struct cgroup_select *select)
{
	struct selection *sel = &s->opts.sel;

	s->cgroups = select;
	sel->cgroups = cgroup_select_result(select, &sel->n_cgroups);
}

int sampling_select_cgroups(struct sampling *s, struct err *err)
{
	struct cgroup_select *select;
	char path[256];
	bool found;
	int ret;

	s->names = container_names_open("");
	if ((s->select.n_containers || shows_containers(s)) &&
	    container_names_unreadable("", &found, path, sizeof(path)))
		log_warn("containers may lack their names: cannot read %s; run as root or with "
			 "CAP_DAC_READ_SEARCH",
			 path);
	ret = open_select(s, &select, err);
	if (ret)
		return ret;
	use(s, select);
	s->opts.sel.live |= cgroup_select_live(select);
	return 0;
}

int sampling_reselect_cgroups(struct sampling *s, struct err *err)
{
	struct cgroup_select *fresh;
	const struct selected_cgroup *cgroups;
	size_t n;
	int ret = open_select(s, &fresh, err);

	if (ret)
		return ret;
	cgroups = cgroup_select_result(fresh, &n);
	if (cgroup_select_live(fresh) & ~s->opts.sel.live)
		ret = 1;
	ret = ret ?: sampler_set_cgroups(s->sampler, cgroups, n, err);
	if (ret) {
		cgroup_select_close(fresh);
		return ret;
	}
	cgroup_select_close(s->cgroups);
	use(s, fresh);
	sampling_plan_again(s);
	return 0;
}

static int update_cgroups(struct sampling *s)
{
	struct selection *sel = &s->opts.sel;
	struct err err = { "" };
	int ret = cgroup_select_update(s->cgroups);

	if (ret < 0)
		return ret;
	sel->cgroups = cgroup_select_result(s->cgroups, &sel->n_cgroups);
	if (!ret && !s->select_failed)
		return 0;
	ret = sampler_set_cgroups(s->sampler, sel->cgroups, sel->n_cgroups, &err);
	if (ret && !s->select_failed)
		log_warn("cannot change the selected cgroups: %s", err.text);
	s->select_failed = ret;
	if (!ret)
		sampling_plan_again(s);
	return ret;
}

double sampling_follow(struct sampling *s)
{
	double now = now_s(), due = s->updated_s + LOOK_SHARE * s->update_cost_s;
	uint64_t seen = changes(s);
	bool nameless;

	if (!cgroup_select_any(s->cgroups) && !shows_containers(s))
		return INFINITY;
	if (seen == s->seen_changes) {
		if (!cgroup_select_nameless(s->cgroups))
			return INFINITY;
		due = fmax(due, s->updated_s + NAMELESS_S);
	}
	if (now < due)
		return due - now;
	s->seen_changes = seen;
	update_cgroups(s);
	s->updated_s = now_s();
	s->update_cost_s = s->updated_s - now;
	nameless = cgroup_select_nameless(s->cgroups);
	return nameless ? fmax(NAMELESS_S, LOOK_SHARE * s->update_cost_s) : INFINITY;
}

struct list {
	char *text;
	size_t size, len;
};

static void add_missing(void *arg, const char *option, const char *name)
{
	struct list *l = arg;

	if (l->len < l->size)
		l->len += snprintf(l->text + l->len, l->size - l->len, "%s%s %s",
				   l->len ? ", " : "", option, name);
}

size_t sampling_unresolved(const struct sampling *s, char *text, size_t size)
{
	struct list l = { text, size, 0 };

	if (size)
		*text = 0;
	return s->cgroups ? cgroup_select_missing(s->cgroups, add_missing, &l) : 0;
}

const char *sampling_cgroup_name(void *arg, __u64 id, enum label l)
{
	struct sampling *s = arg;
	const char *path = cgroup_tree_path(s->tree, id);
	struct container_owner owner;
	struct container c;

	if (l == LABEL_SLAB)
		return sampler_slab_name(s->sampler, id);
	if (!path || l == LABEL_CGROUP)
		return path;
	cgroup_tree_owner(s->tree, id, &owner);
	if (!container_of_path(path, &owner, &c))
		return "";
	return l == LABEL_POD ? container_names_pod_label(s->names, &c)
			      : container_names_label(s->names, &c);
}
