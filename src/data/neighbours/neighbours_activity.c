// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a container does at L3 and beyond, by its counts. */
#include "neighbours_private.h"

#include "counts/snapshot.h"

/* Caches and memory of all kinds. */
static bool is_beyond_l2(enum ibs_src src)
{
	return src >= IBS_SRC_L3 && src <= IBS_SRC_REMOTE_CXL;
}

static void add_weighted(const struct series *s, struct neighbours_activity *out)
{
	const bool beyond = s->src != IBS_SRC_L3 && s->src != IBS_SRC_LOCAL_CACHE;

	out->of_kind[beyond] += s->valid;
	out->ops[beyond] += s->samples ? (double)s->ops / s->samples * s->valid : 0;
	out->cycles += s->cycles;
}

void neighbours_activity_since(struct neighbours_activity *a,
			       const struct neighbours_activity *before)
{
	a->samples -= before->samples;
	a->latency -= before->latency;
	a->accesses -= before->accesses;
	a->cycles -= before->cycles;
	for (int k = 0; k < 2; k++) {
		a->of_kind[k] -= before->of_kind[k];
		a->ops[k] -= before->ops[k];
	}
}

/*
 * In slices of a stratum that takes only misses, samples wait longer than those of the other: what counts is the mean
 * latency of the ops that they represent, and how many samples of equal weights would be as good.
 */
struct neighbours_activity neighbours_activity_weighed(const struct neighbours_activity *a)
{
	struct neighbours_activity out = *a;
	const double ops = a->ops[0] + a->ops[1];
	double squares = 0;

	for (int k = 0; k < 2; k++)
		squares += a->of_kind[k] > 0 ? a->ops[k] * a->ops[k] / a->of_kind[k] : 0;
	if (!(squares > 0))
		return out;
	out.samples = ops * ops / squares;
	out.latency = out.samples * a->cycles / ops;
	return out;
}

unsigned int neighbours_sources(void)
{
	unsigned int sources = 0;

	for (unsigned int src = 0; src < IBS_SRC_N; src++)
		sources |= is_beyond_l2(src) ? 1U << src : 0;
	return sources;
}

bool neighbours_activity_of(const struct group *g, struct neighbours_activity *out)
{
	*out = (struct neighbours_activity){};
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];

		if (!is_beyond_l2(s->src))
			continue;
		out->samples += s->valid;
		out->latency += s->sum;
		out->accesses += s->ops;
		if (g->weighted)
			add_weighted(s, out);
	}
	return !g->other && out->samples > 0;
}
