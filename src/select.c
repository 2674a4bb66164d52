// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is selected, entered into the maps of a sampler; also while it runs. */
#include "sampler_private.h"

#include "descendants.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A set of pids while it is put together. */
struct wanted {
	__u8 *byte; /* one a pid */
	size_t n;
};

static int want(void *arg, __u32 pid)
{
	struct wanted *w = arg;

	if (pid < w->n)
		w->byte[pid] = 1;
	return 0;
}

/*
 * Make @bytes, which programs read, what @set says. Those that a fork enters meanwhile stay: only
 * what was in before is taken out, and only after the new ones are in.
 */
static int set_pids(__u8 *bytes, size_t n_bytes, const struct selected_pids *set, bool follow,
		    const char *what, struct err *err)
{
	struct wanted w = { .byte = calloc(n_bytes, 1), .n = n_bytes };
	__u8 *before = malloc(n_bytes);
	int ret = 0;

	if (!w.byte || !before)
		ret = err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !ret && i < set->n; i++) {
		if (set->pids[i] >= n_bytes)
			ret = err_set(err, -ERANGE, "%s %u: this kernel numbers them below %zu",
				      what, set->pids[i], n_bytes);
		else
			want(&w, set->pids[i]);
	}
	if (!ret) {
		memcpy(before, bytes, n_bytes);
		/* entered before /proc is read, so that a child is seen by one or the other */
		for (size_t i = 0; i < set->n; i++)
			__atomic_store_n(&bytes[set->pids[i]], 1, __ATOMIC_SEQ_CST);
		if (follow)
			ret = descendants("", set->pids, set->n, want, &w, err);
	}
	for (size_t pid = 0; !ret && pid < n_bytes; pid++)
		if (w.byte[pid])
			__atomic_store_n(&bytes[pid], 1, __ATOMIC_RELAXED);
	for (size_t pid = 0; !ret && pid < n_bytes; pid++)
		if (before[pid] && !w.byte[pid])
			__atomic_store_n(&bytes[pid], 0, __ATOMIC_RELAXED);
	free(w.byte);
	free(before);
	return ret;
}

static int set_processes(struct sampler_select *ss, const struct selected_pids *set,
			 struct err *err)
{
	return set_pids(ss->processes, ss->pids_n, set, ss->follow, "process", err);
}

static __u8 cgroup_choice(const struct selected_cgroup *c)
{
	if (c->filter_only)
		return IBS_CGROUP_AS_ABOVE;
	return c->out ? IBS_CGROUP_OUT : IBS_CGROUP_IN;
}

static int set_cgroups(struct sampler_select *ss, const struct selected_cgroup *cgroups, size_t n,
		       struct err *err)
{
	bool any_in = false;

	for (size_t i = 0; i < n; i++) {
		struct ibs_selected_cgroup value = { .min_lat = cgroups[i].min_lat,
						     .selected = cgroup_choice(&cgroups[i]),
						     .filter = cgroups[i].filter };

		any_in |= value.selected == IBS_CGROUP_IN;
		if (bpf_map_update_elem(ss->cgroups_fd, &cgroups[i].id, &value, BPF_ANY))
			return err_set(err, -errno, "cannot select cgroup %llu: %s",
				       (unsigned long long)cgroups[i].id, strerror(errno));
		ss->ids[ss->n_ids++] = cgroups[i].id;
	}
	ss->control->cgroup_default = !any_in;
	return 0;
}

static bool has_id(const struct sampler_select *ss, __u64 id)
{
	for (size_t i = 0; i < ss->n_ids; i++)
		if (ss->ids[i] == id)
			return true;
	return false;
}

static int reserve_ids(struct sampler_select *ss, size_t n, struct err *err)
{
	free(ss->ids);
	ss->n_ids = 0;
	ss->ids = calloc(n ? n : 1, sizeof(*ss->ids));
	return ss->ids ? 0 : err_set(err, -ENOMEM, "out of memory");
}

int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err)
{
	int ret = 0;

	ss->control->min_lat = sel->min_lat;
	ss->control->max_lat = sel->max_lat;
	/* nobody named and everybody wanted: all but nobody */
	ss->control->pid_but = sel->processes.but || !sel->processes.n;
	if (ss->processes)
		ret = set_processes(ss, &sel->processes, err);
	/* whose child a thread is /proc does not tell: of those only later ones are followed */
	if (!ret && ss->threads)
		ret = set_pids(ss->threads, ss->pids_n, &sel->threads, false, "thread", err);
	ss->control->cgroup_default = 1;
	if (!ret && ss->cgroups_fd)
		ret = reserve_ids(ss, sel->n_cgroups, err)
			      ?: set_cgroups(ss, sel->cgroups, sel->n_cgroups, err);
	return ret;
}

void select_close(struct sampler_select *ss)
{
	free(ss->ids);
	memset(ss, 0, sizeof(*ss));
}

static int check_live(const struct sampler_select *ss, unsigned int what, struct err *err)
{
	if (ss->live & what)
		return 0;
	return err_set(err, -EINVAL,
		       "this collection was not begun with a selection that can be "
		       "changed");
}

int sampler_set_processes(struct sampler *s, const struct selected_pids *set, struct err *err)
{
	struct sampler_select *ss = sampler_selection(s);
	int ret = check_live(ss, SAMPLER_LIVE_PROCESSES, err);

	if (ret)
		return ret;
	ret = set_processes(ss, set, err);
	if (!ret)
		__atomic_store_n(&ss->control->pid_but, set->but || !set->n, __ATOMIC_SEQ_CST);
	return ret;
}

int sampler_set_cgroups(struct sampler *s, const struct selected_cgroup *cgroups, size_t n,
			struct err *err)
{
	struct sampler_select *ss = sampler_selection(s);
	__u64 *old = ss->ids;
	size_t n_old = ss->n_ids;
	unsigned int needs = SAMPLER_LIVE_CGROUPS | SAMPLER_LIVE_FILTER;
	int ret;

	for (size_t i = 0; i < n; i++)
		if (!cgroups[i].filter_only)
			needs = SAMPLER_LIVE_CGROUPS;
	ret = check_live(ss, needs, err);
	if (ret)
		return ret;
	if (n > ss->cgroups_max)
		return err_set(err, -E2BIG, "%zu cgroups selected; at most %zu are possible", n,
			       ss->cgroups_max);
	/*
	 * Programs look into the map only when they meet a cgroup for the first time or after `gen`
	 * has changed: until then each CPU goes on with what it knows. One first met right now may
	 * be judged by both selections, until the change.
	 */
	ss->ids = NULL;
	ret = reserve_ids(ss, n, err) ?: set_cgroups(ss, cgroups, n, err);
	if (ret) {
		/* as it was, but for ids that nothing refers to before the next change */
		free(ss->ids);
		ss->ids = old;
		ss->n_ids = n_old;
		return ret;
	}
	for (size_t i = 0; i < n_old; i++)
		if (!has_id(ss, old[i]))
			bpf_map_delete_elem(ss->cgroups_fd, &old[i]);
	free(old);
	__atomic_fetch_add(&ss->control->gen, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int sampler_set_latency(struct sampler *s, __u32 min_lat, __u32 max_lat, struct err *err)
{
	struct sampler_select *ss = sampler_selection(s);
	int ret = check_live(ss, SAMPLER_LIVE_LATENCY, err);

	if (ret)
		return ret;
	__atomic_store_n(&ss->control->min_lat, min_lat, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ss->control->max_lat, max_lat, __ATOMIC_SEQ_CST);
	return 0;
}
