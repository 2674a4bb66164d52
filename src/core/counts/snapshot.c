// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot.h"

#include <ibscope/fetch.h>

#include "base/choice.h"
#include "base/std.h"

#include <math.h>

#define OUTCOME_NAME(id, kind, name, ...) name,
#define OUTCOME_KIND(id, kind, ...)	  IBS_OUTCOME_KIND_##kind,

static const char *const outcome_names[] = { IBS_OUTCOME_TABLE(OUTCOME_NAME) };
static const enum ibs_outcome_kind outcome_kinds[] = { IBS_OUTCOME_TABLE(OUTCOME_KIND) };

const char *outcome_name(enum ibs_outcome o)
{
	return outcome_names[o];
}

enum ibs_outcome_kind outcome_kind(enum ibs_outcome o)
{
	return outcome_kinds[o];
}

CHOICE_NAMES(op_kind_name, enum ibs_op_kind, IBS_OP_KIND_TABLE)
CHOICE_NAMES(src_name, enum ibs_src, IBS_SRC_TABLE)
CHOICE_NAMES(fetch_class_name, unsigned int, IBS_FETCH_CLASS_TABLE)
CHOICE_NAMES(itlb_name, unsigned int, IBS_FETCH_ITLB_TABLE)

const char *mode_name(unsigned int mode)
{
	static const char *const modes[IBS_MODE_N] = { "unknown", "user", "kernel" };

	return modes[mode < IBS_MODE_N ? mode : IBS_MODE_UNKNOWN];
}

CHOICE_NAMES(metric_name, enum ibs_metric, IBS_METRIC_TABLE)

size_t snapshot_groups(const struct snapshot *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_groups; i++)
		n += !s->groups[i].other;
	return n;
}

static void tlb_sum(struct tlb_counts *a, const struct tlb_counts *b, __u64 sign)
{
	a->l2_hit += sign * b->l2_hit;
	a->l2_miss += sign * b->l2_miss;
	a->l2_hit_ops += sign * b->l2_hit_ops;
	a->l2_miss_ops += sign * b->l2_miss_ops;
	a->refills += sign * b->refills;
	a->refill_cycles += sign * b->refill_cycles;
}

void tlb_add(struct tlb_counts *a, const struct tlb_counts *b)
{
	tlb_sum(a, b, 1);
}

static void strata_sum_up(struct series *a, const struct series_strata *b)
{
	if (!a->strata)
		a->strata = xcalloc(1, sizeof(*a->strata));
	a->strata->design = b->design;
	strata_add(&a->strata->cycles, &b->cycles);
	strata_add(&a->strata->ops, &b->ops);
	strata_timed_add(a->strata, b->timed, b->n_timed, 1);
	for (int i = 0; i < IBS_LAT_BUCKETS; i++)
		a->strata->buckets[i] += b->buckets[i];
}

static void series_sum(struct series *a, const struct series *b, int sign)
{
	if (b->buckets && !a->buckets)
		a->buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*a->buckets));
	a->samples += sign * b->samples;
	a->valid += sign * b->valid;
	a->sum += sign * b->sum;
	a->ops += sign * b->ops;
	a->cycles += sign * b->cycles;
	a->open_n += sign * b->open_n;
	a->open += sign * b->open;
	a->state_n += sign * b->state_n;
	a->hitm += sign * b->hitm;
	a->exposed += sign * b->exposed;
	a->exposed_n += sign * b->exposed_n;
	a->price += sign * b->price;
	a->share_error = fmax(a->share_error, b->share_error);
	if (b->strata)
		strata_sum_up(a, b->strata);
	for (int i = 0; b->buckets && i < IBS_LAT_BUCKETS; i++)
		a->buckets[i] += sign * b->buckets[i];
}

void series_add(struct series *a, const struct series *b)
{
	series_sum(a, b, 1);
}

double series_mean(const struct series *s)
{
	const double n = s->strata ? strata_timed_ops(s->strata) : s->valid;

	return n > 0 ? (s->strata ? s->cycles : s->sum) / n : (double)NAN;
}

