// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts of a group in little memory: numbers of seven bits a byte, the last with the top bit clear,
 * only of sources that have any. Ten thousand groups with all sources fit in the memory of the unit.
 */
#include "metrics_private.h"
#include "base/std.h"

#define NUMBER_MAX 10 /* bytes of a 64-bit number */

/* Numbers of a group except histograms: TLB, unknown exposed cycles, and of each source its kinds of op and sums. */
#define COUNTERS_MAX (7 + 1 + IBS_SRC_N * (1 + 2 * IBS_LAYOUT_OPS + 9))
#define BUCKETS_MAX  (1 + IBS_SRC_N * IBS_LAT_BUCKETS)

struct writer {
	unsigned char *at;
};

static void put(struct writer *w, __u64 v)
{
	for (; v > 0x7f; v >>= 7)
		*w->at++ = v | 0x80;
	*w->at++ = v;
}

static __u64 get(const unsigned char **at)
{
	__u64 v = 0;
	int shift = 0;

	while (**at & 0x80) {
		v |= (__u64)(*(*at)++ & 0x7f) << shift;
		shift += 7;
	}
	return v | (__u64) * (*at)++ << shift;
}

/* Each number of a source but those by kind of op and the histogram. */
#define SUMS(X, s)     \
	X((s)->valid)  \
	X((s)->sum)    \
	X((s)->cycles) \
	X((s)->open_n) X((s)->open) X((s)->state_n) X((s)->hitm) X((s)->exposed)
#define TLB(X, t)      \
	X((t)->l2_hit) \
	X((t)->l2_miss) X((t)->l2_hit_ops) X((t)->l2_miss_ops) X((t)->refills) X((t)->refill_cycles)

static void put_counters(struct writer *w, const struct metrics_group *g)
{
	__u32 sources = 0;

#define PUT(v) put(w, v);
	TLB(PUT, &g->tlb)
	PUT(g->unexposed)
	for (int src = 0; src < IBS_SRC_N; src++)
		sources |= (g->src[src].samples > 0) << src;
	put(w, sources);
	for (int src = 0; src < IBS_SRC_N; src++) {
		__u32 ops = 0;

		if (!(sources >> src & 1))
			continue;
		for (int op = 0; op < IBS_LAYOUT_OPS; op++)
			ops |= (g->count[op][src] > 0) << op;
		put(w, ops);
		for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
			if (!(ops >> op & 1))
				continue;
			put(w, g->count[op][src]);
			put(w, g->ops[op][src]);
		}
		put(w, g->timed[src]);
		SUMS(PUT, &g->src[src])
	}
#undef PUT
}

static void get_source(const unsigned char **at, struct metrics_group *g, int src)
{
	struct series *s = &g->src[src];
	const __u32 ops = get(at);

	for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
		if (!(ops >> op & 1))
			continue;
		s->samples += g->count[op][src] = get(at);
		s->ops += g->ops[op][src] = get(at);
	}
	g->samples += s->samples;
	g->timed[src] = get(at);
#define GET(v) v = get(at);
	SUMS(GET, s)
}

static void get_counters(const unsigned char *counts, struct metrics_group *g)
{
	const unsigned char **at = &counts;
	__u32 sources;

	TLB(GET, &g->tlb)
	GET(g->unexposed)
#undef GET
	sources = get(at);
	for (int src = 0; src < IBS_SRC_N; src++)
		if (sources >> src & 1)
			get_source(at, g, src);
}

/* A number is the sum of the buckets from @b to this one. */
static int last_of(const struct metrics_opts *coarse, int b)
{
	unsigned int edge = 0;

	if (!coarse)
		return b;
	while (edge < coarse->n_edges && coarse->edges[edge] < ibs_lat_le(b))
		edge++;
	while (b < IBS_LAT_BUCKETS - 1 &&
	       (edge == coarse->n_edges || ibs_lat_le(b) < coarse->edges[edge]))
		b++;
	return b;
}

