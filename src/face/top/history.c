// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "history.h"
#include "base/intern.h"
#include "base/std.h"
#include "packed.h"

#include "table/table.h"

#include <math.h>

#define NAMES	   3 /* LABEL_CGROUP, LABEL_CONTAINER, LABEL_POD */
#define SLAB	   NAMES
#define SLICES	   (2 * STRATA_WINDOW) /* at most, of intervals that are added up: they take memory */
#define NAME_EVERY 10 /* intervals after which a name is asked for again: runtimes can be slow */

/* What is kept of each group of an interval outside of `data`. */
struct frame_group {
	__u32 known;
	float cycles;
};

/* A group that some interval has. */
struct known {
	struct ibs_group_key key;
	__u32 symbol;
	bool other, used;
	char *name[NAMES + 1]; /* the last one is of the slab cache */
	__u64 named, seen;     /* numbers of intervals */
	__u64 row;	       /* table_group_hash() for history.labels */
	unsigned int labels;
};

struct history {
	struct frame *frame; /* oldest first */
	size_t n, room, bytes;
	struct known *known;
	size_t n_known, known_room, sweep_at;
	struct u64_map by_key, by_cgroup;
	char **symbol; /* names by number; functions are few, and kept */
	size_t n_symbols, symbol_room;
	struct intern events; /* of strata */
	__u64 number;
};

/* --- groups --- */

static __u64 key_hash(const struct group *g)
{
	return bytes_hash(&g->key, sizeof(g->key)) ^ u64_hash(g->symbol) ^ g->other;
}

static __u32 find(const struct history *h, const struct group *g)
{
	__u32 i;

	u64_map_for_each(i, &h->by_key, key_hash(g))
	{
		if (h->known[i].other == g->other && h->known[i].symbol == g->symbol &&
		    !memcmp(&h->known[i].key, &g->key, sizeof(g->key)))
			break;
	}
	return i;
}

static struct group group_of(const struct known *k)
{
	return (struct group){ .key = k->key, .symbol = k->symbol, .other = k->other };
}

static void forget(struct history *h, __u32 i)
{
	struct known *k = &h->known[i];
	struct group g = group_of(k);

	u64_map_remove(&h->by_key, key_hash(&g), i);
	u64_map_remove(&h->by_cgroup, k->key.cgroup_id, i);
	for (int l = 0; l <= NAMES; l++)
		free(k->name[l]);
	memset(k, 0, sizeof(*k));
}

/* Places of groups that no interval has any more serve others. */
static void sweep(struct history *h)
{
	__u64 oldest = h->n ? h->frame[0].first : h->number;

	while (h->sweep_at < h->n_known) {
		struct known *k = &h->known[h->sweep_at++];

		if (k->used && k->seen < oldest)
			forget(h, k - h->known);
		if (!k->used)
			return;
	}
}

static __u32 add_known(struct history *h, const struct group *g)
{
	size_t i;

	sweep(h);
	i = h->sweep_at && !h->known[h->sweep_at - 1].used ? h->sweep_at - 1 : h->n_known;
	if (i == h->n_known)
		array_reserve_zero(h->known, h->known_room, i + 1);
	u64_map_add(&h->by_key, key_hash(g), i);
	u64_map_add(&h->by_cgroup, g->key.cgroup_id, i);
	h->n_known += i == h->n_known;
	h->known[i] = (struct known){
		.key = g->key, .symbol = g->symbol, .other = g->other, .used = true
	};
	return i;
}

static void keep_symbol(struct history *h, __u32 symbol, cgroup_namer name, void *arg)
{
	const char *text = name(arg, symbol, LABEL_SYMBOL);

	array_reserve_zero(h->symbol, h->symbol_room, symbol + 1);
	if (symbol >= h->n_symbols)
		h->n_symbols = symbol + 1;
	if (text && !h->symbol[symbol])
		h->symbol[symbol] = xstrdup(text);
}

static void update_names(struct history *h, struct known *k, bool by_slab, cgroup_namer name,
			 void *arg)
{
	for (int l = 0; l < NAMES + by_slab && !k->other; l++) {
		const char *now = l == SLAB ? name(arg, k->key.slab, LABEL_SLAB)
					    : name(arg, k->key.cgroup_id, l);

		if (!now || (k->name[l] && !strcmp(now, k->name[l])))
			continue;
		free(k->name[l]);
		k->name[l] = xstrdup(now);
		k->labels = 0;
	}
	k->named = h->number;
}

