// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a replay does with engines, here in place of the real ones: how they are opened, and what follows if one fails. */
#include "memory_trace.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/engine.h"

struct engine {
	int number; /* from 1 on */
};

static struct {
	int opened, closed, snapshots;
	int open_fails, snapshot_fails; /* the n-th one; 0: none */
	struct engine_opts opts;	/* of the last one */
	struct selection sel;
} engines;

int engine_open(const struct engine_opts *opts, struct engine **out, struct err *err)
{
	engines.opts = *opts;
	engines.sel = *opts->sel;
	if (++engines.opened == engines.open_fails) {
		engines.opened--;
		return err_set(err, -EDOM, "no engine");
	}
	*out = calloc(1, sizeof(**out));
	(*out)->number = engines.opened;
	return 0;
}

void engine_run(struct engine *e, const __u64 *regs, __u64 period, const struct task *task,
		enum ibs_outcome *out)
{
	(void)regs;
	(void)task;
	assert_in_range(e->number, 1, engines.opened);
	/* no replay knows the period of a sample */
	assert_int_equal(period, 0);
	if (out)
		*out = IBS_OUTCOME_AGGREGATED;
}

void engine_weigh(struct engine *e, const double weight[2])
{
	(void)e;
	(void)weight;
}

int engine_snapshot(struct engine *e, struct snapshot *out, struct err *err)
{
	*out = (struct snapshot){ 0 };
	if (++engines.snapshots == engines.snapshot_fails)
		return err_set(err, -EUCLEAN, "no snapshot");
	out->groups = calloc(2, sizeof(*out->groups));
	out->n_groups = 2;
	/* slots of the first engine are the last ones */
	out->groups[0].slot = 20 - 3 * e->number;
	out->groups[1].slot = 21 - 3 * e->number;
	out->n_shards = 1;
	out->shards = calloc(1, sizeof(*out->shards));
	for (int src = 0; src < IBS_SRC_N; src++)
		out->shards->cycles[src] = e->number * (src + 1);
	out->ledger.seen = 100 * e->number;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		out->ledger.outcome[o] = e->number * (o + 7);
	return 0;
}

void engine_close(struct engine *e)
{
	engines.closed += e != NULL;
	free(e);
}

static const struct trace_pmu strata[STRATUM_N] = {
	{ .name = "ibs_op/cnt_ctl=1/", .op = true, .reach = 5 },
	{ .name = "ibs_op/cnt_ctl=1,l3missonly=1/", .op = true, .reach = 5 },
};
static struct trace_slice slices[] = {
	{ .end = 10, .counts = { STRATUM_FULL, 100, 10, 0.1, 16 } },
	{ .end = 20, .counts = { STRATUM_MISS, 100, 10, 0.1, 16 } },
	{ .end = 30, .counts = { STRATUM_FULL, 100, 10, 0.1, 16 } },
	{ .end = 40, .counts = { STRATUM_MISS, 100, 10, 0.1, 16 } },
};

static int set_up(void **state)
{
	memset(&engines, 0, sizeof(engines));
	return reset(state);
}

/* All engines are closed with the replay. */
static int tear_down(void **state)
{
	(void)state;
	return engines.opened - engines.closed;
}

static void with_strata(void)
{
	trace.t.info.pmu = strata;
	trace.t.info.n_pmus = STRATUM_N;
	trace.t.weights.slice = slices;
	trace.t.weights.n = ARRAY_SIZE(slices);
}

/* --- options --- */

static void open_one(const struct replay_opts *opts)
{
	struct replay *r = open_replay(opts);
	struct err err = {};

	if (replay_run(r, &err))
		fail_msg("%s", err.text);
	replay_close(r);
}

