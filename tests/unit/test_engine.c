// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The engine of a replay, sample by sample: weights, costs, groups, room and memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/std.h"
#include "filter/filter.h"
#include "replay/engine.h"
#include "rows/rows.h"

#include <ibscope/fetch.h>

#define CAPS	0xbffu /* Zen 4 */
#define LATENCY 10
#define MEMORY	3 /* DataSrc */

static const struct selection everything;
static struct err err;

static struct engine *open_engine(const struct engine_opts *opts)
{
	struct engine_opts o = *opts;
	struct engine *e = NULL;

	o.ibs.caps = o.ibs.caps ?: CAPS;
	o.sel = o.sel ?: &everything;
	if (engine_open(&o, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static void read_counts(struct engine *e, struct snapshot *out)
{
	if (engine_snapshot(e, out, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&out->ledger), 0);
}

/* A load that missed the L1. Return: its outcome */
static enum ibs_outcome run(struct engine *e, bool dram, __u64 period, const struct task *task)
{
	const __u64 regs[IBS_OP_REG_N] = {
		[IBS_OP_DATA2] = MEMORY,
		[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
				 (dram ? IBS_OP_DATA3_L2_MISS : 0) | (__u64)LATENCY << 32,
	};
	enum ibs_outcome out;

	engine_run(e, regs, period, task, &out);
	return out;
}

/* --- what samples represent --- */

/* Without counted ops all samples have the same period; with them each one has its own. */
static void test_ops(void **state)
{
	static const struct task task = { .cgroup_id = 1 };

	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		const struct engine_opts opts = { .period = 1000,
						  .count_ops = counted,
						  .complexes = 1 };
		struct engine *e = open_engine(&opts);
		struct snapshot snap;

		run(e, true, 7, &task);
		run(e, true, 8, &task);
		read_counts(e, &snap);
		assert_int_equal(snap.groups->series->samples, 2);
		assert_int_equal(snap.groups->series->ops, counted ? 15 : 2000);
		assert_int_equal(snap.groups->series->cycles, LATENCY * (counted ? 15 : 2000));
		assert_int_equal(snap.shards->cycles[IBS_SRC_DRAM],
				 LATENCY * (counted ? 15 : 2000));
		assert_false(snap.groups->weighted);
		snapshot_free(&snap);
		engine_close(e);
	}
}

/* In strata: ops rounded to whole ones; a sample that represents an unknown number is not counted. */
static void test_weights(void **state)
{
	static const struct task task = { .cgroup_id = 1 };
	const struct engine_opts opts = {
		.strata = true, .reach = 1U << IBS_SRC_DRAM, .complexes = 1, .period = 1000
	};
	struct engine *e = open_engine(&opts);
	struct snapshot snap;

	(void)state;
	assert_int_equal(run(e, true, 5, &task), IBS_OUTCOME_FILTERED_SRC);
	engine_weigh(e, (double[]){ 299.5, 0 });
	assert_int_equal(run(e, true, 5, &task), IBS_OUTCOME_FILTERED_SRC);
	assert_int_equal(run(e, false, 5, &task), IBS_OUTCOME_AGGREGATED);
	engine_weigh(e, (double[]){ 0, 100.4 });
	assert_int_equal(run(e, true, 5, &task), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(run(e, false, 5, &task), IBS_OUTCOME_FILTERED_SRC);
	read_counts(e, &snap);
	assert_true(snap.groups->weighted);
	assert_int_equal(snap.groups->n_series, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct series *s = &snap.groups->series[i];
		const __u64 ops = s->src == IBS_SRC_DRAM ? 100 : 300;

		assert_int_equal(s->samples, 1);
		assert_int_equal(s->ops, ops);
		assert_int_equal(s->cycles, LATENCY * ops);
		assert_int_equal(snap.shards->cycles[s->src], LATENCY * ops);
	}
	snapshot_free(&snap);
	engine_close(e);
}

/* Costs are those of known complexes, of samples with a latency that are selected. */
static void test_costs(void **state)
{
	static const struct selection no_l2 = { .src_mask = 1U << IBS_SRC_DRAM | 1U << IBS_SRC_L1 };
	const struct engine_opts opts = { .complexes = 2, .period = 1, .sel = &no_l2 };
	struct task task = { .cgroup_id = 1 };
	struct engine *e = open_engine(&opts);
	const __u64 hit[IBS_OP_REG_N] = { [IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | 99ULL << 32 };
	const __u64 prefetch[IBS_OP_REG_N] = {
		[IBS_OP_DATA2] = MEMORY,
		[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS |
				 IBS_OP_DATA3_SW_PF | 99ULL << 32,
	};
	struct snapshot snap;

	(void)state;
	for (int i = 0; i < 6; i++) {
		task.complex = (const __u16[]){ 0, 1, 1, 2, 3, 0xffff }[i];
		assert_int_equal(run(e, true, 0, &task), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(run(e, false, 0, &task), IBS_OUTCOME_FILTERED_SRC);
	}
	task.complex = 0;
	engine_run(e, hit, 0, &task, NULL);
	engine_run(e, prefetch, 0, &task, NULL);
	read_counts(e, &snap);
	assert_int_equal(snap.n_shards, 2);
	for (int src = 0; src < IBS_SRC_N; src++) {
		assert_int_equal(snap.shards[0].cycles[src], src == IBS_SRC_DRAM ? LATENCY : 0);
		assert_int_equal(snap.shards[1].cycles[src], src == IBS_SRC_DRAM ? 2 * LATENCY : 0);
	}
	snapshot_free(&snap);
	engine_close(e);
}

/* Hot lines are those of stores, and never of fetches. */
static void test_hot_lines(void **state)
{
	struct filter filter;
	const struct selection loads = { .filter = &filter.prog };
	static const struct task task = { .cgroup_id = 1 };
	struct engine_opts opts = { .line_sets = IBS_LINE_SETS,
				    .line_feed = IBS_LINE_FEED_SHARING };
	const __u64 store[IBS_OP_REG_N] = { [IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP };
	/* where ibs_op has a store, too */
	const __u64 fetch[IBS_OP_REG_N] = { [IBS_FETCH_CTL] =
						    IBS_FETCH_CTL_COMP | IBS_OP_DATA3_ST_OP,
					    [IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP };
	struct engine *e = open_engine(&opts);

	(void)state;
	engine_run(e, store, 0, &task, NULL);
	assert_int_equal(engine_lines(e)->fed, 1);
	engine_close(e);
	opts.metric = IBS_METRIC_FETCH_LAT;
	e = open_engine(&opts);
	engine_run(e, fetch, 0, &task, NULL);
	assert_int_equal(engine_lines(e)->fed, 0);
	engine_close(e);
	/* nor of samples that are not selected, be it by the last test */
	assert_int_equal(filter_parse("ld_op", &filter, &err), 0);
	opts.metric = 0;
	opts.sel = &loads;
	e = open_engine(&opts);
	engine_run(e, store, 0, &task, NULL);
	assert_int_equal(engine_lines(e)->fed, 0);
	engine_close(e);
	filter_free(&filter);
	opts.sel = NULL;
	opts.line_sets = 0;
	e = open_engine(&opts);
	engine_run(e, store, 0, &task, NULL);
	assert_null(engine_lines(e));
	engine_close(e);
}

/* --- groups --- */

/* A function has a group of its own in each process, whatever came first. */
static void test_symbols(void **state)
{
	static const struct {
		__u32 tgid, symbol, samples;
	} rows[] = { { 1, 5, 1 }, { 1, 6, 2 }, { 2, 5, 3 }, { 2, 0, 4 }, { 1, 0, 5 }, { 3, 6, 6 } };
	const struct engine_opts opts = { .by = IBS_BY_PID | BY_SYMBOL };
	struct engine *e = open_engine(&opts);
	struct snapshot snap;

	(void)state;
	for (int round = 0; round < 6; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			const struct task task = { .pid_tgid = (__u64)rows[i].tgid << 32,
						   .cgroup_id = 1,
						   .symbol = rows[i].symbol };

			if (round < (int)rows[i].samples)
				run(e, true, 0, &task);
		}
	}
	read_counts(e, &snap);
	assert_int_equal(snap.n_groups, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(snap.groups[i].key.tgid, rows[i].tgid);
		assert_int_equal(snap.groups[i].symbol, rows[i].symbol);
		assert_int_equal(snap.groups[i].series->samples, rows[i].samples);
		assert_false(snap.groups[i].other);
	}
	snapshot_free(&snap);
	engine_close(e);
}

/* The first groups have counters of their own, all that come later are one group. */
static void test_room(void **state)
{
	static const __u32 bys[] = { IBS_BY_PID, IBS_BY_CGROUP, IBS_BY_PID | BY_SYMBOL };

	(void)state;
	for (size_t b = 0; b < ARRAY_SIZE(bys); b++) {
		const struct engine_opts opts = { .by = bys[b], .max_groups = 40 };
		struct engine *e = open_engine(&opts);
		struct snapshot snap;

		for (__u64 i = 0; i < 100; i++) {
			const struct task task = { .pid_tgid = (1 + i % 50) << 32,
						   .cgroup_id = 1 + i % 50,
						   .symbol = i % 50 };

			run(e, true, 0, &task);
		}
		read_counts(e, &snap);
		assert_int_equal(snap.n_groups, 41);
		assert_true(snap.groups[0].other);
		assert_int_equal(snap.groups[0].series->samples, 20);
		for (int i = 1; i <= 40; i++) {
			assert_false(snap.groups[i].other);
			assert_int_equal(snap.groups[i].series->samples, 2);
		}
		snapshot_free(&snap);
		engine_close(e);
	}
}

/* As many cgroups are remembered as the program remembers: further ones have no group of their own. */
static void test_many_cgroups(void **state)
{
	const struct selected_cgroup in[] = { { .id = 1 }, { .id = 2 } };
	const struct selection sel = { .cgroups = in, .n_cgroups = 2 };
	const struct engine_opts opts = { .by = IBS_BY_CGROUP, .max_groups = 10, .sel = &sel };
	const __u32 most = config_max_cgroups(config_max_slots(10));
	struct engine *e = open_engine(&opts);
	struct task task = {};
	struct snapshot snap;

	(void)state;
	for (__u32 i = 0; i < most - 1; i++) {
		task.cgroup_id = 100 + i;
		assert_int_equal(run(e, true, 0, &task), IBS_OUTCOME_FILTERED_CGROUP);
	}
	for (task.cgroup_id = 1; task.cgroup_id <= 2; task.cgroup_id++)
		assert_int_equal(run(e, true, 0, &task), IBS_OUTCOME_AGGREGATED);
	read_counts(e, &snap);
	assert_int_equal(snap.n_groups, 2);
	assert_true(snap.groups[0].other);
	assert_int_equal(snap.groups[0].series->samples, 1);
	assert_int_equal(snap.groups[1].key.cgroup_id, 1);
	assert_int_equal(snap.groups[1].series->samples, 1);
	snapshot_free(&snap);
	engine_close(e);
}

/* --- selections --- */

static enum ibs_outcome outcome_of_pid(const struct selection *sel, __u32 tgid, __u32 tid)
{
	const struct engine_opts opts = { .sel = sel };
	const struct task task = { .pid_tgid = (__u64)tgid << 32 | tid, .cgroup_id = 1 };
	struct engine *e = open_engine(&opts);
	const enum ibs_outcome out = run(e, true, 0, &task);

	engine_close(e);
	return out;
}

/* Pids up to the last one that a kernel may have; those above are neither selected nor left out. */
static void test_pids(void **state)
{
	static const __u32 last[] = { 5000, IBS_PID_MAX - 1 };
	static const __u32 pids[] = { 0,
				      904,
				      4999,
				      5000,
				      5001,
				      IBS_PID_MAX - 2,
				      IBS_PID_MAX - 1,
				      IBS_PID_MAX,
				      IBS_PID_MAX + 904,
				      ~0U };
	const struct selection in = { .processes = { last, 2, false } },
			       out = { .processes = { last, 2, true } },
			       threads = { .threads = { last, 2, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		const __u32 pid = pids[i];
		const bool listed = pid == 5000 || pid == IBS_PID_MAX - 1;

		assert_int_equal(outcome_of_pid(&in, pid, 1),
				 listed ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_PID);
		assert_int_equal(outcome_of_pid(&out, pid, 1),
				 listed ? IBS_OUTCOME_FILTERED_PID : IBS_OUTCOME_AGGREGATED);
		assert_int_equal(outcome_of_pid(&threads, 1, pid),
				 listed ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_TID);
	}
}

static void test_pid_errors(void **state)
{
	static const __u32 high = IBS_PID_MAX, low = 1;
	const struct selection process = { .processes = { &high, 1, false },
					   .threads = { &low, 1, false } },
			       thread = { .processes = { &low, 1, false },
					  .threads = { &high, 1, false } };
	const struct engine_opts rows[] = { { .sel = &process }, { .sel = &thread } };
	static const char *const messages[] = {
		"process 4194304: this kernel numbers them below 4194304",
		"thread 4194304: this kernel numbers them below 4194304",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct engine *e = NULL;

		assert_int_equal(engine_open(&rows[i], &e, &err), -ERANGE);
		assert_string_equal(err.text, messages[i]);
		assert_null(e);
	}
}

/* A sample of the other event: only its task is tested, and nothing is counted. */
static void test_other_event(void **state)
{
	static const __u32 pid = 10;
	const struct selection sel = { .processes = { &pid, 1, false }, .op_mask = 1U << 31 };
	const struct engine_opts opts = { .sel = &sel, .complexes = 1 };
	struct task task = { .pid_tgid = 10ULL << 32, .cgroup_id = 1 };
	struct engine *e = open_engine(&opts);
	enum ibs_outcome out;
	struct snapshot snap;

	(void)state;
	engine_run(e, NULL, 0, &task, &out);
	assert_int_equal(out, IBS_OUTCOME_AGGREGATED);
	task.pid_tgid = 11ULL << 32;
	engine_run(e, NULL, 0, &task, &out);
	assert_int_equal(out, IBS_OUTCOME_FILTERED_PID);
	engine_run(e, NULL, 0, &task, NULL);
	read_counts(e, &snap);
	assert_int_equal(snap.ledger.seen, 0);
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		assert_int_equal(snap.ledger.outcome[o], 0);
	snapshot_free(&snap);
	engine_close(e);
}

/* A minimum latency of a cgroup's own is one that a sample of the other event does not reach. */
static void test_other_event_slow(void **state)
{
	const struct selected_cgroup slow[] = { { .id = 7, .min_lat = 50 }, { .id = 8 } };
	const struct selection own = { .cgroups = slow, .n_cgroups = 2 };
	const struct engine_opts opts = { .sel = &own };
	struct engine *e = open_engine(&opts);
	struct task task = {};
	enum ibs_outcome out;

	(void)state;
	for (task.cgroup_id = 7; task.cgroup_id <= 9; task.cgroup_id++) {
		engine_run(e, NULL, 0, &task, &out);
		assert_int_equal(out, task.cgroup_id == 7   ? IBS_OUTCOME_FILTERED_LAT
				      : task.cgroup_id == 8 ? IBS_OUTCOME_AGGREGATED
							    : IBS_OUTCOME_FILTERED_CGROUP);
	}
	engine_close(e);
}

/* --- memory --- */

static unsigned long pages_mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages;
}

/* Counters of 2000 groups are 50 MiB or more: what 20 engines would leave cannot be missed. */
static void test_memory(void **state)
{
	const struct engine_opts opts = { .by = IBS_BY_PID, .max_groups = 2000 };
	unsigned long before, one;
	struct engine *e = open_engine(&opts);

	(void)state;
	engine_close(e);
	before = pages_mapped();
	e = open_engine(&opts);
	one = pages_mapped() - before;
	engine_close(e);
	if (one * (unsigned long)sysconf(_SC_PAGESIZE) < 50UL << 20)
		fail_msg("one engine has only %lu pages", one);
	for (int i = 0; i < 20; i++)
		engine_close(open_engine(&opts));
	assert_in_range(pages_mapped(), 0, before + 10 * one);
	engine_close(NULL);
}

/* Counters of a million groups, 10 GiB or more, where 1 GiB is left: the process ends and says why. */
static void test_no_memory(void **state)
{
	const struct engine_opts opts = { .metric = IBS_METRIC_TAG_TO_RET,
					  .max_groups = 1000000,
					  .ibs.caps = CAPS,
					  .sel = &everything };
	const rlim_t most = pages_mapped() * (rlim_t)sysconf(_SC_PAGESIZE) + (1UL << 30);
	struct engine *e;
	const pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit limit;

		if (getrlimit(RLIMIT_AS, &limit))
			_exit(2);
		limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
		if (setrlimit(RLIMIT_AS, &limit) || !freopen("/dev/null", "w", stderr))
			_exit(3);
		_exit(engine_open(&opts, &e, &err) ? 4 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_hot_lines),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_many_cgroups),
		cmocka_unit_test(test_pids),
		cmocka_unit_test(test_pid_errors),
		cmocka_unit_test(test_other_event),
		cmocka_unit_test(test_other_event_slow),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
