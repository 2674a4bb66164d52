// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "selection.h"

#include "counts/counts.h"

#include <ibscope/fetch.h>
#include <string.h>

#define MIN_CGROUPS 16384

__u32 config_max_slots(__u32 max_groups)
{
	return (max_groups ? max_groups : MAX_GROUPS) + 1;
}

/* The program also caches cgroups that are not selected or have no group, and keeps dead ones. */
__u32 config_max_cgroups(__u32 max_slots)
{
	return 4 * max_slots > MIN_CGROUPS ? 4 * max_slots : MIN_CGROUPS;
}

bool selects_processes(const struct selection *sel)
{
	return sel->live & SAMPLER_LIVE_PROCESSES || sel->processes.n || sel->processes.but;
}

bool selects_threads(const struct selection *sel)
{
	return sel->threads.n;
}

static bool selects_cgroups(const struct selection *sel)
{
	bool any = sel->live & SAMPLER_LIVE_CGROUPS;

	for (size_t i = 0; i < sel->n_cgroups; i++)
		any |= !sel->cgroups[i].filter_only;
	return any;
}

bool selected_pids_left_out(const struct selected_pids *set)
{
	return set->but || !set->n;
}

struct ibs_selected_cgroup selected_cgroup_value(const struct selected_cgroup *c)
{
	return (struct ibs_selected_cgroup){ .min_lat = c->min_lat,
					     .selected = c->filter_only ? IBS_CGROUP_AS_ABOVE
							 : c->out	? IBS_CGROUP_OUT
									: IBS_CGROUP_IN,
					     .filter = c->filter };
}

void config_select(struct ibs_config *c, const struct selection *sel)
{
	struct layout layout;

	layout_init(&layout, c->metric, c->ibs.caps);
	layout_filter(&layout, sel->op_mask ? sel->op_mask : ~0U,
		      sel->src_mask ? sel->src_mask : ~0U);
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		const unsigned int op = i % IBS_LAYOUT_OPS, src = i / IBS_LAYOUT_OPS;
		const bool feeds = c->line_sets && layout_has(&layout, i) &&
				   (op == IBS_OP_KIND_LOAD || op == IBS_OP_KIND_LOCKED) &&
				   c->line_feed >> src & 1;
		const bool reach = c->weigh == IBS_WEIGH_STRATA && layout_has(&layout, i) &&
				   c->reach >> src & 1;

		c->layout[i] = layout.entry[i] | (feeds ? IBS_LAYOUT_FEED : 0) |
			       (reach ? IBS_LAYOUT_REACH : 0);
	}
	c->slot_words = layout.words;
	c->kind_select = sel->op_mask || sel->src_mask;
	c->task_select = (selects_processes(sel) ? IBS_TASK_TGID : 0) |
			 (selects_threads(sel) ? IBS_TASK_TID : 0) |
			 (sel->n_comms ? IBS_TASK_COMM : 0) |
			 (selects_cgroups(sel) ? IBS_TASK_CGROUP : 0);
	c->lat_select = sel->live & SAMPLER_LIVE_LATENCY || sel->min_lat || sel->max_lat;
	for (size_t i = 0; i < sel->n_cgroups; i++)
		c->lat_select |= sel->cgroups[i].min_lat != 0;
	if (sel->filter)
		c->filter = *sel->filter;
	c->cgroup_filter = (c->filter.needs & IBS_FILTER_NEEDS_CGROUP) != 0;
	c->n_comms = sel->n_comms;
	c->comm_but = sel->comms_but;
	for (size_t i = 0; i < sel->n_comms && i < IBS_COMMS_MAX; i++)
		memcpy(c->comms[i], sel->comms[i], strnlen(sel->comms[i], 15));
}

void config_fetch_layout(const struct ibs_config *c, __u16 *out)
{
	for (__u64 status = 0; status < IBS_FETCH_LAYOUT_ENTRIES; status++) {
		const __u64 ctl = status << IBS_FETCH_CTL_STATUS;

		out[status] = c->layout[IBS_LAYOUT_IDX(ibs_fetch_itlb(c->ibs, ctl),
						       ibs_fetch_class(c->ibs, ctl))];
		if (!ibs_fetch_metric_valid(c->metric, c->ibs, ctl))
			out[status] &= ~IBS_LAYOUT_HIST;
	}
}
