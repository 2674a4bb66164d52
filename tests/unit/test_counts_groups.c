// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slots and owners, shards, CPUs, and readers that may not map the counters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/std.h"
#include "counts/counts.h"

#include <ibscope/op.h>

#define CAPS   0xbffU /* Zen 4 */
#define SHARDS 2
#define SLOTS  6
#define CPUS   2

#include "slots.h"

/* --- counters --- */

/* What a reader of slots does before it returns one: fails, or lets a sample come. */
static struct {
	int calls, fail_at, counts_at, folds_at; /* 0: never */
	__u32 slot;				 /* of the sample */
	bool is_aggregated;			 /* it is in the ledger, too */
} reader;

static __u64 *slot_of(unsigned int shard, unsigned int slot)
{
	return series + ((size_t)shard * SLOTS + slot) * layout.words;
}

static __u64 *words_of(unsigned int shard, unsigned int slot, enum ibs_op_kind op, enum ibs_src src)
{
	return slot_of(shard, slot) + (layout.entry[IBS_LAYOUT_IDX(op, src)] & IBS_LAYOUT_WORD);
}

static void add_ledger(int cpu, enum ibs_outcome o, __u64 n)
{
	state->cpu[cpu].seen += n;
	state->cpu[cpu].outcome[o] += n;
}

/* Ops without a latency. */
static void add_others(unsigned int shard, unsigned int slot, __u64 n)
{
	words_of(shard, slot, IBS_OP_KIND_OTHER, IBS_SRC_NONE)[IBS_PAIR_SAMPLES] += n;
	add_ledger(shard, IBS_OUTCOME_AGGREGATED, n);
}

/* Loads from DRAM with a latency. */
static void add_loads(unsigned int shard, unsigned int slot, __u64 n, unsigned int latency)
{
	__u64 *w = words_of(shard, slot, IBS_OP_KIND_LOAD, IBS_SRC_DRAM);

	w[IBS_HIST_BUCKET + ibs_lat_bucket(latency)] += n;
	w[IBS_HIST_SUM] += n * latency;
	w[IBS_HIST_CYCLES] += 2 * n * latency;
	w[IBS_PAIR_OPS] += 2 * n;
	add_ledger(shard, IBS_OUTCOME_AGGREGATED, n);
}

static int set_up_each(void **unused)
{
	(void)unused;
	memset(series, 0, sizeof(*series) * SHARDS * SLOTS * layout.words);
	memset(owners, 0, sizeof(owners));
	memset(state, 0, sizeof(*state) + CPUS * sizeof(*state->cpu));
	memset(&reader, 0, sizeof(reader));
	for (unsigned int slot = 0; slot < SLOTS; slot++)
		owners[slot].key.cgroup_id = 100 + slot;
	return 0;
}

static const __u64 *read_slot(void *arg, __u32 shard, __u32 slot)
{
	assert_ptr_equal(arg, &reader);
	assert_in_range(shard, 0, SHARDS - 1);
	assert_in_range(slot, 0, SLOTS - 1);
	reader.calls++;
	if (reader.calls == reader.fail_at)
		return NULL;
	if (reader.calls == reader.folds_at)
		state->control.fold += 2;
	if (reader.calls == reader.counts_at) {
		words_of(1, reader.slot, IBS_OP_KIND_OTHER, IBS_SRC_NONE)[IBS_PAIR_SAMPLES]++;
		if (reader.is_aggregated)
			add_ledger(1, IBS_OUTCOME_AGGREGATED, 1);
	}
	return slot_of(shard, slot);
}

static struct counts counts_of(bool mapped, __u32 by)
{
	return (struct counts){ .owners = owners,
				.series = mapped ? series : NULL,
				.read_slot = read_slot,
				.arg = &reader,
				.state = state,
				.n_cpus = CPUS,
				.outcomes = IBS_OUTCOME_N,
				.shards = SHARDS,
				.max_slots = SLOTS,
				.by = by,
				.has_ops = true,
				.layout = &layout };
}

