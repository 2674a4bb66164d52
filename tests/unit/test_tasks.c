// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/tasks.h"

static struct tasks *fresh(void)
{
	struct tasks *t;

	t = tasks_new();
	return t;
}

static void comm(struct tasks *t, __u64 time, __u32 tgid, __u32 tid, bool exec, const char *name)
{
	struct trace_event ev = { .kind = TRACE_COMM,
				  .time = time,
				  .comm = { tgid, tid, exec, name } };

	tasks_add(t, &ev);
}

static void fork_of(struct tasks *t, __u64 time, __u32 tgid, __u32 tid, __u32 parent_tgid,
		    __u32 parent_tid)
{
	struct trace_event ev = { .kind = TRACE_FORK,
				  .time = time,
				  .fork = { tgid, tid, parent_tgid, parent_tid } };

	tasks_add(t, &ev);
}

static void exit_of(struct tasks *t, __u64 time, __u32 tgid, __u32 tid)
{
	struct trace_event ev = { .kind = TRACE_EXIT, .time = time, .fork = { tgid, tid, 1, 1 } };

	tasks_add(t, &ev);
}

static void map(struct tasks *t, __u64 time, __u32 tgid, __u64 start, __u64 len, const char *path)
{
	struct trace_event ev = {
		.kind = TRACE_MMAP,
		.time = time,
		.mmap = { .tgid = tgid, .tid = tgid, .start = start, .len = len, .path = path }
	};

	tasks_add(t, &ev);
}

static void kernel_map(struct tasks *t, __u64 time, __u64 start, __u64 len, const char *path)
{
	struct trace_event ev = { .kind = TRACE_MMAP,
				  .time = time,
				  .mmap = { .kernel = true,
					    .start = start,
					    .len = len,
					    .path = path,
					    .build_id = { 1, 2, 3 },
					    .build_id_len = 3 } };

	tasks_add(t, &ev);
}

#define assert_comm(t, tgid, tid, time, expected)                                \
	do {                                                                     \
		const char *is = tasks_comm(t, tgid, tid, time);                 \
		const char *want = (expected);                                   \
                                                                                 \
		assert_string_equal(is ? is : "(none)", want ? want : "(none)"); \
	} while (0)

#define assert_map(t, tgid, addr, time, expected)                                        \
	do {                                                                             \
		struct task_map found;                                                   \
		bool is = tasks_map(t, tgid, addr, time, false, &found);                 \
		const char *want = (expected);                                           \
                                                                                         \
		assert_string_equal(is ? found.path : "(none)", want ? want : "(none)"); \
	} while (0)

static void test_names(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	/* out of order, as the blocks of several CPUs may come */
	comm(t, 300, 10, 10, false, "renamed");
	comm(t, 0, 10, 10, false, "first");
	fork_of(t, 200, 10, 11, 10, 10);
	fork_of(t, 400, 10, 12, 10, 10);
	comm(t, 500, 10, 12, false, "worker");

	assert_comm(t, 10, 10, 100, "first");
	assert_comm(t, 10, 10, 299, "first");
	assert_comm(t, 10, 10, 300, "renamed");
	assert_comm(t, 10, 10, 0, "renamed");
	assert_comm(t, 10, 11, 250, "first");
	assert_comm(t, 10, 11, 900, "first"); /* the maker's later name is not its own */
	assert_comm(t, 10, 11, 100, NULL);    /* not born */
	assert_comm(t, 10, 12, 450, "renamed");
	assert_comm(t, 10, 12, 500, "worker");
	assert_comm(t, 10, 13, 500, NULL);
	assert_comm(t, 0, 0, 500, "swapper");
	tasks_free(t);
}

/* Read from /proc after the first sample. */
static void test_name_told_late(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	comm(t, 500, 10, 10, false, "late");
	comm(t, 500, 20, 20, true, "program");
	assert_comm(t, 10, 10, 100, "late");
	assert_comm(t, 20, 20, 100, NULL); /* before an exec it was another */
	tasks_free(t);
}

