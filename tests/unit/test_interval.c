// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Intervals of counters against the differences of whole snapshots. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "count_sample.h"
#include "top/interval.h"

#define GROUPS	20
#define ROUNDS	40
#define SAMPLES 50
#define SHARDS	2
#define PERIOD	1000
#define SLOTS	(GROUPS + 1)

#include "slots.h"

static struct shard_cost cost[SHARDS]; /* of an interval */

static void add_sample(unsigned int shard, unsigned int group, const __u64 *regs)
{
	const struct ibs_cpu cpu = { .caps = CAPS };
	__u64 *slot = series + ((size_t)shard * (GROUPS + 1) + group) * layout.words;

	cost[shard].cycles[ibs_op_src(cpu, regs)] +=
		(__u64)PERIOD * count_sample(&layout, slot, regs);
	slot[IBS_TLB_L2_MISS] += regs[IBS_OP_DATA3] >> 32 & 1;
	state->cpu[0].seen++;
	state->cpu[0].outcome[IBS_OUTCOME_AGGREGATED]++;
}

static void compare(const struct snapshot *got, const struct snapshot *want)
{
	size_t at = 0;

	assert_int_equal(got->ledger.seen, want->ledger.seen);
	assert_int_equal(ledger_residual(&got->ledger), 0);
	for (size_t i = 0; i < want->n_groups; i++) {
		const struct group *w = &want->groups[i], *g = &got->groups[at];

		if (!w->n_series)
			continue;
		assert_in_range(at, 0, got->n_groups - 1);
		assert_int_equal(g->slot, w->slot);
		assert_memory_equal(&g->key, &w->key, sizeof(g->key));
		assert_int_equal(g->tlb.l2_miss, w->tlb.l2_miss);
		assert_int_equal(g->tlb.l2_miss_ops, w->tlb.l2_miss_ops);
		assert_int_equal(g->n_series, w->n_series);
		for (size_t k = 0; k < w->n_series; k++) {
			const struct series *a = &g->series[k], *b = &w->series[k];

			assert_int_equal(a->src, b->src);
			assert_int_equal(a->op, b->op);
			assert_int_equal(a->samples, b->samples);
			assert_int_equal(a->valid, b->valid);
			assert_int_equal(a->sum, b->sum);
			assert_int_equal(a->cycles, b->cycles);
			if (b->valid)
				assert_memory_equal(a->buckets, b->buckets,
						    IBS_LAT_BUCKETS * sizeof(*a->buckets));
		}
		at++;
	}
	assert_int_equal(at, got->n_groups);
}

static void test_differences(void **unused)
{
	const struct counts c = { .owners = owners,
				  .series = series,
				  .state = state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = SHARDS,
				  .max_slots = GROUPS + 1,
				  .period = PERIOD,
				  .tlb = true,
				  .layout = &layout };
	struct snapshot head = {}, got, was = {};
	struct baseline last = {};
	struct err err;

	(void)unused;
	assert_int_equal(interval_read(&last, &c, &head, &got, &err), 1);
	assert_int_equal(counts_read(&c, &was, &err), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct snapshot now = {}, want;

		/* groups come one after the other */
		for (unsigned int g = 1; g <= GROUPS && g <= 1 + round; g++)
			owners[g] = (struct ibs_slot_owner){ .key.cgroup_id = 100 + g, .used = 1 };
		for (unsigned int i = 0; i < SAMPLES; i++) {
			__u64 regs[IBS_OP_REG_FIXED];
			unsigned int g = 1 + i * (round + 3) % GROUPS;

			ibs_sim_op(1, round, i, CAPS, regs);
			if (g <= 1 + round)
				add_sample(i / 3 % SHARDS, g, regs);
		}
		assert_int_equal(counts_read(&c, &now, &err), 0);
		snapshot_diff(&now, &was, &want);
		assert_int_equal(interval_read(&last, &c, &head, &got, &err), 0);
		compare(&got, &want);
		assert_int_equal(got.n_shards, SHARDS);
		assert_memory_equal(got.shards, cost, sizeof(cost));
		memset(cost, 0, sizeof(cost));
		snapshot_free(&want);
		snapshot_free(&got);
		snapshot_free(&was);
		was = now;
	}
	snapshot_free(&was);
	baseline_free(&last);
}

