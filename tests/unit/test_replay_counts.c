// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a replay counts of samples, and by which keys. */
#include "memory_trace.h"

#include <errno.h>
#include <stdlib.h>

#define NO_PLACE 0xffff /* complex and node of an unknown CPU */

static const struct series *series_of(const struct snapshot *snap, __u32 op, __u32 src)
{
	for (size_t g = 0; g < snap->n_groups; g++)
		for (size_t i = 0; i < snap->groups[g].n_series; i++)
			if (snap->groups[g].series[i].op == op &&
			    snap->groups[g].series[i].src == src)
				return &snap->groups[g].series[i];
	fail_msg("no series of %u and %u", op, src);
	return NULL;
}

/* --- ibs_fetch --- */

/* A fetch of an address that the L1 ITLB had. */
static struct trace_event *add_fetch(__u64 ctl, __u64 latency)
{
	struct trace_event *ev = add_event(TRACE_SAMPLE_FETCH);
	struct trace_sample *s = &ev->sample;

	/* where ibs_op has a load that missed, ibs_fetch has no register */
	s->op.reg[IBS_OP_DATA3] = 7ULL << 32 | IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS;
	s->fetch.cpu = (struct ibs_cpu){ .caps = CAPS };
	s->fetch.nregs = IBS_FETCH_REG_N;
	s->fetch.present = (1U << IBS_FETCH_REG_N) - 1;
	s->fetch.reg[IBS_FETCH_CTL] = ctl | IBS_FETCH_CTL_PHY_VALID | latency << 32;
	s->has_task = s->has_cpu = s->has_time = true;
	s->tgid = s->tid = KNOWN;
	s->cgroup_id = 1;
	return ev;
}

static void test_fetch(void **state)
{
	static struct trace_topology topology = { .n = 1 };
	struct replay_opts opts = { .metric = IBS_METRIC_FETCH_LAT, .period = 10, .costs = true };
	const struct series *s;
	struct snapshot snap;
	struct replay_rest rest;
	struct replay *r;
	struct err err = {};

	(void)state;
	trace.t.info.topology = &topology;
	add_fetch(IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_IC_MISS, 100);
	add_load(0x17, 0x31, 0);
	add_fetch(IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_IC_MISS, 150);
	add_fetch(IBS_FETCH_CTL_IC_MISS, 30);
	add_fetch(IBS_FETCH_CTL_COMP, 20);
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	replay_rest(r, &rest);
	assert_int_equal(rest.other_event, 1);
	assert_int_equal(snap.ledger.seen, 4);
	s = series_of(&snap, IBS_FETCH_ITLB_L1, IBS_FETCH_CLASS_L2);
	assert_int_equal(s->samples, 2);
	assert_int_equal(s->valid, 2);
	assert_int_equal(s->sum, 250);
	assert_int_equal(s->ops, 20);
	/* a fetch that was aborted has no latency */
	s = series_of(&snap, IBS_FETCH_ITLB_L1, IBS_FETCH_CLASS_ABORTED);
	assert_int_equal(s->samples, 1);
	assert_int_equal(s->valid, 0);
	s = series_of(&snap, IBS_FETCH_ITLB_L1, IBS_FETCH_CLASS_L1);
	assert_int_equal(s->sum, 20);
	assert_false(snap.groups->has_tlb);
	/* misses of fetches are not those of data */
	assert_int_equal(snap.n_shards, 1);
	for (int src = 0; src < IBS_SRC_N; src++)
		assert_int_equal(snap.shards[0].cycles[src], 0);
	snapshot_free(&snap);
	replay_close(r);
}

static void test_fetch_selected(void **state)
{
	struct replay_opts opts = { .metric = IBS_METRIC_FETCH_LAT, .sel.min_lat = 100 };
	struct trace_event *ev =
		add_fetch(IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_IC_MISS | IBS_FETCH_CTL_L1TLB_MISS, 0);
	struct snapshot snap;

	(void)state;
	for (__u64 latency = 99; latency <= 101; latency++) {
		ev->sample.fetch.reg[IBS_FETCH_CTL] &= ~(0xffffULL << 32);
		ev->sample.fetch.reg[IBS_FETCH_CTL] |= latency << 32;
		assert_int_equal(judge(&opts, ev), latency >= 100);
	}
	ev->sample.fetch.reg[IBS_FETCH_EXTD] = 99;
	opts.metric = IBS_METRIC_ITLB_REFILL_LAT;
	assert_int_equal(judge(&opts, ev), 0);
	ev->sample.fetch.reg[IBS_FETCH_EXTD] = 100;
	assert_int_equal(judge(&opts, ev), 1);
	/* Zen 3 does not report which cache had it */
	ev->sample.fetch.cpu.quirks = ibs_quirks(0x19, 0x01);
	replay_all(&opts, &snap);
	assert_int_equal(series_of(&snap, IBS_FETCH_ITLB_L2, IBS_FETCH_CLASS_L1_L2)->sum, 100);
	snapshot_free(&snap);
}

