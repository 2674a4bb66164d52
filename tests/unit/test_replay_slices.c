// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which slice of a recording with strata has a sample, and which slices are read together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/std.h"
#include "replay/replay_strata.h"

#define CAPS	0xbffu /* Zen 4 */
#define REACH	(1u << IBS_SRC_DRAM)
#define LATENCY 50

static const struct trace_pmu pmus[STRATUM_N] = {
	{ .name = "all ops", .op = true, .reach = REACH },
	{ .name = "L3 misses", .op = true, .reach = REACH },
};
static struct trace trace;
static struct replay_strata *strata;

/* Slices of 10 ns each, one after the other. */
static void begin(const struct strata_slice *slices, size_t n)
{
	trace = (struct trace){ .info = { .pmu = pmus, .n_pmus = STRATUM_N },
				.weights = { .slice = calloc(n, sizeof(struct trace_slice)),
					     .n = n } };
	for (size_t i = 0; i < n; i++) {
		trace.weights.slice[i].end = 10 * (i + 1);
		trace.weights.slice[i].counts = slices[i];
	}
	strata = replay_strata_new(&trace);
	assert_non_null(strata);
}

static void end(struct snapshot *snap)
{
	struct err err = {};

	if (replay_strata_end(strata, snap, &err))
		fail_msg("%s", err.text);
}

static void finish(struct snapshot *snap)
{
	snapshot_free(snap);
	replay_strata_free(strata);
	trace_weights_free(&trace.weights);
}

/* A load from DRAM, which both strata take, or a hit in the L2. */
static void add_sample(enum stratum of, bool dram, __u64 time)
{
	static const struct selection everything;
	static const struct engine_opts opts = { .ibs.caps = CAPS, .sel = &everything };
	static const struct task task = { .cgroup_id = 1 };
	const struct trace_sample s = { .pmu = of };
	const __u64 regs[IBS_OP_REG_N] = {
		[IBS_OP_DATA2] = 3,
		[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
				 (dram ? IBS_OP_DATA3_L2_MISS : 0) | (__u64)LATENCY << 32,
	};
	struct err err = {};
	struct engine **e;

	assert_int_equal(replay_strata_until(strata, time, &err), 0);
	e = replay_strata_engine(strata, &s);
	if (!*e)
		assert_int_equal(engine_open(&opts, e, &err), 0);
	engine_run(*e, regs, 0, &task, NULL);
}

static const struct series *series_of(const struct snapshot *snap, enum ibs_src src)
{
	assert_int_equal(snap->n_groups, 1);
	for (size_t i = 0; i < snap->groups->n_series; i++)
		if (snap->groups->series[i].src == src)
			return &snap->groups->series[i];
	fail_msg("no series of source %d", src);
	return NULL;
}

/* Estimated ops of a source by slice. */
static void has_ops(const struct snapshot *snap, enum ibs_src src, const float *want, size_t n)
{
	const struct series_strata *s = series_of(snap, src)->strata;

	assert_int_equal(s->design->n, n);
	for (size_t k = 0; k < n; k++) {
		assert_float_equal(s->ops.part[k], want[k], 1e-3);
		assert_float_equal(s->cycles.part[k], LATENCY * want[k], 1e-1);
	}
}

/*
 * Of all ops, 12000, full slices tagged 40 and both kinds of slices 120: a hit in the L2 represents 300 ops, and a load
 * from DRAM 100.
 */
static const struct strata_slice four[] = {
	{ STRATUM_FULL, 1000, 10, 0.1, 64 },
	{ STRATUM_MISS, 2500, 30, 0.2, 16 },
	{ STRATUM_FULL, 5000, 30, 0.3, 64 },
	{ STRATUM_MISS, 3500, 50, 0.4, 16 },
};

/* A sample may come while the next slice, of the other stratum, goes on; the last slice has all that comes later. */
static void test_slices(void **state)
{
	static const struct {
		enum stratum of;
		__u64 time;
		int n;
	} loads[] = {
		{ STRATUM_FULL, 5, 1 },	 { STRATUM_MISS, 11, 1 }, { STRATUM_FULL, 20, 1 },
		{ STRATUM_FULL, 21, 1 }, { STRATUM_MISS, 30, 2 }, { STRATUM_MISS, 31, 1 },
		{ STRATUM_FULL, 40, 2 }, { STRATUM_MISS, 40, 1 }, { STRATUM_MISS, 1000, 3 },
	};
	struct snapshot snap, again;
	struct ledger ledger;

	(void)state;
	begin(four, ARRAY_SIZE(four));
	add_sample(STRATUM_FULL, false, 1);
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		for (int k = 0; k < loads[i].n; k++)
			add_sample(loads[i].of, true, loads[i].time);
		if (loads[i].time == 21)
			add_sample(STRATUM_FULL, false, 21);
	}
	end(&snap);
	has_ops(&snap, IBS_SRC_DRAM, (float[]){ 200, 300, 300, 500 }, 4);
	has_ops(&snap, IBS_SRC_L2, (float[]){ 300, 0, 300, 0 }, 4);
	for (size_t k = 0; k < ARRAY_SIZE(four); k++) {
		const struct strata_slice *s = &snap.strata->design.slice[k];

		assert_int_equal(s->of, four[k].of);
		assert_float_equal(s->ops, four[k].ops, 1e-9);
		assert_float_equal(s->tags, four[k].tags, 1e-9);
		assert_float_equal(s->seconds, four[k].seconds, 1e-8);
		assert_int_equal(s->period, four[k].period);
	}
	assert_int_equal(snap.ledger.seen, 15);
	assert_int_equal(snap.strata->ledger[STRATUM_FULL].seen, 7);
	assert_int_equal(snap.strata->ledger[STRATUM_MISS].seen, 8);
	assert_int_equal(snap.strata->period[STRATUM_FULL], 64);
	assert_int_equal(snap.strata->period[STRATUM_MISS], 16);
	assert_string_equal(snap.strata->event[STRATUM_FULL], "all ops");
	assert_string_equal(snap.strata->event[STRATUM_MISS], "L3 misses");
	/* the second time there is only the ledger */
	ledger = snap.ledger;
	end(&again);
	assert_memory_equal(&again.ledger, &ledger, sizeof(ledger));
	assert_int_equal(again.n_groups, 0);
	assert_null(again.strata);
	snapshot_free(&again);
	finish(&snap);
}

