// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts of groups inside of the metrics: packed and unpacked, summed, and their increase between readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "metrics/history_row.h"
#include "metrics/metrics_base.h"
#include "metrics/metrics_private.h"
#include "memory_in_use.h"
#include "random_word.h"

/* Numbers of all lengths, often those around a limit of the packed form. */
static __u64 any(void)
{
	const __u64 v = random_word() >> random_word() % 64;

	return v % 3 ? v : 1ULL << v % 64;
}

/* Counts as only a test has them: each different from all others. */
static void any_group(struct metrics_group *g)
{
	*g = (struct metrics_group){};
	g->unexposed = any();
	g->tlb = (struct tlb_counts){ any(), any(), any(), any(), any(), any() };
	for (int src = 0; src < IBS_SRC_N; src++) {
		struct series *s = &g->src[src];

		if (random_word() >> 7 & 1)
			continue;
		for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
			if (random_word() >> 9 & 1)
				continue;
			g->count[op][src] = 1 + any() % (1ULL << 40);
			g->ops[op][src] = any() % (1ULL << 50);
			s->samples += g->count[op][src];
			s->ops += g->ops[op][src];
		}
		if (!s->samples)
			continue;
		g->samples += s->samples;
		g->timed[src] = any();
		s->valid = any();
		s->sum = any();
		s->cycles = any();
		s->open_n = any();
		s->open = any();
		s->state_n = any();
		s->hitm = any();
		s->exposed = any();
		if (random_word() >> 11 & 1)
			continue;
		s->buckets = metrics_buckets(g, src);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			s->buckets[b] = random_word() % 4 ? 0 : any() % (1ULL << 50);
	}
}

static void same_series(const struct metrics_group *a, const struct metrics_group *b, int src)
{
	const struct series *s = &a->src[src], *t = &b->src[src];

	assert_int_equal(s->samples, t->samples);
	assert_int_equal(s->ops, t->ops);
	assert_int_equal(s->valid, t->valid);
	assert_int_equal(s->sum, t->sum);
	assert_int_equal(s->cycles, t->cycles);
	assert_int_equal(s->open_n, t->open_n);
	assert_int_equal(s->open, t->open);
	assert_int_equal(s->state_n, t->state_n);
	assert_int_equal(s->hitm, t->hitm);
	assert_int_equal(s->exposed, t->exposed);
	assert_int_equal(a->timed[src], b->timed[src]);
	for (int op = 0; op < IBS_LAYOUT_OPS; op++) {
		assert_int_equal(a->count[op][src], b->count[op][src]);
		assert_int_equal(a->ops[op][src], b->ops[op][src]);
	}
}

static void same_group(const struct metrics_group *a, const struct metrics_group *b)
{
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->unexposed, b->unexposed);
	assert_memory_equal(&a->tlb, &b->tlb, sizeof(a->tlb));
	for (int src = 0; src < IBS_SRC_N; src++)
		same_series(a, b, src);
}

/* Of the edges, the bucket of the first one that is not below bucket @b; the last if there is none. */
static int bucket_at_edge(const struct metrics_opts *coarse, int b)
{
	if (!coarse)
		return b;
	for (size_t i = 0; i < coarse->n_edges; i++)
		if (coarse->edges[i] >= ibs_lat_le(b))
			return ibs_lat_bucket(coarse->edges[i]);
	return IBS_LAT_BUCKETS - 1;
}

static void test_packed(void **unused)
{
	static const struct metrics_opts all_edges[] = {
		{ .edges = { 1, 64, 128, 1024 }, .n_edges = 4 },
		{ .edges = { 0, IBS_LAT_MAX }, .n_edges = 2 },
		{ .edges = { 256 }, .n_edges = 1 },
	};
	static struct metrics_group in, out;
	__u64 want[IBS_LAT_BUCKETS];

	(void)unused;
	for (size_t i = 0; i < 200; i++) {
		const struct metrics_opts *coarse = i % 4 ? &all_edges[i % 4 - 1] : NULL;
		struct metrics_groups all = { .coarse = coarse };
		struct metrics_packed p = { .labels = "l", .json = "j" };

		/* packed twice, as a group that grows is */
		any_group(&in);
		metrics_pack(&all, &p, &in);
		if (i % 3 == 0)
			any_group(&in);
		metrics_pack(&all, &p, &in);
		assert_int_equal(p.samples, in.samples);
		memset(&out, 0x5a, sizeof(out));
		metrics_unpack(&all, &p, false, &out);
		same_group(&out, &in);
		for (int src = 0; src < IBS_SRC_N; src++)
			assert_null(out.src[src].buckets);
		memset(&out, 0x5a, sizeof(out));
		metrics_unpack(&all, &p, true, &out);
		same_group(&out, &in);
		assert_string_equal(out.labels, "l");
		assert_string_equal(out.json, "j");
		for (int src = 0; src < IBS_SRC_N; src++) {
			if (!in.src[src].buckets) {
				assert_null(out.src[src].buckets);
				continue;
			}
			memset(want, 0, sizeof(want));
			for (int b = 0; b < IBS_LAT_BUCKETS; b++)
				want[bucket_at_edge(coarse, b)] += in.src[src].buckets[b];
			assert_memory_equal(out.src[src].buckets, want, sizeof(want));
		}
		assert_true(all.bytes >= p.room);
		metrics_groups_free(&all);
		assert_int_equal(all.bytes, 0);
	}
}

