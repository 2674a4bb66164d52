// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the selection to the maps of a sampler; also while it runs. */
#include "sampler_private.h"

#include "descendants.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A set of pids under construction. */
struct wanted {
	__u8 *byte; /* one per pid */
	size_t n, found;
};

static int want(void *arg, __u32 pid)
{
	struct wanted *w = arg;

	if (pid < w->n && !w->byte[pid]) {
		w->byte[pid] = 1;
		w->found++;
	}
	return 0;
}

typedef int descendants_fn(const char *root, const __u32 *pids, size_t n,
			   int (*found)(void *arg, __u32 pid), void *arg, struct err *err);

/* A set of pids in a map: one bit of each pid's byte, which programs read. */
struct pid_set {
	__u8 *bytes;
	size_t n;
	__u8 bit;
};

static bool has(const struct pid_set *ps, size_t pid)
{
	return ps->bytes[pid] & ps->bit;
}

static void take_out(const struct pid_set *ps, size_t pid)
{
	__atomic_fetch_and(&ps->bytes[pid], ~ps->bit, __ATOMIC_SEQ_CST);
}

static void enter(const struct pid_set *ps, const struct wanted *w)
{
	for (size_t pid = 0; pid < w->n; pid++)
		if (w->byte[pid] && !has(ps, pid))
			__atomic_fetch_or(&ps->bytes[pid], ps->bit, __ATOMIC_SEQ_CST);
}

/*
 * Enter the descendants that @follow finds, then search again, so that each new child is found by
 * the search or by the program. Stops when nothing is new or after FOLLOW_ROUNDS.
 */
#define FOLLOW_ROUNDS 8

static int enter_descendants(const struct pid_set *ps, const struct selected_pids *set,
			     descendants_fn *follow, struct wanted *w, struct err *err)
{
	size_t known;
	int ret = 0, rounds = 0;

	do {
		known = w->found;
		ret = follow("", set->pids, set->n, want, w, err);
		enter(ps, w);
	} while (!ret && w->found > known && ++rounds < FOLLOW_ROUNDS);
	return ret;
}

/*
 * Make @ps equal to @set. Pids that a fork enters concurrently stay: only those entered before are
 * removed, after the new ones are added.
 */
static int set_pids(const struct pid_set *ps, const struct selected_pids *set,
		    descendants_fn *follow, const char *what, struct err *err)
{
	struct wanted w = { .byte = xcalloc(ps->n, 1), .n = ps->n };
	__u8 *before = xrealloc(NULL, ps->n);
	int ret = 0;

	for (size_t i = 0; !ret && i < set->n; i++) {
		if (set->pids[i] >= ps->n)
			ret = err_set(err, -ERANGE, "%s %u: out of range: pids are below %zu", what,
				      set->pids[i], ps->n);
		else
			want(&w, set->pids[i]);
	}
	if (!ret) {
		memcpy(before, ps->bytes, ps->n);
		enter(ps, &w);
		if (follow)
			ret = enter_descendants(ps, set, follow, &w, err);
	}
	for (size_t pid = 0; !ret && pid < ps->n; pid++)
		if (before[pid] & ps->bit && !w.byte[pid])
			take_out(ps, pid);
	free(w.byte);
	free(before);
	return ret;
}

static struct pid_set process_set(const struct sampler_select *ss, bool out)
{
	return (struct pid_set){ ss->processes, ss->pids_n, out ? IBS_PID_OUT : IBS_PID_IN };
}

/* Set a word of each CPU's state, which programs read while they run. */
#define set_live(ss, word, value)                                                          \
	do {                                                                               \
		const __u64 value_ = value;                                                \
                                                                                           \
		for (unsigned int cpu = 0; cpu < (ss)->n_cpus; cpu++)                      \
			__atomic_store_n(&(ss)->cpus[cpu].word, value_, __ATOMIC_SEQ_CST); \
	} while (0)

static __u32 next_gen(const struct sampler_select *ss)
{
	return ((ss->cpus[0].live + IBS_LIVE_STEP) & IBS_LIVE_GEN) ?: IBS_LIVE_STEP;
}

/* Set `live`, but for what it says of other users of the PMU. */
static void select_mark(struct sampler_select *ss, __u32 live)
{
	for (unsigned int cpu = 0; cpu < ss->n_cpus; cpu++) {
		__u32 *word = &ss->cpus[cpu].live;

		__atomic_store_n(word, live | (*word & IBS_LIVE_SHARED), __ATOMIC_SEQ_CST);
	}
}

static int set_processes(struct sampler_select *ss, const struct selected_pids *set,
			 struct err *err)
{
	const bool out = selected_pids_left_out(set);
	const struct pid_set now = process_set(ss, out), other = process_set(ss, !out);
	int ret = set_pids(&now, set, ss->follow ? descendants : NULL, "process", err);

	if (ret)
		return ret;
	select_mark(ss, next_gen(ss) | (out ? IBS_PID_TEST_OUT : IBS_PID_TEST_IN));
	for (size_t pid = 0; pid < other.n; pid++)
		if (has(&other, pid))
			take_out(&other, pid);
	return 0;
}

static int set_threads(struct sampler_select *ss, const struct selected_pids *set, struct err *err)
{
	const struct pid_set ps = { ss->threads, ss->pids_n, IBS_PID_IN };

	return set_pids(&ps, set, ss->follow ? descendant_threads : NULL, "thread", err);
}

