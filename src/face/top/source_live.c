// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Our own sampler. */
#include "source.h"
#include "base/std.h"

#include "base/clock.h"
#include "interval.h"
#include "sampler/sampler.h"
#include "session/session.h"

#include <math.h>
#include <string.h>

struct live {
	struct top_source source;
	struct sampling_opts *o;
	struct session *s;
	struct baseline last; /* without strata, whose samples the session counts by interval */
	char event[EVENT_TEXT_MAX];
	/* slices of strata do not go on after this, unless 0 */
	int failed;
	struct err why;
};

#define TICK_S 0.5 /* throttle records wait in a small buffer */

/* Assumed cost of a sample with interrupt, driver and program, where nobody has measured it. */
#define SAMPLE_NS 2500

static double source_cost(struct top_source *s, const struct snapshot *interval)
{
	__u64 cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = cpu - s->cpu_ns;
	double time = (double)interval->time_ns * interval->pmu.cpus;

	s->cpu_ns = cpu;
	return time > 0 ? (own + (double)interval->ledger.seen * SAMPLE_NS) / time
			: HISTORY_NO_COST;
}

void source_close(struct top_source *s)
{
	if (s)
		s->close(s);
}

static int read_counts(struct live *l, struct snapshot *out, struct err *err)
{
	struct snapshot now = { .time_ns = clock_ns(CLOCK_MONOTONIC) };
	/* the PMU first: what arrives meanwhile is then seen rather than unseen */
	int ret = sampler_ledger(session_event(l->s, 0)->sampler, &now.ledger, &now.pmu, err);

	return ret
		       ?: interval_read(&l->last, sampler_counts(session_event(l->s, 0)->sampler),
					&now, out, err);
}

static bool in_strata(const struct live *l)
{
	return session_event(l->s, 0)->plan.strata;
}

/* What the first interval begins with. */
static int begin(struct live *l, struct err *err)
{
	struct snapshot none;
	int ret;

	if (in_strata(l))
		return session_strata_start(l->s, l->source.interval_s, err);
	ret = read_counts(l, &none, err);
	return ret < 0 ? ret : 0;
}

static int live_open(struct top_source *source, unsigned int labels, struct err *err)
{
	struct live *l = (struct live *)source;
	const struct session_event *e;
	const struct counts *counts;
	int ret;

	baseline_free(&l->last);
	l->failed = 0;
	l->o->event[0].labels = labels;
	ret = session_open(l->s, l->o, err) ?: begin(l, err) ?: session_start(l->s, err);
	source->usage = session_usage(l->s);
	if (ret < 0)
		return ret;
	e = session_event(l->s, 0);
	counts = sampler_counts(e->sampler);
	source->info.hist = e->info;
	source->info.hist.event = strcpy(l->event, e->text);
	source->info.by = e->opts.by;
	places_read(&source->info.places, counts->n_cpus, counts->shards);
	source->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return ret;
}

/* The samples since the last call. Return: as interval_read() */
static int read_interval(struct live *l, struct snapshot *out, struct err *err)
{
	int ret = l->failed;

	if (!session_is_open(l->s))
		return 1;
	if (!in_strata(l))
		return read_counts(l, out, err);
	if (!ret) {
		session_strata_interval(l->s, l->source.interval_s);
		return session_strata_end(l->s, out, err);
	}
	*err = l->why;
	/* of the slice that failed nobody knows what it has, so begin anew */
	if (live_open(&l->source, l->o->event[0].labels, &l->why))
		*err = l->why;
	return ret;
}

static int live_read(struct top_source *source, double seconds, struct snapshot *out,
		     struct frame *frame, struct err *err)
{
	struct live *l = (struct live *)source;
	const struct session_event *e;
	int ret = read_interval(l, out, err);

	(void)seconds;
	if (ret)
		return ret;
	e = session_event(l->s, 0);
	if (!session_rate_warning(l->s, 0, out, source->info.trouble, sizeof(source->info.trouble)))
		*source->info.trouble = 0;
	*frame = (struct frame){ .end_ns = clock_ns(CLOCK_REALTIME),
				 .by = e->opts.by,
				 .period = sampler_period(e->sampler),
				 .metric = e->opts.metric,
				 .cost = source_cost(source, out) };
	return 0;
}

static unsigned int live_fds(struct top_source *source, struct pollfd *fds)
{
	struct live *l = (struct live *)source;

	if (!session_is_open(l->s))
		return 0;
	fds[0] = (struct pollfd){ .fd = session_fd(l->s), .events = POLLIN };
	return 1;
}

/* Seconds until the next slice of a stratum begins. */
static double turn_in(const struct live *l)
{
	return fmax(session_strata_due(l->s) - now_s(), 0);
}

static double live_tick(struct top_source *source)
{
	struct live *l = (struct live *)source;

	if (!session_is_open(l->s))
		return INFINITY;
	l->failed = l->failed ?: session_strata_turn(l->s, &l->why);
	session_tick(l->s);
	return fmin(fmin(session_follow(l->s), l->failed ? INFINITY : turn_in(l)), TICK_S);
}

static const char *live_name(void *arg, __u64 id, enum label l)
{
	return session_cgroup_name(((struct live *)arg)->s, id, l);
}

static void live_close(struct top_source *source)
{
	struct live *l = (struct live *)source;

	baseline_free(&l->last);
	places_free(&source->info.places);
	session_free(l->s);
	free(l);
}

struct top_source *source_live(struct sampling_opts *o)
{
	struct live *l = xcalloc(1, sizeof(*l));

	*l = (struct live){ .source = { .name = live_name,
					.open = live_open,
					.read = live_read,
					.fds = live_fds,
					.tick = live_tick,
					.close = live_close,
					.info = { .cost_assumed = true,
						  .by_possible = ~BY_SYMBOL } },
			    .o = o,
			    .s = session_new() };
	return &l->source;
}