/* The list of sources before the counts is as long with buckets as without: it has none behind the last source. */
static void test_packed_sources(void **unused)
{
	static struct metrics_group g;
	struct metrics_groups all = {};
	struct metrics_packed without = {}, with = {};

	(void)unused;
	g = (struct metrics_group){};
	g.samples = g.src[0].samples = g.count[0][0] = 1;
	metrics_pack(&all, &without, &g);
	g.src[0].buckets = metrics_buckets(&g, 0);
	for (int b = 0; b < IBS_LAT_BUCKETS; b++)
		g.src[0].buckets[b] = 1;
	metrics_pack(&all, &with, &g);
	assert_int_equal(with.histograms, without.histograms);
	assert_true(with.histograms > 0);
	/* nor has that before the histograms, a byte of each bucket */
	assert_int_equal(with.room, with.histograms + 1 + IBS_LAT_BUCKETS);
	metrics_groups_free(&all);
}

/* A group with one kind of op of one source takes a byte per number, up to the last one that fits in it. */
static void test_packed_size(void **unused)
{
	static struct metrics_group g;
	struct metrics_groups all = {};
	struct metrics_packed p = {};
	size_t bytes;

	(void)unused;
	g = (struct metrics_group){};
	g.tlb = (struct tlb_counts){ 127, 127, 127, 127, 127, 127 };
	g.unexposed = 127;
	g.samples = g.src[1].samples = g.count[1][1] = g.ops[1][1] = g.timed[1] = 127;
	metrics_pack(&all, &p, &g);
	/* TLB, unexposed, sources, kinds of op, their count and ops, timed and eight sums; and no histograms */
	assert_int_equal(p.histograms, 6 + 1 + 1 + 1 + 2 + 1 + 8);
	assert_int_equal(p.room, p.histograms + 1);
	g.tlb.l2_hit = 128;
	metrics_pack(&all, &p, &g);
	assert_int_equal(p.histograms, 1 + 6 + 1 + 1 + 1 + 2 + 1 + 8);
	/* one that grew has room to grow by a half, and stays where it is while that is enough */
	assert_int_equal(p.room, 22 + 11);
	bytes = all.bytes;
	g.tlb = (struct tlb_counts){ 1 << 21, 1 << 21, 1 << 21, 1 << 21, 127, 127 };
	metrics_pack(&all, &p, &g);
	assert_int_equal(p.histograms + 1, p.room);
	assert_int_equal(all.bytes, bytes);
	/* zeros in a row are two numbers, however many: sources, zeros, a bucket, zeros */
	p = (struct metrics_packed){};
	metrics_buckets(&g, 1)[50] = 1;
	metrics_pack(&all, &p, &g);
	assert_int_equal(p.room, p.histograms + 1 + 2 + 1 + 2);
	metrics_groups_free(&all);
}

/* Memory of a room is not that of another, and is counted. */
static void test_keep(void **unused)
{
	struct metrics_groups all = {};
	unsigned char *kept[40];
	size_t sum = 0, before;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const size_t n = i % 3 ? 1 << 18 : (1 << 18) + i;

		kept[i] = metrics_keep(&all, n);
		memset(kept[i], i, n);
		sum += n;
		assert_int_equal(all.bytes, sum);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const size_t n = i % 3 ? 1 << 18 : (1 << 18) + i;

		for (size_t k = 0; k < n; k += 1023)
			assert_int_equal(kept[i][k], i);
		assert_int_equal(kept[i][n - 1], i);
	}
	metrics_groups_free(&all);
	/* four quarters of a MiB are in one */
	before = memory_in_use();
	for (int i = 0; i < 4; i++)
		metrics_keep(&all, 1 << 18);
	assert_in_range(memory_in_use(), 0, before + (1 << 20) + (1 << 18));
	metrics_groups_free(&all);
}