/* --- ibs_op --- */

/* Exposed cycles need events that count ops, all of them, and that no hardware filter drops any. */
static void test_exposed(void **state)
{
#define OPS                                             \
	{                                               \
		.name = "ibs_op/cnt_ctl=1/", .op = true \
	}
#define CYCLES                                 \
	{                                      \
		.name = "ibs_op//", .op = true \
	}
#define FEWER                                                                          \
	{                                                                              \
		.name = "ibs_op/cnt_ctl=1,l3missonly=1/", .op = true, .filtered = true \
	}
#define FETCH                         \
	{                             \
		.name = "ibs_fetch//" \
	}
	static const struct {
		struct trace_pmu pmu[2];
		unsigned int n;
		bool exposed;
	} rows[] = {
		{ { OPS }, 1, true },	       { { CYCLES }, 1, false },
		{ { FEWER }, 1, false },       { { FETCH }, 1, false },
		{ { OPS, FETCH }, 2, true },   { { FETCH, OPS }, 2, true },
		{ { OPS, CYCLES }, 2, false }, { { OPS, FEWER }, 2, false },
		{ { OPS, OPS }, 2, true },     { { OPS }, 0, false },
	};
	struct replay_opts opts = {};
	struct snapshot snap;

	(void)state;
	add_load(0x17, 0x31, 100ULL << 32 | 5ULL << 26);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		trace.t.info.pmu = rows[i].pmu;
		trace.t.info.n_pmus = rows[i].n;
		for (opts.metric = 0; opts.metric < IBS_OP_METRIC_N; opts.metric++) {
			replay_all(&opts, &snap);
			assert_int_equal(snap.groups->has_exposed,
					 rows[i].exposed && opts.metric == IBS_METRIC_DC_MISS_LAT);
			assert_true(snap.groups->has_tlb);
			/* five requests share the latency */
			assert_int_equal(snap.groups->series->exposed,
					 snap.groups->has_exposed ? 20 : 0);
			snapshot_free(&snap);
		}
	}
}

/* --- differences of a recording with strata --- */

static const struct trace_pmu strata[STRATUM_N] = {
	{ .name = "ibs_op/cnt_ctl=1/", .op = true, .reach = 1U << IBS_SRC_DRAM },
	{ .name = "ibs_op/cnt_ctl=1,l3missonly=1/", .op = true, .reach = 1U << IBS_SRC_DRAM },
};

/* Each sample counts with its weight: that of both strata if its source is one that both take. */
static void test_weights(void **state)
{
	static struct trace_slice slices[] = {
		{ .end = 10, .counts.of = STRATUM_FULL, .weight = { 300, 99.6 } },
		{ .end = 20, .counts.of = STRATUM_MISS, .weight = { 0, 20 } },
	};
	static const struct {
		enum stratum of;
		__u64 time;
		bool dram;
	} rows
		[] = {
			{ STRATUM_FULL, 2, true },
			{ STRATUM_MISS, 3, true }, /* in no slice: the weight is unknown */
			{ STRATUM_FULL, 4, false },
			{ STRATUM_MISS, 15, true },
			{ STRATUM_MISS, 16, false },
		};
	const struct replay_opts opts = { .differences = true };
	struct snapshot snap;

	(void)state;
	trace.t.info.pmu = strata;
	trace.t.info.n_pmus = STRATUM_N;
	trace.t.weights.slice = slices;
	trace.t.weights.n = ARRAY_SIZE(slices);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event *ev = add_load(0x17, 0x31, 10ULL << 32);

		ev->time = rows[i].time;
		ev->sample.pmu = rows[i].of;
		if (!rows[i].dram)
			ev->sample.op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_L2_MISS;
	}
	replay_all(&opts, &snap);
	assert_null(snap.strata);
	assert_true(snap.groups->weighted);
	assert_false(snap.groups->has_exposed);
	assert_int_equal(series_of(&snap, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)->samples, 2);
	assert_int_equal(series_of(&snap, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)->ops, 120);
	assert_int_equal(series_of(&snap, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)->cycles, 1200);
	assert_int_equal(series_of(&snap, IBS_OP_KIND_LOAD, IBS_SRC_L2)->samples, 1);
	assert_int_equal(series_of(&snap, IBS_OP_KIND_LOAD, IBS_SRC_L2)->ops, 300);
	assert_int_equal(snap.ledger.seen, 5);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_FILTERED_SRC], 2);
	snapshot_free(&snap);
}