/* Of two slices of one stratum in a row, what comes behind the first belongs to the second. */
static void test_slices_in_a_row(void **state)
{
	static const struct strata_slice rows[] = {
		{ STRATUM_FULL, 1000, 10, 0.1, 64 },
		{ STRATUM_FULL, 2000, 20, 0.1, 64 },
		{ STRATUM_FULL, 3000, 30, 0.1, 32 },
	};
	struct snapshot snap;

	(void)state;
	begin(rows, ARRAY_SIZE(rows));
	add_sample(STRATUM_FULL, true, 10);
	add_sample(STRATUM_FULL, true, 11);
	add_sample(STRATUM_FULL, true, 20);
	add_sample(STRATUM_FULL, true, 31);
	end(&snap);
	/* a tag of either period represents 100 ops, and nothing was tagged in the other stratum */
	has_ops(&snap, IBS_SRC_DRAM, (float[]){ 100, 200, 100 }, 3);
	assert_int_equal(snap.strata->period[STRATUM_FULL], 32);
	assert_int_equal(snap.strata->period[STRATUM_MISS], 0);
	finish(&snap);
}

/* What comes after the last slice counts as part of the last one of its stratum. */
static void test_late(void **state)
{
	struct snapshot snap;

	(void)state;
	begin(four, ARRAY_SIZE(four));
	add_sample(STRATUM_FULL, true, 21);
	add_sample(STRATUM_MISS, true, 41);
	add_sample(STRATUM_FULL, true, 41);
	add_sample(STRATUM_FULL, true, 1000);
	add_sample(STRATUM_MISS, true, 1001);
	end(&snap);
	has_ops(&snap, IBS_SRC_DRAM, (float[]){ 0, 0, 300, 200 }, 4);
	assert_int_equal(snap.ledger.seen, 5);
	finish(&snap);
}

/* Where the slices of a stratum are lost, its samples represent an unknown number of ops, and are in the ledger alone. */
static void test_lost_slices(void **state)
{
	struct snapshot snap;

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		begin(four, n);
		add_sample(STRATUM_FULL, true, 5);
		add_sample(STRATUM_MISS, true, 15);
		add_sample(STRATUM_MISS, true, 35);
		end(&snap);
		assert_int_equal(snap.ledger.seen, 3);
		assert_int_equal(ledger_residual(&snap.ledger), 0);
		assert_int_equal(snap.strata->ledger[STRATUM_MISS].seen, 2);
		assert_int_equal(series_of(&snap, IBS_SRC_DRAM)->samples, 3);
		assert_int_equal(series_of(&snap, IBS_SRC_DRAM)->ops, n ? 100 : 0);
		assert_int_equal(snap.strata->period[STRATUM_FULL], n ? 64 : 0);
		finish(&snap);
	}
}

/* @n slices of 1000 ops and 10 tags each; their strata alternate. @other: the slice with another period */
static void begin_alike(size_t n, size_t other)
{
	struct strata_slice *slices = calloc(n, sizeof(*slices));

	for (size_t i = 0; i < n; i++)
		slices[i] = (struct strata_slice){ i & 1 ? STRATUM_MISS : STRATUM_FULL, 1000, 10,
						   0.001, i == other ? 32 : 16 };
	begin(slices, n);
	free(slices);
}

