// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What happens to the machine while a collector runs: each is told and counted. */
#include "serve.h"

/* On all CPUs together between two ticks; at its least another user takes a CPU some milliseconds. */
#define SHARED_MIN_NS 1000000

void serve_machine_start(struct serve *s)
{
	const struct ibs_meta_status *st = &s->status;
	struct clock_reading now;

	/* what happens while sampling is opened again is for the next look to tell */
	if (!s->clock_watched) {
		clock_read(&now);
		clock_watch_start(&s->clock, &now);
		s->clock_watched = true;
	}
	s->off_pmu_ns = st->enabled_ns - st->running_ns;
}

static void look_at_clocks(struct serve *s)
{
	struct err err;
	struct clock_reading now;
	struct clock_change c;

	clock_read(&now);
	if (!clock_watch_look(&s->clock, &now, &c))
		return;
	if (c.step_ns) {
		s->status.clock_steps++;
		log_info("the clock was set by %+.3f s; counters do not depend on it",
			 c.step_ns / 1e9);
	}
	if (!c.slept_ns)
		return;
	s->status.suspends++;
	log_info("the machine was suspended for %.3f s; sampling is started anew",
		 c.slept_ns / 1e9);
	if (sampler_restart(s->opts.sampling.sampler, &err))
		log_warn("%s; it is tried again", err.text);
}

static void look_at_pmu(struct serve *s, const struct pmu_state *pmu)
{
	struct err err;
	__u64 off = pmu->enabled_ns - pmu->running_ns;
	bool shared = off > s->off_pmu_ns + SHARED_MIN_NS;

	if (shared && !s->shared) {
		s->status.pmu_shared++;
		log_warn("another user of ibs_op (perf, another ibscope) shares the PMU: what "
			 "happens while it has it is not sampled");
	} else if (!shared && s->shared) {
		log_info("no other user shares the PMU any more");
		if (sampler_pmu_alone(s->opts.sampling.sampler, &err))
			log_warn("%s", err.text);
	}
	s->shared = shared;
	s->off_pmu_ns = off;
}

void serve_machine_look(struct serve *s, const struct pmu_state *pmu)
{
	look_at_pmu(s, pmu);
	look_at_clocks(s);
}