/* Samples that are judged one by one are counted without strata. */
static void test_judged_strata(void **state)
{
	const struct replay_opts opts = {};
	struct trace_event *ev = add_load(0x17, 0x31, 10ULL << 32);
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	trace.t.info.pmu = strata;
	trace.t.info.n_pmus = STRATUM_N;
	trace.t.info.n_cpus = 6;
	r = open_replay(&opts);
	assert_int_equal(replay_judge(r, ev, &err), 1);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_null(snap.strata);
	assert_int_equal(snap.ledger.seen, 1);
	assert_int_equal(snap.groups->series->samples, 1);
	snapshot_free(&snap);
	replay_close(r);
	/* nothing was judged: strata of nothing */
	trace.n = 0;
	replay_all(&opts, &snap);
	assert_non_null(snap.strata);
	assert_int_equal(snap.pmu.cpus, 6);
	snapshot_free(&snap);
}

/* --- keys --- */

static const struct ibs_group_key *only_key(const struct snapshot *snap)
{
	assert_int_equal(snap->n_groups, 1);
	return &snap->groups->key;
}

/* The complex and the node of the CPU, in groups and in keys. */
static void test_places(void **state)
{
	static struct trace_topology topology = { .n = 2, .ccx = { 4, 5, 6 }, .node = { 7, 8, 9 } };
	struct replay_opts opts = { .by = IBS_BY_COMPLEX | IBS_BY_NODE | IBS_BY_CPU };
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct ibs_group_key key;
	struct snapshot snap;
	struct replay *r;

	(void)state;
	trace.t.info.topology = &topology;
	ev->sample.cpu = 1;
	replay_all(&opts, &snap);
	assert_int_equal(only_key(&snap)->complex, 5);
	assert_int_equal(only_key(&snap)->node, 8);
	assert_int_equal(only_key(&snap)->cpu, 1);
	snapshot_free(&snap);
	opts.by = 0;
	r = open_replay(&opts);
	replay_key(r, ev, &key);
	assert_int_equal(key.complex, 5);
	assert_int_equal(key.node, 8);
	/* a CPU that the topology lacks, and one that is unknown */
	ev->sample.cpu = 2;
	replay_key(r, ev, &key);
	assert_int_equal(key.complex, NO_PLACE);
	assert_int_equal(key.node, NO_PLACE);
	ev->sample.cpu = 1;
	ev->sample.has_cpu = false;
	replay_key(r, ev, &key);
	assert_int_equal(key.complex, NO_PLACE);
	assert_int_equal(key.node, NO_PLACE);
	replay_close(r);
}

/* The key of a sample has all that is known of it. */
static void test_key(void **state)
{
	struct replay_opts opts = { .names = true };
	struct trace_event *ev;
	struct ibs_group_key key, zero = {};
	struct replay *r;

	(void)state;
	add_comm(KNOWN, "sixteen or more bytes");
	ev = add_load(0x17, 0x31, 0);
	ev->sample.tid = OTHER;
	ev->sample.cpu = 3;
	ev->sample.cgroup_id = 77;
	r = open_replay(&opts);
	replay_key(r, ev, &key);
	assert_int_equal(key.tgid, KNOWN);
	assert_int_equal(key.tid, OTHER);
	assert_int_equal(key.cpu, 3);
	assert_int_equal(key.cgroup_id, 77);
	/* a name is 15 bytes, as the kernel has it, and a zero */
	ev->sample.tid = KNOWN;
	replay_key(r, ev, &key);
	assert_memory_equal(key.comm, "sixteen or more", 16);
	assert_string_equal(replay_comm(r, ev), "sixteen or more bytes");
	/* and nothing else */
	ev->sample.has_task = false;
	ev->sample.cgroup_id = 0;
	replay_key(r, ev, &key);
	assert_int_equal(key.tgid, REPLAY_NO_TASK);
	assert_int_equal(key.tid, REPLAY_NO_TASK);
	assert_true(key.cgroup_id == ~0ULL);
	assert_memory_equal(key.comm, zero.comm, sizeof(zero.comm));
	assert_null(replay_comm(r, ev));
	replay_close(r);
	opts.names = false;
	ev->sample.has_task = true;
	r = open_replay(&opts);
	replay_key(r, ev, &key);
	assert_memory_equal(key.comm, zero.comm, sizeof(zero.comm));
	replay_close(r);
}

