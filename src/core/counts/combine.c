// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The counts of slices of two strata as one snapshot. */
#include "snapshot.h"

#include "base/std.h"

#include <math.h>

/* Of one series in the slices of one stratum. */
struct part {
	struct series all; /* without `strata` */
	struct strata_sum cycles, ops;
};

/* A group of one stratum. Its slot stays the same: only collectors with pins fold slots. */
struct cell {
	struct group g; /* without series */
	struct part *part;
	size_t n;
};

struct stratum_counts {
	struct cell *cell;
	size_t n, room;
	struct ledger ledger;
	struct pmu_state pmu;
	__u64 time_ns;
};

struct stratified {
	__u32 by, reach;
	struct strata_design design;
	struct stratum_counts of[STRATUM_N];
};

struct stratified *stratified_new(__u32 reach)
{
	struct stratified *s = xcalloc(1, sizeof(*s));

	s->reach = reach;
	return s;
}

static void free_cells(struct stratum_counts *c)
{
	for (size_t i = 0; i < c->n; i++) {
		for (size_t k = 0; k < c->cell[i].n; k++)
			series_free(&c->cell[i].part[k].all);
		free(c->cell[i].part);
	}
	free(c->cell);
}

void stratified_free(struct stratified *s)
{
	for (int of = 0; s && of < STRATUM_N; of++)
		free_cells(&s->of[of]);
	free(s);
}

/* --- slices --- */

bool stratified_is_full(const struct stratified *s)
{
	return s->design.n == STRATA_SLICES;
}

static void merge(struct stratified *s)
{
	unsigned int into[STRATA_SLICES];

	strata_merge(&s->design, into);
	for (int of = 0; of < STRATUM_N; of++) {
		for (size_t i = 0; i < s->of[of].n; i++) {
			struct cell *c = &s->of[of].cell[i];

			for (size_t k = 0; k < c->n; k++) {
				strata_sum_merge(&c->part[k].cycles, into);
				strata_sum_merge(&c->part[k].ops, into);
			}
		}
	}
}

/* Both lists are ordered by slot; @at: where to search from. */
static struct cell *cell_of(struct stratum_counts *c, const struct group *g, size_t *at)
{
	while (*at < c->n && c->cell[*at].g.slot < g->slot)
		++*at;
	if (*at < c->n && c->cell[*at].g.slot == g->slot)
		return &c->cell[*at];
	array_reserve(c->cell, c->room, c->n + 1);
	memmove(&c->cell[*at + 1], &c->cell[*at], (c->n - *at) * sizeof(*c->cell));
	c->n++;
	c->cell[*at] = (struct cell){ .g = *g };
	c->cell[*at].g.tlb = (struct tlb_counts){};
	c->cell[*at].g.series = NULL;
	c->cell[*at].g.n_series = 0;
	return &c->cell[*at];
}

static struct part *part_of(struct cell *c, const struct series *s)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->part[k].all.op == s->op && c->part[k].all.src == s->src)
			return &c->part[k];
	c->part = xrealloc(c->part, (c->n + 1) * sizeof(*c->part));
	c->part[c->n] = (struct part){ .all = { .op = s->op, .src = s->src } };
	return &c->part[c->n++];
}

static double bucket_middle(unsigned int bucket)
{
	return bucket ? (ibs_lat_le(bucket - 1) + 1.0 + ibs_lat_le(bucket)) / 2 : 0;
}

static void add_series(struct part *p, const struct series *slice, enum stratum of, unsigned int k)
{
	struct series s = *slice;

	/* as latencies, whatever the sampler took a sample for */
	if (s.cycles)
		s.hitm = llround((double)s.hitm * s.sum / s.cycles);
	s.ops = s.cycles = 0;
	s.price = 0;
	series_add(&p->all, &s);
	p->cycles.part[k] += s.sum;
	p->ops.part[k] += s.samples;
	p->ops.square[of] += s.samples;
	for (unsigned int b = 0; s.buckets && b < IBS_LAT_BUCKETS; b++)
		p->cycles.square[of] += s.buckets[b] * bucket_middle(b) * bucket_middle(b);
}

static void add_pmu(struct pmu_state *to, const struct pmu_state *p)
{
	to->cpus = p->cpus;
	to->counted += p->counted;
	to->enabled_ns += p->enabled_ns;
	to->running_ns += p->running_ns;
	to->extra_ns += p->extra_ns;
	to->throttled += p->throttled;
	to->went += p->went;
	to->came += p->came;
	to->tagged += p->tagged;
	to->tag_ops += p->tag_ops;
	to->tag_n += p->tag_n;
	to->ops += p->ops;
}

static void add_ledger(struct ledger *to, const struct ledger *l, bool first)
{
	if (first) {
		*to = *l;
		return;
	}
	ledger_add(to, l, 1);
	to->dropped += l->dropped;
	to->dropped_known &= l->dropped_known;
	to->undelivered += l->undelivered;
	to->undelivered_known &= l->undelivered_known;
}

void stratified_add(struct stratified *s, enum stratum of, const struct snapshot *slice)
{
	struct stratum_counts *c = &s->of[of];
	size_t at = 0;
	unsigned int k;

	if (stratified_is_full(s))
		merge(s);
	k = s->design.n++;
	s->design.slice[k] = (struct strata_slice){ of, slice->pmu.ops, slice->pmu.tagged,
						    slice->time_ns / 1e9 };
	s->by = slice->by;
	add_ledger(&c->ledger, &slice->ledger, !c->time_ns);
	c->time_ns += slice->time_ns ?: 1;
	add_pmu(&c->pmu, &slice->pmu);
	for (size_t i = 0; i < slice->n_groups; i++) {
		const struct group *g = &slice->groups[i];
		struct cell *cell;

		if (!g->n_series)
			continue;
		cell = cell_of(c, g, &at);
		tlb_add(&cell->g.tlb, &g->tlb);
		for (size_t j = 0; j < g->n_series; j++)
			add_series(part_of(cell, &g->series[j]), &g->series[j], of, k);
	}
}