/* Give the slot of a group to another one; its counts are then those of `other`. */
static void fold(unsigned int group, __u64 new_owner)
{
	__u64 *slot = series + (size_t)group * layout.words;

	for (__u32 w = 0; w < layout.words; w++)
		series[w] += slot[w];
	memset(slot, 0, layout.words * sizeof(*slot));
	owners[group] = (struct ibs_slot_owner){ .key.cgroup_id = new_owner, .used = !!new_owner };
}

static void add_samples(unsigned int group, int n)
{
	const __u64 regs[IBS_OP_REG_FIXED] = { 0 }; /* an op without memory access */

	for (int i = 0; i < n; i++)
		add_sample(0, group, regs);
	series[group * layout.words + IBS_TLB_L2_MISS] += n;
}

static void check_group(const struct snapshot *s, __u32 slot, __u64 cgroup_id, __u64 samples)
{
	size_t g = 0;

	while (g < s->n_groups && s->groups[g].slot != slot)
		g++;
	assert_in_range(g, 0, s->n_groups - 1);
	assert_int_equal(s->groups[g].key.cgroup_id, cgroup_id);
	assert_int_equal(s->groups[g].n_series, 1);
	assert_int_equal(s->groups[g].series[0].samples, samples);
	assert_int_equal(s->groups[g].tlb.l2_miss, samples);
}

/* A slot that was folded counts for another cgroup from zero on: nothing of the one before is subtracted. */
static void test_new_owner(void **state_)
{
	const struct counts c = { .owners = owners,
				  .series = series,
				  .state = state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = 1,
				  .max_slots = GROUPS + 1,
				  .period = PERIOD,
				  .tlb = true,
				  .layout = &layout };
	struct snapshot head = {}, was = {}, now = {}, got, want;
	struct baseline last = {};
	struct err err;

	(void)state_;
	memset(owners, 0, sizeof(owners));
	memset(series, 0, (size_t)SHARDS * (GROUPS + 1) * layout.words * sizeof(*series));
	memset(state->cpu, 0, sizeof(*state->cpu));
	fold(1, 101);
	fold(3, 303);
	add_samples(1, 7);
	add_samples(3, 4);
	assert_int_equal(interval_read(&last, &c, &head, &got, &err), 1);
	assert_int_equal(counts_read(&c, &was, &err), 0);
	/* more samples than the one before had, and a cgroup that comes back to another slot */
	fold(1, 202);
	fold(3, 0);
	fold(2, 303);
	add_samples(1, 9);
	add_samples(2, 5);
	assert_int_equal(counts_read(&c, &now, &err), 0);
	snapshot_diff(&now, &was, &want);
	assert_int_equal(interval_read(&last, &c, &head, &got, &err), 0);
	for (int k = 0; k < 2; k++) {
		check_group(k ? &want : &got, 1, 202, 9);
		check_group(k ? &want : &got, 2, 303, 5);
	}
	snapshot_free(&want);
	snapshot_free(&now);
	snapshot_free(&was);
	snapshot_free(&got);
	baseline_free(&last);
}

/* Under a hardware filter a sample stands for the ops of one tag, as far as those are known. */
static void test_weight(void **unused)
{
	static const __u64 want[][3] = { { 28, 2800, 84 }, { 0, 0, 12 } };

	(void)unused;
	for (int known = 1; known >= 0; known--) {
		struct series s = { .samples = 4, .valid = 4, .sum = 400, .hitm = 12 };
		struct group g = { .n_series = 1,
				   .series = &s,
				   .tlb = { .l2_hit = 3, .l2_miss = 2 } };
		const struct snapshot older = {
			.pmu = { .tagged = 9, .tag_n = 5, .tag_ops = 1000 }
		};
		const struct snapshot newer = {
			.n_groups = 1,
			.groups = &g,
			.pmu = { .tagged = 99, .tag_n = 55, .tag_ops = 1350, .tags_known = known }
		};
		struct snapshot diff;

		snapshot_diff(&newer, &older, &diff);
		assert_int_equal(diff.pmu.tagged, 90);
		assert_int_equal(diff.groups[0].series[0].ops, want[!known][0]);
		assert_int_equal(diff.groups[0].series[0].cycles, want[!known][1]);
		assert_int_equal(diff.groups[0].series[0].hitm, want[!known][2]);
		assert_int_equal(diff.groups[0].tlb.l2_miss_ops, known * 14);
		snapshot_free(&diff);
		s.ops = 4000; /* each stands for its period */
		snapshot_diff(&newer, &older, &diff);
		assert_int_equal(diff.groups[0].series[0].ops, 4000);
		snapshot_free(&diff);
	}
}