/* Groups by the name of the thread; a name that a selection leaves out is not that of another thread. */
static void test_comm(void **state)
{
	static const char *const comms[] = { "left out" };
	struct replay_opts opts = { .by = IBS_BY_COMM };
	struct trace_event *ev;
	struct snapshot snap;

	(void)state;
	add_comm(KNOWN, "web");
	ev = add_load(0x17, 0x31, 0);
	replay_all(&opts, &snap);
	assert_string_equal(only_key(&snap)->comm, "web");
	snapshot_free(&snap);
	ev->sample.has_task = false;
	replay_all(&opts, &snap);
	assert_string_equal(only_key(&snap)->comm, "");
	snapshot_free(&snap);
	/* an unknown name is neither selected nor excluded */
	opts.sel.comms = comms;
	opts.sel.n_comms = 1;
	assert_int_equal(judge(&opts, ev), 0);
	opts.sel.comms_but = true;
	assert_int_equal(judge(&opts, ev), 0);
	ev->sample.has_task = true;
	assert_int_equal(judge(&opts, ev), 1);
}

/* Events of threads are read only if something depends on them. */
static void test_unread_names(void **state)
{
	static const __u32 pid = KNOWN;
	const struct replay_opts rows[] = {
		{ .by = IBS_BY_PID | IBS_BY_CGROUP | IBS_BY_CPU | IBS_BY_TID | IBS_BY_MEM_NODE },
		{ .sel.processes = { &pid, 1, false } },
	};

	(void)state;
	add_comm(KNOWN, NULL); /* nobody can read this one */
	add_load(0x17, 0x31, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		replay_close(open_replay(&rows[i]));
}

/* The slab cache of kernel data, by its recorded name. */
static void test_slab(void **state)
{
	const struct replay_opts opts = { .by = IBS_BY_SLAB };
	struct trace_event *ev;
	struct snapshot snap;
	struct replay *r;
	struct err err = {};

	(void)state;
	add_event(TRACE_SLAB)->slab = (struct ibs_slab){ .id = 64, .name = "dentry" };
	put_cgroup(64, "/a");
	ev = add_load(0x17, 0x31, IBS_OP_DATA3_LIN_VALID);
	ev->sample.op.reg[IBS_DC_LINADDR] = 0xffff888000000000;
	ev->sample.slab = 64 | 1;
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(only_key(&snap)->slab, 64);
	assert_string_equal(replay_cgroup_name(r, 64, LABEL_SLAB), "dentry");
	assert_string_equal(replay_cgroup_name(r, 64, LABEL_CGROUP), "/a");
	assert_null(replay_cgroup_name(r, 128, LABEL_SLAB));
	assert_null(replay_cgroup_name(r, ~0ULL, LABEL_SLAB));
	snapshot_free(&snap);
	replay_close(r);
}

/* The node of the data, by the recorded ranges of memory; a recording may have too many. */
static void test_memory(void **state)
{
	static struct memory_range memory[IBS_MEMORY_PARTS + 1];
	const struct replay_opts opts = { .by = IBS_BY_MEM_NODE };
	struct trace_event *ev = add_load(0x17, 0x31, IBS_OP_DATA3_PHY_VALID);
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		memory[i] = (struct memory_range){ i << 21, (i + 1) << 21, i & 1 };
	ev->sample.op.reg[IBS_DC_PHYSADDR] = 0x200000;
	trace.t.info.memory = memory;
	for (size_t n = 1; n <= 2; n++) {
		trace.t.info.n_memory = n;
		replay_all(&opts, &snap);
		/* node 1, counted from 1; or unknown */
		assert_int_equal(only_key(&snap)->mem_node, n == 2 ? 2 : 0);
		snapshot_free(&snap);
	}
	trace.t.info.n_memory = ARRAY_SIZE(memory);
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), -E2BIG);
	assert_string_equal(err.text, "the recording has memory in too many ranges of nodes");
	replay_close(r);
}

