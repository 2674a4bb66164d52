// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_base.h"
#include "base/std.h"

#define BASE_NONE UINT32_MAX

/* Miss cycles, latencies if those are unknown, and for fetches their number. */
static double cost_of(const struct metrics_group *g, bool fetch)
{
	double cost = 0;

	for (int src = 0; src < IBS_SRC_N; src++) {
		const struct series *s = &g->src[src];

		cost += fetch ? s->ops : s->cycles ?: s->sum;
	}
	return cost;
}

/* Those with new samples first, by what they cost since the base; then as before: by samples. */
static int compare_ranks(const void *pa, const void *pb)
{
	const struct base_rank *a = pa, *b = pb;

	if (a->active != b->active)
		return b->active - a->active;
	if (a->recent != b->recent)
		return a->recent > b->recent ? -1 : 1;
	return (int)a->group - (int)b->group;
}

void base_event_init(struct base_event *e, const struct metrics *m, unsigned int event,
		     const struct metrics_base *base)
{
	struct metrics_group *g = xrealloc(NULL, sizeof(*g));

	*e = (struct base_event){ .groups = &m->groups[event],
				  .reading = &m->facts.reading[event] };
	e->rank = xcalloc(e->groups->n, sizeof(*e->rank));
	for (size_t i = 0; i < e->groups->n; i++) {
		struct base_rank *r = &e->rank[i];
		const struct metrics_packed *p = &e->groups->group[i];
		const __u64 hash = text_hash(p->labels);
		const __u32 old = base->any ? u64_map_get(&base->by_labels, hash) : U64_MAP_NONE;
		const struct base_group *was = old == U64_MAP_NONE ? NULL : &base->group[old];

		*r = (struct base_rank){ .group = i, .hash = hash };
		if (was && was->samples == p->samples) {
			r->cost = was->cost;
			continue;
		}
		metrics_unpack(e->groups, p, false, g);
		r->active = p->samples;
		r->cost = cost_of(g, e->groups->fetch);
		r->recent = was && was->cost <= r->cost ? r->cost - was->cost : r->cost;
		e->n_active += r->active;
	}
	free(g);
	if (e->groups->n)
		qsort(e->rank, e->groups->n, sizeof(*e->rank), compare_ranks);
}

void base_event_free(struct base_event *e)
{
	free(e->rank);
}

static struct base_group keep_group(struct metrics_base *base, const struct metrics_packed *p,
				    bool always)
{
	struct base_group g = { .samples = p->samples, .at = BASE_NONE };

	if (!p->counts || (!always && base->n_counts + p->room > METRICS_BASE_MAX))
		return g;
	array_reserve(base->counts, base->counts_room, base->n_counts + p->room);
	memcpy(base->counts + base->n_counts, p->counts, p->room);
	g.at = base->n_counts;
	g.histograms = p->histograms;
	base->n_counts += p->room;
	return g;
}

void base_keep(struct metrics_base *base, const struct base_event *e)
{
	const struct ibs_meta *meta = &e->reading->meta;

	base->any = true;
	base->coarse = e->groups->coarse;
	base->start_ns = meta->start_realtime_ns;
	base->starts = meta->starts;
	base->ledger = e->reading->ledger;
	base->n = base->n_counts = 0;
	u64_map_free(&base->by_labels);
	base->whole = keep_group(base, &e->groups->whole, true);
	array_reserve(base->group, base->room, e->groups->n);
	for (size_t i = 0; i < e->groups->n; i++) {
		const struct base_rank *r = &e->rank[i];

		u64_map_add(&base->by_labels, r->hash, base->n);
		base->group[base->n] = keep_group(base, &e->groups->group[r->group], false);
		base->group[base->n++].cost = r->cost;
	}
}

void base_drop(struct metrics_base *base)
{
	free(base->group);
	free(base->counts);
	u64_map_free(&base->by_labels);
	*base = (struct metrics_base){};
}

size_t base_bytes(const struct metrics_base *base)
{
	return base->room * sizeof(*base->group) + base->counts_room +
	       base->by_labels.size * sizeof(*base->by_labels.slots);
}

/* Return: false if @a was less. */
static bool take(__u64 *a, __u64 b)
{
	const bool enough = *a >= b;

	*a -= b;
	return enough;
}

/* Subtract what the history keeps of a group. Return: false if @a was less, and is spoiled. */
static bool subtract(struct metrics_group *a, const struct metrics_group *b)
{
	bool enough = take(&a->samples, b->samples);

	if (!take(&a->unexposed, b->unexposed))
		a->unexposed = 0;

#define TAKE(member) enough &= take(&a->member, b->member)
	TAKE(tlb.l2_hit);
	TAKE(tlb.l2_miss);
	TAKE(tlb.l2_hit_ops);
	TAKE(tlb.l2_miss_ops);
	TAKE(tlb.refills);
	TAKE(tlb.refill_cycles);
	for (int src = 0; src < IBS_SRC_N; src++) {
		TAKE(src[src].samples);
		TAKE(src[src].valid);
		TAKE(src[src].sum);
		TAKE(src[src].ops);
		TAKE(src[src].cycles);
		/* another build, or event, of a collector may not count them */
		if (!take(&a->src[src].exposed, b->src[src].exposed))
			a->src[src].exposed = 0;
		if (!b->src[src].buckets)
			continue;
		metrics_buckets(a, src);
		for (int i = 0; i < IBS_LAT_BUCKETS; i++)
			TAKE(src[src].buckets[i]);
	}
#undef TAKE
	return enough;
}

static void unpack_kept(const struct metrics_base *base, const struct base_event *e,
			const struct base_group *kept, struct metrics_group *out)
{
	const struct metrics_packed p = {
		.counts = kept->at == BASE_NONE ? NULL : base->counts + kept->at,
		.histograms = kept->histograms,
	};

	metrics_unpack(e->groups, &p, true, out);
}

bool base_rest(const struct metrics_base *base, const struct base_event *e, struct base_work *w)
{
	if (!base->any || base->start_ns != e->reading->meta.start_realtime_ns ||
	    base->coarse != !!e->groups->coarse)
		return false;
	metrics_unpack(e->groups, &e->groups->whole, true, &w->rest);
	unpack_kept(base, e, &base->whole, &w->old);
	return subtract(&w->rest, &w->old);
}

int base_take(const struct metrics_base *base, const struct base_event *e, size_t i,
	      struct base_work *w)
{
	const struct base_rank *r = &e->rank[i];
	const struct metrics_packed *p = &e->groups->group[r->group];
	const __u32 old = u64_map_get(&base->by_labels, r->hash);
	const struct base_group *was = old == U64_MAP_NONE ? NULL : &base->group[old];

	if (was && was->samples && was->at == BASE_NONE)
		return 0;
	metrics_unpack(e->groups, p, true, &w->now);
	if (was) {
		unpack_kept(base, e, was, &w->old);
		/* it made way for others and came back: all it has is new */
		if (!subtract(&w->now, &w->old))
			metrics_unpack(e->groups, p, true, &w->now);
	}
	return subtract(&w->rest, &w->now) ? 1 : -EUCLEAN;
}

bool base_ledger(const struct metrics_base *base, const struct base_event *e, struct ledger *out)
{
	const struct ledger *was = &base->ledger, *now = &e->reading->ledger;

	*out = *now;
	ledger_add(out, was, -1);
	out->pmu_exact &= now->unseen >= was->unseen && now->pmu_samples >= was->pmu_samples;
	out->dropped_known = out->undelivered_known = false;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		if (now->outcome[o] < was->outcome[o])
			return false;
	return now->seen >= was->seen;
}
