// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_machine.h"

/* Of all CPUs between two ticks. Another user of the PMU takes a CPU for some milliseconds at least. */
#define SHARED_MIN_NS 1000000

void machine_watch_start(struct collector *c)
{
	const struct ibs_meta_status *st = &c->status;
	struct clock_reading now;

	/* not again on a reload, so that changes during it are noticed */
	if (!c->clock_watched) {
		clock_read(&now);
		clock_watch_start(&c->clock, &now);
		c->clock_watched = true;
	}
	c->off_pmu_ns = st->enabled_ns - st->running_ns;
}

static void watch_clocks(struct collector *c)
{
	struct err err;
	struct clock_reading now;
	struct clock_change change;

	clock_read(&now);
	if (!clock_watch_check(&c->clock, &now, &change))
		return;
	if (change.step_ns) {
		c->status.clock_steps++;
		log_info("the clock was set by %+.3f s; counters are not affected",
			 change.step_ns / 1e9);
	}
	if (!change.slept_ns)
		return;
	c->status.suspends++;
	log_info("the machine was suspended for %.3f s; restarting the events",
		 change.slept_ns / 1e9);
	if (sampler_restart(c->set.sampling.sampler, &err))
		log_warn("%s; trying again in a second", err.text);
}

static void watch_pmu(struct collector *c, const struct pmu_state *pmu)
{
	struct err err;
	__u64 off = pmu->enabled_ns - pmu->running_ns;
	bool shared = off > c->off_pmu_ns + SHARED_MIN_NS;

	if (shared && !c->shared) {
		c->status.pmu_shared++;
		log_warn(
			"another user of ibs_op (perf, another ibscope) shares the PMU; nothing is "
			"sampled while it has its turn");
	} else if (!shared && c->shared) {
		log_info("the PMU is no longer shared");
		if (sampler_pmu_alone(c->set.sampling.sampler, &err))
			log_warn("%s", err.text);
	}
	c->shared = shared;
	c->off_pmu_ns = off;
}

void machine_watch(struct collector *c, const struct pmu_state *pmu)
{
	watch_pmu(c, pmu);
	watch_clocks(c);
}