static __u64 some_buckets[IBS_LAT_BUCKETS], exposed_per_sample = 13;
static bool counts_exposed;

/* A series whose numbers are multiples of @n. */
static struct series series_of(int op, int src, __u64 n)
{
	for (int b = 0; b < IBS_LAT_BUCKETS; b++)
		some_buckets[b] = b == 20 ? 2 * n : 0;
	return (struct series){ .op = op,
				.src = src,
				.samples = 3 * n,
				.valid = 2 * n,
				.sum = 5 * n,
				.ops = 7 * n,
				.cycles = 11 * n,
				.exposed = exposed_per_sample * n,
				.exposed_n = n,
				.buckets = some_buckets };
}

static void add_of(struct metrics_groups *all, struct group g, const char *cgroup, __u64 n)
{
	struct ibs_slot_name name = {};
	struct series s[2] = { series_of(1, IBS_SRC_L2, n), series_of(2, IBS_SRC_L2, n) };

	snprintf(name.cgroup, sizeof(name.cgroup), "%s", cgroup);
	s[1].buckets = NULL;
	s[1].valid = 0;
	s[1].exposed_n = 0;
	g.n_series = 2;
	g.series = s;
	metrics_groups_add(all, &g, &name, g.other);
}

static void has_times(const struct metrics_group *g, __u64 n)
{
	const struct series *s = &g->src[IBS_SRC_L2];

	assert_int_equal(g->samples, 6 * n);
	assert_int_equal(g->count[1][IBS_SRC_L2], 3 * n);
	assert_int_equal(g->count[2][IBS_SRC_L2], 3 * n);
	assert_int_equal(g->ops[1][IBS_SRC_L2], 7 * n);
	assert_int_equal(g->timed[IBS_SRC_L2], 7 * n);
	assert_int_equal(s->samples, 6 * n);
	assert_int_equal(s->valid, 2 * n);
	assert_int_equal(s->sum, 10 * n);
	assert_int_equal(s->ops, 14 * n);
	assert_int_equal(s->cycles, 22 * n);
	assert_int_equal(s->exposed, 26 * n);
	assert_int_equal(metrics_exposed(g), 26 * n);
	assert_int_equal(s->buckets[20], 2 * n);
	assert_int_equal(s->buckets[19], 0);
}

static void test_groups(void **unused)
{
	static struct metrics_group g, sum;
	struct metrics_groups all = { .by = IBS_BY_CGROUP, .by_path = true, .sum = &sum };
	const struct group plain = { .tlb = { 1, 2, 3, 4, 5, 6 }, .has_exposed = true };

	(void)unused;
	memset(&sum, 0, sizeof(sum));
	add_of(&all, plain, "/a", 1);
	add_of(&all, plain, "/b", 10);
	add_of(&all, plain, "/a", 100); /* created again */
	add_of(&all, (struct group){ .other = true }, "", 1000);
	add_of(&all, (struct group){ .ended = true }, "/c", 10000);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.ended, 60000);
	metrics_unpack(&all, &all.group[0], true, &g);
	assert_string_equal(g.labels, "cgroup=\"/a\",");
	has_times(&g, 101);
	assert_int_equal(g.unexposed, 101); /* of the series that lacks the most */
	assert_int_equal(g.tlb.l2_hit, 2);
	assert_int_equal(g.tlb.refill_cycles, 12);
	metrics_unpack(&all, &all.group[1], true, &g);
	assert_string_equal(g.labels, "cgroup=\"/b\",");
	has_times(&g, 10);
	metrics_unpack(&all, &all.group[2], true, &g);
	assert_string_equal(g.labels, "container=\"other\",cgroup=\"other\",");
	has_times(&g, 1000);
	assert_int_equal(g.unexposed, 0); /* not counted */
	has_times(&sum, 11111);
	assert_int_equal(sum.unexposed, 111);
	assert_int_equal(sum.tlb.l2_miss, 6);
	metrics_groups_free(&all);
	assert_int_equal(all.n, 0);
	assert_int_equal(all.by, IBS_BY_CGROUP);
	assert_true(all.by_path && all.sum == &sum);
}

