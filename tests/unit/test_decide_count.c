// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The decision core: which test rejects a sample, and every word of the slot that counts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/std.h"
#include "decide_world.h"

#define MAX_SLOTS 8
#define WORD	  (WORLD_WORDS - IBS_HIST_REACH)   /* of the last pair that a slot has room for */
#define EXPOSED	  (WORLD_WORDS - IBS_EXPOSED_TAIL) /* its exposed cycles */
#define PID	  (WORLD_BLOCK * IBS_PID_BLOCK + 5ULL)
#define TID	  (WORLD_BLOCK * IBS_PID_BLOCK + 6ULL)

/* A load that missed the caches: 100 cycles, with 4 requests open, after a page walk of 30. */
#define TLB_DATA3                                                               \
	(IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID | \
	 IBS_OP_DATA3_L1TLB_MISS | IBS_OP_DATA3_L2TLB_MISS | 30ULL << 48)
#define MISS_DATA3 \
	(TLB_DATA3 | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 4ULL << 26 | 100ULL << 32)
#define CACHE	  2ULL /* DataSrc: a cache that reports the state of the line */
#define FETCH_CTL (IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_PHY_VALID | 100ULL << 32)

static struct world world;

static struct world *fresh_world(void)
{
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->config.max_slots = MAX_SLOTS;
	w->config.slot_words = WORLD_WORDS;
	w->config.metric = IBS_METRIC_DC_MISS_LAT;
	w->control.next_slot = 1;
	w->cpu.live = IBS_LIVE_STEP | IBS_PID_TEST_IN;
	w->pid_tgid = PID << 32 | TID;
	w->uid_gid = 8ULL << 32 | 9;
	w->on_cpu = 10;
	w->cgroup_id = 77;
	memcpy(w->comm, "twelve chars", 13);
	return w;
}

/* --- counters --- */

/* A word of the slot and what it counts. */
struct counted {
	__u32 word;
	__u64 n;
};

#define ALL_COUNTED 12

/* The sample adds @want to its slot and nothing else to any word. */
static void check_counts(struct world *w, __u32 word, const __u64 *regs, bool fetch,
			 const struct counted *want)
{
	static __u64 words[WORLD_SLOTS * WORLD_WORDS];
	const struct sample s = { .regs = regs, .period = 1000 };
	const struct place place = { .word = word,
				     .status =
					     regs[fetch ? (int)IBS_FETCH_CTL : (int)IBS_OP_DATA3] };

	memset(words, 0, sizeof(words));
	for (int i = 0; i < ALL_COUNTED && want[i].n; i++)
		words[WORLD_WORDS + want[i].word] = want[i].n;
	memset(w->series, 0, sizeof(w->series));
	assert_int_equal(fetch ? aggregate(w, &place, &s, true) : aggregate(w, &place, &s, false),
			 IBS_OUTCOME_AGGREGATED);
	assert_memory_equal(w->series, words, sizeof(words));
}

