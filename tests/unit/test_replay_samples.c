// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replay of single samples: which are selected, and what is counted of them. */
#include "memory_trace.h"

#include <errno.h>

/* Samples of each source after a replay of everything. */
static void count_sources(const struct replay_opts *opts, __u64 *samples)
{
	struct snapshot snap;

	memset(samples, 0, IBS_SRC_N * sizeof(*samples));
	replay_all(opts, &snap);
	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			samples[snap.groups[g].series[i].src] += snap.groups[g].series[i].samples;
	snapshot_free(&snap);
}

/* Erratum 1293 invalidates DataSrc of such a load on Zen 3, but not on Zen 2, which has the same caps. */
static void test_two_processors(void **state)
{
	const struct replay_opts opts = {};
	__u64 samples[IBS_SRC_N];

	(void)state;
	for (int zen3_first = 0; zen3_first < 2; zen3_first++) {
		reset(NULL);
		for (int i = 0; i < 4; i++) {
			const bool zen3 = (i & 1) == !zen3_first;

			add_load(zen3 ? 0x19 : 0x17, zen3 ? 0x01 : 0x31, IBS_OP_DATA3_NO_MAB);
		}
		count_sources(&opts, samples);
		assert_int_equal(samples[IBS_SRC_DRAM], 2);
		assert_int_equal(samples[IBS_SRC_MAB], 2);
	}
}

/* A task that exits has no pid in perf's samples: it is neither excluded nor selected. */
static void test_unknown_task(void **state)
{
	static const __u32 pid = KNOWN, unknown = REPLAY_NO_TASK;
	struct replay_opts opts = { .sel.processes = { &pid, 1, true } };
	struct trace_event *ev = add_load(0x17, 0x31, 0);

	(void)state;
	assert_int_equal(judge(&opts, ev), 0);
	ev->sample.tgid = OTHER;
	assert_int_equal(judge(&opts, ev), 1);
	ev->sample.has_task = false;
	assert_int_equal(judge(&opts, ev), 0);
	opts.sel.processes.but = false;
	assert_int_equal(judge(&opts, ev), 0);
	opts.sel.processes.pids = &unknown;
	opts.sel.processes.n = 0;
	assert_int_equal(judge(&opts, ev), 1);
	opts.sel.threads = (struct selected_pids){ &pid, 1, false };
	assert_int_equal(judge(&opts, ev), 0);
}