/* Samples of which exposed cycles are unknown: of the series that lacks the most, wherever it is. */
static void test_unexposed(void **unused)
{
	static const struct {
		__u64 valid, exposed_n, want;
	} rows[][3] = {
		{ { 3, 2, 5 }, { 9, 4 }, { 4, 1 } },
		{ { 1, 9, 0 }, { 2, 9 }, { 7, 7 } }, /* more than are valid: nothing lacks */
	};
	static struct metrics_group g;
	const struct ibs_slot_name name = {};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct metrics_groups all = {};
		struct series s[3] = {};
		const struct group of = { .n_series = 3, .series = s, .has_exposed = true };

		for (int k = 0; k < 3; k++)
			s[k] = (struct series){ .src = k,
						.samples = 10,
						.valid = rows[i][k].valid,
						.exposed_n = rows[i][k].exposed_n };
		metrics_groups_add(&all, &of, &name, false);
		metrics_unpack(&all, &all.group[0], false, &g);
		assert_int_equal(g.unexposed, rows[i][0].want);
		metrics_groups_free(&all);
	}
}

/* Of fetches, the TLB counts are made of their translations, and nothing is exposed. */
static void test_fetches(void **unused)
{
	static struct metrics_group g;
	struct metrics_groups all = { .fetch = true };
	struct ibs_slot_name name = {};
	struct series s[IBS_FETCH_ITLB_N] = {};
	const struct group of = { .n_series = IBS_FETCH_ITLB_N, .series = s, .has_exposed = true };
	__u64 misses = 0;

	(void)unused;
	for (int i = 0; i < IBS_FETCH_ITLB_N; i++) {
		s[i] = (struct series){ .op = i, .samples = 1 << i, .ops = 100 << i, .valid = 1 };
		if (i != IBS_FETCH_ITLB_UNKNOWN && i != IBS_FETCH_ITLB_L1 && i != IBS_FETCH_ITLB_L2)
			misses += 1 << i;
	}
	metrics_groups_add(&all, &of, &name, false);
	metrics_unpack(&all, &all.group[0], true, &g);
	assert_int_equal(g.tlb.l2_hit, 1 << IBS_FETCH_ITLB_L2);
	assert_int_equal(g.tlb.l2_hit_ops, 100 << IBS_FETCH_ITLB_L2);
	assert_int_equal(g.tlb.l2_miss, misses);
	assert_int_equal(g.tlb.l2_miss_ops, 100 * misses);
	assert_int_equal(g.unexposed, 0);
	metrics_groups_free(&all);
}

/* Of cgroups with the same labels the slowest sample is kept; of samples as slow, the later one. */
static void test_slowest(void **unused)
{
	static const struct {
		__u64 time;
		__u32 latency, kept;
	} rows[] = { { 0, 500, 0 }, { 1, 100, 1 }, { 2, 99, 1 }, { 3, 100, 3 }, { 4, 300, 4 } };
	static struct metrics_group g;
	struct metrics_groups all = { .by = IBS_BY_CGROUP };
	struct group of = {};
	size_t bytes = 0;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibs_slot_name name = { .cgroup = "/a" };

		name.slowest[0].time_ns = rows[i].time;
		name.slowest[0].latency = rows[i].latency;
		name.slowest[2].cpu = rows[i].time;
		metrics_groups_add(&all, &of, &name, false);
		metrics_unpack(&all, &all.group[0], false, &g);
		assert_int_equal(g.slowest[0].time_ns, rows[i].kept);
		assert_int_equal(g.slowest[2].cpu, rows[i].kept);
		if (i == 1)
			bytes = all.bytes;
		assert_true(i < 1 || all.bytes == bytes); /* in the same place */
	}
	assert_int_equal(all.n, 1);
	metrics_groups_free(&all);
}

/* One reading of three groups, @n times as many samples of the first. */
static void read_groups(struct metrics *m, __u64 a, __u64 b, __u64 c)
{
	static struct metrics_group sum;
	struct metrics_groups *all = &m->groups[0];
	const struct group g = { .has_exposed = counts_exposed };

	*m = (struct metrics){ .facts.n_events = 1 };
	memset(&sum, 0, sizeof(sum));
	*all = (struct metrics_groups){ .by = IBS_BY_CGROUP, .by_path = true, .sum = &sum };
	m->facts.reading[0].meta.start_realtime_ns = 1;
	m->facts.reading[0].ledger.seen = a + b + c;
	m->facts.reading[0].ledger.pmu_exact = true;
	m->facts.reading[0].ledger.outcome[IBS_OUTCOME_AGGREGATED] = a + b + c;
	if (a)
		add_of(all, g, "/a", a);
	if (b)
		add_of(all, g, "/b", b);
	if (c)
		add_of(all, g, "/c", c);
	metrics_pack(all, &all->whole, &sum);
	all->sum = NULL;
}