/* --- groups --- */

/* Slots: other, used, free, ended, leaving, ended without samples. */
static void fill_slots(void)
{
	owners[1].used = IBS_SLOT_USED;
	owners[3].used = IBS_SLOT_ENDED;
	owners[4].used = IBS_SLOT_LEAVING;
	owners[5].used = IBS_SLOT_ENDED;
	for (unsigned int shard = 0; shard < SHARDS; shard++) {
		add_others(shard, 0, 1);
		add_loads(shard, 1, 4, 100);
		add_others(shard, 3, 2);
		add_loads(shard, 4, 8, 300);
	}
}

/* Each slot with an owner is a group, and `other` and `ended` are if they have samples; mapped or not, it is the same. */
static void test_owners(void **unused)
{
	static const struct {
		__u32 slot;
		bool other, ended;
		__u64 samples, sum;
	} want[] = {
		{ 0, true, false, 2, 0 },
		{ 1, false, false, 8, 800 },
		{ 3, true, true, 4, 0 },
		{ 4, false, false, 16, 4800 },
	};

	(void)unused;
	fill_slots();
	for (int mapped = 0; mapped < 2; mapped++) {
		const struct counts c = counts_of(mapped, IBS_BY_CGROUP);
		struct snapshot s = {};
		struct err err;

		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.by, IBS_BY_CGROUP);
		assert_int_equal(s.ledger.outcome[IBS_OUTCOME_AGGREGATED], 30);
		assert_int_equal(s.n_groups, ARRAY_SIZE(want));
		for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
			const struct group *g = &s.groups[i];

			assert_int_equal(g->slot, want[i].slot);
			assert_int_equal(g->other, want[i].other);
			assert_int_equal(g->ended, want[i].ended);
			assert_int_equal(g->key.cgroup_id, 100 + want[i].slot);
			assert_int_equal(g->n_series, 1);
			assert_int_equal(g->series[0].samples, want[i].samples);
			assert_int_equal(g->series[0].sum, want[i].sum);
			assert_int_equal(g->series[0].cycles, 2 * want[i].sum);
			assert_false(g->has_tlb || g->has_exposed || g->weighted);
		}
		snapshot_free(&s);
	}
	/* all slots that are groups, or may be, of each shard */
	assert_int_equal(reader.calls, 5 * SHARDS);
}

/* A group has its slot before its first sample. Without keys slot 1 has one without an owner; no other slot has. */
static void test_no_samples(void **unused)
{
	struct snapshot s = {};
	struct err err;

	(void)unused;
	owners[2].used = IBS_SLOT_USED;
	for (__u32 by = 0; by < 2; by++) {
		const struct counts c = counts_of(true, by ? IBS_BY_CGROUP : 0);

		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.n_groups, by ? 1 : 2);
		assert_int_equal(s.groups[0].slot, by ? 2 : 1);
		assert_int_equal(s.groups[0].n_series, 0);
		snapshot_free(&s);
	}
}

/* Programs add to the sum last: until then a latency other than 0 is not in the ledger, either. */
static void test_sum_last(void **unused)
{
	const struct counts c = counts_of(true, 0);
	__u64 *w = words_of(0, 1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM);
	struct snapshot s = {};
	struct err err;

	(void)unused;
	add_loads(0, 1, 3, 0);
	w[IBS_HIST_NO_LAT] = 2;
	add_ledger(0, IBS_OUTCOME_AGGREGATED, 2);
	w[IBS_HIST_BUCKET + 1] = w[IBS_HIST_BUCKET + 9] = 1;
	assert_int_equal(counts_read(&c, &s, &err), 0);
	assert_int_equal(s.groups[0].series[0].samples, 5);
	assert_int_equal(s.groups[0].series[0].valid, 3);
	assert_int_equal(s.groups[0].series[0].buckets[0], 3);
	assert_int_equal(s.groups[0].series[0].buckets[1], 0);
	snapshot_free(&s);
}