const char *history_name(void *arg, __u64 id, enum label l)
{
	const struct history *h = arg;
	__u32 i, best = U64_MAP_NONE;

	if (l == LABEL_SYMBOL)
		return id < h->n_symbols ? h->symbol[id] : NULL;
	for (i = 0; l == LABEL_SLAB && i < h->n_known; i++)
		if (h->known[i].name[SLAB] && h->known[i].key.slab == id)
			return h->known[i].name[SLAB];
	u64_map_for_each(i, &h->by_cgroup,
			 id) if (best == U64_MAP_NONE || h->known[i].named > h->known[best].named)
		best = i;
	return best == U64_MAP_NONE || l >= NAMES ? NULL : h->known[best].name[l];
}

/* --- intervals --- */

static void frame_free(struct history *h, struct frame *f)
{
	h->bytes -= f->bytes;
	free(f->groups);
	free(f->data);
	free(f->place);
}

/* What each of the machine's places cost. */
static void take_places(const struct snapshot *s, struct frame *f)
{
	f->n_places = s->n_shards;
	f->place = xcalloc(s->n_shards, sizeof(*f->place));
	for (size_t i = 0; i < s->n_shards; i++) {
		for (int src = 0; src < IBS_SRC_N; src++) {
			f->place[i].cycles += s->shards[i].cycles[src];
			f->place[i].remote += table_is_remote(src) ? s->shards[i].cycles[src] : 0;
		}
	}
}

/* Of a packed group. */
#define HAS_TLB	 1
#define WEIGHTED 2

static void pack_report(struct history *h, const struct strata_report *r, struct packed *b)
{
	__u32 event[STRATUM_N];

	for (int of = 0; of < STRATUM_N; of++)
		event[of] = intern_get(&h->events, r->event[of]);
	pack_put_report(b, r, event);
}

static struct strata_report *unpack_report(const struct history *h, const unsigned char **p)
{
	struct strata_report *r = xcalloc(1, sizeof(*r));
	__u32 event[STRATUM_N];

	pack_get_report(p, r, event);
	for (int of = 0; of < STRATUM_N; of++)
		r->event[of] = intern_text(&h->events, event[of]);
	return r;
}

/* Pack the groups; they are in h->known. */
static void pack(struct history *h, const struct snapshot *s, struct frame *f)
{
	struct packed b = {};

	f->strata = s->strata != NULL;
	if (f->strata)
		pack_report(h, s->strata, &b);
	f->n = 0;
	f->groups = xcalloc(s->n_groups, sizeof(*f->groups));
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];
		struct frame_group *to = &f->groups[f->n];

		if (!g->n_series)
			continue;
		f->n++;
		to->known = find(h, g);
		pack_put(&b, g->n_series);
		pack_put(&b, (g->has_tlb ? HAS_TLB : 0) | (g->weighted ? WEIGHTED : 0));
		pack_put(&b, g->tlb.l2_miss);
		pack_put(&b, g->tlb.l2_miss_ops);
		for (size_t k = 0; k < g->n_series; k++) {
			to->cycles += series_miss_cycles(&g->series[k]);
			pack_put_series(&b, &g->series[k]);
			if (f->strata)
				pack_put_strata(&b, g->series[k].strata);
		}
	}
	f->data = xrealloc(b.data, b.n);
	f->bytes = sizeof(*f) + b.n + f->n * sizeof(*f->groups) + f->n_places * sizeof(*f->place);
	h->bytes += f->bytes;
	f->groups = xrealloc(f->groups, f->n * sizeof(*f->groups));
}

static void unpack_series(const unsigned char **p, const struct strata_report *r, struct series *s)
{
	pack_get_series(p, s);
	if (!r)
		return;
	s->strata = xcalloc(1, sizeof(*s->strata));
	pack_get_strata(p, &r->design, s->strata);
}

