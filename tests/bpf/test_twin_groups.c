// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program's own functions, run by the kernel on samples made here: every grouping. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/op_fields.h>

#include "cgroup/cgroup.h"
#include "sampler/sampler.h"
#include "sampler/sampler_private.h"
#include "twin_run.h"
#include "twin_child.h"
#include "twin_model.h"

static const struct group *group_of(const struct snapshot *snap, const struct ibs_group_key *key)
{
	for (size_t i = 0; i < snap->n_groups; i++)
		if (!snap->groups[i].other && !memcmp(&snap->groups[i].key, key, sizeof(*key)))
			return &snap->groups[i];
	return NULL;
}

/* More cgroups than groups: the rest share one, and nothing is lost or counted twice. */
static void check_many_cgroups(__u32 by)
{
	enum { CGROUPS = 60, GROUPS = 36, N = 64, ROUNDS = 2 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	__u64 ids[CGROUPS], others = 0;
	struct child c = { .n = N };
	struct snapshot snap;
	struct sampler *s;
	char path[640];
	regs_t regs[N];

	assert_non_null(m);
	opts.by = by;
	opts.max_groups = GROUPS;
	s = open_twin(&opts);
	random_regs(23, ZEN4_CAPS, regs, N);
	c.regs = regs;
	c.cgroup = path;
	c.comm = "many"; /* for --by cgroup,comm */
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	for (int i = 0; i < ROUNDS * CGROUPS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "many%d", i % CGROUPS);
		ids[i % CGROUPS] = make_cgroup(name, path);
		run_child(s, &c);
	}
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.seen, ROUNDS * CGROUPS * N);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], ROUNDS * CGROUPS * N);
	assert_int_equal(snap.n_groups, GROUPS + 1);
	for (int i = 0; i < CGROUPS; i++) {
		struct ibs_group_key key = { .cgroup_id = ids[i] };
		const struct group *g;

		if (by & IBS_BY_COMM)
			strcpy(key.comm, "many");
		g = group_of(&snap, &key);
		assert_int_equal(!!g, i < GROUPS);
		if (g)
			check_group(g, m, ROUNDS);
		else
			others++;
	}
	assert_true(snap.groups[0].other);
	check_group(&snap.groups[0], m, ROUNDS * others);
	snapshot_free(&snap);
	sampler_close(s);
	free(m);
}

static void test_many_cgroups(void **state)
{
	(void)state;
	need_cgroups();
	check_many_cgroups(IBS_BY_CGROUP);
	check_many_cgroups(IBS_BY_CGROUP | IBS_BY_COMM);
}

static void test_by_pid_comm(void **state)
{
	enum { CHILDREN = 5, N = 32 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	struct child c = { .n = N };
	pid_t pids[CHILDREN];
	struct snapshot snap;
	regs_t regs[N];

	(void)state;
	assert_non_null(m);
	random_regs(31, ZEN4_CAPS, regs, N);
	c.regs = regs;
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	for (int by = IBS_BY_PID; by <= (IBS_BY_PID | IBS_BY_COMM); by += IBS_BY_PID) {
		struct sampler *s;

		opts.by = by;
		s = open_twin(&opts);
		for (int i = 0; i < CHILDREN; i++) {
			c.comm = i % 2 ? "odd" : "even";
			pids[i] = run_child(s, &c);
		}
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, by & IBS_BY_PID ? CHILDREN : 2);
		for (int i = 0; i < CHILDREN; i++) {
			struct ibs_group_key key = {};
			const struct group *g;

			if (by & IBS_BY_PID)
				key.tgid = pids[i];
			if (by & IBS_BY_COMM)
				strcpy(key.comm, i % 2 ? "odd" : "even");
			g = group_of(&snap, &key);
			assert_non_null(g);
			check_group(g, m, by & IBS_BY_PID ? 1 : i % 2 ? 2 : 3);
		}
		snapshot_free(&snap);
		sampler_close(s);
	}
	free(m);
}

static void test_by_cpu(void **state)
{
	enum { N = 32 };
	struct sampler_opts opts = zen4;
	struct model *m = calloc(1, sizeof(*m));
	struct snapshot snap;
	struct sampler *s;
	cpu_set_t all, one;
	size_t n_cpus = 0;
	regs_t regs[N];

	(void)state;
	assert_non_null(m);
	random_regs(37, ZEN4_CAPS, regs, N);
	for (int i = 0; i < N; i++)
		model_add(m, &opts, regs[i]);
	opts.by = IBS_BY_CPU;
	s = open_twin(&opts);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n_cpus < 64; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
		run_regs(s, regs, N, NULL);
		n_cpus++;
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, n_cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct ibs_group_key key = { .cpu = cpu };
		const struct group *g = group_of(&snap, &key);

		if (CPU_ISSET(cpu, &all) && n_cpus < 64)
			assert_non_null(g);
		if (g)
			check_group(g, m, 1);
	}
	snapshot_free(&snap);
	sampler_close(s);
	free(m);
}