/* Names are compared to their end, also where they begin with the same eight bytes. */
static void test_names(void **state)
{
	static const char *const selected[] = { "web worker", "db" };
	struct replay_opts opts = { .sel.comms = selected, .sel.n_comms = 2 };
	static const struct {
		const char *name;
		bool in;
	} rows[] = { { "web worker", true }, { "web works", false }, { "web work", false },
		     { "db", true },	     { "db2", false },	     { "web worker 15 b", false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event *ev;

		reset(NULL);
		add_comm(KNOWN, rows[i].name);
		ev = add_load(0x17, 0x31, 0);
		for (int but = 0; but < 2; but++) {
			opts.sel.comms_but = but;
			assert_int_equal(judge(&opts, ev), rows[i].in != but);
		}
	}
}

/* What a selection asks of registers, a sample of the other event does not answer. */
static void test_other_event(void **state)
{
	struct filter filter;
	struct err err;
	const struct replay_opts by_regs[] = {
		{ .filter = &filter }, { .sel.op_mask = ~0U },	  { .sel.src_mask = ~0U },
		{ .sel.min_lat = 1 },  { .sel.max_lat = 0xffff },
	};
	static const __u32 pid = KNOWN;
	const struct replay_opts by_task = { .sel.processes = { &pid, 1, false } };
	static char *cgroups[] = { "/slow:50,/any" };
	const struct replay_opts by_cgroup = { .cgroups = cgroups, .n_cgroups = 1 };
	struct trace_event *ev = add_load(0x17, 0x31, 0);
	struct trace_sample *s = &ev->sample;

	(void)state;
	assert_int_equal(filter_parse("dc_miss", &filter, &err), 0);
	ev->kind = TRACE_SAMPLE_FETCH;
	s->fetch = (struct ibs_fetch_sample){ .cpu.caps = CAPS,
					      .nregs = IBS_FETCH_REG_FIXED,
					      .present = (1U << IBS_FETCH_REG_FIXED) - 1 };
	/* as registers of ibs_op: a load that missed, with a latency */
	for (int i = 0; i < IBS_OP_REG_FIXED; i++)
		s->op.reg[i] = 100ULL << 32 | IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS;
	for (size_t i = 0; i < ARRAY_SIZE(by_regs); i++)
		assert_int_equal(judge(&by_regs[i], ev), 0);
	filter_free(&filter);
	assert_int_equal(judge(&by_task, ev), 1);
	/* of /slow the selection tests the latency, of /any nothing */
	put_cgroup(7, "/slow");
	put_cgroup(8, "/any");
	for (s->cgroup_id = 7; s->cgroup_id < 10; s->cgroup_id++)
		assert_int_equal(judge(&by_cgroup, ev), s->cgroup_id == 8);
	s->tgid = OTHER;
	assert_int_equal(judge(&by_task, ev), 0);
}

/* Samples that are replayed, and those that are not. */
static void test_rest(void **state)
{
	static const __u64 times[] = { 500, 900, 300, 700 };
	struct replay_opts opts = { .by = IBS_BY_PID };
	struct cpulist cpus = {};
	struct replay_rest rest;
	struct snapshot snap;
	struct trace_event *ev;
	struct err err = {};
	struct replay *r;

	(void)state;
	cpulist_add(&cpus, 0);
	cpulist_add(&cpus, 3);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		ev = add_load(0x17, 0x31, 0);
		ev->time = times[i];
		ev->sample.cpu = 3 * (i == 1);
	}
	ev->sample.has_task = false;
	ev->sample.cgroup_id = 0;
	ev = add_load(0x17, 0x31, 0);
	ev->time = 5000;
	ev->sample.cpu = 5;
	add_load(0x17, 0x31, 0)->kind = TRACE_SAMPLE_FETCH;
	for (int i = 0; i < 2; i++)
		add_event(TRACE_LOST)->lost.n = 20 + i;
	trace.t.info.n_cpus = 64;
	for (int chosen = 0; chosen < 2; chosen++) {
		opts.cpus = chosen ? &cpus : NULL;
		r = open_replay(&opts);
		assert_int_equal(replay_run(r, &err), 0);
		assert_int_equal(replay_snapshot(r, &snap, &err), 0);
		assert_int_equal(snap.ledger.seen, chosen ? 4 : 5);
		assert_int_equal(snap.time_ns, chosen ? 600 : 4700);
		assert_int_equal(snap.pmu.cpus, chosen ? 2 : 64);
		replay_rest(r, &rest);
		assert_int_equal(rest.other_event, 1);
		assert_int_equal(rest.other_cpus, chosen);
		assert_int_equal(rest.no_cgroup, 1);
		assert_int_equal(rest.no_task, 1);
		assert_int_equal(rest.lost, 41);
		snapshot_free(&snap);
		replay_close(r);
	}
	/* what the machine had is unknown: the CPUs with samples */
	trace.t.info.n_cpus = 0;
	opts.cpus = NULL;
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.pmu.cpus, 3);
	snapshot_free(&snap);
	replay_close(r);
}

/* Up to a time; the next sample waits for the call after. */
static void test_until(void **state)
{
	const struct replay_opts opts = {};
	struct snapshot snap;
	struct err err = {};
	struct replay *r;
	__u64 next;

	(void)state;
	for (int i = 1; i <= 3; i++)
		add_load(0x17, 0x31, 0)->time = 100 * i;
	r = open_replay(&opts);
	assert_int_equal(replay_until(r, 100, &next, &err), 1);
	assert_int_equal(next, 200);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 1);
	snapshot_free(&snap);
	assert_int_equal(replay_until(r, 199, &next, &err), 1);
	assert_int_equal(next, 200);
	assert_int_equal(replay_until(r, 300, &next, &err), 0);
	assert_int_equal(next, 300);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.ledger.seen, 3);
	snapshot_free(&snap);
	replay_close(r);
}

/* Groups by process need one sample at least that has a process. */
static void test_without_tasks(void **state)
{
	struct replay_opts opts = { .by = IBS_BY_PID };

	(void)state;
	for (int with = 0; with < 2; with++) {
		struct err err = {};
		struct replay *r;

		reset(NULL);
		for (int i = 0; i < 2; i++)
			add_load(0x17, 0x31, 0)->sample.has_task = with && i;
		r = open_replay(&opts);
		assert_int_equal(replay_run(r, &err), with ? 0 : -ENODATA);
		assert_int_equal(with, !strstr(err.text, "lacks the process"));
		replay_close(r);
	}
	/* without samples there is nothing that lacks it */
	reset(NULL);
	{
		struct replay *r = open_replay(&opts);
		struct err err = {};

		assert_int_equal(replay_run(r, &err), 0);
		replay_close(r);
	}
	/* and other groups do without it */
	add_load(0x17, 0x31, 0)->sample.has_task = false;
	opts.by = 0;
	{
		struct replay *r = open_replay(&opts);
		struct err err = {};

		assert_int_equal(replay_run(r, &err), 0);
		replay_close(r);
	}
}