bool series_cycles_interval(const struct series *s, double *low, double *high)
{
	return s->strata && s->strata->design &&
	       strata_interval(s->strata->design, &s->strata->cycles, low, high);
}

bool series_ops_interval(const struct series *s, double *low, double *high)
{
	return s->strata && s->strata->design &&
	       strata_interval(s->strata->design, &s->strata->ops, low, high);
}

double series_in_bucket(const struct series *s, unsigned int bucket)
{
	return s->strata ? s->strata->buckets[bucket] : s->buckets ? s->buckets[bucket] : 0;
}

double series_counted(const struct series *s)
{
	return s->strata ? s->ops : s->samples;
}

void series_put_buckets(struct json_writer *w, const struct series *s)
{
	json_begin_array(w, "buckets");
	for (int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		json_begin_array(w, NULL);
		json_put_u64(w, NULL, ibs_lat_le(i));
		json_put_u64(w, NULL, s->buckets[i]);
		json_end(w);
	}
	json_end(w);
}

void series_free(struct series *s)
{
	free(s->buckets);
	if (s->strata)
		free(s->strata->timed);
	free(s->strata);
	s->buckets = NULL;
	s->strata = NULL;
}

void group_free(struct group *g)
{
	for (size_t i = 0; i < g->n_series; i++)
		series_free(&g->series[i]);
	free(g->series);
	g->series = NULL;
	g->n_series = 0;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->n_groups; i++)
		group_free(&s->groups[i]);
	free(s->groups);
	free(s->shards);
	free(s->strata);
	memset(s, 0, sizeof(*s));
}

static const struct series *find_series(const struct group *g, const struct series *like)
{
	for (size_t i = 0; g && i < g->n_series; i++)
		if (g->series[i].op == like->op && g->series[i].src == like->src)
			return &g->series[i];
	return NULL;
}

/* Counts of a group since @older, which may be NULL; only series with new samples. */
static void group_diff(const struct group *newer, const struct group *older, struct group *out)
{
	*out = *newer;
	if (older)
		tlb_sum(&out->tlb, &older->tlb, -1);
	out->n_series = 0;
	out->series = xcalloc(newer->n_series, sizeof(*out->series));
	for (size_t i = 0; i < newer->n_series; i++) {
		const struct series *n = &newer->series[i], *o = find_series(older, n);
		struct series *s = &out->series[out->n_series];

		if (o && o->samples == n->samples)
			continue;
		out->n_series++;
		*s = *n;
		if (n->buckets)
			s->buckets = xmemdup(n->buckets, IBS_LAT_BUCKETS * sizeof(*s->buckets));
		if (o)
			series_sum(s, o, -1);
	}
}

static void ledger_diff(struct ledger *l, const struct ledger *older)
{
	l->seen -= older->seen;
	l->pmu_samples -= older->pmu_samples;
	l->unseen -= older->unseen;
	l->dropped -= older->dropped;
	l->undelivered -= older->undelivered;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		l->outcome[o] -= older->outcome[o];
}

static void pmu_diff(struct pmu_state *p, const struct pmu_state *older)
{
	p->counted -= older->counted;
	p->enabled_ns -= older->enabled_ns;
	p->running_ns -= older->running_ns;
	p->extra_ns -= older->extra_ns;
	p->share_variance -= older->share_variance;
	p->share_n -= older->share_n;
	p->throttled -= older->throttled;
	p->went -= older->went;
	p->came -= older->came;
	p->tagged -= older->tagged;
	p->valid -= older->valid;
	p->tag_ops -= older->tag_ops;
	p->tag_n -= older->tag_n;
	p->ops -= older->ops;
}

double pmu_scale(const struct pmu_state *pmu)
{
	const double known = (double)pmu->running_ns + pmu->extra_ns;

	return known > 0 ? pmu->enabled_ns / known : 1;
}

/* Fewer differences say little of their variance. */
#define SHARE_LEAST 8