/* A CPU's NUMA node and L3 complex are in the key if that is asked for, and only then. */
static void test_by_place(void **state)
{
	static const struct {
		__u32 by;
		struct ibs_group_key key;
	} rows[] = {
		{ IBS_BY_NODE, { .node = 3 } },
		{ IBS_BY_COMPLEX, { .complex = 5 } },
		{ IBS_BY_NODE | IBS_BY_COMPLEX, { .node = 3, .complex = 5 } },
	};
	regs_t regs;

	(void)state;
	load_miss(regs, DRAM, 300);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sampler_opts opts = zen4;
		struct snapshot snap;
		struct sampler *s;

		opts.by = rows[i].by;
		s = open_twin(&opts);
		for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
			s->state->cpu[cpu].node = 3;
			s->state->cpu[cpu].complex = 5;
		}
		assert_int_equal(run_one(s, regs), IBS_OUTCOME_AGGREGATED);
		snapshot(s, &snap);
		assert_int_equal(snap.n_groups, 1);
		assert_memory_equal(&snap.groups[0].key, &rows[i].key, sizeof(rows[i].key));
		snapshot_free(&snap);
		sampler_close(s);
	}
}

/* Cgroups made and removed one after the other are not taken for each other. */
static void check_cgroup_ids(struct sampler_opts opts)
{
	enum { N = 8 };
	struct snapshot snap;
	struct sampler *s;
	__u64 ids[N];

	s = open_twin(&opts);
	for (int i = 0; i < N; i++) {
		char path[640];

		ids[i] = make_cgroup("one", path);
		for (int k = 0; k < 3; k++)
			assert_int_equal(outcome_in(s, "one", 300), IBS_OUTCOME_AGGREGATED);
		assert_int_equal(rmdir(path), 0);
	}
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, N);
	for (int i = 0; i < N; i++) {
		struct ibs_group_key key = { .cgroup_id = ids[i] };
		const struct group *g;

		if (opts.by & IBS_BY_CPU)
			key.cpu = sched_getcpu();
		g = group_of(&snap, &key);
		assert_non_null(g);
		assert_int_equal(g->series[0].samples, 3);
	}
	snapshot_free(&snap);
	sampler_close(s);
}

/* The same where cgroups are told by a v1 hierarchy, read by plain loads and by copy. */
static void test_cgroup_v1(void **state)
{
	static const char *const controllers[] = { "memory", "pids", "cpu", "perf_event" };
	char root[sizeof(cgroup_root)];
	struct cgroup_fs fs = {};
	cpu_set_t all, one;

	(void)state;
	for (size_t i = 0; i < 4 && !*fs.path; i++)
		if (cgroup_mode_v1("", controllers[i], &fs, NULL))
			fs.path[0] = 0;
	if (!*fs.path) {
		print_message("skipped: no cgroup v1 hierarchy\n");
		skip();
	}
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	strcpy(root, cgroup_root);
	snprintf(cgroup_root, sizeof(cgroup_root), "%s/ibscope-test-%d", fs.path, getpid());
	assert_int_equal(mkdir(cgroup_root, 0755), 0);
	for (int probe = 0; probe < 2; probe++) {
		struct sampler_opts opts = zen4;

		opts.cgroup_controller = fs.controller;
		opts.probe_read = probe;
		check_filter_cgroup(opts);
		opts.by = IBS_BY_CGROUP;
		check_cgroup_ids(opts);
		opts.by = IBS_BY_CGROUP | IBS_BY_CPU;
		check_cgroup_ids(opts);
	}
	remove_tree(cgroup_root);
	strcpy(cgroup_root, root);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* By copy, which does not read the op's address otherwise. */
static void test_by_mode(void **state)
{
	static const struct {
		__u64 rip, data;
		enum ibs_mode mode;
	} rows[] = {
		{ 0x401000, 0, IBS_MODE_USER },
		{ 0x7fffffffffff, 0, IBS_MODE_USER },
		{ 0xffffffff81000000, 0, IBS_MODE_KERNEL },
		{ 0xffffffff81000000, IBS_OP_DATA_RIP_INVALID, IBS_MODE_UNKNOWN },
		{ 0x401000, IBS_OP_DATA_RIP_INVALID, IBS_MODE_UNKNOWN },
	};
	static const __u64 want[IBS_MODE_N] = { 2, 2, 1 };
	struct sampler_opts opts = zen4;
	struct {
		__u32 pad, caps;
		__u64 regs[IBS_OP_REG_FIXED];
	} raw = { .caps = ZEN4_CAPS };
	struct snapshot snap;
	struct sampler *s;

	(void)state;
	opts.by = IBS_BY_MODE;
	s = open_twin(&opts);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		load_miss(raw.regs, DRAM, 300);
		raw.regs[IBS_OP_RIP] = rows[i].rip;
		raw.regs[IBS_OP_DATA] |= rows[i].data;
		run_raw(s, &(struct twin_raw){ .raw = &raw.caps, .bytes = IBS_OP_RAW_MIN });
	}
	snapshot(s, &snap);
	assert_int_equal(snap.n_groups, IBS_MODE_N);
	for (int mode = 0; mode < IBS_MODE_N; mode++) {
		const struct group *g = group_of(&snap, &(struct ibs_group_key){ .mode = mode });

		assert_non_null(g);
		assert_int_equal(g->n_series, 1);
		assert_int_equal(g->series[0].samples, want[mode]);
	}
	snapshot_free(&snap);
	sampler_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cgroup_v1),   cmocka_unit_test(test_many_cgroups),
		cmocka_unit_test(test_by_pid_comm), cmocka_unit_test(test_by_cpu),
		cmocka_unit_test(test_by_mode),	    cmocka_unit_test(test_by_place),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, children_up, children_down);
}