/* Zeros in a row are a zero and how many more follow. */
static void put_histogram(struct writer *w, const __u64 *buckets, const struct metrics_opts *coarse)
{
	__u64 zeros = 0;

	for (int b = 0, last; b < IBS_LAT_BUCKETS; b = last + 1) {
		__u64 n = 0;

		last = last_of(coarse, b);
		for (int i = b; i <= last; i++)
			n += buckets[i];
		if (!n) {
			zeros++;
			continue;
		}
		if (zeros) {
			put(w, 0);
			put(w, zeros - 1);
			zeros = 0;
		}
		put(w, n);
	}
	if (zeros) {
		put(w, 0);
		put(w, zeros - 1);
	}
}

static void get_histogram(const unsigned char **at, __u64 *buckets,
			  const struct metrics_opts *coarse)
{
	__u64 zeros = 0;

	for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
		b = last_of(coarse, b);
		if (zeros) {
			zeros--;
			continue;
		}
		buckets[b] = get(at);
		if (!buckets[b])
			zeros = get(at);
	}
}

#define BLOCK (1 << 20)

struct metrics_block {
	struct metrics_block *older;
	size_t used;
	unsigned char data[BLOCK];
};

void *metrics_keep(struct metrics_groups *all, size_t bytes)
{
	struct metrics_block *b = all->blocks;

	if (!b || b->used + bytes > BLOCK) {
		b = xrealloc(NULL, sizeof(*b));
		b->older = all->blocks;
		b->used = 0;
		all->blocks = b;
	}
	all->bytes += bytes; /* the rest of a block is not touched, and takes no memory */
	b->used += bytes;
	return b->data + b->used - bytes;
}

void metrics_blocks_free(struct metrics_groups *all)
{
	while (all->blocks) {
		struct metrics_block *b = all->blocks;

		all->blocks = b->older;
		free(b);
	}
}

void metrics_pack(struct metrics_groups *all, struct metrics_packed *p,
		  const struct metrics_group *g)
{
	unsigned char counters[COUNTERS_MAX * NUMBER_MAX], buckets[BUCKETS_MAX * NUMBER_MAX];
	struct writer w = { counters }, h = { buckets };
	__u32 sources = 0;
	size_t bytes;

	put_counters(&w, g);
	for (int src = 0; src < IBS_SRC_N; src++)
		sources |= (g->src[src].buckets != NULL) << src;
	put(&h, sources);
	for (int src = 0; src < IBS_SRC_N; src++)
		if (g->src[src].buckets)
			put_histogram(&h, g->src[src].buckets, all->coarse);
	p->samples = g->samples;
	p->histograms = w.at - counters;
	bytes = p->histograms + (h.at - buckets);
	/* those that are added to again and again, as `other`, grow by halves */
	if (bytes > p->room) {
		p->room = p->counts ? bytes + bytes / 2 : bytes;
		p->counts = metrics_keep(all, p->room);
	}
	memcpy(p->counts, counters, p->histograms);
	memcpy(p->counts + p->histograms, buckets, h.at - buckets);
}

void metrics_unpack(const struct metrics_groups *all, const struct metrics_packed *p,
		    bool histograms, struct metrics_group *g)
{
	const unsigned char *at = p->counts + p->histograms;
	__u32 sources;

	memset(g, 0, offsetof(struct metrics_group, buckets));
	g->labels = p->labels;
	g->json = p->json;
	if (p->slowest)
		memcpy(g->slowest, p->slowest, sizeof(g->slowest));
	if (!p->counts)
		return;
	get_counters(p->counts, g);
	if (!histograms)
		return;
	sources = get(&at);
	for (int src = 0; src < IBS_SRC_N; src++)
		if (sources >> src & 1)
			get_histogram(&at, metrics_buckets(g, src), all->coarse);
}

__u64 *metrics_buckets(struct metrics_group *g, int src)
{
	if (!g->src[src].buckets) {
		g->src[src].buckets = g->buckets[src];
		memset(g->buckets[src], 0, sizeof(g->buckets[src]));
	}
	return g->src[src].buckets;
}