/* --- the window --- */

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = &(*(const struct cell *const *)a)->g,
			   *y = &(*(const struct cell *const *)b)->g;

	/* `other` comes first, as in each snapshot */
	if (x->other != y->other)
		return x->other ? -1 : 1;
	if (x->ended != y->ended)
		return x->ended ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int compare_series(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static struct series *series_of(struct group *g, const struct series *like)
{
	for (size_t i = 0; i < g->n_series; i++)
		if (g->series[i].op == like->op && g->series[i].src == like->src)
			return &g->series[i];
	g->series = xrealloc(g->series, (g->n_series + 1) * sizeof(*g->series));
	g->series[g->n_series] = (struct series){ .op = like->op, .src = like->src };
	return &g->series[g->n_series++];
}

/* Add the samples of a stratum to a series, with their weight. */
static void add_part(struct series *to, struct part *p, enum stratum of, double weight,
		     const struct strata_design *d)
{
	struct series_strata *x = to->strata ?: (to->strata = xcalloc(1, sizeof(*x)));
	const struct series *s = &p->all;

	x->design = d;
	strata_scale(&p->cycles, weight);
	strata_scale(&p->ops, weight);
	strata_add(&x->cycles, &p->cycles);
	strata_add(&x->ops, &p->ops);
	/* rows mix both kinds of series: a mean over samples must not prefer one */
	if (of == STRATUM_MISS)
		p->all.open_n = p->all.open = 0;
	series_add(to, s);
	to->hitm += llround(s->hitm * weight) - s->hitm;
	for (unsigned int b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++)
		x->buckets[b] += llround(s->buckets[b] * weight);
}

static void finish_group(struct group *g)
{
	for (size_t i = 0; i < g->n_series; i++) {
		struct series *s = &g->series[i];
		double cycles = 0, ops = 0;

		for (unsigned int k = 0; k < s->strata->design->n; k++) {
			cycles += s->strata->cycles.part[k];
			ops += s->strata->ops.part[k];
		}
		s->cycles = llround(cycles);
		s->ops = llround(ops);
	}
	qsort(g->series, g->n_series, sizeof(*g->series), compare_series);
}

static void add_cell(struct group *g, struct cell *c, enum stratum of, const struct stratified *s,
		     const struct strata_design *d)
{
	const double shared = pmu_scale(&s->of[of].pmu), full = shared * strata_weight(d, false);

	for (size_t k = 0; k < c->n; k++) {
		const bool reach = s->reach >> c->part[k].all.src & 1;

		/* what the filter may let through beside is estimated by the full stratum */
		if (of == STRATUM_FULL || reach)
			add_part(series_of(g, &c->part[k].all), &c->part[k], of,
				 reach ? shared * strata_weight(d, true) : full, d);
	}
	if (of == STRATUM_MISS)
		return;
	g->tlb = c->g.tlb;
	g->tlb.l2_hit_ops = llround(g->tlb.l2_hit * full);
	g->tlb.l2_miss_ops = llround(g->tlb.l2_miss * full);
}

static void combine_groups(struct stratified *s, struct snapshot *out)
{
	const size_t n_full = s->of[STRATUM_FULL].n, n = n_full + s->of[STRATUM_MISS].n;
	struct cell **all = xcalloc(n, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i] = i < n_full ? &s->of[STRATUM_FULL].cell[i]
				    : &s->of[STRATUM_MISS].cell[i - n_full];
	qsort(all, n, sizeof(*all), compare_groups);
	out->groups = xcalloc(n, sizeof(*out->groups));
	for (size_t i = 0; i < n; i++) {
		const bool full = all[i] >= s->of[STRATUM_FULL].cell &&
				  all[i] < s->of[STRATUM_FULL].cell + n_full;

		if (!i || compare_groups(&all[i - 1], &all[i])) {
			struct group *g = &out->groups[out->n_groups];

			*g = all[i]->g;
			g->tlb = (struct tlb_counts){};
			g->slot = out->n_groups++;
		}
		add_cell(&out->groups[out->n_groups - 1], all[i],
			 full ? STRATUM_FULL : STRATUM_MISS, s, &out->strata->design);
	}
	free(all);
	for (size_t i = 0; i < out->n_groups; i++)
		finish_group(&out->groups[i]);
}

void stratified_end(struct stratified *s, struct snapshot *out)
{
	*out = (struct snapshot){ .by = s->by };
	out->strata = xcalloc(1, sizeof(*out->strata));
	out->strata->design = s->design;
	for (int of = 0; of < STRATUM_N; of++) {
		const struct stratum_counts *c = &s->of[of];

		out->strata->ledger[of] = c->ledger;
		out->time_ns += c->time_ns;
		if (!c->time_ns)
			continue;
		add_ledger(&out->ledger, &c->ledger, out->time_ns == c->time_ns);
		add_pmu(&out->pmu, &c->pmu);
	}
	out->ledger.pmu_exact &= s->of[STRATUM_MISS].time_ns == 0;
	combine_groups(s, out);
}
