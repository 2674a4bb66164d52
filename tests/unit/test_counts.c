// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words of a slot as series, weighed and not; layouts of selections; sums of ledgers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "counts/counts.h"

#include <ibscope/op.h>

#define CAPS   0xbffU /* Zen 4 */
#define PERIOD 1000
#define SHARDS 2
#define SLOTS  2

#include "slots.h"

static __u64 *words_of(unsigned int shard, enum ibs_op_kind op, enum ibs_src src)
{
	return series + ((size_t)shard * SLOTS + 1) * layout.words +
	       (layout.entry[IBS_LAYOUT_IDX(op, src)] & IBS_LAYOUT_WORD);
}

static __u64 *slot_of(unsigned int shard)
{
	return series + ((size_t)shard * SLOTS + 1) * layout.words;
}

/* In each shard: three loads from DRAM, two of them with a latency, and five other ops. */
static void fill(void)
{
	for (unsigned int shard = 0; shard < SHARDS; shard++) {
		__u64 *w = words_of(shard, IBS_OP_KIND_LOAD, IBS_SRC_DRAM), *slot = slot_of(shard);

		w[IBS_PAIR_OPS] = 70;
		w[IBS_HIST_NO_LAT] = 1;
		w[IBS_HIST_SUM] = 500;
		w[IBS_HIST_CYCLES] = 800;
		w[IBS_HIST_BUCKET + ibs_lat_bucket(100)] = 1;
		w[IBS_HIST_BUCKET + ibs_lat_bucket(400)] = 1;
		w[IBS_HIST_MISS + IBS_MISS_OPEN_N] = 2;
		w[IBS_HIST_MISS + IBS_MISS_OPEN] = 9;
		w[IBS_HIST_MISS + IBS_MISS_STATE_N] = 1;
		w[IBS_HIST_MISS + IBS_MISS_HITM] = 40;
		w = words_of(shard, IBS_OP_KIND_OTHER, IBS_SRC_NONE);
		w[IBS_PAIR_OPS] = 30;
		w[IBS_PAIR_SAMPLES] = 5;
		slot[IBS_TLB_L2_HIT] = 4;
		slot[IBS_TLB_L2_MISS] = 3;
		slot[IBS_TLB_L2_HIT_OPS] = 14;
		slot[IBS_TLB_L2_MISS_OPS] = 13;
		slot[IBS_TLB_REFILL_N] = 2;
		slot[IBS_TLB_REFILL_SUM] = 60;
		state->cpu[0].seen += 8;
		state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED] += 8;
	}
}

static const struct series *find(const struct group *g, enum ibs_op_kind op, enum ibs_src src)
{
	for (size_t i = 0; i < g->n_series; i++)
		if (g->series[i].op == op && g->series[i].src == src)
			return &g->series[i];
	fail_msg("no such series");
	return NULL;
}

/*
 * Ops and cycles are those that were counted, or else each sample stands for a period; of an unknown period
 * nothing can be said, but the cycles of modified lines as of the samples.
 */