static __u32 symbol_of(void *arg, const struct trace_event *ev)
{
	assert_ptr_equal(arg, &trace);
	return 40 + ev->sample.ip;
}

/* Samples of two processors, of two functions in two processes: each has a group of its own on each processor. */
static void test_symbols(void **state)
{
	const struct replay_opts opts = { .by = IBS_BY_PID | BY_SYMBOL,
					  .symbol = symbol_of,
					  .symbol_arg = &trace };
	__u64 samples[2][2] = {};
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct trace_sample *s = &add_load(i & 8 ? 0x19 : 0x17, 0x31, 0)->sample;

		s->ip = i & 1;
		s->tgid = s->tid = i & 2 ? KNOWN : OTHER;
		s->op.cpu.quirks = i & 8 ? 1 : 0;
	}
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.n_groups, 8);
	for (size_t g = 0; g < snap.n_groups; g++) {
		const struct group *p = &snap.groups[g];

		assert_true(!g || snap.groups[g - 1].slot <= p->slot);
		assert_in_range(p->symbol, 40, 41);
		assert_true(p->key.tgid == KNOWN || p->key.tgid == OTHER);
		assert_int_equal(p->n_series, 1);
		samples[p->symbol - 40][p->key.tgid == KNOWN] += p->series[0].samples;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(samples[i & 1][i >> 1], 4);
	snapshot_free(&snap);
	replay_close(r);
}

/* What each L3 complex cost, also where samples come from several processors. */
static void test_complexes(void **state)
{
	static struct trace_topology topology = { .n = 3, .ccx = { 0, 1, 1 } };
	struct replay_opts opts = { .costs = true, .period = 10 };
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	trace.t.info.topology = &topology;
	for (int i = 0; i < 6; i++) {
		struct trace_sample *s = &add_load(0x17, 0x31, (__u64)(100 + i) << 32)->sample;

		s->cpu = i % 3;
		s->op.cpu.quirks = i / 3;
	}
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.n_shards, 2);
	assert_int_equal(snap.shards[0].cycles[IBS_SRC_DRAM], 10 * (100 + 103));
	assert_int_equal(snap.shards[1].cycles[IBS_SRC_DRAM], 10 * (101 + 102 + 104 + 105));
	assert_int_equal(snap.shards[0].cycles[IBS_SRC_L3], 0);
	snapshot_free(&snap);
	replay_close(r);
	opts.costs = false;
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	assert_int_equal(replay_snapshot(r, &snap, &err), 0);
	assert_int_equal(snap.n_shards, 0);
	assert_null(snap.shards);
	snapshot_free(&snap);
	replay_close(r);
}

static int judge_error(const struct replay_opts *opts, const char *text)
{
	struct trace_event *ev;
	struct replay *r = NULL;
	struct err err = {};
	int ret;

	reset(NULL);
	put_cgroup(7, "/a");
	put_cgroup(8, "/a/b");
	put_cgroup(9, "/ab");
	ev = add_load(0x17, 0x31, 0);
	ret = replay_open(&trace.t, opts, &r, &err);
	if (!ret)
		ret = replay_judge(r, ev, &err);
	replay_close(r);
	if (!strstr(err.text, text))
		fail_msg("'%s' lacks '%s'", err.text, text);
	return ret;
}

/* A message is that of what is wrong, and not replaced by what is right. */
static void test_errors(void **state)
{
	static const __u32 too_high = 1U << 22, known = KNOWN;
	static char *none[] = { "99" }, *zero[] = { "0" }, *path[] = { "/b" };
	struct replay_opts opts = { .sel.processes = { &too_high, 1, false },
				    .sel.threads = { &known, 1, false } };

	(void)state;
	assert_int_equal(judge_error(&opts, "process 4194304"), -ERANGE);
	opts.sel.processes.pids = &known;
	opts.sel.threads.pids = &too_high;
	assert_int_equal(judge_error(&opts, "thread 4194304"), -ERANGE);
	opts = (struct replay_opts){ .cgroups = none, .n_cgroups = 1 };
	assert_int_equal(judge_error(&opts, "no cgroup in the recording has the id 99"), -ENOENT);
	opts.cgroups = zero;
	assert_true(judge_error(&opts, "cgroup id") < 0);
	opts.cgroups = path;
	assert_int_equal(
		judge_error(&opts, "no cgroup '/b' in the recording, which has the paths of 3"),
		-ENOENT);
}