static void test_numbers_again(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	comm(t, 1, 1, 1, false, "init");
	fork_of(t, 100, 10, 10, 1, 1);
	comm(t, 110, 10, 10, true, "old");
	map(t, 111, 10, 0x1000, 0x1000, "/old");
	exit_of(t, 200, 10, 10);
	fork_of(t, 300, 10, 10, 1, 1);
	comm(t, 320, 10, 10, true, "new");
	map(t, 321, 10, 0x2000, 0x1000, "/new");

	assert_comm(t, 10, 10, 105, "init");
	assert_comm(t, 10, 10, 150, "old");
	assert_comm(t, 10, 10, 250, "old"); /* the last samples of an exiting task */
	assert_comm(t, 10, 10, 310, "init");
	assert_comm(t, 10, 10, 400, "new");
	assert_comm(t, 99, 10, 400, NULL);
	assert_map(t, 10, 0x1800, 150, "/old");
	assert_map(t, 10, 0x1800, 310, NULL);
	assert_map(t, 10, 0x1800, 400, NULL);
	assert_map(t, 10, 0x2800, 400, "/new");
	tasks_free(t);
}

/* The fork that gave the number away again was lost. */
static void test_number_again_without_fork(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	map(t, 100, 10, 0x1000, 0x1000, "/old");
	exit_of(t, 200, 10, 10);
	map(t, 300, 10, 0x2000, 0x1000, "/new");
	assert_map(t, 10, 0x1800, 250, "/old");
	assert_map(t, 10, 0x1800, 350, NULL);
	assert_map(t, 10, 0x2800, 350, "/new");
	tasks_free(t);
}

static void test_maps(void **state)
{
	struct tasks *t = fresh();
	struct task_map m;

	(void)state;
	map(t, 100, 10, 0x10000, 0x10000, "/big");
	map(t, 200, 10, 0x14000, 0x1000, "/hole");
	map(t, 300, 10, 0x10000, 0x800, "/front");
	map(t, 400, 10, 0x1f000, 0x2000, "/end");
	map(t, 500, 10, 0x5000, 0, "/empty");
	map(t, 600, 10, 0xfffffffffffff000ull, 0x2000, "/top");

	assert_map(t, 10, 0x14800, 150, "/big");
	assert_map(t, 10, 0x14800, 250, "/hole");
	assert_map(t, 10, 0x13fff, 250, "/big");
	assert_map(t, 10, 0x14fff, 250, "/hole");
	assert_map(t, 10, 0x15000, 250, "/big");
	assert_map(t, 10, 0x10000, 350, "/front");
	assert_map(t, 10, 0x10800, 350, "/big");
	assert_map(t, 10, 0x20000, 350, NULL);
	assert_map(t, 10, 0x20000, 450, "/end");
	assert_map(t, 10, 0x1efff, 450, "/big");
	assert_map(t, 10, 0x5000, 550, NULL);
	assert_map(t, 10, 0xfffffffffffff800ull, 650, "/top");
	assert_map(t, 10, 0xffff, 650, NULL);
	assert_map(t, 11, 0x14800, 250, NULL);
	/* told late: it was there before */
	assert_map(t, 10, 0x14800, 50, "/big");

	/* what is left of a map says where the whole began */
	assert_true(tasks_map(t, 10, 0x15000, 250, false, &m));
	assert_int_equal(m.start, 0x10000);
	assert_int_equal(m.end, 0x20000);

	/* neighbors: what begins last below, and first above */
	assert_true(tasks_map_near(t, 10, 0x30000, 650, false, &m));
	assert_string_equal(m.path, "/end");
	assert_true(tasks_map_near(t, 10, 0x5000, 650, true, &m));
	assert_string_equal(m.path, "/front");
	assert_true(tasks_map_near(t, 10, 0x30000, 650, true, &m));
	assert_string_equal(m.path, "/top");
	assert_false(tasks_map_near(t, 10, 0x5000, 650, false, &m));
	assert_false(tasks_map_near(t, 11, 0x5000, 650, true, &m));
	tasks_free(t);
}

static void test_fork_and_exec(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	map(t, 100, 10, 0x1000, 0x1000, "/a");
	fork_of(t, 200, 20, 20, 10, 10);
	map(t, 300, 10, 0x1000, 0x1000, "/b");
	map(t, 350, 20, 0x3000, 0x1000, "/c");
	fork_of(t, 360, 30, 30, 20, 20);
	fork_of(t, 370, 20, 21, 20, 20); /* a thread: nothing changes */
	comm(t, 400, 20, 20, true, "x");
	map(t, 401, 20, 0x5000, 0x1000, "/d");

	assert_map(t, 10, 0x1000, 250, "/a");
	assert_map(t, 10, 0x1000, 300, "/b");
	assert_map(t, 20, 0x1000, 150, NULL);
	assert_map(t, 20, 0x1000, 380, "/a");
	assert_map(t, 20, 0x3000, 380, "/c");
	assert_map(t, 20, 0x1000, 400, NULL);
	assert_map(t, 20, 0x5000, 401, "/d");
	assert_map(t, 30, 0x3000, 999, "/c");
	assert_map(t, 30, 0x1000, 999, "/a");
	assert_map(t, 30, 0x5000, 999, NULL);
	tasks_free(t);
}