/* What was read at once: the stratum and how many slices. */
struct at_once {
	enum stratum of;
	unsigned int n;
};

static void was_read(const struct snapshot *snap, const struct at_once *want, size_t n)
{
	assert_true(n <= snap->strata->design.n);
	for (size_t k = 0; k < n; k++) {
		const struct strata_slice *s = &snap->strata->design.slice[k];

		if (llround(s->ops) != 1000LL * want[k].n)
			fail_msg("part %zu has %g ops instead of those of %u slices", k, s->ops,
				 want[k].n);
		assert_int_equal(s->of, want[k].of);
		assert_float_equal(s->tags, 10 * want[k].n, 1e-9);
		assert_float_equal(s->seconds, 0.001 * want[k].n, 1e-8);
	}
}

/* Of more than 128 slices, two times as many as 128 goes into them are read at once, of one stratum and window. */
static void test_at_once(void **state)
{
	static const struct {
		unsigned int slices, at_once, parts;
	} rows[] = { { 128, 1, 128 }, { 144, 2, 72 }, { 192, 3, 64 }, { 384, 6, 64 } };
	struct snapshot snap;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin_alike(rows[i].slices, ~0UL);
		end(&snap);
		assert_int_equal(snap.strata->design.n, rows[i].parts);
		for (unsigned int k = 0; k < rows[i].parts; k++) {
			const struct at_once want = { k & 1, rows[i].at_once };
			struct snapshot part = snap;
			struct strata_report report = *snap.strata;

			report.design.slice[0] = report.design.slice[k];
			part.strata = &report;
			was_read(&part, &want, 1);
		}
		finish(&snap);
	}
}

/* Five at once: of the twelve of each stratum in a window of 24, the last two are alone. */
static void test_windows(void **state)
{
	static const struct at_once window[] = {
		{ STRATUM_FULL, 5 }, { STRATUM_MISS, 5 }, { STRATUM_FULL, 5 },
		{ STRATUM_MISS, 5 }, { STRATUM_FULL, 2 }, { STRATUM_MISS, 2 },
	};
	static const struct at_once rest[] = { { STRATUM_FULL, 4 }, { STRATUM_MISS, 4 } };
	struct snapshot snap;

	(void)state;
	/* 13 windows, and 8 slices more */
	begin_alike(320, ~0UL);
	end(&snap);
	assert_int_equal(snap.strata->design.n, 13 * 6 + 2);
	for (int i = 0; i < 13; i++) {
		was_read(&snap, window, ARRAY_SIZE(window));
		memmove(snap.strata->design.slice, snap.strata->design.slice + 6,
			(STRATA_SLICES - 6) * sizeof(struct strata_slice));
	}
	was_read(&snap, rest, ARRAY_SIZE(rest));
	finish(&snap);
}

/* Samples of another period have another weight: such slices are read alone. */
static void test_periods(void **state)
{
	static const struct at_once want[] = {
		{ STRATUM_FULL, 1 }, { STRATUM_FULL, 1 }, { STRATUM_MISS, 2 }, { STRATUM_FULL, 2 },
		{ STRATUM_MISS, 2 }, { STRATUM_FULL, 2 }, { STRATUM_MISS, 2 },
	};
	struct snapshot snap;

	(void)state;
	begin_alike(144, 2);
	end(&snap);
	was_read(&snap, want, ARRAY_SIZE(want));
	assert_int_equal(snap.strata->design.n, 73);
	assert_int_equal(snap.strata->design.slice[1].period, 32);
	assert_int_equal(snap.strata->design.slice[3].period, 16);
	finish(&snap);
}

/* Samples of slices that are read at once have the same weight, that of their window. */
static void test_samples_at_once(void **state)
{
	struct snapshot snap;

	(void)state;
	begin_alike(144, ~0UL);
	add_sample(STRATUM_FULL, true, 1);
	add_sample(STRATUM_FULL, true, 31);
	add_sample(STRATUM_MISS, true, 39);
	add_sample(STRATUM_FULL, true, 41);
	end(&snap);
	assert_int_equal(snap.ledger.seen, 4);
	{
		const float *ops = series_of(&snap, IBS_SRC_DRAM)->strata->ops.part;
		static const float want[] = { 200, 100, 100, 0 };

		for (size_t k = 0; k < ARRAY_SIZE(want); k++)
			assert_float_equal(ops[k], want[k], 1e-3);
	}
	finish(&snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),	cmocka_unit_test(test_slices_in_a_row),
		cmocka_unit_test(test_late),	cmocka_unit_test(test_lost_slices),
		cmocka_unit_test(test_at_once), cmocka_unit_test(test_windows),
		cmocka_unit_test(test_periods), cmocka_unit_test(test_samples_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