/* By number, of which the path may be unknown, and by path, which begins no longer name. */
static void test_cgroups(void **state)
{
	static char *of[][1] = { { "7" }, { "/a" }, { "/sys/fs/cgroup/a" }, { "6" } };
	static const struct {
		__u64 id;
		bool in[4];
	} rows[] = { { 7, { true, true, true, false } },
		     { 8, { true, true, true, false } },
		     { 9, { false, false, false, false } },
		     { 6, { false, false, false, true } } };

	(void)state;
	put_cgroup(7, "/a");
	put_cgroup(8, "/a/b");
	put_cgroup(9, "/ab");
	add_load(0x17, 0x31, 0)->sample.cgroup_id = 6;
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		const struct replay_opts opts = { .cgroups = of[i], .n_cgroups = 1 };

		for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
			struct trace_event *ev = add_load(0x17, 0x31, 0);

			trace.n--; /* judged, not read */
			ev->sample.cgroup_id = rows[row].id;
			assert_int_equal(judge(&opts, ev), rows[row].in[i]);
		}
	}
}

#define BOX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The runtime's names go with the container, whatever cgroup in it they were recorded with. */
static void test_container_names(void **state)
{
	const struct replay_opts opts = {};
	struct trace_event *ev;
	struct replay *r;

	(void)state;
	put_cgroup(7, "/system.slice/docker-" BOX ".scope/init");
	ev = &trace.events[trace.n - 1];
	ev->cgroup.container = "shop";
	ev->cgroup.pod = "web-1";
	put_cgroup(8, "/system.slice/docker-" BOX ".scope");
	put_cgroup(9, "/system.slice");
	ev = &trace.events[trace.n - 1];
	ev->cgroup.container = "none";
	add_load(0x17, 0x31, 0)->sample.cgroup_id = 6;
	r = open_replay(&opts);
	assert_string_equal(replay_cgroup_name(r, 7, LABEL_CONTAINER), "shop");
	assert_string_equal(replay_cgroup_name(r, 8, LABEL_CONTAINER), "shop");
	assert_string_equal(replay_cgroup_name(r, 8, LABEL_POD), "web-1");
	assert_string_equal(replay_cgroup_name(r, 9, LABEL_CONTAINER), "");
	assert_string_equal(replay_cgroup_name(r, 9, LABEL_CGROUP), "/system.slice");
	assert_null(replay_cgroup_name(r, 6, LABEL_CGROUP));
	assert_null(replay_cgroup_name(r, 6, LABEL_CONTAINER));
	assert_null(replay_cgroup_name(r, 5, LABEL_CGROUP));
	assert_string_equal(replay_cgroup_name(r, ~0ULL, LABEL_CGROUP), "unknown");
	replay_close(r);
}

/* Of a cgroup with a least latency of its own, as long as its samples are of the event. */
static void test_slow_cgroup(void **state)
{
	static char *cgroups[] = { "/slow:50,/any" };
	const struct replay_opts opts = { .cgroups = cgroups, .n_cgroups = 1 };
	static const struct {
		__u64 cgroup, latency;
		int selected;
	} rows[] = { { 7, 49, 0 }, { 7, 50, 1 }, { 7, 100, 1 }, { 8, 49, 1 }, { 9, 100, 0 } };

	(void)state;
	put_cgroup(7, "/slow");
	put_cgroup(8, "/any");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct trace_event *ev = add_load(0x17, 0x31, rows[i].latency << 32);

		trace.n--; /* judged, not read */
		ev->sample.cgroup_id = rows[i].cgroup;
		assert_int_equal(judge(&opts, ev), rows[i].selected);
	}
}