static void rank_is(const struct base_event *e, size_t i, const char *cgroup, double recent)
{
	char want[64];

	snprintf(want, sizeof(want), "cgroup=\"%s\",", cgroup);
	assert_string_equal(e->groups->group[e->rank[i].group].labels, want);
	assert_true(e->rank[i].recent == recent);
	assert_int_equal(e->rank[i].active, recent > 0);
}

/* The increase of each group and of all, the costliest first. */
static void test_increase(void **unused)
{
	static struct base_work w;
	struct metrics_base base = {};
	struct base_event e;
	struct metrics m;
	struct ledger l;

	(void)unused;
	read_groups(&m, 5, 10, 7);
	base_event_init(&e, &m, 0, &base);
	assert_int_equal(e.n_active, 3);
	rank_is(&e, 0, "/b", 220);
	rank_is(&e, 1, "/c", 154);
	rank_is(&e, 2, "/a", 110);
	assert_false(base_rest(&base, &e, &w));
	base_keep(&base, &e);
	assert_int_equal(base_bytes(&base),
			 base.room * sizeof(*base.group) + base.counts_room +
				 base.by_labels.size * sizeof(*base.by_labels.slots));
	assert_int_equal(base.n, 3);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);

	read_groups(&m, 105, 10, 8);
	base_event_init(&e, &m, 0, &base);
	assert_int_equal(e.n_active, 2);
	rank_is(&e, 0, "/a", 2200);
	rank_is(&e, 1, "/c", 22);
	rank_is(&e, 2, "/b", 0);
	assert_true(base_rest(&base, &e, &w));
	assert_int_equal(w.rest.samples, 6 * 101);
	assert_int_equal(base_take(&base, &e, 0, &w), 1);
	assert_int_equal(w.now.samples, 600);
	assert_int_equal(w.now.src[IBS_SRC_L2].cycles, 2200);
	assert_int_equal(w.now.src[IBS_SRC_L2].valid, 200);
	assert_int_equal(w.now.src[IBS_SRC_L2].sum, 1000);
	assert_int_equal(w.now.src[IBS_SRC_L2].ops, 1400);
	assert_int_equal(w.now.src[IBS_SRC_L2].exposed, 2600);
	assert_int_equal(w.now.src[IBS_SRC_L2].buckets[20], 200);
	assert_int_equal(w.rest.samples, 6);
	assert_int_equal(w.rest.src[IBS_SRC_L2].buckets[20], 2);
	assert_int_equal(base_take(&base, &e, 1, &w), 1);
	assert_int_equal(w.now.samples, 6);
	assert_int_equal(w.rest.samples, 0);
	assert_int_equal(base_take(&base, &e, 1, &w), -EUCLEAN); /* twice */
	assert_true(base_ledger(&base, &e, &l));
	assert_int_equal(l.seen, 101);
	assert_int_equal(l.outcome[IBS_OUTCOME_AGGREGATED], 101);
	assert_true(l.pmu_exact);
	assert_false(l.dropped_known || l.undelivered_known);
	base.ledger.unseen = 1;
	assert_true(base_ledger(&base, &e, &l));
	assert_false(l.pmu_exact);
	base.ledger.unseen = 0;
	base.ledger.pmu_samples = 1;
	assert_true(base_ledger(&base, &e, &l));
	assert_false(l.pmu_exact);
	base.ledger.outcome[0]++;
	base.ledger.outcome[IBS_OUTCOME_AGGREGATED] = 124;
	assert_false(base_ledger(&base, &e, &l));
	base.ledger = (struct ledger){ .seen = 123 };
	assert_true(base_ledger(&base, &e, &l));
	base.ledger.seen = 124;
	assert_false(base_ledger(&base, &e, &l));

	/* another collector, or other histograms: the counters began again */
	m.facts.reading[0].meta.start_realtime_ns = 2;
	assert_false(base_rest(&base, &e, &w));
	m.facts.reading[0].meta.start_realtime_ns = 1;
	m.groups[0].coarse = &m.opts;
	assert_false(base_rest(&base, &e, &w));
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);

	/* fewer than before, of one group: it began again, and all of it is new */
	read_groups(&m, 300, 4, 7);
	base_event_init(&e, &m, 0, &base);
	rank_is(&e, 0, "/a", 6490);
	rank_is(&e, 1, "/b", 88);
	assert_true(base_rest(&base, &e, &w));
	assert_int_equal(w.rest.samples, 6 * 289);
	assert_int_equal(base_take(&base, &e, 1, &w), 1);
	assert_int_equal(w.now.samples, 24);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);
	/* or of all */
	read_groups(&m, 5, 10, 6);
	base_event_init(&e, &m, 0, &base);
	assert_false(base_rest(&base, &e, &w));
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);
	base_drop(&base);
	assert_false(base.any);
	assert_int_equal(base_bytes(&base), 0);
}