static void test_weights(void **unused)
{
	static const struct {
		bool has_ops;
		__u64 period, load_ops, other_ops, cycles, hitm, l2_hit_ops, l2_miss_ops, cost;
	} rows[] = {
		{ true, PERIOD, 140, 60, 1600, 80, 28, 26, 800 },
		{ false, PERIOD, 6 * PERIOD, 10 * PERIOD, 1000 * PERIOD, 80 * PERIOD, 8 * PERIOD,
		  6 * PERIOD, 500 * PERIOD },
		{ false, 0, 0, 0, 0, 80, 0, 0, 0 },
	};

	(void)unused;
	fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shard_cost cost[SHARDS] = {};
		const struct counts c = { .owners = owners,
					  .series = series,
					  .state = state,
					  .n_cpus = 1,
					  .outcomes = IBS_OUTCOME_N,
					  .shards = SHARDS,
					  .max_slots = SLOTS,
					  .has_ops = rows[i].has_ops,
					  .tlb = true,
					  .period = rows[i].period,
					  .cost = cost,
					  .layout = &layout };
		const struct series *load, *other;
		const struct group *g;
		struct snapshot s = {};
		struct err err;

		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.n_groups, 1);
		assert_int_equal(ledger_residual(&s.ledger), 0);
		g = &s.groups[0];
		assert_int_equal(g->n_series, 2);
		load = find(g, IBS_OP_KIND_LOAD, IBS_SRC_DRAM);
		other = find(g, IBS_OP_KIND_OTHER, IBS_SRC_NONE);
		assert_int_equal(load->samples, 6);
		assert_int_equal(load->valid, 4);
		assert_int_equal(load->sum, 1000);
		assert_int_equal(load->open_n, 4);
		assert_int_equal(load->open, 18);
		assert_int_equal(load->state_n, 2);
		assert_int_equal(load->ops, rows[i].load_ops);
		assert_int_equal(load->cycles, rows[i].cycles);
		assert_int_equal(load->hitm, rows[i].hitm);
		assert_int_equal(other->samples, 10);
		assert_int_equal(other->ops, rows[i].other_ops);
		assert_null(other->buckets);
		assert_int_equal(g->tlb.l2_hit, 8);
		assert_int_equal(g->tlb.l2_miss, 6);
		assert_int_equal(g->tlb.l2_hit_ops, rows[i].l2_hit_ops);
		assert_int_equal(g->tlb.l2_miss_ops, rows[i].l2_miss_ops);
		assert_int_equal(g->tlb.refills, 4);
		assert_int_equal(g->tlb.refill_cycles, 120);
		for (int shard = 0; shard < SHARDS; shard++)
			for (int src = 0; src < IBS_SRC_N; src++)
				assert_int_equal(cost[shard].cycles[src],
						 src == IBS_SRC_DRAM ? rows[i].cost : 0);
		snapshot_free(&s);
	}
}

struct activity_seen {
	unsigned int groups;
	struct counts_activity a;
};

static int see_activity(void *arg, __u32 slot, const struct ibs_group_key *key,
			const struct counts_activity *a)
{
	struct activity_seen *seen = arg;

	assert_int_equal(slot, 1);
	assert_ptr_equal(key, &owners[1].key);
	seen->groups++;
	seen->a = *a;
	return -ECANCELED;
}

/* The same sums as the series of the wanted sources have; groups without a slot of their own are left out. */
static void test_activity(void **unused)
{
	static const struct {
		bool has_ops;
		__u32 sources;
		__u64 valid, sum, ops;
	} rows[] = {
		{ true, 1U << IBS_SRC_DRAM, 4, 1000, 140 },
		{ false, 1U << IBS_SRC_DRAM, 4, 1000, 6 * PERIOD },
		{ true, 1U << IBS_SRC_DRAM | 1U << IBS_SRC_NONE, 4, 1000, 200 },
		{ false, 1U << IBS_SRC_NONE, 0, 0, 10 * PERIOD },
		{ true, 1U << IBS_SRC_L3, 0, 0, 0 },
	};

	(void)unused;
	memset(series, 0, sizeof(*series) * SHARDS * SLOTS * layout.words);
	fill();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct counts c = { .owners = owners,
					  .series = series,
					  .state = state,
					  .shards = SHARDS,
					  .max_slots = SLOTS,
					  .has_ops = rows[i].has_ops,
					  .period = PERIOD,
					  .layout = &layout };
		struct activity_seen seen = { 0 };

		owners[1].used = IBS_SLOT_ENDED;
		assert_int_equal(counts_each_activity(&c, rows[i].sources, see_activity, &seen), 0);
		assert_int_equal(seen.groups, 0);
		owners[1].used = 1;
		assert_int_equal(counts_each_activity(&c, rows[i].sources, see_activity, &seen),
				 -ECANCELED);
		assert_int_equal(seen.groups, 1);
		assert_int_equal(seen.a.valid, rows[i].valid);
		assert_int_equal(seen.a.sum, rows[i].sum);
		assert_int_equal(seen.a.ops, rows[i].ops);
	}
	owners[1].used = 0;
}

