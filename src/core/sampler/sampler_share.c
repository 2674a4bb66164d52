// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Other users of the PMU. The kernel takes turns, on each CPU for itself, and what happened while another
 * user had it was like the rest: so the samples of a CPU stand for more ops, by the time that their event
 * was enabled over the time that it ran. Groups do not know their CPUs, so the weight is applied to each
 * sample. It is of the last tick: what samples were given too little (or too much) since, later ones make
 * up for, and what is left at the end of an interval is in pmu_state.extra_ns.
 */
#include "sampler_private.h"

#include <math.h>
#include <stdlib.h>

#define TICK_NS 50000000 /* many turns of the kernel, which are of some milliseconds */

struct cpu_share {
	__u64 enabled_ns, running_ns; /* at the last tick */
	double debt_ns;		      /* time that samples do not represent yet */
};

struct shares {
	__s64 extra_ns; /* that samples stand for beyond their time, up to the last tick */
	bool shared;	/* another user had the PMU on some CPU since the tick before */
	struct cpu_share cpu[];
};

static double weight_of(const struct ibs_cpu_state *st)
{
	return st->live & IBS_LIVE_SHARED ? (double)st->share / IBS_SHARE_ONE : 1;
}

/* The program reads `share` only while `live` says so. */
static void set_weight(struct ibs_cpu_state *st, double weight)
{
	const __u32 live = st->live & ~IBS_LIVE_SHARED;
	const double share = fmin(round(weight * IBS_SHARE_ONE), IBS_SHARE_MAX);

	if (share == IBS_SHARE_ONE) {
		__atomic_store_n(&st->live, live, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&st->share, (__u16)share, __ATOMIC_RELEASE);
	__atomic_store_n(&st->live, live | IBS_LIVE_SHARED, __ATOMIC_RELEASE);
}

static void weigh_cpu(void *ctx, unsigned int cpu, __u64 enabled_ns, __u64 running_ns)
{
	struct sampler *s = ctx;
	struct cpu_share *c = &s->shares->cpu[cpu];
	struct ibs_cpu_state *st = &s->state->cpu[cpu];
	const double weight = weight_of(st);
	double time, on, given, owed;

	/* reopened: the CPU was offline, which the event took for time of others before it was closed */
	if (enabled_ns < c->enabled_ns) {
		*c = (struct cpu_share){ 0 };
		set_weight(st, 1);
	}
	time = enabled_ns - c->enabled_ns;
	if (time < TICK_NS)
		return;
	on = running_ns - c->running_ns;
	c->enabled_ns = enabled_ns;
	c->running_ns = running_ns;
	given = on * weight;
	s->shares->extra_ns += llround(given - on);
	c->debt_ns += time - given;
	s->shares->shared |= on < time || given != on;
	if (on <= 0)
		return;
	/* a weight far from that of the moment would make few samples stand for much */
	owed = fmin(fmax(time + c->debt_ns, time / 2), time * 2);
	set_weight(st, owed / on);
}

void sampler_share_open(struct sampler *s)
{
	s->shares = xcalloc(1, sizeof(*s->shares) + s->possible_cpus * sizeof(*s->shares->cpu));
}

/* The weights of strata come from counters that take turns with the other user as well. */
static bool has_weights(const struct sampler *s)
{
	return s->count_ops && !s->simulated && !s->resting;
}

void sampler_share_weigh(struct sampler *s)
{
	struct perf_events_total unused;

	if (!has_weights(s) || !s->events || !s->started)
		return;
	/* alone, the counts of the last reading will do */
	if (s->shares->shared)
		perf_events_read(s->events, &unused);
	s->shares->shared = false;
	perf_events_shares(s->events, weigh_cpu, s);
}

bool sampler_is_shared(const struct sampler *s)
{
	return s->shares->shared;
}

struct extra {
	const struct sampler *s;
	__s64 ns;
};

/* Of samples since the last tick. */
static void add_extra(void *ctx, unsigned int cpu, __u64 enabled_ns, __u64 running_ns)
{
	struct extra *x = ctx;
	const struct cpu_share *c = &x->s->shares->cpu[cpu];

	(void)enabled_ns;
	if (running_ns > c->running_ns)
		x->ns += llround((double)(running_ns - c->running_ns) *
				 (weight_of(&x->s->state->cpu[cpu]) - 1));
}

__s64 sampler_share_extra(const struct sampler *s)
{
	struct extra x = { s, s->shares->extra_ns };

	if (!has_weights(s))
		return 0;
	perf_events_shares(s->events, add_extra, &x);
	return x.ns;
}
