// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Other options while sampling goes on. */
#include "session.h"
#include "session_private.h"

#include <string.h>

#define SWAP(a, b)                     \
	do {                           \
		typeof(a) swap_ = (a); \
		(a) = (b);             \
		(b) = swap_;           \
	} while (0)

static void exchange(struct sampling *a, struct sampling *b, unsigned int what)
{
	struct select_options *sa = &a->select, *sb = &b->select;

	if (what & SAMPLING_LATENCY) {
		SWAP(sa->sel.min_lat, sb->sel.min_lat);
		SWAP(sa->sel.max_lat, sb->sel.max_lat);
	}
	if (what & SAMPLING_PROCESSES) {
		SWAP(sa->pids, sb->pids);
		SWAP(sa->sel.processes, sb->sel.processes);
	}
	if (what & SAMPLING_CGROUPS) {
		SWAP(sa->cgroups, sb->cgroups);
		SWAP(sa->n_cgroups, sb->n_cgroups);
		SWAP(sa->containers, sb->containers);
		SWAP(sa->n_containers, sb->n_containers);
	}
	sampling_use_options(a);
	sampling_use_options(b);
	if (what & SAMPLING_PERIOD) {
		SWAP(a->rate, b->rate);
		SWAP(a->opts.attr.sample_period, b->opts.attr.sample_period);
		SWAP(a->info.period, b->info.period);
	}
}

/* Let the sampler do what the options say. What can fail for more reasons comes first. */
static int apply(struct sampling *s, unsigned int what, struct err *err)
{
	const struct selection *sel = &s->opts.sel;
	int ret = 0;

	if (what & SAMPLING_CGROUPS)
		ret = sampling_reselect_cgroups(s, err);
	if (!ret && what & SAMPLING_PROCESSES)
		ret = sampler_set_processes(s->sampler, &sel->processes, err);
	if (!ret && what & SAMPLING_LATENCY)
		ret = sampler_set_latency(s->sampler, sel->min_lat, sel->max_lat, err);
	if (!ret && what & SAMPLING_PERIOD)
		ret = sampler_set_period(s->sampler, s->info.period, err);
	return ret;
}

unsigned int sampling_change_needs(unsigned int what)
{
	unsigned int live = 0;

	if (what & SAMPLING_LATENCY)
		live |= SAMPLER_LIVE_LATENCY;
	if (what & SAMPLING_PROCESSES)
		live |= SAMPLER_LIVE_PROCESSES;
	if (what & SAMPLING_CGROUPS)
		live |= SAMPLER_LIVE_CGROUPS;
	return live;
}

static bool is_ready(const struct sampling *s, const struct sampling *fresh, unsigned int what)
{
	if (what & SAMPLING_PERIOD && (!s->info.period || !fresh->info.period))
		return false;
	return !(sampling_change_needs(what) & ~s->opts.sel.live);
}

int sampling_change(struct sampling *s, struct sampling *fresh, unsigned int what, struct err *err)
{
	struct err again = { "" };
	int ret;

	if (!is_ready(s, fresh, what))
		return 1;
	exchange(s, fresh, what);
	ret = apply(s, what, err);
	if (!ret)
		return 0;
	exchange(s, fresh, what);
	if (ret > 0)
		return ret; /* of what comes first: nothing was changed */
	if (apply(s, what, &again))
		log_error("the selection is not what it was before: %s", again.text);
	s->usage = false;
	return sampling_usage_error(fresh, ret);
}