/* @n times as many of everything: of all sources but those in @lacks, and of all buckets. */
static void read_sources(struct metrics *m, __u64 n, __u32 lacks)
{
	static __u64 buckets[IBS_LAT_BUCKETS];
	static struct metrics_group sum;
	struct metrics_groups *all = &m->groups[0];
	const struct ibs_slot_name name = { .cgroup = "/a" };
	struct series s[IBS_SRC_N];
	struct group g = { .series = s, .tlb = { n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n } };

	g.has_exposed = true;
	*m = (struct metrics){ .facts.n_events = 1 };
	memset(&sum, 0, sizeof(sum));
	*all = (struct metrics_groups){ .by = IBS_BY_CGROUP, .sum = &sum };
	for (int b = 0; b < IBS_LAT_BUCKETS; b++)
		buckets[b] = n * (b % 5 + 1);
	for (int src = 0; src < IBS_SRC_N; src++)
		if (!(lacks >> src & 1))
			s[g.n_series++] = (struct series){ .src = src,
							   .samples = 1000 * n,
							   .valid = 100 * n,
							   .sum = 5 * n,
							   .ops = 7 * n,
							   .cycles = n << src,
							   .exposed = 2 * n,
							   .exposed_n = 99 * n,
							   .buckets = buckets };
	metrics_groups_add(all, &g, &name, false);
	/* a group that ended has as much */
	g.ended = true;
	metrics_groups_add(all, &g, &name, false);
	metrics_pack(all, &all->whole, &sum);
	all->sum = NULL;
}

static void sources_are(const struct metrics_group *g, __u64 n, __u32 lacks)
{
	for (int src = 0; src < IBS_SRC_N; src++) {
		const struct series *s = &g->src[src];
		const __u64 k = lacks >> src & 1 ? 0 : n;

		assert_int_equal(s->samples, 1000 * k);
		assert_int_equal(s->valid, 100 * k);
		assert_int_equal(s->sum, 5 * k);
		assert_int_equal(s->ops, 7 * k);
		assert_int_equal(s->cycles, k << src);
		assert_int_equal(s->exposed, 2 * k);
		for (int b = 0; k && b < IBS_LAT_BUCKETS; b++)
			assert_int_equal(s->buckets[b], k * (b % 5 + 1));
	}
	assert_int_equal(g->unexposed, n);
	assert_int_equal(g->tlb.l2_hit, n);
	assert_int_equal(g->tlb.l2_miss, 2 * n);
	assert_int_equal(g->tlb.l2_hit_ops, 3 * n);
	assert_int_equal(g->tlb.l2_miss_ops, 4 * n);
	assert_int_equal(g->tlb.refills, 5 * n);
	assert_int_equal(g->tlb.refill_cycles, 6 * n);
}

/* Of each source and bucket, also the first and the last one. */
static void test_all_sources(void **unused)
{
	static struct base_work w;
	struct metrics_base base = {};
	struct base_event e;
	struct metrics m;

	(void)unused;
	read_sources(&m, 3, 0);
	base_event_init(&e, &m, 0, &base);
	assert_true(e.rank[0].recent == 3 * ((1 << IBS_SRC_N) - 1));
	base_keep(&base, &e);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);

	read_sources(&m, 10, 0);
	base_event_init(&e, &m, 0, &base);
	assert_true(e.rank[0].recent == 7 * ((1 << IBS_SRC_N) - 1));
	assert_true(base_rest(&base, &e, &w));
	sources_are(&w.rest, 14, 0);
	assert_int_equal(base_take(&base, &e, 0, &w), 1);
	sources_are(&w.now, 7, 0);
	sources_are(&w.rest, 7, 0);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);

	/* less than was known, and nothing of one source: all of it is new */
	read_sources(&m, 2, 1 << IBS_SRC_L3);
	base_event_init(&e, &m, 0, &base);
	assert_false(base_rest(&base, &e, &w));
	metrics_unpack(e.groups, &e.groups->whole, true, &w.rest);
	assert_int_equal(base_take(&base, &e, 0, &w), 1);
	sources_are(&w.now, 2, 1 << IBS_SRC_L3);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);
	base_drop(&base);
}

