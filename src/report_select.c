// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_select.h"

#include "cgroup.h"
#include "container.h"
#include "intern.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define REGS (1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3)
/* What a filter may ask that is not a register. */
#define NEEDS_NO_REG                                                           \
	(IBS_FILTER_NEEDS_TASK | IBS_FILTER_NEEDS_UID | IBS_FILTER_NEEDS_CPU | \
	 IBS_FILTER_NEEDS_CGROUP)

/* What is known of a cgroup: bit k of a filter's predicates, and this. */
#define CGROUP_SELECTED (1u << 31)
_Static_assert(IBS_FILTER_CGROUPS < 31, "a bit each, and INTERN_NONE is no value");

struct report_select {
	struct report_selection sel;
	const struct tasks *tasks;
	struct u64_map cgroups;
};

int report_select_new(const struct report_selection *sel, const struct tasks *tasks,
		      struct report_select **out, struct err *err)
{
	struct report_select *s;

	if (sel->filter && sel->filter->prog.needs & IBS_FILTER_NEEDS_UID)
		return err_set(err, -EOPNOTSUPP,
			       "--filter: a recording does not tell the uid and gid of a sample; "
			       "leave these terms out");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->sel = *sel;
	s->tasks = tasks;
	*out = s;
	return 0;
}

void report_select_free(struct report_select *s)
{
	if (!s)
		return;
	u64_map_free(&s->cgroups);
	free(s);
}

/* Does the cgroup or one around it match? @pattern as people write it. */
static bool at_or_below(const char *pattern, const char *path)
{
	char one[4096], want[4096];

	if (snprintf(want, sizeof(want), "%s%s", *pattern == '/' ? "" : "/", pattern) >=
		    (int)sizeof(want) ||
	    strlen(path) >= sizeof(one))
		return false;
	for (size_t n = strlen(want); n > 1 && want[n - 1] == '/'; n--)
		want[n - 1] = 0;
	strcpy(one, path);
	for (;;) {
		char *slash = strrchr(one, '/');

		if (!strcmp(want, one) || cgroup_path_matches(want, one))
			return true;
		if (!slash || !one[1])
			return false;
		slash[slash == one] = 0;
	}
}

/* The innermost container, as `container` keys have it, by id, prefix of it, or pattern. */
static bool in_container(const struct filter_cgroup *c, const char *path)
{
	struct container found;

	if (!container_of_path(path, &found) || !found.id[0])
		return false;
	if (c->kind == FILTER_CONTAINER_GLOB)
		return !fnmatch(c->text, found.id, 0);
	return *c->text && !strncmp(found.id, c->text, strlen(c->text));
}

static __u32 judge_cgroup(const struct report_select *s, __u64 id)
{
	const char *path = tasks_cgroup(s->tasks, id);
	const struct filter *f = s->sel.filter;
	__u32 bits = 0;

	if (!path)
		return 0;
	for (size_t i = 0; i < s->sel.n_cgroups; i++)
		if (at_or_below(s->sel.cgroups[i], path))
			bits |= CGROUP_SELECTED;
	for (unsigned int i = 0; f && i < f->n_cgroups; i++) {
		const struct filter_cgroup *c = &f->cgroups[i];
		bool container = c->kind == FILTER_CONTAINER || c->kind == FILTER_CONTAINER_GLOB;

		if (container ? in_container(c, path) : at_or_below(c->text, path))
			bits |= 1u << i;
	}
	return bits;
}

/* Out of memory it is only slower. */
static __u32 cgroup_bits(struct report_select *s, __u64 id)
{
	__u32 bits;

	if (!id)
		return 0;
	bits = u64_map_get(&s->cgroups, id);
	if (bits == INTERN_NONE) {
		bits = judge_cgroup(s, id);
		u64_map_put(&s->cgroups, id, bits);
	}
	return bits;
}