/* What another user of the PMU took away is estimated from the rest; counts of samples stay as they are. */
static void test_shared(void **unused)
{
	struct series s = {
		.samples = 4, .valid = 4, .sum = 400, .ops = 4000, .cycles = 400000, .hitm = 12000
	};
	struct group g = { .n_series = 1,
			   .series = &s,
			   .tlb = { .l2_miss = 2, .l2_miss_ops = 2000 } };
	const struct snapshot older = { .pmu = { .enabled_ns = 1000, .running_ns = 1000 } };
	struct snapshot newer = { .n_groups = 1,
				  .groups = &g,
				  .pmu = { .enabled_ns = 3000, .running_ns = 1500 } };
	struct snapshot diff;

	(void)unused;
	snapshot_diff(&newer, &older, &diff);
	assert_int_equal(diff.groups[0].series[0].samples, 4);
	assert_int_equal(diff.groups[0].series[0].sum, 400);
	assert_int_equal(diff.groups[0].series[0].ops, 16000);
	assert_int_equal(diff.groups[0].series[0].cycles, 1600000);
	assert_int_equal(diff.groups[0].series[0].hitm, 48000);
	assert_int_equal(diff.groups[0].tlb.l2_miss, 2);
	assert_int_equal(diff.groups[0].tlb.l2_miss_ops, 8000);
	snapshot_free(&diff);
	newer.pmu.running_ns = 3000;
	snapshot_diff(&newer, &older, &diff);
	assert_int_equal(diff.groups[0].series[0].ops, 4000);
	snapshot_free(&diff);
	/* where the ops are unknown, they stay so, and shares are of latencies */
	newer.pmu.running_ns = 2000;
	s.ops = s.cycles = 0;
	snapshot_diff(&newer, &older, &diff);
	assert_int_equal(diff.groups[0].series[0].cycles, 0);
	assert_int_equal(diff.groups[0].series[0].hitm, 12000);
	snapshot_free(&diff);
	/* what weights of samples make up for already is not made up for again, and too much is taken back */
	s.ops = 4000;
	newer.pmu.extra_ns = 1000;
	snapshot_diff(&newer, &older, &diff);
	assert_int_equal(diff.groups[0].series[0].ops, 4000);
	snapshot_free(&diff);
	newer.pmu.extra_ns = 1500;
	snapshot_diff(&newer, &older, &diff);
	assert_int_equal(diff.groups[0].series[0].ops, 3200);
	assert_true(diff.groups[0].series[0].share_error == 0);
	snapshot_free(&diff);
}

/* How uncertain that is goes with series, also where weights of samples made up for all of it. */
static void test_shared_error(void **unused)
{
	struct series s = { .samples = 4, .valid = 4, .sum = 400, .ops = 4000, .cycles = 400000 };
	struct group g = { .n_series = 1, .series = &s };
	const struct snapshot older = { .pmu = { .enabled_ns = 1000,
						 .running_ns = 1000,
						 .counted = 1000,
						 .share_variance = 5000,
						 .share_n = 20 } };
	struct snapshot diff, newer = { .n_groups = 1,
					.groups = &g,
					.pmu = { .enabled_ns = 3000,
						 .running_ns = 2000,
						 .extra_ns = 1000,
						 .counted = 6000,
						 .share_variance = 15000,
						 .share_n = 30 } };
	struct series sum = {};

	(void)unused;
	snapshot_diff(&newer, &older, &diff);
	/* 100 of 5,000 counted in half of the time */
	assert_true(fabs(diff.groups[0].series[0].share_error - 0.01) < 1e-12);
	series_add(&sum, &diff.groups[0].series[0]);
	series_add(&sum, &s);
	assert_true(fabs(sum.share_error - 0.01) < 1e-12);
	snapshot_free(&diff);
	newer.pmu.share_n = 21;
	snapshot_diff(&newer, &older, &diff);
	assert_true(isnan(pmu_share_error(&diff.pmu)));
	assert_true(diff.groups[0].series[0].share_error == 0);
	snapshot_free(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_differences),
					    cmocka_unit_test(test_new_owner),
					    cmocka_unit_test(test_weight),
					    cmocka_unit_test(test_shared),
					    cmocka_unit_test(test_shared_error) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