static void test_ops(void **state)
{
	static const __u64 regs[IBS_OP_REG_N];
	static const struct {
		__u8 weigh;
		__u32 word, live;
		__u64 ops;
	} rows[] = {
		{ IBS_WEIGH_NO, WORD, IBS_LIVE_SHARED, 0 },
		{ IBS_WEIGH_PERIOD, WORD, 0, 1000 },
		{ IBS_WEIGH_PERIOD, WORD, IBS_LIVE_SHARED, 250 },
		{ IBS_WEIGH_TAG, WORD, 0, 600 },
		{ IBS_WEIGH_TAG, WORD | IBS_LAYOUT_REACH, IBS_LIVE_SHARED, 150 },
		{ IBS_WEIGH_STRATA, WORD, 0, 600 },
		{ IBS_WEIGH_STRATA, WORD, IBS_LIVE_SHARED, 600 },
		{ IBS_WEIGH_STRATA, WORD | IBS_LAYOUT_REACH, 0, 70 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct counted want[ALL_COUNTED] = { { WORD + IBS_PAIR_SAMPLES, 1 },
							   { WORD + IBS_PAIR_OPS, rows[i].ops } };
		struct world *w = fresh_world();

		w->config.weigh = rows[i].weigh;
		w->config.exposed = 1;
		w->control.tag_ops = 600;
		w->control.reach_ops = 70;
		w->cpu.share = IBS_SHARE_ONE / 4;
		w->cpu.live |= rows[i].live;
		check_counts(w, rows[i].word, regs, false, want);
	}
}

/* Samples that a stratum does not count; and what has no place. */
static void test_not_counted(void **state)
{
	static const __u64 regs[IBS_OP_REG_N];
	const struct sample s = { .regs = regs, .period = 1000 };
	struct place place = { .word = WORD };
	struct world *w = fresh_world();

	(void)state;
	w->config.weigh = IBS_WEIGH_STRATA;
	w->config.by = IBS_BY_PID;
	w->control.reach_ops = 70;
	assert_int_equal(aggregate(w, &place, &s, false), IBS_OUTCOME_FILTERED_SRC);
	assert_int_equal(w->n_groups, 0);
	place.word |= IBS_LAYOUT_REACH;
	assert_int_equal(aggregate(w, &place, &s, false), IBS_OUTCOME_AGGREGATED);
	place.word = (WORD + 1) | IBS_LAYOUT_REACH;
	assert_int_equal(aggregate(w, &place, &s, false), IBS_OUTCOME_LOST_INTERNAL);
	place.word = WORD | IBS_LAYOUT_REACH;
	w->no_series = true;
	assert_int_equal(aggregate(w, &place, &s, false), IBS_OUTCOME_LOST_INTERNAL);
}

static void test_miss(void **state)
{
	const __u32 bucket = WORD + IBS_HIST_BUCKET + ibs_lat_bucket(100),
		    miss = WORD + IBS_HIST_MISS;
	__u64 regs[IBS_OP_REG_N] = { [IBS_OP_DATA3] = MISS_DATA3, [IBS_OP_DATA2] = CACHE };
	struct world *w = fresh_world();

	(void)state;
	assert_true(ibs_op_reports_state((struct ibs_cpu){ 0 }, CACHE));
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false,
		     (const struct counted[ALL_COUNTED]){ { bucket, 1 },
							  { WORD + IBS_HIST_SUM, 100 },
							  { miss + IBS_MISS_OPEN_N, 1 },
							  { miss + IBS_MISS_OPEN, 4 },
							  { miss + IBS_MISS_STATE_N, 1 },
							  { miss + IBS_MISS_HITM, 100 } });
	w->config.weigh = IBS_WEIGH_PERIOD;
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false,
		     (const struct counted[ALL_COUNTED]){ { bucket, 1 },
							  { WORD + IBS_PAIR_OPS, 1000 },
							  { WORD + IBS_HIST_SUM, 100 },
							  { WORD + IBS_HIST_CYCLES, 100000 },
							  { miss + IBS_MISS_OPEN_N, 1 },
							  { miss + IBS_MISS_OPEN, 4 },
							  { miss + IBS_MISS_STATE_N, 1 },
							  { miss + IBS_MISS_HITM, 100000 } });
	w->config.weigh = IBS_WEIGH_NO;
	/* owned: its state is known, and it is not modified */
	regs[IBS_OP_DATA2] |= IBS_OP_DATA2_OWNED;
	regs[IBS_OP_DATA3] &= ~(63ULL << 26);
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false,
		     (const struct counted[ALL_COUNTED]){ { bucket, 1 },
							  { WORD + IBS_HIST_SUM, 100 },
							  { miss + IBS_MISS_STATE_N, 1 } });
	/* DATA2 is not read without an L2 miss */
	regs[IBS_OP_DATA3] &= ~IBS_OP_DATA3_L2_MISS;
	check_counts(
		w, WORD | IBS_LAYOUT_HIST, regs, false,
		(const struct counted[ALL_COUNTED]){ { bucket, 1 }, { WORD + IBS_HIST_SUM, 100 } });
	/* fields that erratum 1293 spoils */
	regs[IBS_OP_DATA3] = MISS_DATA3 | IBS_OP_DATA3_NO_MAB;
	w->config.ibs.quirks = IBS_QUIRK_OP_1293;
	check_counts(
		w, WORD | IBS_LAYOUT_HIST, regs, false,
		(const struct counted[ALL_COUNTED]){ { bucket, 1 }, { WORD + IBS_HIST_SUM, 100 } });
	/* no valid latency */
	regs[IBS_OP_DATA3] = MISS_DATA3 & ~IBS_OP_DATA3_DC_MISS;
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_HIST_NO_LAT, 1 } });
	/* another latency has no misses */
	w->config.metric = IBS_METRIC_TLB_REFILL_LAT;
	regs[IBS_OP_DATA3] = MISS_DATA3;
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false,
		     (const struct counted[ALL_COUNTED]){
			     { WORD + IBS_HIST_BUCKET + ibs_lat_bucket(30), 1 },
			     { WORD + IBS_HIST_SUM, 30 } });
}

