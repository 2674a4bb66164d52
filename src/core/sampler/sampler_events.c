// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The events of a sampler: their period, and CPUs that come and go. */
#include "sampler.h"

#include "base/cpulist.h"
#include "pins/pins.h"
#include "sampler_private.h"

#include "ibs_op.skel.h"

#include <errno.h>

/* Why events cannot be bound to a cgroup. */
static const char *refused_cgroup(int error)
{
	switch (error) {
	case -ENOENT:
		return "sampling all cgroups and filtering: perf sees cgroups only once the "
		       "root's cgroup.subtree_control has been written, as by systemd";
	case -EINVAL:
		return "sampling all cgroups and filtering: this kernel cannot bind IBS events to "
		       "a "
		       "cgroup";
	default:
		return "sampling all cgroups and filtering: the kernel refuses events of a cgroup";
	}
}

int sampler_events_open(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	int ret = perf_events_open(&opts->attr, opts->cpus, opts->n_cpus, opts->cgroup ?: -1,
				   opts->event, NULL, &s->events, err);

	if (ret && opts->cgroup) {
		log_info("%s", refused_cgroup(ret));
		ret = perf_events_open(&opts->attr, opts->cpus, opts->n_cpus, -1, opts->event, NULL,
				       &s->events, err);
	}
	if (ret)
		return ret;
	sampler_tags_open(s, opts, perf_events_has_cgroup(s->events) ? opts->cgroup : -1);
	if (opts->prog == SAMPLER_PROG_NONE)
		return 0;
	ret = perf_events_attach(s->events, s->prog_fd, s->features.perf_link, err);
	/* without a collector one stratum would sample on, with weights that are those of both */
	if (!ret && opts->pins && !opts->miss_attr.size)
		perf_events_pin_links(s->events, pins_links_dir(opts->pins));
	if (s->skel->rodata->cfg_lease_disables)
		perf_events_let_end(s->events);
	return ret ?: sampler_strata_open(s, opts, err);
}

unsigned int sampler_check_links(struct sampler *s, unsigned int *missing)
{
	return s->events ? perf_events_check_links(s->events, missing) : 0;
}

int sampler_set_cgroup(struct sampler *s, int cgroup, struct err *err)
{
	int ret = s->events ? perf_events_set_cgroup(s->events, cgroup ?: -1, err) : 0;
	struct err ignored;

	sampler_pins_mark(s);
	if (s->resting)
		ret = ret ?: perf_events_set_cgroup(s->resting, cgroup ?: -1, err);
	FOR_COUNTERS(s, p)
	perf_events_set_cgroup(*p, ret || !cgroup ? -1 : cgroup, &ignored);
	return ret && cgroup ? err_set(err, ret, "%s", refused_cgroup(ret)) : ret;
}

bool sampler_has_cgroup(const struct sampler *s)
{
	return s->events && perf_events_has_cgroup(s->events);
}

int sampler_start(struct sampler *s, struct err *err)
{
	int ret = s->started ? 0 : sampler_pins_start(s, err);
	struct err ignored;

	/* enabled first and disabled last, so that no tag is missed */
	FOR_COUNTERS(s, p)
	perf_events_enable(*p, &ignored);
	ret = ret ?: sampler_strata_begin(s, err);
	if (!ret && s->events)
		ret = perf_events_enable(s->events, err);
	s->started |= !ret;
	sampler_pins_mark(s);
	sampler_tags_begin(s);
	return ret;
}

int sampler_resume(struct sampler *s, struct err *err)
{
	struct err ignored;
	int ret;

	if (!s->started)
		return sampler_start(s, err);
	FOR_COUNTERS(s, p)
	perf_events_resume(*p, &ignored);
	ret = s->events ? perf_events_resume(s->events, err) : 0;
	sampler_pins_mark(s);
	sampler_tags_begin(s);
	return ret;
}

int sampler_restart(struct sampler *s, struct err *err)
{
	struct err ignored;
	int ret;

	FOR_COUNTERS(s, p)
	perf_events_renew(*p, &ignored);
	ret = s->events ? perf_events_renew(s->events, err) : 0;
	sampler_strata_reopen(s);
	sampler_pins_mark(s);
	return ret;
}

void sampler_stop(struct sampler *s)
{
	struct err err;

	sampler_tags_end(s);
	if (s->events)
		perf_events_disable(s->events);
	if (sampler_strata_end(s, &err))
		log_warn("%s", err.text);
	FOR_COUNTERS(s, p)
	perf_events_disable(*p);
}

#define SIM_PERIOD_MAX (1ULL << 40) /* ns: 18 minutes */

int sampler_set_period(struct sampler *s, __u64 period, struct err *err)
{
	__u64 before;
	int ret;

	if (!s->events || !sampler_period(s) || !s->count_ops)
		return err_set(err, -EINVAL,
			       "this collection was not started with a period that "
			       "can be changed");
	if (!s->simulated && (period % 16 || period < SAMPLER_PERIOD_MIN))
		return err_set(err, -EINVAL,
			       "invalid period: must be a multiple of 16, at least %d; not %llu",
			       SAMPLER_PERIOD_MIN, period);
	if (s->simulated && (!period || period > SIM_PERIOD_MAX))
		return err_set(err, -EINVAL,
			       "invalid period: the simulation needs 1 to 2^40 ns; "
			       "not %llu",
			       period);
	if (period == sampler_period(s))
		return 0;
	if (s->strata)
		return sampler_strata_set_period(s, period, err);
	before = perf_events_period(s->events);
	sampler_pins_unmark(s);
	ret = perf_events_set_period(s->events, period, err);
	sampler_pins_mark(s);
	if (!ret)
		sampler_tags_period(s, before, period);
	return ret;
}

__u64 sampler_period(const struct sampler *s)
{
	return s->events ? perf_events_period(sampler_full_events(s)) : 0;
}

void sampler_tick(struct sampler *s)
{
	struct cpulist online;
	struct err err;
	int ret;

	if (!s->events)
		return;
	perf_events_throttled(s->events);
	ret = cpulist_read("", "online", &online, &err);
	FOR_COUNTERS(s, p)
	if (!ret)
		perf_events_follow(*p, &online, &err);
	sampler_tags_weigh(s);
	ret = ret ?: perf_events_follow(s->events, &online, &err);
	if (s->resting)
		ret = ret ?: perf_events_follow(s->resting, &online, &err);
	sampler_share_weigh(s);
	sampler_pins_mark(s);
	if (ret) {
		if (!s->warned_cpus)
			log_warn("%s", err.text);
		s->warned_cpus = true;
	}
}

size_t sampler_n_cpus(const struct sampler *s)
{
	return s->events ? perf_events_n(s->events) : 0;
}