static void test_opts(void **state)
{
	static const struct memory_range memory[3];
	static struct trace_topology topology = { .n = 3, .ccx = { 0, 1, 2 } };
	static char *cgroups[] = { "/a" };
	struct filter filter;
	struct err err;
	struct replay_opts opts = { .metric = IBS_METRIC_TAG_TO_RET,
				    .by = IBS_BY_PID,
				    .max_groups = 17,
				    .period = 1000,
				    .sel.live = SAMPLER_LIVE_ALL,
				    .sel.min_lat = 3,
				    .costs = true };
	const struct engine_opts *o = &engines.opts;

	(void)state;
	put_cgroup(7, "/a");
	add_load(0x19, 0x01, 0);
	open_one(&opts);
	assert_int_equal(o->ibs.caps, CAPS);
	assert_int_equal(o->ibs.quirks, ibs_quirks(0x19, 0x01));
	assert_int_equal(o->metric, IBS_METRIC_TAG_TO_RET);
	assert_int_equal(o->by, IBS_BY_PID);
	assert_int_equal(o->max_groups, 17);
	assert_int_equal(o->period, 1000);
	assert_int_equal(engines.sel.min_lat, 3);
	assert_int_equal(engines.sel.live, 0);
	assert_int_equal(engines.sel.n_cgroups, 0);
	assert_null(engines.sel.filter);
	assert_int_equal(o->complexes, 0);
	assert_int_equal(o->reach, 0);
	assert_false(o->strata || o->count_ops || o->exposed);
	assert_true(o->tlb);
	/* what is known of the machine */
	trace.t.info.topology = &topology;
	trace.t.info.memory = memory;
	trace.t.info.n_memory = ARRAY_SIZE(memory);
	open_one(&opts);
	assert_int_equal(o->complexes, 3);
	assert_ptr_equal(o->memory, memory);
	assert_int_equal(o->n_memory, 3);
	opts.costs = false;
	open_one(&opts);
	assert_int_equal(o->complexes, 0);
	/* what the options name */
	opts.cgroups = cgroups;
	opts.n_cgroups = 1;
	assert_int_equal(filter_parse("dc_miss", &filter, &err), 0);
	opts.filter = &filter;
	open_one(&opts);
	assert_ptr_equal(engines.sel.filter, &filter.prog);
	assert_int_equal(engines.sel.n_cgroups, 2);
	filter_free(&filter);
	/* a recording of the other event has no samples, and the processor of the machine that recorded */
	opts = (struct replay_opts){ .metric = IBS_METRIC_FETCH_LAT };
	trace.t.info.cpu.caps = 0x1ff;
	open_one(&opts);
	assert_int_equal(o->ibs.caps, 0x1ff);
	assert_false(o->tlb);
}

static void test_strata_opts(void **state)
{
	struct replay_opts opts = {};

	(void)state;
	with_strata();
	add_load(0x17, 0x31, 0);
	for (int differences = 0; differences < 2; differences++) {
		opts.differences = differences;
		open_one(&opts);
		assert_int_equal(engines.opts.strata, differences);
		assert_int_equal(engines.opts.reach, 5);
		assert_false(engines.opts.exposed);
	}
	assert_int_equal(engines.opened, 2);
	/* each stratum has an engine, and more than these are not opened */
	opts.differences = false;
	add_load(0x17, 0x31, 0)->sample.pmu = STRATUM_MISS;
	add_load(0x17, 0x31, 0)->sample.pmu = STRATUM_MISS;
	add_load(0x19, 0x01, 0);
	open_one(&opts);
	assert_int_equal(engines.opened, 4);
	/* a recording without samples needs none */
	trace.n = 0;
	open_one(&opts);
	assert_int_equal(engines.opened, 4);
	opts.differences = true;
	open_one(&opts);
	assert_int_equal(engines.opened, 5);
	trace.t.info.n_pmus = 1;
	add_load(0x17, 0x31, 0);
	open_one(&opts);
	assert_false(engines.opts.strata);
}