static void rank_only(const struct metrics *m, struct metrics_base *base, double recent)
{
	struct base_event e;

	base_event_init(&e, m, 0, base);
	assert_int_equal(e.groups->n, 1);
	assert_true(e.rank[0].recent == recent);
	base_keep(base, &e);
	base_event_free(&e);
}

/* What a group costs: its latencies where their products with ops are unknown, and the increase since the base. */
static void test_cost(void **unused)
{
	const struct ibs_slot_name name = { .cgroup = "/a" };
	struct series s = { .src = IBS_SRC_UNKNOWN };
	const struct group g = { .n_series = 1, .series = &s };
	struct metrics m = { .groups[0].by = IBS_BY_CGROUP };
	struct metrics_base base = {};

	(void)unused;
	s.samples = 1;
	s.sum = 50;
	metrics_groups_add(&m.groups[0], &g, &name, false);
	rank_only(&m, &base, 50);
	rank_only(&m, &base, 0);
	/* samples without latency cost nothing */
	s.sum = 0;
	metrics_groups_add(&m.groups[0], &g, &name, false);
	rank_only(&m, &base, 0);
	/* without new samples its cost stays known */
	rank_only(&m, &base, 0);
	s.sum = 7;
	metrics_groups_add(&m.groups[0], &g, &name, false);
	rank_only(&m, &base, 7);
	metrics_groups_free(&m.groups[0]);
	base_drop(&base);
}

/* The costliest groups have their counts kept, up to the last byte of the limit; others are in the rest. */
static void test_base_limit(void **unused)
{
	static const unsigned int rooms[] = { METRICS_BASE_MAX / 2, METRICS_BASE_MAX / 2, 64 };
	static const int takes[] = { 1, 1, 0 };
	static struct base_work w;
	struct metrics_base base = {};
	struct base_event e;
	struct metrics m;

	(void)unused;
	for (int now = 0; now < 2; now++) {
		struct metrics_groups *all = &m.groups[0];

		read_groups(&m, 300 + now, 200 + now, 100 + now);
		for (size_t i = 0; i < ARRAY_SIZE(rooms) && !now; i++) {
			struct metrics_packed *p = &all->group[i];

			p->counts = memcpy(metrics_keep(all, rooms[i]), p->counts, p->room);
			p->room = rooms[i];
			all->whole.counts = NULL; /* takes no room */
		}
		base_event_init(&e, &m, 0, &base);
		for (size_t i = 0; i < ARRAY_SIZE(rooms) && now; i++) {
			metrics_unpack(all, &all->whole, true, &w.rest);
			assert_int_equal(base_take(&base, &e, i, &w), takes[i]);
			if (takes[i])
				assert_int_equal(w.now.samples, 6);
		}
		if (!now)
			base_keep(&base, &e);
		base_event_free(&e);
		metrics_groups_free(all);
	}
	base_drop(&base);
}

/* Groups that cost the same stay in their order; and exposed cycles, which another build does not count, can be less. */
static void test_ties(void **unused)
{
	static struct base_work w;
	struct metrics_base base = {};
	struct base_event e;
	struct metrics m;

	(void)unused;
	counts_exposed = true;
	read_groups(&m, 5, 5, 5);
	base_event_init(&e, &m, 0, &base);
	rank_is(&e, 0, "/a", 110);
	rank_is(&e, 1, "/b", 110);
	rank_is(&e, 2, "/c", 110);
	base_keep(&base, &e);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);
	exposed_per_sample = 1;
	counts_exposed = false;
	read_groups(&m, 6, 5, 7);
	exposed_per_sample = 13;
	base_event_init(&e, &m, 0, &base);
	assert_true(base_rest(&base, &e, &w));
	assert_int_equal(w.old.unexposed, 15);
	assert_int_equal(w.rest.unexposed, 0);
	assert_int_equal(w.rest.src[IBS_SRC_L2].exposed, 0);
	assert_int_equal(base_take(&base, &e, 1, &w), 1);
	assert_int_equal(w.now.samples, 6);
	assert_int_equal(w.now.unexposed, 0);
	assert_int_equal(w.now.src[IBS_SRC_L2].exposed, 0);
	base_event_free(&e);
	metrics_groups_free(&m.groups[0]);
	base_drop(&base);
}