/* Who was there at the start is told with forks whose maps all follow. */
static void test_fork_without_time(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	map(t, 0, 10, 0x1000, 0x1000, "/parent");
	fork_of(t, 0, 20, 20, 10, 10);
	map(t, 0, 20, 0x3000, 0x1000, "/child");
	map(t, 5, 10, 0x9000, 0x1000, "/later");
	assert_map(t, 20, 0x1000, 10, NULL);
	assert_map(t, 20, 0x3000, 10, "/child");
	tasks_free(t);

	/* of a recording without any times that cannot be said: then as they come */
	t = fresh();
	map(t, 0, 10, 0x1000, 0x1000, "/parent");
	fork_of(t, 0, 20, 20, 10, 10);
	assert_map(t, 20, 0x1000, 0, "/parent");
	tasks_free(t);
}

static void test_kernel(void **state)
{
	struct tasks *t = fresh();
	struct task_map m;

	(void)state;
	kernel_map(t, 0, 0xffffffff81000000ull, 0x30000000, "[kernel.kallsyms]_text");
	kernel_map(t, 50, 0xffffffffa0000000ull, 0x1000, "[kvm]");
	map(t, 0, 10, 0x1000, 0x1000, "/a");
	assert_true(tasks_map(t, 77, 0xffffffff81000010ull, 10, true, &m));
	assert_true(m.kernel);
	assert_int_equal(m.build_id_len, 3);
	assert_memory_equal(m.build_id, "\1\2\3", 3);
	assert_true(tasks_map(t, 77, 0xffffffffa0000010ull, 60, true, &m));
	assert_string_equal(m.path, "[kvm]");
	assert_false(tasks_map(t, 10, 0x1000, 10, true, &m));
	assert_true(tasks_map(t, 10, 0x1000, 10, false, &m));
	assert_null(m.build_id);
	tasks_free(t);
}

static void test_cgroups(void **state)
{
	struct tasks *t = fresh();
	struct trace_event ev = { .kind = TRACE_CGROUP,
				  .time = 5,
				  .cgroup = { 7, "/new", "web", "web-0", "shop" } };
	struct task_cgroup cgroup;

	(void)state;
	tasks_add(t, &ev);
	ev.time = 1;
	ev.cgroup.path = "/old";
	ev.cgroup.container = NULL;
	tasks_add(t, &ev);
	assert_true(tasks_cgroup(t, 7, &cgroup));
	assert_string_equal(cgroup.path, "/new");
	assert_string_equal(cgroup.container, "web");
	assert_string_equal(cgroup.pod, "web-0");
	assert_string_equal(cgroup.ns, "shop");
	assert_false(tasks_cgroup(t, 8, &cgroup));
	tasks_free(t);
}

/* --- against a model that goes through all events for each question --- */

#define MODEL_EVENTS 400
#define MODEL_PAGES  16
#define MODEL_PIDS   6

static __u64 seed;

