// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The selected cgroups of a run, at the start and as cgroups come and go. */
#include "session_private.h"

#include "base/clock.h"
#include "cgroup/cgroup.h"
#include "cgroup/container.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Search cgroups for at most a tenth of the time, and for names twice a second. */
#define LOOK_SHARE 10
#define NAMELESS_S 0.5

/*
 * What auto chooses depends on the cgroups of the moment. A session that is opened again keeps its choice:
 * the ids of another hierarchy mean other cgroups, so pinned counters could not be resumed.
 */
static int choose_hierarchy(struct session *s, struct cgroup_fs *fs, struct err *err)
{
	const char *given = s->setup->options.hierarchy;
	const bool is_auto = !*given || !strcmp(given, "auto");
	int ret;

	if (is_auto && *s->kept.name && !cgroup_hierarchy_choose("", s->kept.name, fs, err))
		return 0;
	ret = cgroup_hierarchy_choose("", is_auto ? "auto" : given, fs, err);
	if (!ret && is_auto && *fs->path)
		snprintf(s->kept.name, sizeof(s->kept.name), "%s",
			 *fs->controller ? fs->controller : "v2");
	return ret;
}

int session_open_tree(struct session *s, struct err *err)
{
	struct cgroup_fs fs;
	int ret = choose_hierarchy(s, &fs, err);

	if (ret) {
		err_prefix(err, "--cgroup-hierarchy");
		return usage_error(&s->usage, ret == -ENOENT ? -EINVAL : ret);
	}
	ret = cgroup_tree_open_at("", &fs, &s->tree, err);
	if (ret)
		return ret;
	if (*fs.controller)
		log_debug("cgroups are those of the v1 hierarchy of %s at %s", fs.controller,
			  fs.path);
	for_each_event (e, s) {
		e->opts.cgroup_controller = cgroup_tree_fs(s->tree)->controller;
		if (e == s->setup->event && (e->opts.by & IBS_BY_CGROUP) &&
		    !cgroup_tree_per_cgroup(s->tree))
			log_warn("no cgroup hierarchy is mounted: all samples belong to '/'");
	}
	return 0;
}

/* --- events that count only while one cgroup runs --- */

/* The only selected cgroup, or id 0 while it does not exist; false: there are others. */
static bool only_cgroup(const struct session *s, __u64 *id)
{
	const struct selected_cgroup *cgroups;
	size_t n, found = 0;

	cgroups = cgroup_select_result(s->cgroups, &n);
	for (size_t i = 0; i < n; i++) {
		if (cgroups[i].out || cgroups[i].filter_only)
			continue;
		*id = cgroups[i].id;
		found++;
	}
	return found == 1;
}

