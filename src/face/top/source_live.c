// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Our own sampler. */
#include "source.h"
#include "base/std.h"

#include "base/clock.h"
#include "interval.h"
#include "sampler/sampler.h"
#include "session/session.h"

#include <math.h>

struct live {
	struct top_source source;
	struct sampling *s;
	struct baseline last;
	bool open;
};

double source_cost(struct top_source *s, const struct snapshot *interval)
{
	__u64 cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = cpu - s->cpu_ns;
	double time = (double)interval->time_ns * interval->pmu.cpus;

	s->cpu_ns = cpu;
	return time > 0 ? (own + (double)interval->ledger.seen * SOURCE_SAMPLE_NS) / time
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
	int ret = sampler_ledger(l->s->sampler, &now.ledger, &now.pmu, err);

	return ret ?: interval_read(&l->last, sampler_counts(l->s->sampler), &now, out, err);
}

static int live_open(struct top_source *source, unsigned int labels, struct err *err)
{
	struct live *l = (struct live *)source;
	struct sampling *s = l->s;
	struct snapshot none;
	int ret;

	if (l->open)
		sampling_release(s);
	l->open = true;
	baseline_free(&l->last);
	s->labels = labels;
	ret = sampling_open(s, err) ?: read_counts(l, &none, err);
	ret = ret < 0 ? ret : sampling_start(s, err);
	source->info.hist = s->info;
	source->info.by = s->opts.by;
	if (ret >= 0)
		places_read(&source->info.places, sampler_counts(s->sampler)->n_cpus,
			    sampler_counts(s->sampler)->shards);
	source->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	return ret;
}

static int live_read(struct top_source *source, double seconds, struct snapshot *out,
		     struct frame *frame, struct err *err)
{
	struct live *l = (struct live *)source;
	int ret = read_counts(l, out, err);

	(void)seconds;
	if (ret)
		return ret;
	*source->info.trouble = 0;
	*frame = (struct frame){ .end_ns = clock_ns(CLOCK_REALTIME),
				 .by = l->s->opts.by,
				 .period = sampler_period(l->s->sampler),
				 .metric = l->s->opts.metric,
				 .cost = source_cost(source, out) };
	return 0;
}

static unsigned int live_fds(struct top_source *source, struct pollfd *fds)
{
	struct live *l = (struct live *)source;

	fds[0] = (struct pollfd){ .fd = cgroup_tree_fd(l->s->tree), .events = POLLIN };
	return 1;
}

static double live_tick(struct top_source *source)
{
	struct live *l = (struct live *)source;

	cgroup_tree_update(l->s->tree);
	sampler_tick(l->s->sampler);
	return fmin(sampling_follow(l->s), 0.5);
}

static const char *live_name(void *arg, __u64 id, enum label l)
{
	return sampling_cgroup_name(((struct live *)arg)->s, id, l);
}

static void live_close(struct top_source *source)
{
	struct live *l = (struct live *)source;

	baseline_free(&l->last);
	places_free(&source->info.places);
	sampling_release(l->s);
	free(l);
}

struct top_source *source_live(struct sampling *s)
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
			    .s = s };
	return &l->source;
}