static unsigned int dice(unsigned int n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

struct step {
	int what; /* 0 mmap, 1 fork, 2 exec */
	__u64 time;
	__u32 pid, parent;
	unsigned int first, pages;
	char path[16];
};

/* What each page of each process is of, -1 for nothing, before a time. */
static void model_at(const struct step *steps, int n, __u64 time,
		     int owner[MODEL_PIDS][MODEL_PAGES])
{
	memset(owner, 0xff, sizeof(int[MODEL_PIDS][MODEL_PAGES]));
	for (int i = 0; i < n && steps[i].time <= time; i++) {
		const struct step *s = &steps[i];

		if (s->what == 2)
			memset(owner[s->pid], 0xff, sizeof(owner[0]));
		else if (s->what == 1)
			memcpy(owner[s->pid], owner[s->parent], sizeof(owner[0]));
		for (unsigned int p = s->first; !s->what && p < s->first + s->pages; p++)
			owner[s->pid][p] = i;
	}
}

static void test_model(void **state)
{
	static struct step steps[MODEL_EVENTS];
	int owner[MODEL_PIDS][MODEL_PAGES];

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct tasks *t = fresh();
		__u64 time = 1;

		seed = round + 1;
		/* all are born, so that nothing is known of the time before */
		for (int i = 0; i < MODEL_PIDS; i++)
			comm(t, time, i + 1, i + 1, true, "x");
		for (int i = 0; i < MODEL_EVENTS; i++) {
			struct step *s = &steps[i];

			memset(s, 0, sizeof(*s));
			time += dice(3); /* several at the same time, too */
			s->time = time;
			s->what = dice(10) < 7 ? 0 : 1 + dice(2);
			s->pid = dice(MODEL_PIDS);
			s->parent = (s->pid + 1 + dice(MODEL_PIDS - 1)) % MODEL_PIDS;
			s->first = dice(MODEL_PAGES);
			s->pages = 1 + dice(MODEL_PAGES - s->first);
			snprintf(s->path, sizeof(s->path), "%d", i);
			if (s->what == 0)
				map(t, s->time, s->pid + 1, (s->first + 1) * 0x1000ull,
				    s->pages * 0x1000ull, s->path);
			else if (s->what == 1)
				fork_of(t, s->time, s->pid + 1, s->pid + 1, s->parent + 1,
					s->parent + 1);
			else
				comm(t, s->time, s->pid + 1, s->pid + 1, true, "x");
		}
		for (__u64 at = 1; at <= time + 1; at += 1 + dice(4)) {
			model_at(steps, MODEL_EVENTS, at, owner);
			for (int pid = 0; pid < MODEL_PIDS; pid++)
				for (int page = 0; page < MODEL_PAGES; page++) {
					int o = owner[pid][page];

					assert_map(t, pid + 1,
						   (page + 1) * 0x1000ull + dice(0x1000), at,
						   o < 0 ? NULL : steps[o].path);
				}
		}
		tasks_free(t);
	}
}

/* Neither a map cut a hundred thousand times nor as many forks take long, or much of the stack. */
static void test_many(void **state)
{
	struct tasks *t = fresh();
	const unsigned int n = 100000;

	(void)state;
	map(t, 1, 1, 0x1000, 0x1000ull * 2 * n, "/big");
	for (unsigned int i = 0; i < n; i++)
		map(t, 2 + i, 1, 0x1000ull * 2 * (i + 1), 0x1000, "/small");
	for (unsigned int i = 0; i < n; i++)
		fork_of(t, 2 + n + i, i + 2, i + 2, i + 1, i + 1);
	assert_map(t, n + 1, 0x1000ull * 2 * 777, 3 * n, "/small");
	assert_map(t, n + 1, 0x1000ull * 2 * 777 + 0x1000, 3 * n, "/big");
	assert_map(t, n + 1, 0x1000ull * 2 * 777, 5, NULL);
	assert_map(t, 1, 0x1000ull * 2 * 777, 5, "/big");
	tasks_free(t);
}

static void region(struct tasks *t, __u64 time, __u32 tid, const char *name)
{
	struct trace_event ev = { .kind = TRACE_REGION,
				  .time = time,
				  .region = { .tid = tid, .end = !name, .name = name ?: "" } };

	tasks_add(t, &ev);
}

/* @team 0: it ends */
static void omp(struct tasks *t, __u64 time, __u32 tid, __u32 team, __u16 number, __u64 addr)
{
	struct trace_event ev = { .kind = TRACE_REGION,
				  .time = time,
				  .region = { .tid = tid,
					      .omp = true,
					      .end = !team,
					      .team = team,
					      .number = number,
					      .addr = addr,
					      .name = "" } };

	tasks_add(t, &ev);
}

static void assert_region(const struct tasks *t, __u32 tid, __u64 time, const char *expected)
{
	assert_string_equal(tasks_region(t, tid, time) ?: "(none)", expected);
}

static void test_regions(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	region(t, 500, 10, NULL);
	region(t, 100, 10, "outer");
	region(t, 50, 10, NULL); /* of one that began before the recording */
	region(t, 200, 10, "inner");
	region(t, 300, 10, NULL);
	region(t, 400, 10, "inner");
	region(t, 600, 10, NULL);
	region(t, 700, 10, "never ends");
	region(t, 150, 11, "other");
	fork_of(t, 800, 20, 10, 5, 5); /* the number of the thread is used again */
	region(t, 900, 10, "new");
	comm(t, 1000, 20, 10, true, "program");

	assert_region(t, 10, 99, "(none)");
	assert_region(t, 10, 100, "outer");
	assert_region(t, 10, 200, "outer/inner");
	assert_region(t, 11, 200, "other");
	assert_region(t, 10, 300, "outer");
	assert_region(t, 10, 450, "outer/inner");
	assert_region(t, 10, 500, "outer");
	assert_region(t, 10, 600, "(none)");
	assert_region(t, 10, 799, "never ends");
	assert_region(t, 10, 850, "(none)");
	assert_region(t, 10, 950, "new");
	assert_region(t, 10, 1000, "(none)");
	assert_region(t, 12, 500, "(none)");
	tasks_free(t);
}