/* Processors differ by capabilities or by errata. */
static void test_processors(void **state)
{
	static const struct replay_opts opts;
	struct snapshot snap;

	(void)state;
	for (__u32 i = 0; i < 12; i++)
		add_load(0x17, 0x31, 0)->sample.op.cpu =
			(struct ibs_cpu){ .caps = CAPS | (i & 1) << 11, .quirks = i >> 1 & 1 };
	replay_all(&opts, &snap);
	assert_int_equal(engines.opened, 4);
	/* the sums of all: 1 + 2 + 3 + 4 */
	assert_int_equal(snap.ledger.seen, 1000);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(snap.ledger.outcome[o], 10 * (o + 7));
	assert_int_equal(snap.n_shards, 1);
	for (int src = 0; src < IBS_SRC_N; src++)
		assert_int_equal(snap.shards->cycles[src], 10 * (src + 1));
	/* in the order of slots */
	assert_int_equal(snap.n_groups, 8);
	for (size_t g = 0; g < 8; g++)
		assert_int_equal(snap.groups[g].slot, 20 - 3 * 4 + 3 * (g / 2) + g % 2);
	snapshot_free(&snap);
}

/* --- failures --- */

static void fails(const struct err *err, int ret, int want, const char *text)
{
	assert_int_equal(ret, want);
	assert_string_equal(err->text, text);
}

/* The error is that of the engine, also where the recording lacks something, too. */
static void test_open_fails(void **state)
{
	const struct replay_opts opts = { .by = IBS_BY_PID };

	(void)state;
	add_load(0x17, 0x31, 0)->sample.has_task = false;
	engines.open_fails = 1;
	for (int row = 0; row < 3; row++) {
		struct err err = {};
		struct replay *r;

		/* with a sample, with one in a stratum, and without any */
		if (row == 1)
			with_strata();
		else if (row == 2)
			reset(NULL);
		r = open_replay(&opts);
		fails(&err, replay_run(r, &err), -EDOM, "no engine");
		replay_close(r);
	}
}

static void test_open_fails_for_judge(void **state)
{
	const struct replay_opts opts = {};
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct replay *r = open_replay(&opts);
	struct err err = {};

	(void)state;
	engines.open_fails = 2;
	assert_int_equal(replay_judge(r, ev, &err), 1);
	ev->sample.op.cpu.quirks = 1;
	fails(&err, replay_judge(r, ev, &err), -EDOM, "no engine");
	replay_close(r);
}

/* Of two engines the second one fails: nothing is left of the first one. */
static void test_snapshot_fails(void **state)
{
	const struct replay_opts opts = {};
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	add_load(0x17, 0x31, 0);
	add_load(0x19, 0x01, 0);
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	engines.snapshot_fails = 2;
	fails(&err, replay_snapshot(r, &snap, &err), -EUCLEAN, "no snapshot");
	assert_null(snap.groups);
	assert_int_equal(snap.n_groups, 0);
	replay_close(r);
}

/* In strata, a slice is read when the next sample comes, and the last ones at the end. */
static void test_slice_fails(void **state)
{
	const struct replay_opts opts = {};
	struct replay *r;

	(void)state;
	for (__u64 i = 0; i < 4; i++) {
		struct trace_event *ev = add_load(0x17, 0x31, 0);

		ev->time = 5 + 10 * i;
		ev->sample.pmu = i & 1;
	}
	with_strata();
	for (int fail = 1; fail <= 4; fail++) {
		struct snapshot snap = {};
		struct err err = {};
		int ret;

		engines.snapshots = 0;
		engines.snapshot_fails = fail;
		r = open_replay(&opts);
		ret = replay_run(r, &err);
		/* the sample at 25 ends the first slice, that at 35 the second one */
		if (fail > 2) {
			assert_int_equal(ret, 0);
			ret = replay_snapshot(r, &snap, &err);
		}
		fails(&err, ret, -EUCLEAN, "no snapshot");
		assert_null(snap.groups);
		replay_close(r);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_opts),	TEST(test_strata_opts),		 TEST(test_processors),
		TEST(test_open_fails),	TEST(test_open_fails_for_judge), TEST(test_snapshot_fails),
		TEST(test_slice_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