/* Exposed cycles of a sample that came during the read are those of no other group. */
static void test_exposed(void **unused)
{
	const struct counts c = counts_of(true, IBS_BY_CGROUP);
	struct snapshot s = {};
	struct err err;
	__u32 word;

	(void)unused;
	word = ibs_exposed_word(layout.words,
				words_of(0, 0, IBS_OP_KIND_LOAD, IBS_SRC_DRAM) - slot_of(0, 0));
	state->control.exposed = IBS_EXPOSED_ON;
	state->control.strata.used = 1;
	owners[1].used = owners[2].used = IBS_SLOT_USED;
	add_others(0, 1, 1);
	slot_of(0, 1)[word] = 1000;
	add_loads(0, 2, 3, 50);
	add_others(0, 2, 1);
	slot_of(0, 2)[word] = 70;
	slot_of(1, 2)[word] = 7;
	slot_of(0, 2)[IBS_EXPOSED_UNKNOWN] = slot_of(1, 2)[IBS_EXPOSED_UNKNOWN] = 1;
	assert_int_equal(counts_read(&c, &s, &err), 0);
	assert_int_equal(s.n_groups, 2);
	for (int i = 0; i < 2; i++)
		assert_true(s.groups[i].has_exposed && s.groups[i].weighted);
	assert_int_equal(s.groups[0].n_series, 1);
	assert_int_equal(s.groups[1].n_series, 2);
	for (int i = 0; i < 2; i++) {
		const struct series *one = &s.groups[1].series[i];
		const bool load = one->src == IBS_SRC_DRAM;

		assert_int_equal(one->exposed, load ? 77 : 0);
		assert_int_equal(one->exposed_n, load ? 1 : 0); /* of one sample */
	}
	snapshot_free(&s);
	/* neither while that changes, nor without */
	for (int exposed = 0; exposed < 3; exposed++) {
		state->control.exposed = exposed;
		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.groups[0].has_exposed, exposed == IBS_EXPOSED_ON);
		snapshot_free(&s);
	}
}

/* In slot 1, one to five samples of each pair, with a latency of 3 cycles if it may have one, and 1000 exposed cycles. */
static __u64 *fill_pairs(const struct layout *l)
{
	__u64 *all = xcalloc((size_t)2 * l->words, sizeof(*all)), *slot = all + l->words;

	/* words for these are before and after those of pairs */
	for (unsigned int i = IBS_EXPOSED_FRONT; i < IBS_LAYOUT_FIRST; i++)
		slot[i] = 1000;
	for (unsigned int i = l->words - IBS_EXPOSED_TAIL; i < l->words; i++)
		slot[i] = 1000;
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		__u64 *w = slot + (l->entry[pair] & IBS_LAYOUT_WORD);

		if (!layout_has(l, pair))
			continue;
		if (l->entry[pair] & IBS_LAYOUT_HIST) {
			w[IBS_HIST_BUCKET + 3] = 1 + pair % 5;
			w[IBS_HIST_SUM] = 3 * (1 + pair % 5);
		} else {
			w[IBS_PAIR_SAMPLES] = 1 + pair % 5;
		}
		add_ledger(0, IBS_OUTCOME_AGGREGATED, 1 + pair % 5);
	}
	return all;
}

/* Every pair is counted. A pair without words is not a series, whatever the other words contain. */
static void check_pairs(const struct group *g, const struct layout *l)
{
	unsigned int n = 0;

	assert_true(g->has_tlb && g->has_exposed);
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		const bool hist = l->entry[pair] & IBS_LAYOUT_HIST;
		const struct series *s = &g->series[n];

		if (!layout_has(l, pair))
			continue;
		assert_in_range(n++, 0, g->n_series - 1);
		assert_int_equal(s->op, pair & 7);
		assert_int_equal(s->src, pair >> 3);
		assert_int_equal(s->samples, 1 + pair % 5);
		assert_int_equal(s->valid, hist ? s->samples : 0);
		/* there may be no word for more pairs */
		assert_int_equal(
			s->exposed,
			hist && ibs_exposed_word(l->words, l->entry[pair] & IBS_LAYOUT_WORD) ? 1000
											     : 0);
	}
	assert_int_equal(g->n_series, n);
}