/* More names than fit a path: it does not grow, but the ends are counted. */
static void test_deep_regions(void **state)
{
	const int depth = 100000;
	struct tasks *t = fresh();

	(void)state;
	for (int i = 0; i < depth; i++)
		region(t, 10 + i, 10, "x");
	for (int i = 0; i < depth - 1; i++)
		region(t, 10 + depth + i, 10, NULL);
	assert_region(t, 10, 11, "x/x");
	assert_int_equal(strlen(tasks_region(t, 10, depth)), 2 * 32 - 1);
	assert_region(t, 10, 10 + 2 * depth, "x");
	tasks_free(t);
}

static void assert_omp(const struct tasks *t, __u32 tid, __u64 time, __u32 number, __u64 addr)
{
	__u32 got = 0;
	__u64 at = 0;

	assert_true(tasks_omp(t, tid, time, &got, &at));
	assert_int_equal(got, number);
	assert_true(at == addr);
}

/* Thread 10 begins a team of three, and 12 of these one of two. */
static void test_teams(void **state)
{
	struct tasks *t = fresh();
	__u32 number;
	__u64 addr;

	(void)state;
	region(t, 50, 10, "solve");
	for (__u16 i = 0; i < 3; i++)
		omp(t, 100 + i, 10 + i, 10, i, 0x400000);
	region(t, 150, 11, "own");
	region(t, 180, 11, NULL);
	omp(t, 200, 12, 12, 0, 0x500000);
	omp(t, 201, 13, 12, 1, 0x500000);
	omp(t, 300, 13, 0, 0, 0);
	omp(t, 301, 12, 0, 0, 0);
	for (__u16 i = 0; i < 3; i++)
		omp(t, 400 + i, 10 + i, 0, 0, 0);
	region(t, 500, 10, NULL);

	assert_false(tasks_omp(t, 11, 100, &number, &addr));
	assert_omp(t, 11, 120, 1, 0x400000);
	assert_omp(t, 12, 120, 2, 0x400000);
	assert_omp(t, 12, 250, 0, 0x500000);
	assert_omp(t, 12, 350, 2, 0x400000);
	assert_omp(t, 13, 350, 1, 0); /* between regions it keeps its number */
	assert_omp(t, 11, 450, 1, 0);
	assert_region(t, 11, 120, "solve"); /* of the one that began the team */
	assert_region(t, 11, 160, "own");
	assert_region(t, 11, 190, "solve");
	assert_region(t, 13, 250, "solve"); /* of a team in the team */
	assert_region(t, 11, 450, "(none)");
	tasks_free(t);
}

static void assert_started(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time, int expected)
{
	__u32 place;

	assert_int_equal(tasks_started(t, tgid, tid, time, &place) ? (int)place : -1, expected);
}

static void test_order_of_start(void **state)
{
	struct tasks *t = fresh();

	(void)state;
	comm(t, 10, 10, 10, false, "main");
	comm(t, 10, 10, 11, false, "was there"); /* before the recording */
	fork_of(t, 100, 10, 15, 10, 10);
	fork_of(t, 200, 10, 13, 10, 15);
	comm(t, 210, 10, 13, false, "renamed");
	fork_of(t, 300, 20, 20, 10, 10); /* a process: its threads count anew */
	fork_of(t, 310, 20, 21, 20, 20);
	comm(t, 400, 10, 10, true, "program");
	fork_of(t, 500, 10, 22, 10, 10);

	assert_started(t, 10, 10, 50, 0);
	assert_started(t, 10, 11, 50, 1);
	assert_started(t, 10, 15, 150, 2);
	assert_started(t, 10, 13, 250, 3);
	assert_started(t, 20, 20, 350, 0);
	assert_started(t, 20, 21, 350, 1);
	assert_started(t, 10, 22, 550, 1);
	assert_started(t, 30, 22, 550, -1); /* of another process */
	assert_started(t, 10, 99, 550, -1);
	tasks_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_name_told_late),
		cmocka_unit_test(test_numbers_again),
		cmocka_unit_test(test_number_again_without_fork),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_fork_and_exec),
		cmocka_unit_test(test_fork_without_time),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_deep_regions),
		cmocka_unit_test(test_teams),
		cmocka_unit_test(test_order_of_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
