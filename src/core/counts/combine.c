// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The counts of slices of two strata as one snapshot. */
#include "snapshot.h"

#include "base/std.h"

#include <math.h>

#define OPEN_SLICES (2 * STRATA_WINDOW)

/* Latencies of open slices of one period, which have one weight. */
struct portion {
	unsigned int k; /* the first of these slices */
	__u64 buckets[IBS_LAT_BUCKETS];
};

/* What has no weight yet, of a slice. */
struct open_part {
	float samples, cycles, square, hitm; /* as latencies */
};

/* Of one series in the slices of one stratum. */
struct part {
	struct series all; /* without estimates */
	struct open_part open[OPEN_SLICES];
	struct portion *portion;
	size_t n_portions;
	struct strata_sum cycles,
		ops; /* of slices with weights, in the order of stratified.design */
	double hitm, buckets[IBS_LAT_BUCKETS];
	/* the first n_weighed: of slices with weights, the others of open ones, each in the order of slices */
	struct strata_timed *timed;
	size_t n_weighed, n_timed, timed_room;
};

/* A group of one stratum. Its slot stays the same: only collectors with pins fold slots. */
struct cell {
	struct group g; /* without series */
	struct part *part;
	size_t n;
	double l2_hit_ops, l2_miss_ops;
	__u32 l2_hit[OPEN_SLICES], l2_miss[OPEN_SLICES];
};

struct stratum_counts {
	struct cell *cell;
	size_t n, room;
	struct ledger ledger;
	struct pmu_state pmu;
	__u64 time_ns;
};

/* Weights follow from windows: the last slices are open until it is known which window they belong to. */
struct stratified {
	__u32 by, reach;
	struct strata_design design, open; /* slices with weights, and those after them */
	unsigned int slices,
		first; /* open ones; as parts of `open`, those of the first window, 0: it goes on */
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
		for (size_t k = 0; k < c->cell[i].n; k++) {
			series_free(&c->cell[i].part[k].all);
			free(c->cell[i].part[k].portion);
			free(c->cell[i].part[k].timed);
		}
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

/* --- weights --- */

/* Does a window end with the next slice that makes the earlier ones twice as long? */
bool stratified_is_full(const struct stratified *s)
{
	return s->slices + 1 == 2 * STRATA_WINDOW && s->design.n + s->first > STRATA_SLICES;
}

static void merge_timed(struct part *p, const unsigned int into[STRATA_SLICES])
{
	const size_t open = p->n_timed - p->n_weighed;
	size_t left;

	if (!p->n_weighed)
		return;
	for (size_t i = 0; i < p->n_weighed; i++)
		p->timed[i].slice = into[p->timed[i].slice];
	left = strata_timed_sort(p->timed, p->n_weighed);
	memmove(p->timed + left, p->timed + p->n_weighed, open * sizeof(*p->timed));
	p->n_weighed = left;
	p->n_timed = left + open;
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
				merge_timed(&c->part[k], into);
			}
		}
	}
}

static void weigh_timed(struct part *p, const double *weight, unsigned int n, unsigned int at)
{
	for (size_t i = p->n_weighed; i < p->n_timed; i++) {
		struct strata_timed *t = &p->timed[i];
		const double w = t->slice < n ? weight[t->slice] : 1;

		t->ops = (float)(t->ops * w);
		t->square = (float)(t->square * w * w);
		p->n_weighed += t->slice < n;
		t->slice = t->slice < n ? at + t->slice : t->slice - n;
	}
}

/* Give the first @n open slices of a series their weights. Its sums of slices with weights go on at @at. */
static void weigh_part(struct part *p, enum stratum of, const double *weight, unsigned int n,
		       unsigned int at)
{
	size_t left = 0;

	for (unsigned int k = 0; k < n; k++) {
		const struct open_part *o = &p->open[k];
		const double w = weight[k];

		p->cycles.part[at + k] = o->cycles * w;
		p->cycles.square[of] += o->square * w * w;
		p->ops.part[at + k] = o->samples * w;
		p->ops.square[of] += o->samples * w * w;
		p->hitm += o->hitm * w;
	}
	weigh_timed(p, weight, n, at);
	memmove(p->open, p->open + n, (OPEN_SLICES - n) * sizeof(*p->open));
	memset(p->open + OPEN_SLICES - n, 0, n * sizeof(*p->open));
	for (size_t i = 0; i < p->n_portions; i++) {
		const struct portion *one = &p->portion[i];

		if (one->k >= n) {
			p->portion[left] = *one;
			p->portion[left++].k -= n;
			continue;
		}
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			p->buckets[b] += one->buckets[b] * weight[one->k];
	}
	p->n_portions = left;
}