/* Neither a TLB of the data side nor exposed cycles, whatever the bits of IBS_FETCH_CTL are to an op. */
static void test_fetch(void **state)
{
	const __u64 as_op = MISS_DATA3 & ~(0xffffULL << 32);
	const __u64 regs[IBS_OP_REG_N] = {
		[IBS_FETCH_CTL] = as_op | FETCH_CTL, [IBS_FETCH_EXTD] = 40
	};
	struct world *w = fresh_world();

	(void)state;
	w->config.metric = IBS_METRIC_FETCH_LAT;
	w->config.weigh = IBS_WEIGH_PERIOD;
	w->config.tlb = w->config.exposed = 1;
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, true,
		     (const struct counted[ALL_COUNTED]){
			     { WORD + IBS_HIST_BUCKET + ibs_lat_bucket(100), 1 },
			     { WORD + IBS_PAIR_OPS, 1000 },
			     { WORD + IBS_HIST_SUM, 100 },
			     { WORD + IBS_HIST_CYCLES, 100000 } });
	check_counts(w, WORD, regs, true,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 },
							  { WORD + IBS_PAIR_OPS, 1000 } });
}

static void test_tlb(void **state)
{
	__u64 regs[IBS_OP_REG_N] = { [IBS_OP_DATA3] = TLB_DATA3 };
	struct world *w = fresh_world();

	(void)state;
	check_counts(w, WORD, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 } });
	w->config.tlb = 1;
	check_counts(w, WORD, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 },
							  { IBS_TLB_L2_MISS, 1 },
							  { IBS_TLB_REFILL_N, 1 },
							  { IBS_TLB_REFILL_SUM, 30 } });
	w->config.weigh = IBS_WEIGH_PERIOD;
	w->config.ibs.caps = IBS_CAPS_ZEN4;
	regs[IBS_OP_DATA3] &= ~(IBS_OP_DATA3_L2TLB_MISS | IBS_OP_DATA3_PHY_VALID);
	check_counts(w, WORD, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 },
							  { WORD + IBS_PAIR_OPS, 1000 },
							  { IBS_TLB_L2_HIT, 1 },
							  { IBS_TLB_L2_HIT_OPS, 1000 } });
	/* the stratum with a filter counts none */
	regs[IBS_OP_DATA3] = TLB_DATA3;
	w->config.weigh = IBS_WEIGH_STRATA;
	w->control.reach_ops = 70;
	check_counts(w, WORD | IBS_LAYOUT_REACH, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 },
							  { WORD + IBS_PAIR_OPS, 70 } });
	w->control.tag_ops = 600;
	check_counts(w, WORD | IBS_LAYOUT_REACH, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 },
							  { WORD + IBS_PAIR_OPS, 70 },
							  { IBS_TLB_L2_MISS, 1 },
							  { IBS_TLB_L2_MISS_OPS, 600 },
							  { IBS_TLB_REFILL_N, 1 },
							  { IBS_TLB_REFILL_SUM, 30 } });
	/* a hit; an address that is not valid */
	w->config.weigh = IBS_WEIGH_NO;
	regs[IBS_OP_DATA3] = TLB_DATA3 & ~IBS_OP_DATA3_L1TLB_MISS;
	check_counts(w, WORD, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 } });
	regs[IBS_OP_DATA3] = TLB_DATA3 & ~IBS_OP_DATA3_LIN_VALID;
	check_counts(w, WORD, regs, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 } });
}