static void unpack(const struct history *h, const struct frame *f, struct snapshot *out)
{
	const unsigned char *p = f->data;

	*out = (struct snapshot){ .time_ns = f->time_ns, .ledger = f->ledger, .pmu = f->pmu };
	out->strata = f->strata ? unpack_report(h, &p) : NULL;
	out->groups = xcalloc(f->n, sizeof(*out->groups));
	for (__u32 i = 0; i < f->n; i++) {
		const struct known *k = &h->known[f->groups[i].known];
		struct group *g = &out->groups[out->n_groups++];
		size_t n = pack_get(&p);
		__u64 flags;

		*g = group_of(k);
		g->slot = f->groups[i].known;
		flags = pack_get(&p);
		g->has_tlb = flags & HAS_TLB;
		g->weighted = flags & WEIGHTED;
		g->tlb.l2_miss = pack_get(&p);
		g->tlb.l2_miss_ops = pack_get(&p);
		g->series = xcalloc(n, sizeof(*g->series));
		while (g->n_series < n)
			unpack_series(&p, out->strata, &g->series[g->n_series++]);
	}
}

static void add_group(struct group *to, struct group *from)
{
	to->weighted |= from->weighted;
	to->has_tlb |= from->has_tlb;
	tlb_add(&to->tlb, &from->tlb);
	for (size_t i = 0; i < from->n_series; i++) {
		struct series *s = &from->series[i], *same = NULL;

		for (size_t k = 0; k < to->n_series; k++)
			if (to->series[k].op == s->op && to->series[k].src == s->src)
				same = &to->series[k];
		if (!same) {
			to->series = xrealloc(to->series, (to->n_series + 1) * sizeof(*s));
			same = &to->series[to->n_series++];
			*same = (struct series){ .op = s->op, .src = s->src };
		}
		series_add(same, s);
	}
}

/* Groups of @b go to @a. */
static void add_snapshot(struct history *h, struct snapshot *a, struct snapshot *b)
{
	__u32 *at = xcalloc(h->n_known, sizeof(*at));

	a->groups = xrealloc(a->groups, (a->n_groups + b->n_groups) * sizeof(*a->groups));
	for (size_t i = 0; i < a->n_groups; i++)
		at[a->groups[i].slot] = i + 1;
	for (size_t i = 0; i < b->n_groups; i++) {
		struct group *g = &b->groups[i];

		if (at[g->slot]) {
			add_group(&a->groups[at[g->slot] - 1], g);
		} else {
			a->groups[a->n_groups++] = *g;
			memset(g, 0, sizeof(*g));
		}
	}
	free(at);
}

static void add_info(struct frame *a, const struct frame *b)
{
	double time = a->time_ns + b->time_ns;

	a->cost = a->cost < 0 || b->cost < 0 ? HISTORY_NO_COST
					     : (a->cost * a->time_ns + b->cost * b->time_ns) / time;
	a->number = b->number;
	a->end_ns = b->end_ns;
	a->time_ns = time;
	a->period = a->period == b->period ? a->period : 0;
	ledger_join(&a->ledger, &b->ledger);
	a->pmu.counted += b->pmu.counted;
	a->pmu.enabled_ns += b->pmu.enabled_ns;
	a->pmu.running_ns += b->pmu.running_ns;
	a->pmu.share_variance += b->pmu.share_variance;
	a->pmu.share_n += b->pmu.share_n;
	a->pmu.throttled += b->pmu.throttled;
	a->pmu.went += b->pmu.went;
	a->pmu.came += b->pmu.came;
}

/* Return: what those of @a cost in both, to be freed. */
static struct place_cost *add_places(const struct frame *a, const struct frame *b)
{
	struct place_cost *sum = xcalloc(a->n_places, sizeof(*sum));

	for (size_t i = 0; i < a->n_places; i++) {
		sum[i] = a->place[i];
		if (i < b->n_places) {
			sum[i].cycles += b->place[i].cycles;
			sum[i].remote += b->place[i].remote;
		}
	}
	return sum;
}

/* Add the interval after @i to it. */
static void join(struct history *h, size_t i)
{
	struct frame *a = &h->frame[i], *b = a + 1, both = *a;
	struct snapshot sa, sb;

	unpack(h, a, &sa);
	unpack(h, b, &sb);
	if (a->strata)
		snapshot_share_design(&sa, &sb, SLICES);
	add_snapshot(h, &sa, &sb);
	add_info(&both, b);
	both.place = add_places(a, b);
	pack(h, &sa, &both);
	snapshot_free(&sa);
	snapshot_free(&sb);
	frame_free(h, a);
	frame_free(h, b);
	*a = both;
	memmove(b, b + 1, (--h->n - i - 1) * sizeof(*b));
}

static void drop_oldest(struct history *h)
{
	frame_free(h, &h->frame[0]);
	memmove(h->frame, h->frame + 1, --h->n * sizeof(*h->frame));
	h->sweep_at = 0;
}