static void weigh_tlb(struct cell *c, const double *weight, unsigned int n)
{
	const size_t rest = (OPEN_SLICES - n) * sizeof(*c->l2_hit), size = n * sizeof(*c->l2_hit);

	for (unsigned int k = 0; k < n; k++) {
		c->l2_hit_ops += c->l2_hit[k] * weight[k];
		c->l2_miss_ops += c->l2_miss[k] * weight[k];
	}
	memmove(c->l2_hit, c->l2_hit + n, rest);
	memmove(c->l2_miss, c->l2_miss + n, rest);
	memset(c->l2_hit + OPEN_SLICES - n, 0, size);
	memset(c->l2_miss + OPEN_SLICES - n, 0, size);
}

/* The first @n open slices are a window. */
static void weigh(struct stratified *s, unsigned int n)
{
	struct strata_design d = s->open;
	double weight[STRATUM_N][2][OPEN_SLICES] = {};

	d.n = n;
	for (unsigned int k = 0; k < n; k++)
		for (int reach = 0; reach < 2; reach++)
			weight[d.slice[k].of][reach][k] = strata_slice_weight(&d, k, reach);
	if (s->design.n + n > STRATA_SLICES)
		merge(s);
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		for (size_t i = 0; i < s->of[of].n; i++) {
			struct cell *c = &s->of[of].cell[i];

			for (size_t j = 0; j < c->n; j++)
				weigh_part(&c->part[j], of,
					   weight[of][s->reach >> c->part[j].all.src & 1], n,
					   s->design.n);
			weigh_tlb(c, weight[of][false], n);
		}
	}
	memcpy(s->design.slice + s->design.n, d.slice, n * sizeof(*d.slice));
	s->design.n += n;
	s->open.n -= n;
	memmove(s->open.slice, s->open.slice + n, s->open.n * sizeof(*d.slice));
}

/* --- slices --- */

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

/* Where latencies of an open slice are: with those of the first slice of its window that has the same weight. */
static struct portion *portion_of(struct part *p, unsigned int k)
{
	for (size_t i = 0; i < p->n_portions; i++)
		if (p->portion[i].k == k)
			return &p->portion[i];
	p->portion = xrealloc(p->portion, (p->n_portions + 1) * sizeof(*p->portion));
	p->portion[p->n_portions] = (struct portion){ .k = k };
	return &p->portion[p->n_portions++];
}

static unsigned int first_like(const struct stratified *s, unsigned int k)
{
	const struct strata_slice *slice = s->open.slice;
	unsigned int i = s->first;

	while (slice[i].of != slice[k].of || slice[i].period != slice[k].period)
		i++;
	return i;
}

static void add_series(struct part *p, const struct series *slice, unsigned int k,
		       unsigned int like)
{
	struct open_part *open = &p->open[k];
	struct series s = *slice;
	struct portion *portion;

	/* as latencies, whatever the sampler took a sample for */
	if (s.cycles)
		s.hitm = llround((double)s.hitm * s.sum / s.cycles);
	open->hitm += s.hitm;
	open->cycles += s.sum;
	open->samples += s.samples;
	s.ops = s.cycles = s.hitm = 0;
	s.price = 0;
	series_add(&p->all, &s);
	if (!s.buckets)
		return;
	portion = portion_of(p, like);
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++) {
		portion->buckets[b] += s.buckets[b];
		open->square += s.buckets[b] * bucket_middle(b) * bucket_middle(b);
		if (!s.buckets[b])
			continue;
		array_reserve(p->timed, p->timed_room, p->n_timed + 1);
		p->timed[p->n_timed++] = (struct strata_timed){
			.slice = k, .bucket = b, .ops = s.buckets[b], .square = s.buckets[b]
		};
	}
}