/* @exposed, @n: the word that grows besides those of the histogram, 0: none */
static void check_exposed(struct world *w, __u64 data, __u64 data3, __u32 exposed, __u64 n)
{
	const __u64 regs[IBS_OP_REG_N] = { [IBS_OP_DATA] = data, [IBS_OP_DATA3] = data3 };
	const __u64 open = data3 >> 26 & 63, ops = w->config.weigh ? 1000 : 0;
	struct counted want[ALL_COUNTED] = {
		{ WORD + IBS_HIST_BUCKET + ibs_lat_bucket(100), 1 },
		{ WORD + IBS_HIST_SUM, 100 },
	};
	int i = 2;

	if (!ibs_op_dc_miss_lat_valid(data3)) {
		want[0] = (struct counted){ WORD + IBS_HIST_NO_LAT, 1 };
		i = 1;
	} else if (open) {
		want[i++] = (struct counted){ WORD + IBS_HIST_MISS + IBS_MISS_OPEN_N, 1 };
		want[i++] = (struct counted){ WORD + IBS_HIST_MISS + IBS_MISS_OPEN, open };
	}
	if (ops) {
		want[i++] = (struct counted){ WORD + IBS_PAIR_OPS, ops };
		want[i++] = (struct counted){ WORD + IBS_HIST_CYCLES, 100 * ops };
	}
	want[i] = (struct counted){ exposed, n };
	check_counts(w, WORD | IBS_LAYOUT_HIST, regs, false, want);
}

static void test_exposed(void **state)
{
	const __u64 load = MISS_DATA3 & ~IBS_OP_DATA3_L2_MISS;
	struct world *w = fresh_world();

	(void)state;
	check_exposed(w, 2, load, 0, 0);
	w->config.exposed = 1;
	check_exposed(w, 2, load, EXPOSED, 25);
	check_exposed(w, 3, load, 0, 0);
	check_exposed(w, 2, load & ~(63ULL << 26), IBS_EXPOSED_UNKNOWN, 1);
	check_exposed(w, 3, load & ~(63ULL << 26), 0, 0);
	check_exposed(w, 2, load & ~IBS_OP_DATA3_DC_MISS, 0, 0);
	w->config.weigh = IBS_WEIGH_PERIOD;
	check_exposed(w, 2, load, EXPOSED, 25000);
	/* nor has a pair without a histogram */
	w->config.weigh = IBS_WEIGH_NO;
	check_counts(w, WORD,
		     (const __u64[IBS_OP_REG_N]){ [IBS_OP_DATA] = 2, [IBS_OP_DATA3] = load }, false,
		     (const struct counted[ALL_COUNTED]){ { WORD + IBS_PAIR_SAMPLES, 1 } });
	/* a slot with more pairs than words for them: the first ones have none */
	w->config.slot_words = WORD + IBS_HIST_REACH + IBS_EXPOSED_PAIRS * IBS_HIST_WORDS;
	check_exposed(w, 2, load, 0, 0);
}

/* --- the task --- */

static void test_select_pid(void **state)
{
	static const struct {
		__u8 byte, test;
		bool passes;
	} rows[] = {
		{ IBS_PID_IN, IBS_PID_TEST_IN, true },
		{ 0, IBS_PID_TEST_IN, false },
		{ IBS_PID_OUT, IBS_PID_TEST_IN, false },
		{ IBS_PID_OUT, IBS_PID_TEST_OUT, false },
		{ IBS_PID_IN, IBS_PID_TEST_OUT, true },
		{ 0, IBS_PID_TEST_OUT, true },
		{ IBS_PID_IN | IBS_PID_OUT, IBS_PID_TEST_OUT, false },
	};
	struct world *w = fresh_world();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		w->tgids[PID % IBS_PID_BLOCK] = rows[i].byte;
		w->cpu.live = IBS_LIVE_STEP | rows[i].test;
		assert_int_equal(select_task(w, IBS_TASK_TGID), rows[i].passes
									? IBS_OUTCOME_AGGREGATED
									: IBS_OUTCOME_FILTERED_PID);
		assert_int_equal(select_task(w, 0), IBS_OUTCOME_AGGREGATED);
	}
	/* beyond the maximum */
	w->pid_tgid = 1ULL << 32 | TID;
	assert_int_equal(select_task(w, IBS_TASK_TGID), IBS_OUTCOME_AGGREGATED);
	w->cpu.live = IBS_LIVE_STEP | IBS_PID_TEST_IN;
	assert_int_equal(select_task(w, IBS_TASK_TGID), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(select_task(w, IBS_TASK_TID), IBS_OUTCOME_FILTERED_TID);
	w->tids[TID % IBS_PID_BLOCK] = 1;
	assert_int_equal(select_task(w, IBS_TASK_TID), IBS_OUTCOME_AGGREGATED);
	w->pid_tgid = PID << 32 | 1;
	assert_int_equal(select_task(w, IBS_TASK_TID), IBS_OUTCOME_FILTERED_TID);
	/* which takes no time to look a cgroup up */
	assert_int_equal(w->cgroup_finds, 0);
}