/* The longer ago, the longer may an interval be. */
static void shrink(struct history *h)
{
	while (h->n > 1 && h->bytes > HISTORY_BYTES) {
		__u64 now = h->frame[h->n - 1].end_ns;
		double least = INFINITY;
		size_t best = h->n;

		for (size_t i = 0; i + 2 < h->n; i++) {
			const struct frame *a = &h->frame[i], *b = a + 1;
			double length = a->time_ns + b->time_ns;
			double rank = length / (now - b->end_ns + length);

			if (a->by != b->by || a->strata != b->strata || rank >= least)
				continue;
			least = rank;
			best = i;
		}
		if (best == h->n)
			drop_oldest(h);
		else
			join(h, best);
	}
}

void history_add(struct history *h, const struct snapshot *s, const struct frame *info,
		 cgroup_namer name, void *arg)
{
	struct frame f = *info;

	array_reserve(h->frame, h->room, h->n + 1);
	f.first = f.number = ++h->number;
	f.time_ns = s->time_ns;
	f.ledger = s->ledger;
	f.pmu = s->pmu;
	for (size_t i = 0; i < s->n_groups; i++) {
		struct known *k;
		__u32 at;

		if (!s->groups[i].n_series)
			continue;
		at = find(h, &s->groups[i]);
		if (at == U64_MAP_NONE)
			at = add_known(h, &s->groups[i]);
		if (f.by & BY_SYMBOL && !s->groups[i].other)
			keep_symbol(h, s->groups[i].symbol, name, arg);
		k = &h->known[at];
		k->seen = h->number;
		if (!k->named || !k->name[0] || h->number - k->named >= NAME_EVERY)
			update_names(h, k, f.by & IBS_BY_SLAB, name, arg);
	}
	take_places(s, &f);
	pack(h, s, &f);
	h->frame[h->n++] = f;
	while (h->n > 1 && f.end_ns - h->frame[0].end_ns > HISTORY_S * 1000000000ULL)
		drop_oldest(h);
	shrink(h);
}

struct history *history_new(void)
{
	return xcalloc(1, sizeof(struct history));
}

void history_free(struct history *h)
{
	if (!h)
		return;
	while (h->n)
		drop_oldest(h);
	for (size_t i = 0; i < h->n_known; i++)
		forget(h, i);
	u64_map_free(&h->by_key);
	u64_map_free(&h->by_cgroup);
	for (size_t i = 0; i < h->n_symbols; i++)
		free(h->symbol[i]);
	free(h->symbol);
	intern_free(&h->events);
	free(h->known);
	free(h->frame);
	free(h);
}

size_t history_n(const struct history *h)
{
	return h->n;
}

const struct frame *history_frame(const struct history *h, size_t i)
{
	return &h->frame[h->n - 1 - i];
}

void history_snapshot(const struct history *h, size_t i, struct snapshot *out)
{
	unpack(h, history_frame(h, i), out);
	for (size_t k = 0; k < out->n_groups; k++)
		group_weigh_series(&out->groups[k]);
}

static __u64 row_of(struct history *h, struct known *k, unsigned int labels)
{
	struct group g = group_of(k);

	if (k->labels != labels)
		k->row = table_group_hash(&g, labels, history_name, h);
	k->labels = labels;
	return k->row;
}

void history_trend(struct history *h, size_t i, unsigned int labels, const struct u64_map *rows,
		   size_t n_rows, float *out, size_t n)
{
	__u32 *at = xcalloc(h->n_known, sizeof(*at)); /* rows of groups, and 1; 0: not known yet */

	for (size_t k = 0; k < n_rows * n; k++)
		out[k] = NAN;
	for (size_t k = 0; k < n && i + k < h->n; k++) {
		const struct frame *f = history_frame(h, i + k);
		size_t column = n - 1 - k;
		float per_s = 1e9 / f->time_ns;

		for (size_t r = 0; r < n_rows; r++)
			out[r * n + column] = 0;
		for (__u32 g = 0; g < f->n; g++) {
			__u32 *row = &at[f->groups[g].known];

			if (!*row)
				*row = u64_map_get(rows, row_of(h, &h->known[f->groups[g].known],
								labels)) +
				       1;
			if (*row - 1 < n_rows)
				out[(*row - 1) * n + column] += f->groups[g].cycles * per_s;
		}
	}
	free(at);
}