int session_bound_cgroup(struct session *s, struct session_event *e)
{
	const char *path;
	char dir[4096 + 256];
	__u64 id = 0;
	int fd;

	running(s, e)->bound = 0;
	if (!e->plan.cgroup || !only_cgroup(s, &id) || !id)
		return 0;
	path = cgroup_tree_path(s->tree, id);
	if (!path || *path != '/' || *cgroup_tree_fs(s->tree)->controller)
		return 0;
	snprintf(dir, sizeof(dir), "%s%s", cgroup_tree_mount(s->tree), path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	running(s, e)->bound = id;
	return fd;
}

/* Update the running sampler after cgroups have changed. */
static void bind_again(struct session *s, struct session_event *e)
{
	struct running *r = running(s, e);
	const __u64 before = r->bound;
	struct err err = { "" };
	__u64 id = 0;
	int fd;

	/* while it is gone nothing is selected: events of the dead cgroup count nothing */
	if (r->unbindable || (e->plan.cgroup && only_cgroup(s, &id) && !id))
		return;
	fd = session_bound_cgroup(s, e);
	if (r->bound != before && sampler_set_cgroup(e->sampler, fd, &err)) {
		log_info("%s", err.text);
		r->unbindable = fd;
	}
	if (fd)
		close(fd);
}

/* --- the selection --- */

/* Pass the selection to all samplers. Return: 0, or a negative errno with @err. */
static int set_cgroups(struct session *s, const struct cgroup_select *select, struct err *err)
{
	size_t n;
	const struct selected_cgroup *cgroups = cgroup_select_result(select, &n);
	int ret = 0;

	for_each_event (e, s)
		ret = ret ?: sampler_set_cgroups(e->sampler, cgroups, n, err);
	if (!ret && s->strata)
		ret = sampler_set_cgroups(session_strata_sampler(s), cgroups, n, err);
	return ret;
}

static uint64_t changes(const struct session *s)
{
	struct cgroup_stats st;

	cgroup_tree_stats(s->tree, &st);
	return st.changes;
}

static bool shows_containers(const struct session *s)
{
	unsigned int labels = 0;

	for_each_event (e, s)
		labels |= e->labels;
	return labels & (1U << LABEL_CONTAINER | 1U << LABEL_POD);
}

static int open_select(struct session *s, struct cgroup_select **out, struct err *err)
{
	const struct sampling_opts *o = &s->setup->options;
	const struct cgroup_select_opts opts = {
		.cgroups = o->select.cgroups,
		.n_cgroups = o->select.n_cgroups,
		.containers = o->select.containers,
		.n_containers = o->select.n_containers,
		.command = s->command_cgroup,
		/* a filter tests the same cgroups, in the same order, for all events */
		.filter = &o->select.filter[sampling_of_fetch(o)],
		.wait = o->wait_for_names,
		.names = shows_containers(s),
	};
	struct cgroup_source src;
	int ret;

	cgroup_source_of_tree(&src, s->tree, s->names);
	s->seen_changes = changes(s);
	ret = cgroup_select_open(&src, &opts, out, err);
	s->updated_s = now_s();
	return ret ? usage_error(&s->usage, ret) : 0;
}

int session_select_cgroups(struct session *s, struct err *err)
{
	char path[256];
	bool found;
	int ret;

	s->names = container_names_open("");
	if ((s->setup->options.select.n_containers || shows_containers(s)) &&
	    container_names_unreadable("", &found, path, sizeof(path)))
		log_warn("containers may lack their names: cannot read %s; run as root or with "
			 "CAP_DAC_READ_SEARCH",
			 path);
	ret = open_select(s, &s->cgroups, err);
	if (ret)
		return ret;
	for_each_event (e, s) {
		struct selection *sel = &e->opts.sel;

		sel->cgroups = cgroup_select_result(s->cgroups, &sel->n_cgroups);
		sel->live |= cgroup_select_live(s->cgroups);
	}
	return 0;
}

int session_reselect_cgroups(struct session *s, struct err *err)
{
	struct cgroup_select *fresh, *old = s->cgroups;
	struct err again;
	int ret = open_select(s, &fresh, err);

	if (ret)
		return ret;
	for_each_event (e, s)
		if (cgroup_select_live(fresh) & ~e->opts.sel.live)
			ret = 1;
	if (!ret) {
		ret = set_cgroups(s, fresh, err);
		if (ret)
			set_cgroups(s, old, &again);
	}
	if (ret) {
		cgroup_select_close(fresh);
		return ret;
	}
	s->cgroups = fresh;
	cgroup_select_close(old);
	for_each_event (e, s)
		bind_again(s, e);
	return 0;
}

static void update_cgroups(struct session *s)
{
	struct err err = { "" };
	int ret = cgroup_select_update(s->cgroups);

	if (ret < 0 || (!ret && !s->select_failed))
		return;
	ret = set_cgroups(s, s->cgroups, &err);
	if (ret && !s->select_failed)
		log_warn("cannot change the selected cgroups: %s", err.text);
	s->select_failed = ret;
	if (ret)
		return;
	for_each_event (e, s)
		bind_again(s, e);
}

double session_follow(struct session *s)
{
	double now, due;
	uint64_t seen;
	bool nameless;

	cgroup_tree_update(s->tree);
	now = now_s();
	due = s->updated_s + LOOK_SHARE * s->update_cost_s;
	seen = changes(s);
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

size_t session_unresolved(const struct session *s, char *text, size_t size)
{
	struct list l = { text, size, 0 };

	if (size)
		*text = 0;
	return s->cgroups ? cgroup_select_missing(s->cgroups, add_missing, &l) : 0;
}

/* Only samplers that group by slab caches know their names. */
static const char *slab_name(struct session *s, __u64 id)
{
	for_each_event (e, s)
		if (e->opts.slabs)
			return sampler_slab_name(e->sampler, id);
	return NULL;
}

const char *session_cgroup_name(void *arg, __u64 id, enum label l)
{
	struct session *s = arg;
	const char *path = cgroup_tree_path(s->tree, id);
	struct container_owner owner;
	struct container c;

	if (l == LABEL_SLAB)
		return slab_name(s, id);
	if (!path || l == LABEL_CGROUP)
		return path;
	cgroup_tree_owner(s->tree, id, &owner);
	if (!container_of_path(path, &owner, &c))
		return "";
	return l == LABEL_POD ? container_names_pod_label(s->names, &c)
			      : container_names_label(s->names, &c);
}