static bool has_number(const __u32 *numbers, size_t n, __u32 number)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static bool comm_selected(const struct report_select *s, const struct trace_event *ev)
{
	const struct trace_sample *t = &ev->sample;
	const char *comm = NULL;

	if (t->has_task)
		comm = tasks_comm(s->tasks, t->tgid, t->tid, ev->time);
	if (!comm)
		return false;
	for (size_t i = 0; i < s->sel.n_comms; i++)
		if (!strcmp(s->sel.comms[i], comm))
			return !s->sel.comms_but;
	return s->sel.comms_but;
}

static bool task_selected(struct report_select *s, const struct trace_event *ev)
{
	const struct report_selection *sel = &s->sel;
	const struct trace_sample *t = &ev->sample;

	if (sel->n_pids &&
	    !(t->has_task && has_number(sel->pids, sel->n_pids, t->tgid) != sel->pids_but))
		return false;
	if (sel->n_tids && !(t->has_task && has_number(sel->tids, sel->n_tids, t->tid)))
		return false;
	if (sel->cpus && !(t->has_cpu && t->cpu < CPULIST_MAX && cpulist_has(sel->cpus, t->cpu)))
		return false;
	if (sel->n_cgroups && !(cgroup_bits(s, t->cgroup_id) & CGROUP_SELECTED))
		return false;
	return !sel->n_comms || comm_selected(s, ev);
}

static bool op_selected(const struct report_selection *sel, const struct ibs_op_sample *op)
{
	__u64 data3 = op->reg[IBS_OP_DATA3];
	__u32 lat;

	if (!sel->src_mask && !sel->op_mask && !sel->min_lat && !sel->max_lat)
		return true;
	if ((op->present & REGS) != REGS)
		return false;
	if (sel->src_mask && !(sel->src_mask >> ibs_op_src(op->cpu, op->reg) & 1))
		return false;
	if (sel->op_mask && !(sel->op_mask >> ibs_op_kind(op->reg[IBS_OP_DATA], data3) & 1))
		return false;
	if (!sel->min_lat && !sel->max_lat)
		return true;
	lat = ibs_op_metric(sel->metric, op->reg, data3);
	return ibs_op_metric_valid(sel->metric, op->cpu.caps, data3) && lat >= sel->min_lat &&
	       (!sel->max_lat || lat <= sel->max_lat);
}

/* Terms of what a sample does not know of itself hold for none, as absent fields do. */
static bool filter_selected(struct report_select *s, const struct trace_event *ev)
{
	static const __u64 no_regs[IBS_OP_REG_N];
	const struct filter *f = s->sel.filter;
	const struct trace_sample *t = &ev->sample;
	struct ibs_cpu cpu = { 0 };
	struct ibs_filter_sample fs = { .regs = no_regs, .ibs = &cpu };
	__u32 needs = f->prog.needs;

	if (ev->kind == TRACE_SAMPLE_OP) {
		cpu = t->op.cpu;
		fs.regs = t->op.reg;
		if ((t->op.present & needs & ~NEEDS_NO_REG) != (needs & ~NEEDS_NO_REG))
			return false;
	} else if (needs & ~NEEDS_NO_REG) {
		return false;
	}
	if ((needs & IBS_FILTER_NEEDS_TASK && !t->has_task) ||
	    (needs & IBS_FILTER_NEEDS_CPU && !t->has_cpu))
		return false;
	fs.pid_tgid = (__u64)t->tgid << 32 | t->tid;
	fs.cpu = t->cpu;
	if (needs & IBS_FILTER_NEEDS_CGROUP)
		fs.cgroups = cgroup_bits(s, t->cgroup_id) & ~CGROUP_SELECTED;
	return ibs_filter_eval(&f->prog, &fs);
}

bool report_selected(struct report_select *s, const struct trace_event *ev)
{
	const struct report_selection *sel = &s->sel;

	if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
		return false;
	if (ev->kind == TRACE_SAMPLE_OP) {
		if (!op_selected(sel, &ev->sample.op))
			return false;
	} else if (sel->src_mask || sel->op_mask || sel->min_lat || sel->max_lat) {
		return false;
	}
	return task_selected(s, ev) && (!sel->filter || filter_selected(s, ev));
}