/* Both limits of the latency, all processes of a list, and a cgroup that is left out. */
static void test_limits(void **state)
{
	static const __u32 pids[] = { KNOWN, OTHER };
	static char *without[] = { "!/a" };
	const struct replay_opts slow = { .sel.min_lat = 50, .sel.max_lat = 100 },
				 two = { .sel.processes = { pids, 2, false } },
				 others = { .cgroups = without, .n_cgroups = 1 };
	struct trace_event *ev;

	(void)state;
	put_cgroup(7, "/a");
	put_cgroup(8, "/b");
	for (__u64 latency = 49; latency <= 101; latency++) {
		ev = add_load(0x17, 0x31, latency << 32);
		trace.n--; /* judged, not read */
		assert_int_equal(judge(&slow, ev), latency >= 50 && latency <= 100);
	}
	for (__u32 pid = KNOWN - 1; pid <= OTHER + 1; pid++) {
		ev->sample.tgid = pid;
		assert_int_equal(judge(&two, ev), pid == KNOWN || pid == OTHER);
	}
	for (ev->sample.cgroup_id = 7; ev->sample.cgroup_id < 10; ev->sample.cgroup_id++) {
		assert_int_equal(judge(&others, ev), ev->sample.cgroup_id != 7);
	}
}

/* Samples of one key are one group; without keys all are. */
static void test_groups(void **state)
{
	struct replay_opts opts = {};
	struct snapshot snap;
	struct err err = {};
	struct replay *r;

	(void)state;
	for (int i = 0; i < 5; i++)
		add_load(0x17, 0x31, 0)->sample.tgid = i == 3 ? OTHER : KNOWN;
	for (int by = 0; by < 2; by++) {
		opts.by = by ? IBS_BY_PID : 0;
		r = open_replay(&opts);
		assert_int_equal(replay_run(r, &err), 0);
		assert_int_equal(replay_snapshot(r, &snap, &err), 0);
		assert_int_equal(snap.n_groups, by ? 2 : 1);
		for (size_t g = 0; g < snap.n_groups; g++) {
			const struct group *p = &snap.groups[g];

			assert_false(p->other);
			assert_int_equal(p->n_series, 1);
			assert_int_equal(p->series[0].samples, !by		      ? 5
							       : p->key.tgid == OTHER ? 1
										      : 4);
		}
		snapshot_free(&snap);
		replay_close(r);
	}
}

/* Each option that may leave out a sample, alone. */
static void test_selects(void **state)
{
	static const __u32 pid = KNOWN;
	static const char *const comms[] = { "x" };
	static char *names[] = { "/a" };
	static const struct cpulist cpus;
	static const struct filter filter;
	const struct replay_opts rows[] = {
		{ .sel.processes = { &pid, 1, false } },
		{ .sel.threads = { &pid, 1, false } },
		{ .sel.comms = comms, .sel.n_comms = 1 },
		{ .sel.op_mask = 1 },
		{ .sel.src_mask = 1 },
		{ .sel.min_lat = 1 },
		{ .sel.max_lat = 1 },
		{ .filter = &filter },
		{ .cgroups = names, .n_cgroups = 1 },
		{ .containers = names, .n_containers = 1 },
		{ .cpus = &cpus },
	};

	(void)state;
	assert_false(replay_selects(&(struct replay_opts){ .by = IBS_BY_PID, .period = 7 }));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_true(replay_selects(&rows[i]));
}

/* What no recording of ours has: samples of more kinds of processor than there are. */
static void test_many_processors(void **state)
{
	const struct replay_opts opts = {};
	struct err err = {};
	struct replay *r;

	(void)state;
	for (__u32 i = 0; i < 17; i++)
		add_load(0x17, 0x31, 0)->sample.op.cpu.caps = CAPS | i << 20;
	trace.n--;
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), 0);
	replay_close(r);
	trace.n++;
	r = open_replay(&opts);
	assert_int_equal(replay_run(r, &err), -E2BIG);
	replay_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_two_processors, reset),
		cmocka_unit_test_setup(test_unknown_task, reset),
		cmocka_unit_test_setup(test_names, reset),
		cmocka_unit_test_setup(test_other_event, reset),
		cmocka_unit_test_setup(test_rest, reset),
		cmocka_unit_test_setup(test_until, reset),
		cmocka_unit_test_setup(test_without_tasks, reset),
		cmocka_unit_test_setup(test_symbols, reset),
		cmocka_unit_test_setup(test_complexes, reset),
		cmocka_unit_test_setup(test_errors, reset),
		cmocka_unit_test_setup(test_cgroups, reset),
		cmocka_unit_test_setup(test_container_names, reset),
		cmocka_unit_test_setup(test_slow_cgroup, reset),
		cmocka_unit_test_setup(test_limits, reset),
		cmocka_unit_test_setup(test_groups, reset),
		cmocka_unit_test_setup(test_selects, reset),
		cmocka_unit_test_setup(test_many_processors, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