struct activity {
	unsigned int n, stop_at;
	struct {
		__u32 slot;
		__u64 id;
		struct counts_activity a;
	} of[SLOTS];
};

static int see(void *arg, __u32 slot, const struct ibs_group_key *key,
	       const struct counts_activity *a)
{
	struct activity *to = arg;

	assert_in_range(to->n, 0, SLOTS - 1);
	to->of[to->n].slot = slot;
	to->of[to->n].id = key->cgroup_id;
	to->of[to->n++].a = *a;
	return to->n == to->stop_at ? -ENOSPC : 0;
}

/* The same of all sources, and of one. */
static void check_activity(const struct counts *c)
{
	const struct counts by_sample = { .owners = c->owners,
					  .series = c->series,
					  .shards = 1,
					  .max_slots = 2,
					  .period = 1,
					  .layout = c->layout };
	__u64 all = 0, unknown = 0;
	struct activity seen = {};

	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		if (!layout_has(c->layout, pair))
			continue;
		all += 1 + pair % 5;
		unknown += pair >> 3 == IBS_SRC_UNKNOWN ? 1 + pair % 5 : 0;
	}
	owners[1].used = IBS_SLOT_USED;
	assert_int_equal(counts_each_activity(&by_sample, ~0U, see, &seen), 0);
	assert_int_equal(counts_each_activity(&by_sample, 1U << IBS_SRC_UNKNOWN, see, &seen), 0);
	assert_int_equal(counts_each_activity(&by_sample, ~(1U << IBS_SRC_UNKNOWN), see, &seen), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.of[0].a.ops, all);
	assert_int_equal(seen.of[1].a.ops, unknown);
	assert_int_equal(seen.of[2].a.ops, all - unknown);
}

static void test_each_pair(void **unused)
{
	static const enum ibs_metric metrics[] = { IBS_METRIC_DC_MISS_LAT, IBS_METRIC_TAG_TO_RET };

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		struct counts c = counts_of(true, 0);
		struct snapshot s = {};
		struct layout l;
		struct err err;
		__u64 *all;

		set_up_each(NULL);
		layout_init(&l, metrics[i], CAPS);
		all = fill_pairs(&l);
		state->control.exposed = IBS_EXPOSED_ON;
		c.layout = &l;
		c.series = all;
		c.shards = 1;
		c.max_slots = 2;
		c.tlb = true;
		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.n_groups, 1);
		check_pairs(&s.groups[0], &l);
		snapshot_free(&s);
		check_activity(&c);
		free(all);
	}
}

static int refuse(void *arg, struct group *g)
{
	++*(int *)arg;
	return g->slot == 3 ? -ENOSPC : 0;
}

/* The first error of the caller ends the read, and is its result. */
static void test_refused(void **unused)
{
	const struct counts c = counts_of(true, IBS_BY_CGROUP);
	struct ledger l;
	struct err err;
	int n = 0;

	(void)unused;
	fill_slots();
	assert_int_equal(counts_each(&c, refuse, &n, &l, &err), -ENOSPC);
	assert_int_equal(n, 3);
}

