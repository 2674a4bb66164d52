// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two strata in one set of counters: two events by turns, and weights in ibs_control that the program gives to each
 * sample. Readers of the counters need not know of strata.
 */
#include "base/clock.h"
#include "sampler_private.h"
#include "strata/steer.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

/* Interrupts of a tag of the miss stratum, until that was seen. */
#define SHARE_FIRST  (1.0 / 32)
#define SHARE_SEEN   32	  /* samples that tell */
#define SHARE_CHANGE 1.25 /* change the period if it is wrong by more */

_Static_assert((int)STEER_KINDS == IBS_STRATA, "pins have as many kinds");

struct sampler_strata {
	struct steer steer;
	unsigned long long weight[STEER_KINDS];
	struct ledger last;
	__u64 last_tags, last_ops, last_ns; /* at the end of the last slice */
	__u64 last_off_ns;		    /* time that others used the counters of tags */
	double until_s;			    /* INFINITY: nothing samples */
	double seen, tags;		    /* of the miss stratum, to find its period */
	unsigned int reopen;		    /* turns that must open events again */
	__u64 random;
};

static struct ibs_strata *pinned(const struct sampler *s)
{
	return &s->state->control.strata;
}

static struct perf_events *events_of(const struct sampler *s, enum stratum of)
{
	return pinned(s)->now == of ? s->events : s->resting;
}

struct perf_events *sampler_full_events(const struct sampler *s)
{
	return s->strata ? events_of(s, STRATUM_FULL) : s->events;
}

static double uniform(struct sampler_strata *x)
{
	x->random = x->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(x->random >> 11) * 0x1p-53;
}

/* Let samples count as @x says. Nothing samples now. */
static void set_weights(struct sampler *s)
{
	struct sampler_strata *x = s->strata;

	steer_weights(&x->steer, pinned(s)->now, x->weight);
	__atomic_store_n(&s->state->control.tag_ops, x->weight[STEER_FULL], __ATOMIC_RELAXED);
	__atomic_store_n(&s->state->control.reach_ops, x->weight[STEER_BOTH], __ATOMIC_RELEASE);
}

/* --- counters of earlier collectors --- */

/* Samples that a killed collector did not attribute any more are of the stratum that sampled. */
static int attribute_rest(struct sampler *s, struct ledger *now, struct err *err)
{
	struct ibs_strata *p = pinned(s);
	struct ibs_stratum *of = &p->of[p->now == STRATUM_MISS];
	int ret = counts_ledger(&s->counts, now, err);

	for (int o = 0; !ret && p->on && o < IBS_OUTCOME_N; o++) {
		const __u64 rest = now->outcome[o] - p->outside[o] -
				   p->of[STRATUM_FULL].outcome[o] - p->of[STRATUM_MISS].outcome[o];

		of->outcome[o] += rest;
		of->seen += rest;
	}
	return ret;
}

int sampler_strata_leave(struct sampler *s, struct err *err)
{
	struct ledger now;
	int ret = s->pinned ? attribute_rest(s, &now, err) : 0;

	if (s->pinned && !ret)
		pinned(s)->on = 0;
	return ret;
}

/* --- slices --- */

/*
 * Tagged ops and all ops so far; a simulation takes a nanosecond for an op, and each tag is a sample. Return: false if
 * others have used the counters since the last call.
 */
static bool read_tags(struct sampler *s, const struct ledger *now, __u64 *tags, __u64 *ops)
{
	struct perf_events_total t = {}, resting = {};
	__u64 off_ns = s->strata->last_off_ns;

	if (s->tags) {
		sampler_tags_total(s, &t);
		*tags = t.counted;
		*ops = t.second;
		s->strata->last_off_ns = t.enabled_ns - t.running_ns;
		return s->strata->last_off_ns == off_ns;
	}
	perf_events_read(s->events, &t);
	perf_events_read(s->resting, &resting);
	*tags = now->seen;
	*ops = t.running_ns + resting.running_ns;
	return s->simulated;
}

/* Add what was counted since the last call to the stratum that samples now. */
static int account(struct sampler *s, struct err *err)
{
	struct sampler_strata *x = s->strata;
	const __u64 now_ns = clock_ns(CLOCK_MONOTONIC);
	struct ibs_strata *p = pinned(s);
	struct ibs_stratum *of = &p->of[p->now];
	struct ledger now;
	__u64 tags, ops;
	bool known;
	int ret = counts_ledger(&s->counts, &now, err);

	if (ret)
		return ret;
	known = read_tags(s, &now, &tags, &ops);
	of->time_ns += now_ns - x->last_ns;
	of->seen += now.seen - x->last.seen;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		of->outcome[o] += now.outcome[o] - x->last.outcome[o];
	if (known) {
		of->tags += tags - x->last_tags;
		steer_add(&x->steer, p->now, ops - x->last_ops, tags - x->last_tags, x->weight);
		for (int kind = 0; kind < STEER_KINDS; kind++)
			p->owed[kind] = llround(x->steer.owed[kind]);
	}
	if (known && p->now == STRATUM_MISS) {
		/* the last slices count most: the load changes */
		x->seen = x->seen / 2 + (now.seen - x->last.seen);
		x->tags = x->tags / 2 + (tags - x->last_tags);
	}
	x->last = now;
	x->last_tags = tags;
	x->last_ops = ops;
	x->last_ns = now_ns;
	return 0;
}

static void begin_slice(struct sampler *s)
{
	struct sampler_strata *x = s->strata;

	x->until_s = now_s() + strata_next_s(pinned(s)->now, strata_slice_s(0), uniform(x));
}