/* A pair keeps its words only if both its kind and its source are selected; the kind is asked first. */
static void test_filter(void **unused)
{
	const __u32 ops = 1U << IBS_OP_KIND_LOAD | 1U << IBS_OP_KIND_BRANCH;
	const __u32 sources = 1U << IBS_SRC_DRAM | 1U << IBS_SRC_NONE;
	struct layout l = layout;
	unsigned int kept = 0;

	(void)unused;
	layout_filter(&l, ops, sources);
	assert_int_equal(l.words, layout.words);
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		const bool op = ops >> (i & 7) & 1, src = sources >> (i >> 3) & 1;

		if (!layout_has(&layout, i))
			assert_int_equal(l.entry[i], IBS_OUTCOME_LOST_INTERNAL);
		else if (!op)
			assert_int_equal(l.entry[i], IBS_OUTCOME_FILTERED_OP);
		else if (!src)
			assert_int_equal(l.entry[i], IBS_OUTCOME_FILTERED_SRC);
		else
			assert_int_equal(l.entry[i], layout.entry[i]);
		kept += layout_has(&l, i);
	}
	assert_int_equal(kept, 2);
}

/* Each pair has words of its own, in a slot that is as long as all of them. */
static void test_layout(void **unused)
{
	unsigned char *used = calloc(layout.words, 1);
	unsigned int hists = 0;

	(void)unused;
	assert_non_null(used);
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		const bool hist = layout.entry[i] & IBS_LAYOUT_HIST;
		const unsigned int at = layout.entry[i] & IBS_LAYOUT_WORD;

		if (!layout_has(&layout, i))
			continue;
		hists += hist;
		for (unsigned int w = 0; w < (hist ? IBS_HIST_WORDS : IBS_PLAIN_WORDS); w++) {
			assert_in_range(at + w, IBS_LAYOUT_FIRST, layout.words - 1);
			assert_int_equal(used[at + w]++, 0);
		}
	}
	assert_int_equal(layout.hists, hists);
	free(used);
}

/* Whatever was there before, each pair that cannot occur has the outcome of a bug; the others are as many as there are words. */
static void test_layout_whole(void **unused)
{
	static const __u32 caps[] = { 0x3ff, 0xbff };

	(void)unused;
	for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
		for (int metric = 0; metric < IBS_METRIC_N; metric++) {
			unsigned int hists = 0, plain = 0;
			struct layout l;

			memset(&l, 0xff, sizeof(l));
			layout_init(&l, metric, caps[k]);
			for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
				const bool hist = l.entry[i] & IBS_LAYOUT_HIST;

				if (!layout_has(&l, i))
					assert_int_equal(l.entry[i], IBS_OUTCOME_LOST_INTERNAL);
				hists += layout_has(&l, i) && hist;
				plain += layout_has(&l, i) && !hist;
			}
			assert_int_equal(l.hists, hists);
			/* the last histogram can be read as far as any bucket's mask reaches */
			assert_int_equal(l.words, IBS_LAYOUT_FIRST + plain * IBS_PLAIN_WORDS +
							  hists * IBS_HIST_WORDS + IBS_HIST_REACH -
							  IBS_HIST_WORDS);
		}
	}
}