/* A reader may lose the counters at any time; nothing of what it had read is kept. */
static void test_unreadable(void **unused)
{
	const struct counts c = counts_of(false, IBS_BY_CGROUP);

	(void)unused;
	fill_slots();
	/* also of the first of all pairs */
	for (unsigned int shard = 0; shard < SHARDS; shard++)
		for (unsigned int slot = 0; slot < SLOTS; slot++)
			words_of(shard, slot, 0, 0)[IBS_HIST_BUCKET] = 1;
	for (reader.fail_at = 1; reader.fail_at <= 5 * SHARDS; reader.fail_at++) {
		static const struct snapshot empty;
		struct snapshot s = {};
		struct err err = {};

		reader.calls = 0;
		assert_int_equal(counts_read(&c, &s, &err), -EIO);
		assert_int_equal(reader.calls, reader.fail_at);
		assert_string_equal(err.text, "the counters are no longer readable");
		assert_memory_equal(&s, &empty, sizeof(s));
	}
}

/* --- the ledger --- */

static int is_gone(void *arg)
{
	(void)arg;
	return -ENOENT;
}

/* Outcomes of all CPUs, of which those that a program does not count are 0; forwarded ones are counted with the ring. */
static void test_ledger(void **unused)
{
	struct counts c = counts_of(true, 0);
	struct ledger l = { .seen = 99, .dropped = 99 };
	struct err err = {};

	(void)unused;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		for (int o = 0; o < IBS_OUTCOME_N; o++)
			if (o != IBS_OUTCOME_FORWARDED)
				add_ledger(cpu, o, 1 + o);
		state->cpu[cpu].ring.forwarded = 50;
		state->cpu[cpu].seen += 50;
	}
	assert_int_equal(counts_ledger(&c, &l, &err), 0);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(l.outcome[o], CPUS * (o == IBS_OUTCOME_FORWARDED ? 50 : 1 + o));
	assert_int_equal(ledger_residual(&l), 0);
	assert_int_equal(l.dropped, 0);
	/* an older program knows fewer outcomes */
	c.outcomes = IBS_OUTCOME_N - 1;
	for (int cpu = 0; cpu < CPUS; cpu++)
		state->cpu[cpu].seen -= IBS_OUTCOME_N;
	assert_int_equal(counts_ledger(&c, &l, &err), 0);
	assert_int_equal(l.outcome[IBS_OUTCOME_N - 1], 0);
	assert_int_equal(l.outcome[IBS_OUTCOME_N - 2], CPUS * (IBS_OUTCOME_N - 1));
	c.refresh = is_gone;
	assert_int_equal(counts_ledger(&c, &l, &err), -EIO);
	assert_string_equal(err.text, "the counters are no longer readable");
}

/*
 * Samples that come during the read are in the series, or not: the ledger is that of the series. One that is in the series
 * alone is a bug.
 */
static void test_meanwhile(void **unused)
{
	/* slots 0, 1, 3 and 4 are read before slot 5 */
	static const struct {
		__u32 slot;
		bool is_aggregated;
		__u64 aggregated; /* 0: a bug */
	} rows[] = { { 5, true, 32 }, { 0, true, 32 }, { 5, true, 34 }, { 5, false, 0 } };
	const struct counts c = counts_of(false, IBS_BY_CGROUP);
	struct snapshot s = {};
	struct err err;

	(void)unused;
	fill_slots();
	owners[5].used = IBS_SLOT_USED;
	add_others(0, 5, 1);
	add_ledger(0, IBS_OUTCOME_FILTERED_PID, 9);
	reader.counts_at = 4 * SHARDS + 1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		reader.calls = 0;
		reader.slot = rows[i].slot;
		reader.is_aggregated = rows[i].is_aggregated;
		if (!rows[i].aggregated) {
			assert_int_equal(counts_read(&c, &s, &err), -EUCLEAN);
			assert_non_null(
				strstr(err.text,
				       "35 samples in the series, but between 34 and 34 counted"));
			continue;
		}
		assert_int_equal(counts_read(&c, &s, &err), 0);
		assert_int_equal(s.ledger.outcome[IBS_OUTCOME_AGGREGATED], rows[i].aggregated);
		assert_int_equal(s.ledger.outcome[IBS_OUTCOME_FILTERED_PID], 9);
		assert_int_equal(s.ledger.seen, rows[i].aggregated + 9);
		snapshot_free(&s);
	}
}