static int by_id(const void *pa, const void *pb)
{
	const struct selected_cgroup *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

static const struct selected_cgroup *find_cgroup(const struct selected_cgroup *sorted, size_t n,
						 __u64 id)
{
	const struct selected_cgroup want = { .id = id };

	return n ? bsearch(&want, sorted, n, sizeof(want), by_id) : NULL;
}

/* Add and update entries; stale ones stay. bpf() calls may cost samples: skip unchanged entries. */
static int set_cgroups(struct sampler_select *ss, const struct selected_cgroup *cgroups, size_t n,
		       struct selected_cgroup **sorted, struct err *err)
{
	bool any_in = false;

	*sorted = xcalloc(n, sizeof(**sorted));
	if (n)
		memcpy(*sorted, cgroups, n * sizeof(*cgroups));
	qsort(*sorted, n, sizeof(**sorted), by_id);
	for (size_t i = 0; i < n; i++) {
		const struct selected_cgroup *c = &(*sorted)[i];
		const struct selected_cgroup *old = find_cgroup(ss->cgroups, ss->n_cgroups, c->id);
		struct ibs_selected_cgroup value = selected_cgroup_value(c), before;

		any_in |= value.selected == IBS_CGROUP_IN;
		if (old) {
			before = selected_cgroup_value(old);
			if (!memcmp(&before, &value, sizeof(value)))
				continue;
		}
		if (bpf_map_update_elem(ss->cgroups_fd, &c->id, &value, BPF_ANY))
			return err_set(err, -errno, "cannot select cgroup %llu: %s",
				       (unsigned long long)c->id, strerror(errno));
	}
	ss->control->cgroup_default = !any_in;
	return 0;
}

static void set_latency(struct sampler_select *ss, __u32 min_lat, __u32 max_lat)
{
	set_live(ss, lat, max_lat << IBS_LAT_MAX_SHIFT | min_lat);
}

int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err)
{
	int ret = 0;

	set_latency(ss, sel->min_lat, sel->max_lat);
	if (ss->processes)
		ret = set_processes(ss, &sel->processes, err);
	if (!ret && ss->threads)
		ret = set_threads(ss, &sel->threads, err);
	ss->control->cgroup_default = 1;
	if (!ret && ss->cgroups_fd)
		ret = set_cgroups(ss, sel->cgroups, sel->n_cgroups, &ss->cgroups, err);
	if (!ret && ss->cgroups_fd)
		ss->n_cgroups = sel->n_cgroups;
	return ret;
}

void select_renew(struct sampler_select *ss)
{
	select_mark(ss, next_gen(ss) | (__u8)ss->cpus[0].live);
}

void select_close(struct sampler_select *ss)
{
	free(ss->cgroups);
	memset(ss, 0, sizeof(*ss));
}

static int check_live(const struct sampler_select *ss, unsigned int what, struct err *err)
{
	if (ss->live & what)
		return 0;
	return err_set(err, -EINVAL,
		       "this collection was not started with a selection that can be "
		       "changed");
}

int sampler_set_processes(struct sampler *s, const struct selected_pids *set, struct err *err)
{
	struct sampler_select *ss = &s->select;
	int ret = check_live(ss, SAMPLER_LIVE_PROCESSES, err);

	return ret ?: set_processes(ss, set, err);
}

/* Restore the old entries after a failure; they need no extra room, so this cannot fail. */
static void restore_cgroups(struct sampler_select *ss, const struct selected_cgroup *sorted,
			    size_t n)
{
	for (size_t i = 0; sorted && i < n; i++)
		if (!find_cgroup(ss->cgroups, ss->n_cgroups, sorted[i].id))
			bpf_map_delete_elem(ss->cgroups_fd, &sorted[i].id);
	for (size_t i = 0; i < ss->n_cgroups; i++) {
		struct ibs_selected_cgroup value = selected_cgroup_value(&ss->cgroups[i]);

		bpf_map_update_elem(ss->cgroups_fd, &ss->cgroups[i].id, &value, BPF_ANY);
	}
}

int sampler_set_cgroups(struct sampler *s, const struct selected_cgroup *cgroups, size_t n,
			struct err *err)
{
	struct sampler_select *ss = &s->select;
	struct selected_cgroup *sorted = NULL;
	unsigned int needs = SAMPLER_LIVE_CGROUPS | SAMPLER_LIVE_FILTER;
	int ret;

	for (size_t i = 0; i < n; i++)
		if (!cgroups[i].filter_only)
			needs = SAMPLER_LIVE_CGROUPS;
	ret = check_live(ss, needs, err);
	if (ret)
		return ret;
	if (n > ss->cgroups_max)
		return err_set(err, -E2BIG, "%zu cgroups selected; the maximum is %zu", n,
			       ss->cgroups_max);
	/*
	 * Programs read the map only when they see a cgroup for the first time or after `gen` has
	 * changed: until then each CPU uses its cached decision. A cgroup first seen right now may
	 * be tested against both selections, until the change.
	 */
	ret = set_cgroups(ss, cgroups, n, &sorted, err);
	if (ret) {
		restore_cgroups(ss, sorted, n);
		free(sorted);
		return ret;
	}
	for (size_t i = 0; i < ss->n_cgroups; i++)
		if (!find_cgroup(sorted, n, ss->cgroups[i].id))
			bpf_map_delete_elem(ss->cgroups_fd, &ss->cgroups[i].id);
	free(ss->cgroups);
	ss->cgroups = sorted;
	ss->n_cgroups = n;
	select_renew(ss);
	return 0;
}

int sampler_set_latency(struct sampler *s, __u32 min_lat, __u32 max_lat, struct err *err)
{
	struct sampler_select *ss = &s->select;
	int ret = check_live(ss, SAMPLER_LIVE_LATENCY, err);

	if (ret)
		return ret;
	set_latency(ss, min_lat, max_lat);
	return 0;
}