static void add_pmu(struct pmu_state *to, const struct pmu_state *p)
{
	to->cpus = p->cpus;
	to->counted += p->counted;
	to->enabled_ns += p->enabled_ns;
	to->running_ns += p->running_ns;
	to->extra_ns += p->extra_ns;
	to->share_variance += p->share_variance;
	to->share_n += p->share_n;
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
	ledger_join(to, l);
}

static void add_groups(struct stratified *s, enum stratum of, const struct snapshot *slice,
		       unsigned int k)
{
	struct stratum_counts *c = &s->of[of];
	const unsigned int like = first_like(s, k);
	size_t at = 0;

	for (size_t i = 0; i < slice->n_groups; i++) {
		const struct group *g = &slice->groups[i];
		struct cell *cell;

		if (!g->n_series)
			continue;
		cell = cell_of(c, g, &at);
		tlb_add(&cell->g.tlb, &g->tlb);
		cell->l2_hit[k] = g->tlb.l2_hit;
		cell->l2_miss[k] = g->tlb.l2_miss;
		for (size_t j = 0; j < g->n_series; j++)
			add_series(part_of(cell, &g->series[j]), &g->series[j], k, like);
	}
}

void stratified_add(struct stratified *s, enum stratum of, __u64 period, unsigned int slices,
		    const struct snapshot *slice)
{
	struct stratum_counts *c = &s->of[of];
	const unsigned int k = s->open.n++;

	s->open.slice[k] = (struct strata_slice){ of, slice->pmu.ops, slice->pmu.tagged,
						  slice->time_ns / 1e9, period };
	s->by = slice->by;
	add_ledger(&c->ledger, &slice->ledger, !c->time_ns);
	c->time_ns += slice->time_ns ?: 1;
	add_pmu(&c->pmu, &slice->pmu);
	add_groups(s, of, slice, k);
	s->slices += slices;
	if (s->slices == 2 * STRATA_WINDOW) {
		weigh(s, s->first);
		s->slices = STRATA_WINDOW;
	}
	if (s->slices == STRATA_WINDOW)
		s->first = s->open.n;
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

	return x->src != y->src ? (int)x->src - (int)y->src : (int)x->op - (int)y->op;
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

static void scale(struct strata_sum *s, double f)
{
	for (unsigned int k = 0; k < STRATA_SLICES; k++)
		s->part[k] *= f;
	for (unsigned int i = 0; i < STRATUM_N; i++)
		s->square[i] *= f * f;
}

/* Add the samples of a stratum to a series. @shared: what estimates are to be scaled by */
static void add_part(struct series *to, struct part *p, enum stratum of, double shared,
		     const struct strata_design *d)
{
	struct series_strata *x = to->strata ?: (to->strata = xcalloc(1, sizeof(*x)));

	x->design = d;
	scale(&p->cycles, shared);
	scale(&p->ops, shared);
	strata_add(&x->cycles, &p->cycles);
	strata_add(&x->ops, &p->ops);
	strata_timed_add(x, p->timed, p->n_weighed, shared);
	/* rows mix both kinds of series: a mean over samples must not prefer one */
	if (of == STRATUM_MISS)
		p->all.open_n = p->all.open = 0;
	series_add(to, &p->all);
	to->hitm += llround(p->hitm * shared);
	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
		x->buckets[b] += llround(p->buckets[b] * shared);
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
	const double shared = pmu_scale(&s->of[of].pmu);

	for (size_t k = 0; k < c->n; k++)
		/* what the filter may let through beside is estimated by the full stratum */
		if (of == STRATUM_FULL || s->reach >> c->part[k].all.src & 1)
			add_part(series_of(g, &c->part[k].all), &c->part[k], of, shared, d);
	if (of == STRATUM_MISS)
		return;
	g->tlb = c->g.tlb;
	g->tlb.l2_hit_ops = llround(c->l2_hit_ops * shared);
	g->tlb.l2_miss_ops = llround(c->l2_miss_ops * shared);
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
	if (s->open.n)
		weigh(s, s->open.n);
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