/* Counts that moved from slot to slot may have been read twice, or never. */
static void test_folded(void **unused)
{
	const struct counts c = counts_of(false, IBS_BY_CGROUP);
	struct snapshot s = {};
	struct err err;

	(void)unused;
	fill_slots();
	reader.folds_at = 3;
	assert_int_equal(counts_read(&c, &s, &err), -EUCLEAN);
	assert_string_equal(err.text, "groups were folded during the read");
}

/* --- activity --- */

/* Groups with a slot of their own, in order; each has only its own. */
static void test_activity(void **unused)
{
	struct counts c = counts_of(false, IBS_BY_CGROUP);
	struct activity seen = {};

	(void)unused;
	fill_slots();
	words_of(0, 4, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)[IBS_HIST_NO_LAT] = 3;
	add_loads(0, 4, 5, 0);
	add_loads(1, 1, 6, 1);
	assert_int_equal(counts_each_activity(&c, 1U << IBS_SRC_DRAM, see, &seen), 0);
	assert_int_equal(seen.n, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(seen.of[i].slot, i ? 4 : 1);
		assert_int_equal(seen.of[i].id, i ? 104 : 101);
		assert_int_equal(seen.of[i].a.valid, i ? 21 : 14);
		assert_int_equal(seen.of[i].a.sum, i ? 4800 : 806);
		assert_int_equal(seen.of[i].a.ops, i ? 42 : 28);
	}
	/* of an event with a period, all samples count, also those without a latency */
	c.has_ops = false;
	c.period = 10;
	seen.n = 0;
	assert_int_equal(counts_each_activity(&c, 1U << IBS_SRC_DRAM, see, &seen), 0);
	assert_int_equal(seen.of[0].a.ops, 140);
	assert_int_equal(seen.of[1].a.ops, 240);
	/* other sources have none */
	seen.n = 0;
	assert_int_equal(counts_each_activity(&c, ~(1U << IBS_SRC_DRAM), see, &seen), 0);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.of[1].a.valid + seen.of[1].a.ops, 0);
}

/* A latency of 0 cycles is one; where the sum is still 0, there is no other. */
static void test_activity_of_zero(void **unused)
{
	const struct counts c = counts_of(true, IBS_BY_CGROUP);
	struct activity seen = {};

	(void)unused;
	owners[1].used = IBS_SLOT_USED;
	add_loads(0, 1, 4, 0);
	words_of(0, 1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)[IBS_HIST_BUCKET + 1] = 1;
	assert_int_equal(counts_each_activity(&c, ~0U, see, &seen), 0);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.of[0].a.valid, 4);
	assert_int_equal(seen.of[0].a.sum, 0);
}

static void test_activity_ends(void **unused)
{
	const struct counts c = counts_of(false, IBS_BY_CGROUP);
	struct activity seen = { .stop_at = 1 };

	(void)unused;
	fill_slots();
	assert_int_equal(counts_each_activity(&c, ~0U, see, &seen), -ENOSPC);
	assert_int_equal(seen.n, 1);
	seen = (struct activity){};
	reader.calls = 0;
	reader.fail_at = 4; /* the second shard of the second group */
	assert_int_equal(counts_each_activity(&c, ~0U, see, &seen), -EIO);
	assert_int_equal(seen.n, 1);
}

#define EACH(f) cmocka_unit_test_setup(f, set_up_each)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_owners),	  EACH(test_no_samples), EACH(test_sum_last),
		EACH(test_exposed),	  EACH(test_refused),	 EACH(test_folded),
		EACH(test_each_pair),	  EACH(test_unreadable), EACH(test_ledger),
		EACH(test_meanwhile),	  EACH(test_activity),	 EACH(test_activity_of_zero),
		EACH(test_activity_ends),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