int sampler_strata_begin(struct sampler *s, struct err *err)
{
	struct sampler_strata *x = s->strata;
	int ret;

	if (!x)
		return 0;
	ret = counts_ledger(&s->counts, &x->last, err);
	if (ret)
		return ret;
	read_tags(s, &x->last, &x->last_tags, &x->last_ops);
	x->last_ns = clock_ns(CLOCK_MONOTONIC);
	x->reopen = STRATUM_N;
	pinned(s)->on = 1;
	set_weights(s);
	begin_slice(s);
	return 0;
}

int sampler_strata_end(struct sampler *s, struct err *err)
{
	if (!s->strata || isinf(s->strata->until_s))
		return 0;
	s->strata->until_s = INFINITY;
	pinned(s)->on = 0;
	return account(s, err);
}

double sampler_turn_due(const struct sampler *s)
{
	return s->strata ? s->strata->until_s : (double)INFINITY;
}

/* Change a period, and what is known of its tags. */
static int set_period(struct sampler *s, enum stratum of, __u64 period, struct err *err)
{
	struct perf_events *events = events_of(s, of);
	const __u64 before = perf_events_period(events);
	int ret = period == before ? 0 : perf_events_set_period(events, period, err);

	if (ret)
		return ret;
	steer_period(&s->strata->steer, of, before, period);
	pinned(s)->of[of].period = period;
	return 0;
}

/* Choose the period of the miss stratum, which rests, so that it costs as much as the other one. */
static int adapt(struct sampler *s, struct err *err)
{
	const struct sampler_strata *x = s->strata;
	const double now = perf_events_period(s->resting);
	unsigned long long want;

	if (x->seen < SHARE_SEEN || s->simulated)
		return 0;
	want = strata_period(perf_events_period(s->events), x->seen / x->tags);
	if (want < now * SHARE_CHANGE && now < want * SHARE_CHANGE)
		return 0;
	return set_period(s, STRATUM_MISS, want, err);
}

int sampler_turn(struct sampler *s, struct err *err)
{
	struct sampler_strata *x = s->strata;
	struct perf_events *ended = s->events;
	int ret;

	if (!x || now_s() < x->until_s)
		return 0;
	perf_events_disable(ended);
	ret = account(s, err);
	if (!ret && pinned(s)->now == STRATUM_FULL)
		ret = adapt(s, err);
	pinned(s)->of[pinned(s)->now].slices++;
	s->events = s->resting;
	s->resting = ended;
	pinned(s)->now = pinned(s)->now == STRATUM_FULL ? STRATUM_MISS : STRATUM_FULL;
	set_weights(s);
	if (ret)
		return ret;
	ret = x->reopen ? perf_events_enable(s->events, err) : perf_events_resume(s->events, err);
	x->reopen -= x->reopen > 0;
	begin_slice(s);
	return ret;
}

void sampler_strata_reopen(struct sampler *s)
{
	if (s->strata)
		s->strata->reopen = STRATUM_N;
}

int sampler_strata_set_period(struct sampler *s, __u64 period, struct err *err)
{
	struct perf_events *full = sampler_full_events(s);
	const double f = (double)period / perf_events_period(full);
	__u64 miss = perf_events_period(events_of(s, STRATUM_MISS)) * f;
	int ret = isinf(s->strata->until_s) ? 0 : account(s, err);

	ret = ret ?: set_period(s, STRATUM_FULL, period, err);
	miss = s->simulated		   ? period
	       : miss < SAMPLER_PERIOD_MIN ? SAMPLER_PERIOD_MIN
					   : miss / 16 * 16;
	ret = ret ?: set_period(s, STRATUM_MISS, miss, err);
	set_weights(s);
	return ret;
}

/* --- opening --- */

static void begin_pinned(struct sampler *s, const struct ledger *now)
{
	struct ibs_strata *p = pinned(s);

	for (int o = 0; o < IBS_OUTCOME_N; o++)
		p->outside[o] = now->outcome[o] - p->of[STRATUM_FULL].outcome[o] -
				p->of[STRATUM_MISS].outcome[o];
	p->now = STRATUM_FULL;
	p->of[STRATUM_FULL].period = perf_events_period(s->events);
	p->of[STRATUM_MISS].period = perf_events_period(s->resting);
	p->used = 1;
}

int sampler_strata_open(struct sampler *s, const struct sampler_opts *opts, struct err *err)
{
	struct perf_event_attr attr = opts->miss_attr;
	double period[STRATUM_N];
	long long owed[STEER_KINDS];
	struct ledger now;
	int ret;

	if (!attr.size)
		return 0;
	attr.sample_period =
		strata_period(opts->attr.sample_period, s->simulated ? 1 : SHARE_FIRST);
	ret = perf_events_open(&attr, opts->cpus, opts->n_cpus, opts->cgroup ?: -1,
			       opts->miss_event, NULL, &s->resting, err);
	ret = ret ?: perf_events_attach(s->resting, s->prog_fd, s->features.perf_link, err);
	ret = ret ?: counts_ledger(&s->counts, &now, err);
	if (ret)
		return ret;
	s->strata = xcalloc(1, sizeof(*s->strata));
	s->strata->until_s = INFINITY;
	if (getrandom(&s->strata->random, sizeof(s->strata->random), 0) < 0)
		s->strata->random = clock_ns(CLOCK_MONOTONIC);
	begin_pinned(s, &now);
	period[STRATUM_FULL] = opts->attr.sample_period;
	period[STRATUM_MISS] = attr.sample_period;
	for (int kind = 0; kind < STEER_KINDS; kind++)
		owed[kind] = pinned(s)->owed[kind];
	steer_begin(&s->strata->steer, period, owed);
	return 0;
}

void sampler_strata_close(struct sampler *s)
{
	perf_events_close(s->resting);
	free(s->strata);
}
