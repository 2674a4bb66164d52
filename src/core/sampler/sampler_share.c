// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Other users of the PMU. The kernel takes turns, on each CPU for itself, and what happened while another
 * user had it was like the rest: so the samples of a CPU stand for more ops, by the time that their event
 * was enabled over the time that it ran. Groups do not know their CPUs, so the weight is applied to each
 * sample. It is of the last tick: what samples were given too little (or too much) since, later ones make
 * up for, and what is left at the end of an interval is in pmu_state.extra_ns.
 *
 * A share of time is not a share of ops: the load may be another one in the turns of the other user. If it does not keep
 * step with the turns, that is by chance, and how much our rate of ops changes from tick to tick shows how much. With a
 * variance v of our mean rate in a tick, that of the ops of the other user's time `off` is off² v (1 + on / off). v is
 * half the squared difference of two ticks, which slow changes of the load hardly add to.
 */
#include "sampler_private.h"

#include <math.h>
#include <stdlib.h>

#define TICK_NS 50000000 /* many turns of the kernel, which are of some milliseconds */

struct cpu_share {
	struct perf_share at; /* the last tick */
	double debt_ns;	      /* time that samples do not represent yet */
	double rate;	      /* count per ns on the PMU in the last tick; negative: unknown */
	double unsure;	      /* off (off + on), of ticks not compared with another one yet */
};

struct shares {
	__s64 extra_ns;	 /* that samples stand for beyond their time, up to the last tick */
	bool shared;	 /* another user had the PMU on some CPU since the tick before */
	double variance; /* pmu_state.share_variance, up to the last tick */
	__u64 n;	 /* pmu_state.share_n */
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

/* The weights of strata come from counters that take turns with the other user as well. */
static bool sees_shares(const struct sampler *s)
{
	return !s->simulated && !s->resting;
}

static bool has_weights(const struct sampler *s)
{
	return s->count_ops && sees_shares(s);
}

/* A tick with a count of @counted in the time @on of @time. */
static void compare_rates(struct shares *all, struct cpu_share *c, double time, double on,
			  double counted)
{
	const double before = c->rate;

	c->rate = on > 0 ? counted / on : -1;
	c->unsure += (time - on) * time;
	if (before < 0 || c->rate < 0 || !(c->unsure > 0))
		return;
	all->variance += c->unsure * (c->rate - before) * (c->rate - before) / 2;
	all->n++;
	c->unsure = 0;
}

static void weigh_cpu(void *ctx, unsigned int cpu, const struct perf_share *now)
{
	struct sampler *s = ctx;
	struct cpu_share *c = &s->shares->cpu[cpu];
	struct ibs_cpu_state *st = &s->state->cpu[cpu];
	const double weight = weight_of(st);
	double time, on, given, owed;

	/* reopened: the CPU was offline, which the event took for time of others before it was closed */
	if (now->enabled_ns < c->at.enabled_ns || now->counted < c->at.counted) {
		*c = (struct cpu_share){ .rate = -1 };
		set_weight(st, 1);
	}
	time = now->enabled_ns - c->at.enabled_ns;
	if (time < TICK_NS)
		return;
	on = now->running_ns - c->at.running_ns;
	compare_rates(s->shares, c, time, on, now->counted - c->at.counted);
	c->at = *now;
	s->shares->shared |= on < time;
	if (!s->count_ops)
		return;
	given = on * weight;
	s->shares->extra_ns += llround(given - on);
	c->debt_ns += time - given;
	s->shares->shared |= given != on;
	if (on <= 0)
		return;
	/* a weight far from that of the moment would make few samples stand for much */
	owed = fmin(fmax(time + c->debt_ns, time / 2), time * 2);
	set_weight(st, owed / on);
}

void sampler_share_open(struct sampler *s)
{
	s->shares = xcalloc(1, sizeof(*s->shares) + s->possible_cpus * sizeof(*s->shares->cpu));
	for (unsigned int i = 0; i < s->possible_cpus; i++)
		s->shares->cpu[i].rate = -1;
}

static void find_shared(void *ctx, unsigned int cpu, const struct perf_share *now)
{
	struct sampler *s = ctx;
	const struct perf_share *at = &s->shares->cpu[cpu].at;

	s->shares->shared |= now->enabled_ns > at->enabled_ns &&
			     now->running_ns - at->running_ns < now->enabled_ns - at->enabled_ns;
}

void sampler_share_weigh(struct sampler *s)
{
	struct perf_events_total unused;

	if (!sees_shares(s) || !s->events || !s->started)
		return;
	/* alone, the counts of the last reading will do */
	if (!s->shares->shared)
		perf_events_shares(s->events, find_shared, s);
	/* those of now, as samples had their weights until now */
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
static void add_extra(void *ctx, unsigned int cpu, const struct perf_share *now)
{
	struct extra *x = ctx;
	const struct cpu_share *c = &x->s->shares->cpu[cpu];

	if (now->running_ns > c->at.running_ns)
		x->ns += llround((double)(now->running_ns - c->at.running_ns) *
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

void sampler_share_spread(const struct sampler *s, struct pmu_state *out)
{
	out->share_variance = s->shares->variance;
	out->share_n = s->shares->n;
}