double pmu_share_error(const struct pmu_state *pmu)
{
	const double counted = pmu->counted;

	if (pmu->running_ns >= pmu->enabled_ns)
		return 0;
	if (pmu->share_n < SHARE_LEAST || !pmu->counted)
		return NAN;
	return sqrt(fmax(pmu->share_variance, 0)) / (counted / pmu->running_ns * pmu->enabled_ns);
}

/* What happened while another user had the PMU was like the rest of the interval. */
static void group_scale(struct group *g, const struct pmu_state *pmu)
{
	const double f = pmu_scale(pmu), error = pmu_share_error(pmu);

	for (size_t i = 0; !isnan(error) && i < g->n_series; i++)
		g->series[i].share_error = error;
	for (size_t i = 0; f != 1 && i < g->n_series; i++) {
		struct series *s = &g->series[i];

		if (s->cycles) {
			s->hitm = llround(s->hitm * f);
			s->exposed = llround(s->exposed * f);
		}
		s->cycles = llround(s->cycles * f);
		s->ops = llround(s->ops * f);
	}
	if (f != 1) {
		g->tlb.l2_hit_ops = llround(g->tlb.l2_hit_ops * f);
		g->tlb.l2_miss_ops = llround(g->tlb.l2_miss_ops * f);
	}
}

void group_weigh_series(struct group *g)
{
	for (size_t i = 0; g->weighted && i < g->n_series; i++) {
		struct series *s = &g->series[i];
		const double weight = s->samples ? (double)s->ops / s->samples : 0;

		if (s->strata)
			continue;
		s->strata = xcalloc(1, sizeof(*s->strata));
		for (int b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++)
			s->strata->buckets[b] = llround(s->buckets[b] * weight);
	}
}

void group_weigh(struct group *g, const struct pmu_state *pmu)
{
	const double weight = pmu->tags_known && pmu->tag_n ? (double)pmu->tag_ops / pmu->tag_n : 0;

	for (size_t i = 0; weight && i < g->n_series; i++) {
		struct series *s = &g->series[i];

		if (s->ops || !s->samples)
			continue;
		s->ops = llround(s->samples * weight);
		s->cycles = llround(s->sum * weight);
		s->hitm = llround(s->hitm * weight);
	}
	if (weight && !g->tlb.l2_hit_ops && !g->tlb.l2_miss_ops) {
		g->tlb.l2_hit_ops = llround(g->tlb.l2_hit * weight);
		g->tlb.l2_miss_ops = llround(g->tlb.l2_miss * weight);
	}
	group_scale(g, pmu);
	group_weigh_series(g);
}

void snapshot_diff(const struct snapshot *newer, const struct snapshot *older, struct snapshot *out)
{
	size_t o = 0;

	*out = *newer;
	out->groups = xcalloc(newer->n_groups, sizeof(*out->groups));
	out->shards = xcalloc(newer->n_shards, sizeof(*out->shards));
	for (size_t i = 0; i < newer->n_shards; i++)
		for (int src = 0; src < IBS_SRC_N; src++)
			out->shards[i].cycles[src] =
				newer->shards[i].cycles[src] -
				(older && i < older->n_shards ? older->shards[i].cycles[src] : 0);
	if (older) {
		out->time_ns -= older->time_ns;
		ledger_diff(&out->ledger, &older->ledger);
		pmu_diff(&out->pmu, &older->pmu);
	}
	for (size_t i = 0; i < newer->n_groups; i++) {
		const struct group *was = NULL;

		while (older && o < older->n_groups &&
		       older->groups[o].slot < newer->groups[i].slot)
			o++;
		/* a folded slot may belong to another group now */
		if (older && o < older->n_groups &&
		    older->groups[o].slot == newer->groups[i].slot &&
		    !memcmp(&older->groups[o].key, &newer->groups[i].key,
			    sizeof(newer->groups[i].key)))
			was = &older->groups[o];
		group_diff(&newer->groups[i], was, &out->groups[i]);
		group_weigh(&out->groups[i], &out->pmu);
	}
}