/* Words of exposed cycles belong to nobody else, and each pair with a histogram has its own. */
static void test_exposed_words(void **unused)
{
	static const __u32 caps[] = { 0x1ff, 0x3ff, 0xbff, 0x1bff };

	(void)unused;
	for (size_t k = 0; k < sizeof(caps) / sizeof(caps[0]); k++) {
		struct layout l;
		unsigned char *used;

		layout_init(&l, IBS_METRIC_DC_MISS_LAT, caps[k]);
		used = calloc(l.words, 1);
		assert_non_null(used);
		for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
			for (unsigned int w = 0;
			     layout_has(&l, i) &&
			     w < (l.entry[i] & IBS_LAYOUT_HIST ? IBS_HIST_WORDS : IBS_PLAIN_WORDS);
			     w++)
				used[(l.entry[i] & IBS_LAYOUT_WORD) + w] = 1;
		memset(used, 1, IBS_TLB_WORDS);
		assert_int_equal(used[IBS_EXPOSED_UNKNOWN]++, 0);
		for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
			__u32 word;

			if (!layout_has(&l, i) || !(l.entry[i] & IBS_LAYOUT_HIST))
				continue;
			word = ibs_exposed_word(l.words, l.entry[i] & IBS_LAYOUT_WORD);
			assert_in_range(word, 1, l.words - 1);
			assert_int_equal(used[word]++, 0);
		}
		free(used);
	}
}

/* They are known if the program says that it counts them, however many there are. */
static void test_exposed(void **unused)
{
	__u64 *words = words_of(0, IBS_OP_KIND_LOAD, IBS_SRC_DRAM), *slot = slot_of(0);
	const __u32 word = ibs_exposed_word(layout.words, words - slot);
	const struct counts c = { .owners = owners,
				  .series = series,
				  .state = state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = SHARDS,
				  .max_slots = SLOTS,
				  .has_ops = true,
				  .layout = &layout };

	(void)unused;
	slot[word] = 77;
	for (int run = 0; run < 3; run++) {
		const struct series *load;
		struct snapshot s = {};
		struct err err;

		state->control.exposed = run > 0;
		slot[IBS_EXPOSED_UNKNOWN] = run > 1 ? 3 : 0;
		assert_int_equal(counts_read(&c, &s, &err), 0);
		load = find(&s.groups[0], IBS_OP_KIND_LOAD, IBS_SRC_DRAM);
		assert_int_equal(load->exposed, run ? 77 : 0);
		assert_int_equal(load->exposed_n, !run	    ? 0
						  : run > 1 ? load->valid - 3
							    : load->valid);
		snapshot_free(&s);
	}
	/* without counted ops: times the period, if it is known */
	slot[IBS_EXPOSED_UNKNOWN] = 0;
	for (__u64 period = 0; period <= 1000; period += 1000) {
		struct counts by_period = c;
		struct snapshot s = {};
		struct err err;

		by_period.has_ops = false;
		by_period.period = period;
		assert_int_equal(counts_read(&by_period, &s, &err), 0);
		assert_int_equal(find(&s.groups[0], IBS_OP_KIND_LOAD, IBS_SRC_DRAM)->exposed,
				 period ? 77000 : 77);
		assert_false(s.groups[0].has_tlb);
		snapshot_free(&s);
	}
	state->control.exposed = slot[word] = 0;
}

