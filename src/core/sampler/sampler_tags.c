// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Additional counters: retired ops, and those of them that IBS had tagged. Their quotient is the
 * number of ops per sample if hardware drops others. No event counts fetches as IBS does, so a
 * tagged fetch counts as one period of fetches, whatever its outcome.
 */
#include "sampler_private.h"

#include <math.h>

/* Enough that the last tag of each CPU, counted only in part, matters little. */
#define WEIGH_TAGS 1000

bool sampler_weighs_tags(const struct sampler_opts *opts)
{
	return opts->count_ops && opts->filter == EVENT_FILTER_HARDWARE && !opts->attr.freq &&
	       opts->tags[SAMPLER_TAG_RETIRED].size && !opts->miss_attr.size;
}

/* Start with the period; samples take slightly longer, by an amount not known yet. */
static void init_tag_weight(struct sampler *s, const struct sampler_opts *opts)
{
	s->state->control.tag_ops = sampler_weighs_tags(opts) ? opts->attr.sample_period : 0;
	s->state->control.reach_ops = 0;
}

/*
 * The first event of a pair is read first. It is the minuend of the difference, so that counts
 * between the two reads make the difference smaller, never larger.
 */
static int open_pair(const struct sampler_opts *opts, enum sampler_tag which, bool alone,
		     int cgroup, struct perf_events **out, struct err *err)
{
	struct perf_event_attr first = opts->tags[which], second = opts->tags[SAMPLER_TAG_OPS];

	if (opts->tags_are_lost) {
		first = opts->tags[SAMPLER_TAG_OPS];
		second = opts->tags[which];
		first.disabled = 1;
		second.disabled = 0;
	}
	return perf_events_open(&first, opts->cpus, opts->n_cpus, cgroup, "a counter of tagged ops",
				alone && !opts->tags_are_lost ? NULL : &second, out, err);
}

void sampler_tags_open(struct sampler *s, const struct sampler_opts *opts, int cgroup)
{
	struct err err;

	init_tag_weight(s, opts);
	s->tags_are_lost = opts->tags_are_lost;
	s->tag_unit = ibs_metric_of_fetch(opts->metric) ? perf_events_period(s->events) : 1;
	if (!opts->tags[SAMPLER_TAG_RETIRED].size)
		return;
	if (open_pair(opts, SAMPLER_TAG_RETIRED, false, cgroup, &s->tags, &err)) {
		s->tags = NULL;
		log_warn("%s; %s", err.text,
			 s->filter != EVENT_FILTER_HARDWARE ? "tagged ops are unknown"
			 : s->count_ops			    ? "estimated ops are too low"
							    : "estimated ops are unknown");
		return;
	}
	if (opts->tags[SAMPLER_TAG_VALID].size &&
	    open_pair(opts, SAMPLER_TAG_VALID, true, cgroup, &s->valid, &err))
		s->valid = NULL;
}

/* Read s->tags or s->valid: `counted` is always the number not lost. */
static void read_tags(const struct sampler *s, struct perf_events *pe, struct perf_events_total *t)
{
	__u64 tagged;

	perf_events_read(pe, t);
	if (!s->tags_are_lost)
		return;
	tagged = t->counted;
	t->counted -= t->second;
	t->second = tagged;
}

void sampler_tags_total(const struct sampler *s, struct perf_events_total *t)
{
	read_tags(s, s->tags, t);
}

void sampler_tags_begin(struct sampler *s)
{
	struct perf_events_total t;

	if (!s->tags)
		return;
	read_tags(s, s->tags, &t);
	/* exclude counts while sampling was stopped, or started or stopped CPU by CPU */
	s->tags_before.counted += t.counted - s->tags_after.counted;
	s->tags_before.second += t.second - s->tags_after.second;
	s->tags_weighed = t;
	s->tags_ended = false;
}

void sampler_tags_end(struct sampler *s)
{
	if (!s->tags || s->tags_ended)
		return;
	read_tags(s, s->tags, &s->tags_after);
	s->tags_ended = true;
}

void sampler_tags_read(struct sampler *s, struct pmu_state *out)
{
	struct perf_events_total t, valid;

	if (!s->tags)
		return;
	read_tags(s, s->tags, &t);
	/* unequal if other users share the counters */
	out->tags_known = t.enabled_ns == t.running_ns;
	out->tagged = out->valid = t.counted;
	out->valid_known = out->tags_known && s->filter == EVENT_FILTER_NONE;
	if (s->valid && s->filter != EVENT_FILTER_DRIVER) {
		read_tags(s, s->valid, &valid);
		out->valid = valid.counted;
		out->valid_known = valid.enabled_ns == valid.running_ns;
	}
	out->ops = t.second * s->tag_unit;
	/* a task switch turns counters and events off and on one after the other */
	out->valid_known &= !perf_events_has_cgroup(s->tags);
	if (s->tags_ended)
		t = s->tags_after;
	out->tag_n = t.counted - s->tags_before.counted;
	out->tag_ops = (t.second - s->tags_before.second) * s->tag_unit;
}

/*
 * Ops counted since the last call; adds to tag_debt what samples were given less (or more). Return:
 * the number of tags; 0 if unknown.
 */
static __u64 weigh(struct sampler *s, const struct perf_events_total *now, double *ops)
{
	const struct perf_events_total was = s->tags_weighed;
	const __u64 n = now->counted - was.counted;

	s->tags_weighed = *now;
	if (now->enabled_ns - was.enabled_ns != now->running_ns - was.running_ns)
		return 0;
	*ops = (now->second - was.second) * s->tag_unit;
	s->tag_debt += *ops - (double)n * s->state->control.tag_ops;
	return n;
}

void sampler_tags_weigh(struct sampler *s)
{
	struct perf_events_total t;
	double ops;
	__u64 n;

	if (!s->tags || !s->started || s->tags_ended || s->strata || !s->state->control.tag_ops)
		return;
	read_tags(s, s->tags, &t);
	if (t.counted - s->tags_weighed.counted < WEIGH_TAGS)
		return;
	n = weigh(s, &t, &ops);
	if (!n)
		return;
	/* later samples make up for earlier ones, within limits */
	ops = fmin(fmax(ops + s->tag_debt, ops / 2), ops * 2);
	__atomic_store_n(&s->state->control.tag_ops, llround(ops / n), __ATOMIC_RELAXED);
}

void sampler_tags_period(struct sampler *s, __u64 before, __u64 now)
{
	__u64 *tag_ops = &s->state->control.tag_ops;
	struct perf_events_total t;
	double ops;

	if (!s->tags || !*tag_ops || !before)
		return;
	read_tags(s, s->tags, &t);
	weigh(s, &t, &ops);
	if (s->tag_unit != 1)
		s->tag_unit = now;
	__atomic_store_n(tag_ops, llround((double)*tag_ops / before * now), __ATOMIC_RELAXED);
}