/* Distances between nodes are those of the machine that recorded. */
static void test_distance(void **state)
{
	static struct trace_topology topology = { .n = 1 };
	const struct replay_opts opts = {};
	const struct group g = { .key = { .node = 1, .mem_node = 1 + 2 } };
	char *text;

	(void)state;
	topology.distance.of[1][2] = 77;
	trace.t.info.topology = &topology;
	replay_close(open_replay(&opts));
	text = group_label(&g, LABEL_DISTANCE, NULL, NULL);
	assert_string_equal(text, "77");
	free(text);
}

/* --- times --- */

/* Samples without a time belong to the one before, and a time of 0 is unknown. */
static void test_times(void **state)
{
	static const struct {
		__u64 time;
		bool known;
	} rows[] = { { 0, true }, { 50, false }, { 400, true }, { 9999, false },
		     { 0, true }, { 700, true }, { 1, false },	{ 600, true } };
	const struct replay_opts opts = {};
	struct snapshot snap;
	struct err err = {};
	struct replay *r;
	__u64 next;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event *ev = add_load(0x17, 0x31, 0);

		ev->time = rows[i].time;
		ev->sample.has_time = rows[i].known;
	}
	r = open_replay(&opts);
	assert_int_equal(replay_until(r, 399, &next, &err), 1);
	assert_int_equal(next, 400);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 2);
	assert_int_equal(snap.time_ns, 0);
	snapshot_free(&snap);
	assert_int_equal(replay_until(r, 400, &next, &err), 1);
	assert_int_equal(next, 700);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 5);
	snapshot_free(&snap);
	assert_int_equal(replay_until(r, 699, &next, &err), 1);
	assert_int_equal(replay_until(r, 700, &next, &err), 0);
	assert_int_equal(next, 700);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 8);
	assert_int_equal(snap.time_ns, 300);
	snapshot_free(&snap);
	/* nothing is left */
	assert_int_equal(replay_until(r, 800, &next, &err), 0);
	assert_int_equal(next, 700);
	replay_close(r);
	/* all samples, up to the last time there is */
	trace.events[7].time = ~0ULL;
	replay_all(&opts, &snap);
	assert_int_equal(snap.ledger.seen, 8);
	snapshot_free(&snap);
}

/* The end is that of the last sample, also of a CPU that is not selected; other events have no say. */
static void test_end(void **state)
{
	struct cpulist cpus = {};
	const struct replay_opts opts = { .cpus = &cpus };
	struct replay_rest rest;
	struct snapshot snap;
	struct err err = {};
	struct trace_event *ev;
	struct replay *r;
	__u64 next = 1;

	(void)state;
	cpulist_add(&cpus, 0);
	add_load(0x17, 0x31, 0)->time = 100;
	ev = add_fetch(IBS_FETCH_CTL_COMP, 1);
	ev->time = 150;
	add_event(TRACE_EXIT)->time = 160;
	ev = add_load(0x17, 0x31, 0);
	ev->time = 200;
	ev->sample.cpu = 1;
	add_fetch(IBS_FETCH_CTL_COMP, 1)->time = 300;
	r = open_replay(&opts);
	assert_int_equal(replay_until(r, 120, &next, &err), 1);
	assert_int_equal(next, 200);
	replay_rest(r, &rest);
	assert_int_equal(rest.other_event, 1);
	assert_int_equal(replay_until(r, ~0ULL, &next, &err), 0);
	assert_int_equal(next, 200);
	replay_rest(r, &rest);
	assert_int_equal(rest.other_event, 2);
	assert_int_equal(rest.other_cpus, 1);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 1);
	assert_int_equal(snap.time_ns, 0);
	snapshot_free(&snap);
	/* a sample that is judged, too */
	assert_int_equal(replay_judge(r, ev, &err), 0);
	replay_rest(r, &rest);
	assert_int_equal(rest.other_cpus, 2);
	replay_close(r);
	/* a recording without samples */
	trace.n = 0;
	r = open_replay(&opts);
	assert_int_equal(replay_until(r, 120, &next, &err), 0);
	assert_int_equal(next, 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 0);
	assert_int_equal(snap.time_ns, 0);
	assert_int_equal(snap.pmu.cpus, 0);
	assert_int_equal(snap.n_groups, 1);
	snapshot_free(&snap);
	replay_close(r);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fetch),	  TEST(test_fetch_selected),
		TEST(test_exposed),	  TEST(test_weights),
		TEST(test_judged_strata), TEST(test_places),
		TEST(test_key),		  TEST(test_comm),
		TEST(test_slab),	  TEST(test_unread_names),
		TEST(test_memory),	  TEST(test_distance),
		TEST(test_times),	  TEST(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