/* Each count of the PMU is a difference; how many CPUs there are, and what is known, is that of the end. */
static void test_pmu_difference(void **unused)
{
	const struct snapshot older = { .time_ns = 5,
					.pmu = { .cpus = 8,
						 .counted = 1,
						 .enabled_ns = 2,
						 .running_ns = 3,
						 .extra_ns = -4,
						 .share_variance = 5,
						 .share_n = 6,
						 .throttled = 7,
						 .went = 8,
						 .came = 9,
						 .tagged = 10,
						 .tag_n = 11,
						 .tag_ops = 12,
						 .ops = 13,
						 .valid = 14 } };
	const struct snapshot newer = { .time_ns = 1005,
					.pmu = { .cpus = 4,
						 .counted = 101,
						 .enabled_ns = 202,
						 .running_ns = 303,
						 .extra_ns = 400,
						 .share_variance = 505,
						 .share_n = 606,
						 .throttled = 707,
						 .went = 808,
						 .came = 909,
						 .tagged = 1010,
						 .tag_n = 1111,
						 .tag_ops = 1212,
						 .tags_known = true,
						 .ops = 1313,
						 .valid = 1414,
						 .valid_known = true } };
	struct snapshot d;

	(void)unused;
	snapshot_diff(&newer, &older, &d);
	assert_int_equal(d.time_ns, 1000);
	assert_int_equal(d.pmu.cpus, 4);
	assert_int_equal(d.pmu.counted, 100);
	assert_int_equal(d.pmu.enabled_ns, 200);
	assert_int_equal(d.pmu.running_ns, 300);
	assert_int_equal(d.pmu.extra_ns, 404);
	assert_true(d.pmu.share_variance == 500);
	assert_int_equal(d.pmu.share_n, 600);
	assert_int_equal(d.pmu.throttled, 700);
	assert_int_equal(d.pmu.went, 800);
	assert_int_equal(d.pmu.came, 900);
	assert_int_equal(d.pmu.tagged, 1000);
	assert_int_equal(d.pmu.tag_n, 1100);
	assert_int_equal(d.pmu.tag_ops, 1200);
	assert_int_equal(d.pmu.ops, 1300);
	assert_int_equal(d.pmu.valid, 1400);
	assert_true(d.pmu.tags_known && d.pmu.valid_known);
	snapshot_free(&d);
}

static void test_ledgers(void **unused)
{
	struct ledger sum = { .pmu_exact = true },
		      one = { .seen = 1000, .pmu_samples = 1100, .unseen = 100, .pmu_exact = true };

	(void)unused;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		one.outcome[o] = 10 + o;
	for (int i = 0; i < 3; i++)
		ledger_add(&sum, &one, 1);
	assert_true(sum.pmu_exact);
	one.pmu_exact = false;
	ledger_add(&sum, &one, -1);
	assert_false(sum.pmu_exact);
	assert_int_equal(sum.seen, 2000);
	assert_int_equal(sum.pmu_samples, 2200);
	assert_int_equal(sum.unseen, 200);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(sum.outcome[o], 2 * (10 + o));
}

/* Of two at the same time: what one does not know of, nobody knows. */
static void test_ledgers_joined(void **unused)
{
	const struct ledger one = { .seen = 1000,
				    .outcome = { 700, [IBS_OUTCOME_N - 1] = 300 },
				    .pmu_samples = 1100,
				    .unseen = 100,
				    .pmu_exact = true,
				    .dropped = 20,
				    .dropped_known = true,
				    .undelivered = 30,
				    .undelivered_known = true };

	(void)unused;
	for (int lacks = 0; lacks < 4; lacks++) {
		struct ledger sum = one, other = one;

		other.dropped_known = !(lacks & 1);
		other.undelivered_known = !(lacks & 2);
		ledger_join(&sum, &other);
		assert_int_equal(sum.seen, 2000);
		assert_int_equal(sum.outcome[0], 1400);
		assert_int_equal(sum.outcome[IBS_OUTCOME_N - 1], 600);
		assert_int_equal(ledger_residual(&sum), 0);
		sum.seen++; /* a sample without an outcome, and an outcome without a sample */
		assert_int_equal(ledger_residual(&sum), 1);
		sum.outcome[IBS_OUTCOME_LOST_INTERNAL] += 2;
		assert_int_equal(ledger_residual(&sum), -1);
		assert_int_equal(sum.unseen, 200);
		assert_int_equal(sum.dropped, 40);
		assert_int_equal(sum.dropped_known, other.dropped_known);
		assert_int_equal(sum.undelivered, 60);
		assert_int_equal(sum.undelivered_known, other.undelivered_known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights),	       cmocka_unit_test(test_exposed_words),
		cmocka_unit_test(test_exposed),	       cmocka_unit_test(test_filter),
		cmocka_unit_test(test_layout),	       cmocka_unit_test(test_ledgers),
		cmocka_unit_test(test_ledgers_joined), cmocka_unit_test(test_pmu_difference),
		cmocka_unit_test(test_activity),       cmocka_unit_test(test_layout_whole),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