static void test_select_comm(void **state)
{
	struct world *w = fresh_world();

	(void)state;
	for (int but = 0; but < 2; but++) {
		const __u64 in = but ? IBS_OUTCOME_FILTERED_COMM : IBS_OUTCOME_AGGREGATED;
		const __u64 out = but ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_COMM;

		w->config.comm_but = but;
		for (int i = 0; i < IBS_COMMS_MAX; i++) {
			memset(w->config.comms, 0, sizeof(w->config.comms));
			memcpy(w->config.comms[i], w->comm, sizeof(w->comm));
			w->config.n_comms = i;
			assert_int_equal(select_task(w, IBS_TASK_COMM), out);
			w->config.n_comms = i + 1;
			assert_int_equal(select_task(w, IBS_TASK_COMM), in);
			/* either half differs */
			w->config.comms[i][0]++;
			assert_int_equal(select_task(w, IBS_TASK_COMM), out);
			w->config.comms[i][0]--;
			w->config.comms[i][1]++;
			assert_int_equal(select_task(w, IBS_TASK_COMM), out);
		}
	}
	/* a task without a name passes no test of it */
	w->no_comm = true;
	assert_int_equal(select_task(w, IBS_TASK_COMM), IBS_OUTCOME_FILTERED_COMM);
}

/* Of several tests that fail, the first one is the outcome. */
static void test_select_order(void **state)
{
	static const struct {
		__u8 select;
		__u32 outcome;
	} rows[] = {
		{ IBS_TASK_TGID, IBS_OUTCOME_FILTERED_PID },
		{ IBS_TASK_TID, IBS_OUTCOME_FILTERED_TID },
		{ IBS_TASK_COMM, IBS_OUTCOME_FILTERED_COMM },
		{ IBS_TASK_CGROUP, IBS_OUTCOME_FILTERED_CGROUP },
	};
	struct world *w = fresh_world();
	__u8 select = 0;

	(void)state;
	w->config.task_select = IBS_TASK_CGROUP;
	w->config.n_comms = 1;
	for (size_t i = ARRAY_SIZE(rows); i-- > 0;) {
		select |= rows[i].select;
		assert_int_equal(select_task(w, rows[i].select), rows[i].outcome);
		assert_int_equal(select_task(w, select), rows[i].outcome);
	}
	assert_int_equal(w->cpu.key, w->cgroup_id);
	/* of a v1 hierarchy, and only of this one */
	w->cgroup_v1_id = 78;
	w->cpu.key = 0;
	assert_int_equal(select_task(w, IBS_TASK_CGROUPS), IBS_OUTCOME_FILTERED_CGROUP);
	assert_int_equal(w->cpu.key, 78);
}

/* --- the registers --- */

