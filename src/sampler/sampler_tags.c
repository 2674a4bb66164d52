// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counters beside the events: the ops that retired, and those of them that IBS had tagged. Their
 * quotient is what a sample stands for when hardware drops others.
 */
#include "sampler_private.h"

void sampler_tags_open(struct sampler *s, const struct sampler_opts *opts, int cgroup)
{
	struct err err;

	if (!opts->tags[SAMPLER_TAG_RETIRED].size ||
	    !perf_events_open(&opts->tags[SAMPLER_TAG_RETIRED], opts->cpus, opts->n_cpus, cgroup,
			      "a counter of tagged ops", &opts->tags[SAMPLER_TAG_OPS], &s->tags,
			      &err))
		return;
	s->tags = NULL;
	log_warn("%s; %s unknown", err.text, s->drops ? "estimated ops are" : "tagged ops are");
}

void sampler_tags_begin(struct sampler *s)
{
	struct perf_events_total t;

	if (!s->tags)
		return;
	perf_events_read(s->tags, &t);
	/* what was counted while sampling rested, or began or ended on one CPU after the other */
	s->tags_before.counted += t.counted - s->tags_after.counted;
	s->tags_before.second += t.second - s->tags_after.second;
	s->tags_ended = false;
}

void sampler_tags_end(struct sampler *s)
{
	if (!s->tags || s->tags_ended)
		return;
	perf_events_read(s->tags, &s->tags_after);
	s->tags_ended = true;
}

void sampler_tags_read(struct sampler *s, struct pmu_state *out)
{
	struct perf_events_total t;

	if (!s->tags)
		return;
	perf_events_read(s->tags, &t);
	/* others want the counters, too, and have them by turns */
	out->tags_known = t.enabled_ns == t.running_ns;
	out->tagged = t.counted;
	if (s->tags_ended)
		t = s->tags_after;
	out->tag_n = t.counted - s->tags_before.counted;
	out->tag_ops = t.second - s->tags_before.second;
}
