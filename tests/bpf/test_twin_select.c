// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program's own functions, run by the kernel on samples made here: selections of cgroups within
 * each other, and selections that change while samples come.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/op_fields.h>

#include "sampler/sampler.h"
#include "twin_run.h"
#include "twin_child.h"
#include "twin_model.h"

/* Left out below what is selected, and selected again below that. */
static void test_filter_cgroup_out(void **state)
{
	static const bool in[TREE_N] = { true, false, false, true, true, false, false };
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel[3] = {};
	struct sampler *s;
	char path[640];

	(void)state;
	need_cgroups();
	make_tree();
	sel[0].id = make_cgroup("a", path);
	sel[1].id = make_cgroup("a/b", path);
	sel[1].out = true;
	sel[2].id = make_cgroup("a/b/c/d", path);
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 3;
	s = open_twin(&opts);
	for (size_t i = 0; i < TREE_N; i++)
		assert_int_equal(outcome_in(s, tree[i], 300),
				 in[i] ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_FILTERED_CGROUP);
	close_twin(s);
	/* nothing but one left out: all else is in */
	opts.sel.cgroups = &sel[1];
	opts.sel.n_cgroups = 1;
	s = open_twin(&opts);
	for (size_t i = 0; i < TREE_N; i++)
		assert_int_equal(outcome_in(s, tree[i], 300), !strncmp(tree[i], "a/b", 3)
								      ? IBS_OUTCOME_FILTERED_CGROUP
								      : IBS_OUTCOME_AGGREGATED);
	close_twin(s);
}

/* What a cgroup asks for holds for it and below, and overrides what is asked of all. */
static void test_cgroup_min_lat(void **state)
{
	static const struct {
		const char *name;
		__u32 min;
	} rows[] = { { "a", 200 },    { "a/x", 200 },	 { "a/b", 500 },
		     { "a/b/c", 50 }, { "a/b/c/d", 50 }, { "z", 100 } };
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel[4] = {
		{ .min_lat = 200 },
		{ .min_lat = 500 },
		{ .min_lat = 50 },
		{ .min_lat = 0 },
	};
	struct sampler *s;
	char path[640];

	(void)state;
	need_cgroups();
	make_tree();
	sel[0].id = make_cgroup("a", path);
	sel[1].id = make_cgroup("a/b", path);
	sel[2].id = make_cgroup("a/b/c", path);
	sel[3].id = make_cgroup("z", path);
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 4;
	opts.sel.min_lat = 100;
	s = open_twin(&opts);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(outcome_in(s, rows[i].name, rows[i].min - 1),
				 IBS_OUTCOME_FILTERED_LAT);
		assert_int_equal(outcome_in(s, rows[i].name, rows[i].min), IBS_OUTCOME_AGGREGATED);
	}
	assert_int_equal(outcome_in(s, "ab", 65535), IBS_OUTCOME_FILTERED_CGROUP);
	close_twin(s);
	/* only a cgroup asks: no latency is asked of the others, but a latency there must be */
	opts.sel.min_lat = 0;
	s = open_twin(&opts);
	assert_int_equal(outcome_in(s, "a", 199), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(outcome_in(s, "z", 0), IBS_OUTCOME_AGGREGATED);
	close_twin(s);
}