static void test_latency(void **state)
{
	static const struct {
		__u32 min, max, cgroup, outcome;
	} rows[] = {
		{ 0, 0, 0, IBS_OUTCOME_AGGREGATED },	 { 100, 0, 0, IBS_OUTCOME_AGGREGATED },
		{ 101, 0, 0, IBS_OUTCOME_FILTERED_LAT }, { 0, 100, 0, IBS_OUTCOME_AGGREGATED },
		{ 0, 99, 0, IBS_OUTCOME_FILTERED_LAT },	 { 100, 100, 0, IBS_OUTCOME_AGGREGATED },
		{ 101, 0, 100, IBS_OUTCOME_AGGREGATED }, { 50, 0, 101, IBS_OUTCOME_FILTERED_LAT },
		{ 0, 99, 50, IBS_OUTCOME_FILTERED_LAT },
	};
	__u64 op[IBS_OP_REG_N] = { [IBS_OP_DATA3] = MISS_DATA3 };
	__u64 fetch[IBS_FETCH_REG_N] = { [IBS_FETCH_CTL] = FETCH_CTL };
	struct world *w = fresh_world();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		w->config.lat_select = 1;
		w->config.task_select = rows[i].cgroup ? IBS_TASK_CGROUP : 0;
		w->cpu.lat = rows[i].max << IBS_LAT_MAX_SHIFT | rows[i].min;
		w->cpu.min_lat = rows[i].cgroup ?: 101; /* of no meaning without the selection */
		w->config.metric = IBS_METRIC_DC_MISS_LAT;
		assert_int_equal(regs_select(w, op, NULL, false), rows[i].outcome);
		w->config.metric = IBS_METRIC_FETCH_LAT;
		assert_int_equal(regs_select(w, fetch, NULL, true), rows[i].outcome);
		w->config.lat_select = 0;
		assert_int_equal(regs_select(w, fetch, NULL, true), IBS_OUTCOME_AGGREGATED);
	}
	/* a latency that is not valid is in no range */
	w->config.lat_select = 1;
	w->config.task_select = 0;
	w->cpu.lat = 1;
	fetch[IBS_FETCH_CTL] &= ~IBS_FETCH_CTL_COMP;
	assert_int_equal(regs_select(w, fetch, NULL, true), IBS_OUTCOME_FILTERED_LAT);
	w->config.metric = IBS_METRIC_DC_MISS_LAT;
	op[IBS_OP_DATA3] &= ~IBS_OP_DATA3_DC_MISS;
	assert_int_equal(regs_select(w, op, NULL, false), IBS_OUTCOME_FILTERED_LAT);
	w->cpu.lat = 0;
	assert_int_equal(regs_select(w, op, NULL, false), IBS_OUTCOME_AGGREGATED);
}