/* Readings and their base give all memory back. */
static void test_memory_comes_back(void **unused)
{
	struct metrics_base base = {};
	struct base_event e;
	struct metrics m;
	size_t before = 0;

	(void)unused;
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		read_groups(&m, 5 + i, 5, 5 + i % 3);
		add_of(&m.groups[0], (struct group){}, "/a", 1); /* has one already */
		base_event_init(&e, &m, 0, &base);
		base_keep(&base, &e);
		base_event_free(&e);
		metrics_groups_free(&m.groups[0]);
		base_drop(&base);
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

/* A row of the history, word by word. */
static void test_row(void **unused)
{
	static struct metrics_group g;
	static char text[1 << 14];
	struct json_writer w = {};

	(void)unused;
	memset(&g, 0, sizeof(g));
	g.tlb = (struct tlb_counts){ 1, 2, 3, 4, 5, 6 };
	g.unexposed = 7;
	for (int src = 0; src < IBS_SRC_N; src += IBS_SRC_L3) {
		struct series *s = &g.src[src];

		*s = (struct series){ .samples = 10, .valid = 9, .sum = 90, .ops = 1000 };
		s->cycles = 9000 + src;
		s->exposed = 8;
		if (src > IBS_SRC_L3)
			break;
		s->buckets = metrics_buckets(&g, src);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			s->buckets[b] = 3;
		s->buckets[0] = 2;
		s->buckets[IBS_LAT_BUCKETS - 1] = 7;
	}
	for (int fetch = 0; fetch < 2; fetch++) {
		w = (struct json_writer){ .f = fmemopen(text, sizeof(text), "w") };
		history_put_row(&w, 42, &g, fetch);
		fclose(w.f);
		for (char *from = text, *to = text; (*to = *from); from++)
			to += *from != ' ' && *from != '\n';
		assert_non_null(strstr(text, "{\"id\":42,\"tlb\":[1,2,3,4,5,6],"));
		if (fetch)
			assert_null(strstr(text, "exposed"));
		else
			assert_non_null(strstr(text, ",\"exposed\":[24,7],\"sources\":{"
						     "\"unknown\":[10,9,90,1000,9000,[0,2,"));
		assert_non_null(strstr(text, ",7]],"));
		assert_non_null(strstr(text, ":[10,9,90,1000,9008,[]]}}"));
	}
}

/* What makes the rows of two exporters comparable. */
static void test_about(void **unused)
{
	struct metrics *m = calloc(1, sizeof(*m));
	char *text;

	(void)unused;
	m->facts.n_events = 2;
	for (int i = 0; i < 2; i++) {
		struct ibs_meta *meta = &m->facts.reading[i].meta;

		snprintf(meta->event, sizeof(meta->event), "event %d", i);
		meta->layout.metric = i ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
		meta->layout.simulated = i;
	}
	m->facts.self.coarse = true;
	text = history_about(m);
	for (char *from = text, *to = text; (*to = *from); from++)
		to += *from != '\n';
	assert_non_null(strstr(text, "\"event 0\""));
	assert_non_null(strstr(text, "\"event 1\""));
	assert_non_null(strstr(text, "\"dc_miss_lat\""));
	assert_non_null(strstr(text, "\"fetch_lat\""));
	assert_non_null(strstr(text, "false"));
	assert_non_null(strstr(text, "true"));
	assert_non_null(strstr(text, "coarse_histograms"));
	assert_null(strstr(strstr(text, "event 1"), "\"event\"")); /* only two */
	free(text);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed),	   cmocka_unit_test(test_packed_sources),
		cmocka_unit_test(test_keep),	   cmocka_unit_test(test_groups),
		cmocka_unit_test(test_fetches),	   cmocka_unit_test(test_slowest),
		cmocka_unit_test(test_increase),   cmocka_unit_test(test_row),
		cmocka_unit_test(test_ties),	   cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_about),	   cmocka_unit_test(test_unexposed),
		cmocka_unit_test(test_cost),	   cmocka_unit_test(test_all_sources),
		cmocka_unit_test(test_base_limit), cmocka_unit_test(test_packed_size),
	};

	mallopt(M_PERTURB, 0x5a); /* so that what is read without being set is not 0 */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