/* The selection changes under a sampler that goes on; what is kept keeps its series. */
static void test_live(void **state)
{
	struct sampler_opts opts = zen4;
	struct selected_cgroup sel = {};
	struct selected_pids none = {}, others = {};
	struct err err = {};
	struct snapshot snap;
	struct sampler *s;
	__u32 pid = getpid();
	char path[640];
	regs_t regs;

	(void)state;
	need_cgroups();
	load_miss(regs, DRAM, 300);
	opts.sel.live = SAMPLER_LIVE_ALL;
	s = open_twin(&opts);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_AGGREGATED);
	sel.id = make_cgroup("z", path);
	assert_int_equal(sampler_set_cgroups(s, &sel, 1, &err), 0);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_CGROUP);
	assert_int_equal(outcome_in(s, "z", 300), IBS_OUTCOME_AGGREGATED);
	sel.id = make_cgroup("a", path);
	sel.min_lat = 400;
	assert_int_equal(sampler_set_cgroups(s, &sel, 1, &err), 0);
	assert_int_equal(outcome_in(s, "z", 300), IBS_OUTCOME_FILTERED_CGROUP);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(outcome_in(s, "a", 400), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sampler_set_cgroups(s, NULL, 0, &err), 0);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_AGGREGATED);

	others.pids = &pid;
	others.n = 1;
	others.but = true;
	assert_int_equal(sampler_set_processes(s, &others, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(sampler_set_processes(s, &none, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	others.but = false;
	assert_int_equal(sampler_set_processes(s, &others, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(outcome_in(s, "a", 300), IBS_OUTCOME_FILTERED_PID);
	assert_int_equal(sampler_set_processes(s, &none, &err), 0);

	assert_int_equal(sampler_set_latency(s, 301, 0, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(sampler_set_latency(s, 0, 300, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(sampler_set_latency(s, 0, 299, &err), 0);
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(sampler_set_latency(s, 0, 0, &err), 0);
	load_miss(regs, DRAM, 300);
	regs[IBS_OP_DATA3] |= IBS_OP_DATA3_UC_MEM_ACC;
	assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);

	assert_int_equal(sampler_snapshot(s, &snap, &err), 0);
	assert_int_equal(ledger_residual(&snap.ledger), 0);
	assert_int_equal(snap.ledger.seen, 15);
	snapshot_free(&snap);
	close_twin(s);

	opts.sel.live = SAMPLER_LIVE_ALL & ~SAMPLER_LIVE_LATENCY;
	s = open_twin(&opts);
	assert_int_equal(sampler_set_latency(s, 1, 0, &err), -EINVAL);
	close_twin(s);
}

struct watched {
	struct sampler *s;
	_Atomic bool end;
	_Atomic unsigned int runs, filtered;
};

/* No asserts here: they are of the test's own thread. */
static void *watch(void *arg)
{
	static regs_t regs[IBS_TWIN_SAMPLES];
	struct watched *w = arg;

	for (size_t i = 0; i < IBS_TWIN_SAMPLES; i++)
		load_miss(regs[i], DRAM, 300);
	while (!w->end) {
		__u8 out[IBS_TWIN_SAMPLES];

		if (twin_run_regs(w->s, (const regs_t *)regs, IBS_TWIN_SAMPLES, out, NULL))
			break;
		for (size_t i = 0; i < IBS_TWIN_SAMPLES; i++)
			w->filtered += out[i] == IBS_OUTCOME_FILTERED_PID;
		w->runs++;
	}
	return NULL;
}

/* A process that the old selection has and the new one has too is never left out between. */
static void test_live_processes(void **state)
{
	__u32 self = getpid(), other = 0;
	const struct selected_pids sets[] = {
		{ NULL, 0, false },
		{ &self, 1, false },
		{ &other, 1, true },
		{ &self, 1, false },
	};
	struct sampler_opts opts = zen4;
	struct watched w = {};
	struct err err = {};
	pthread_t thread;

	(void)state;
	opts.sel.live = SAMPLER_LIVE_PROCESSES;
	opts.sel.follow = true; /* it takes longer */
	other = fork();
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	w.s = open_twin(&opts);
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	for (int i = 0; i < 100; i++) {
		unsigned int before = w.runs;

		assert_int_equal(sampler_set_processes(w.s, &sets[i % 4], &err), 0);
		while (w.runs < before + 2)
			usleep(10);
	}
	w.end = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(w.filtered, 0);
	close_twin(w.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_cgroup_out),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_live_processes),
		cmocka_unit_test(test_cgroup_min_lat),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, children_up, children_down);
}