static void test_place(void **state)
{
	static const struct {
		__u64 data, data3;
		__u32 kind, src;
	} rows[] = {
		{ 0, 0, IBS_OP_KIND_OTHER, IBS_SRC_NONE },
		{ IBS_OP_DATA_BRN_RET, 0, IBS_OP_KIND_BRANCH, IBS_SRC_NONE },
		{ IBS_OP_DATA_BRN_RET, IBS_OP_DATA3_LD_OP, IBS_OP_KIND_LOAD, IBS_SRC_L1 },
		{ 0, IBS_OP_DATA3_ST_OP, IBS_OP_KIND_STORE, IBS_SRC_L1 },
		{ 0, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LOCKED_OP, IBS_OP_KIND_LOCKED, IBS_SRC_L1 },
		{ 0, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS, IBS_OP_KIND_LOAD, IBS_SRC_L2 },
	};
	struct world *w = fresh_world();

	(void)state;
	for (int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
		w->config.layout[i] = 1000 + i;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const __u64 regs[IBS_OP_REG_N] = {
			[IBS_OP_DATA] = rows[i].data, [IBS_OP_DATA3] = rows[i].data3
		};
		const __u32 at = IBS_LAYOUT_IDX(rows[i].kind, rows[i].src);
		struct place place = { 0 };

		assert_int_equal(regs_select(w, regs, &place, false), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(place.word, 1000 + at);
		assert_int_equal(place.status, rows[i].data3);
		/* rejected: also where nothing is counted, but only if kinds are selected */
		w->config.layout[at] = IBS_OUTCOME_FILTERED_OP;
		assert_int_equal(regs_select(w, regs, &place, false), IBS_OUTCOME_FILTERED_OP);
		assert_int_equal(regs_select(w, regs, NULL, false), IBS_OUTCOME_AGGREGATED);
		w->config.kind_select = 1;
		assert_int_equal(regs_select(w, regs, NULL, false), IBS_OUTCOME_FILTERED_OP);
		w->config.kind_select = 0;
		w->config.layout[at] = 1000 + at;
	}
	for (__u64 i = 0; i < IBS_FETCH_LAYOUT_ENTRIES; i++)
		w->fetch_layout[i] = 1000 + i;
	for (__u64 i = 0; i < IBS_FETCH_LAYOUT_ENTRIES; i += 5) {
		const __u64 regs[IBS_FETCH_REG_N] = { [IBS_FETCH_CTL] =
							      i << IBS_FETCH_CTL_STATUS |
							      IBS_BIT(IBS_FETCH_CTL_STATUS - 1) };
		struct place place = { 0 };

		assert_int_equal(regs_select(w, regs, &place, true), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(place.word, 1000 + i);
		assert_int_equal(place.status, regs[IBS_FETCH_CTL]);
	}
}

/* A filter gets what its terms need; pairs come before it, latencies before both. */
static void test_filter(void **state)
{
	static const struct {
		__u32 field, when, needs;
		__u64 value;
		bool fetch;
	} rows[] = {
		{ IBS_FILTER_DATA_SRC, IBS_FILTER_WHEN_SRC, IBS_FILTER_NEEDS_SRC, IBS_SRC_L2,
		  false },
		{ IBS_FILTER_PID, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_TASK, PID, true },
		{ IBS_FILTER_TID, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_TASK, TID, true },
		{ IBS_FILTER_UID, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_UID, 9, true },
		{ IBS_FILTER_GID, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_UID, 8, true },
		{ IBS_FILTER_CPU, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_CPU, 10, true },
		{ IBS_FILTER_CGROUP, IBS_FILTER_WHEN_ALWAYS, IBS_FILTER_NEEDS_CGROUP, 4, true },
		{ IBS_FILTER_LD_OP, IBS_FILTER_WHEN_ALWAYS, 0, 1, false },
	};
	static const __u64 op[IBS_OP_REG_N] = {
		[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | 100ULL << 32,
	};
	static const __u64 fetch[IBS_FETCH_REG_N] = { [IBS_FETCH_CTL] = FETCH_CTL };
	struct world *w = fresh_world();

	(void)state;
	w->config.cgroup_filter = 1;
	w->ancestors[0] = w->selected_ids[0] = 77;
	w->selected_cgroups[0] = (struct ibs_selected_cgroup){ 0, IBS_CGROUP_AS_ABOVE, 4 };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (int other = 0; other < 2; other++) {
			const __u32 want =
				other ? IBS_OUTCOME_FILTERED_EXPR : IBS_OUTCOME_AGGREGATED;

			w->config.filter = (struct ibs_filter){
				.n = 1,
				.needs = rows[i].needs,
				.terms = { { .field = rows[i].field,
					     .when = rows[i].when,
					     .cmp = IBS_FILTER_EQ,
					     .value = rows[i].value + other,
					     .on_true = IBS_FILTER_ACCEPT,
					     .on_false = IBS_FILTER_REJECT } },
			};
			assert_int_equal(regs_select(w, op, NULL, false), want);
			if (rows[i].fetch)
				assert_int_equal(regs_select(w, fetch, NULL, true), want);
		}
	}
	w->config.kind_select = 1;
	w->config.layout[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, IBS_SRC_L2)] = IBS_OUTCOME_FILTERED_SRC;
	assert_int_equal(regs_select(w, op, NULL, false), IBS_OUTCOME_FILTERED_SRC);
	w->config.lat_select = 1;
	w->cpu.lat = 101;
	assert_int_equal(regs_select(w, op, NULL, false), IBS_OUTCOME_FILTERED_LAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),	     cmocka_unit_test(test_not_counted),
		cmocka_unit_test(test_miss),	     cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_tlb),	     cmocka_unit_test(test_exposed),
		cmocka_unit_test(test_select_pid),   cmocka_unit_test(test_select_comm),
		cmocka_unit_test(test_select_order), cmocka_unit_test(test_latency),
		cmocka_unit_test(test_place),	     cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
