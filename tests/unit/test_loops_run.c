// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The loops run, with made-up samples: own_samples.h and loops_place.h are implemented here, so that each loop has the
 * samples, the caches and the memory that the test wants.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cpulist.h"
#include "base/std.h"
#include "doctor/loop_code.h"
#include "doctor/loops.h"
#include "doctor/loops_place.h"
#include "doctor/own_samples.h"
#include "near.h"

#include <ibscope/fetch_fields.h>
#include <ibscope/op_fields.h>
#include <sched.h>

#define CAPS	   (0xbff & ~IBS_CAPS_BRNTRGT) /* of a Zen 4 */
#define PERIOD_MIN (16 * 631)
#define PERIOD_MAX (16 * 62501)
#define L1	   (32 << 10)
#define L2	   (512 << 10)
#define L3	   (4 << 20)
#define PAGES	   (2 * 1024 * (4096 + 64)) /* bytes of the chain through pages, twice */
#define LAT(n)	   ((__u64)(n) << 32)

/* Each opens samples once, in this order. */
enum job {
	PROBE,
	BRANCHES,
	STORES,
	LOADS,
	LEVEL_1,
	LEVEL_2,
	LEVEL_3,
	DRAM,
	REMOTE,
	SMALL_PAGES,
	LARGE_PAGES,
	SHARING,
	SMALL_CODE,
	LARGE_CODE,
	JOBS
};

/* --- samples --- */

struct own_samples {
	enum job job;
};

static struct {
	const char *event;
	uint64_t period;
	unsigned int stops;
} seen[JOBS];

static bool left_out[JOBS];
static enum job next_job;
static int n_open, open_fails, start_fails, stop_fails; /* job that fails; -1: all; -2: none */
static struct loops_place place;

static bool is_job(int which, enum job job)
{
	return which == -1 || which == (int)job;
}

int own_samples_open(const struct cpu_info *info, const char *event, uint64_t period,
		     unsigned int cpu, struct own_samples **out, struct err *err)
{
	struct own_samples *o;

	assert_non_null(info);
	*out = NULL;
	while (left_out[next_job])
		next_job++;
	assert_true(next_job < JOBS);
	if (next_job == PROBE)
		place.cpu = cpu;
	assert_int_equal(cpu, place.cpu);
	seen[next_job].event = event;
	seen[next_job].period = period;
	if (is_job(open_fails, next_job++))
		return err_set(err, -EACCES, "made not to open");
	o = xcalloc(1, sizeof(*o));
	o->job = next_job - 1;
	*out = o;
	n_open++;
	return 0;
}

void own_samples_close(struct own_samples *o)
{
	n_open -= o != NULL;
	free(o);
}

int own_samples_start(struct own_samples *o, struct err *err)
{
	cpu_set_t set;

	/* samples are those of one CPU */
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(place.cpu, &set));
	return is_job(start_fails, o->job) ? err_set(err, -EINVAL, "made not to start") : 0;
}

typedef void take(void *ctx, const void *raw, size_t bytes);

static void put(take *fn, void *ctx, const __u64 *reg, unsigned int n)
{
	unsigned char raw[4 + 8 * IBS_OP_REG_N];
	const __u32 caps = CAPS;

	memcpy(raw, &caps, sizeof(caps));
	memcpy(raw + 4, reg, 8 * n);
	fn(ctx, raw, 4 + 8 * n);
}

static void put_op(take *fn, void *ctx, __u64 ip, __u64 data, __u64 data2, __u64 data3)
{
	const __u64 reg[] = { [IBS_OP_RIP] = ip,
			      [IBS_OP_DATA] = data,
			      [IBS_OP_DATA2] = data2,
			      [IBS_OP_DATA3] = data3,
			      [IBS_DC_PHYSADDR] = 0 };

	put(fn, ctx, reg, ARRAY_SIZE(reg));
}

struct kind {
	unsigned int n;
	__u64 data, data2, data3;
};

#define KINDS	 6
#define LOAD	 IBS_OP_DATA3_LD_OP
#define MISS	 (LOAD | IBS_OP_DATA3_DC_MISS)
#define MISS_L2	 (MISS | IBS_OP_DATA3_L2_MISS)
#define OF_L3	 1 /* codes of DataSrc */
#define OF_NEAR	 2
#define OF_DRAM	 3
#define OF_FAR	 5
#define OF_OTHER (OF_DRAM | IBS_OP_DATA2_RMT_NODE)
#define TAKEN	 (IBS_OP_DATA_BRN_RET | IBS_OP_DATA_BRN_TAKEN)
#define TLB	 (LOAD | IBS_OP_DATA3_LIN_VALID)

/* What comes each time sampling stops. */
static const struct {
	const struct loop_code *code;
	struct kind kind[KINDS];
} given[JOBS] = {
	[BRANCHES] = { &loop_branches, { { 1000, TAKEN }, { 100, IBS_OP_DATA_BRN_RET } } },
	[STORES] = { &loop_stores, { { 300, .data3 = IBS_OP_DATA3_ST_OP }, { 9 } } },
	[LOADS] = { &loop_chase, { { 260, .data3 = LOAD }, { 7, .data3 = IBS_OP_DATA3_ST_OP } } },
	[LEVEL_1] = { &loop_chase, { { 90, .data3 = LOAD }, { 10, .data3 = MISS | LAT(14) } } },
	[LEVEL_2] = { &loop_chase,
		      { { 80, .data3 = MISS | LAT(20) },
			{ 20, .data3 = MISS | LAT(30) },
			{ 25, 0, OF_L3, MISS_L2 | LAT(50) } } },
	[LEVEL_3] = { &loop_chase,
		      { { 60, 0, OF_L3, MISS_L2 | LAT(50) },
			{ 40, 0, OF_DRAM, MISS_L2 | LAT(300) } } },
	[DRAM] = { &loop_chase,
		   { { 60, 0, OF_DRAM, MISS_L2 | LAT(300) },
		     { 20, 0, OF_OTHER, MISS_L2 | LAT(700) },
		     { 20, 0, OF_L3, MISS_L2 | LAT(50) } } },
	[REMOTE] = { &loop_chase,
		     { { 30, 0, OF_DRAM, MISS_L2 },
		       { 90, 0, OF_OTHER, MISS_L2 },
		       { 30, 0, OF_L3, MISS_L2 } } },
	[SMALL_PAGES] = { &loop_chase,
			  { { 63, .data3 = TLB | IBS_OP_DATA3_L1TLB_MISS },
			    { 7, .data3 = TLB },
			    { 10, .data3 = LOAD | IBS_OP_DATA3_L1TLB_MISS } } },
	[LARGE_PAGES] = { &loop_chase,
			  { { 8, .data3 = TLB | IBS_OP_DATA3_L1TLB_MISS }, { 72, .data3 = TLB } } },
	[SHARING] = { &loop_sharing,
		      { { 40, .data3 = LOAD },
			{ 10, .data3 = MISS_L2 | IBS_OP_DATA3_NO_MAB },
			{ 30, 0, OF_NEAR, MISS_L2 },
			{ 20, 0, OF_FAR, MISS_L2 },
			{ 10, 0, OF_L3, MISS_L2 },
			{ 20, 0, OF_DRAM, MISS_L2 } } },
};

static void put_kinds(enum job job, take *fn, void *ctx)
{
	const struct loop_code *c = given[job].code;
	const __u64 begin = (uintptr_t)c->begin + c->offset, end = begin + c->accesses * c->unit;
	const struct kind *k = given[job].kind;
	const __u64 data = k->data, data3 = k->data3;

	for (; k < given[job].kind + KINDS; k++)
		for (unsigned int i = 0; i < k->n; i++)
			put_op(fn, ctx, begin + c->unit * (i % c->accesses), k->data, k->data2,
			       k->data3);
	/* what does not count: other instructions, an address that is wrong, and a record that is cut */
	for (int i = 0; i < 100; i++) {
		put_op(fn, ctx, begin + 1, data, 0, data3);
		put_op(fn, ctx, end, data, 0, data3);
		put_op(fn, ctx, begin - c->unit, data, 0, data3);
		put_op(fn, ctx, begin, data | IBS_OP_DATA_RIP_INVALID, 0, data3);
		fn(ctx, "abc", 3);
	}
}

/* Where code of so many lines is: memory of its own that can be executed. */
static __u64 find_code(size_t lines)
{
	const unsigned long bytes = lines * LOOP_LINE < 4096 ? 4096 : lines * LOOP_LINE;
	unsigned long from, to, inode, found = 0;
	char line[512], rights[8], name[2];
	FILE *f = fopen("/proc/self/maps", "re");

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %1s", &from, &to, rights, &inode, name) ==
			    4 &&
		    !strcmp(rights, "r-xp") && !inode && to - from == bytes)
			found = from;
	fclose(f);
	assert_int_not_equal(found, 0);
	return found;
}

static void put_fetch(take *fn, void *ctx, __u64 addr, __u64 ctl)
{
	const __u64 reg[] = {
		[IBS_FETCH_CTL] = ctl, [IBS_FETCH_LINADDR] = addr, [IBS_FETCH_PHYSADDR] = 0
	};

	put(fn, ctx, reg, ARRAY_SIZE(reg));
}

/* @n fetches, of which @missed missed the cache, spread over all of the code. */
static void put_fetches(size_t lines, unsigned int n, unsigned int missed, take *fn, void *ctx)
{
	const __u64 begin = find_code(lines), end = begin + lines * LOOP_LINE;
	const __u64 done = IBS_FETCH_CTL_COMP, miss = done | IBS_FETCH_CTL_IC_MISS;

	for (unsigned int i = 0; i < n; i++)
		put_fetch(fn, ctx, i ? end - i : begin, i < missed ? miss : done);
	for (int i = 0; i < 100; i++) {
		put_fetch(fn, ctx, begin - 1, miss);
		put_fetch(fn, ctx, end, miss);
		put_fetch(fn, ctx, begin, IBS_FETCH_CTL_IC_MISS); /* given up */
		fn(ctx, "abc", 3);
	}
}

bool own_samples_stop(struct own_samples *o, take *fn, void *ctx)
{
	seen[o->job].stops++;
	if (o->job == SMALL_CODE)
		put_fetches(8, 50, 5, fn, ctx);
	else if (o->job == LARGE_CODE)
		put_fetches(4096, 90, 81, fn, ctx);
	else
		put_kinds(o->job, fn, ctx);
	return !is_job(stop_fails, o->job);
}

/* --- places --- */

static struct {
	size_t bytes;
	bool huge;
	int node;
} asked[4];

static int n_asked, n_memories;
static int memory_fails; /* which call; -1: none */
static bool no_huge;	 /* the kernel has no pages of 2 MiB */

void loops_place_read(unsigned int cpu, struct loops_place *out)
{
	assert_int_equal(cpu, place.cpu);
	*out = place;
}

int loops_memory_get(size_t bytes, bool huge, int node, struct loops_memory *out, struct err *err)
{
	const int call = n_asked++;

	assert_true(call < (int)ARRAY_SIZE(asked));
	asked[call].bytes = bytes;
	asked[call].huge = huge;
	asked[call].node = node;
	*out = (struct loops_memory){};
	if (call == memory_fails)
		return err_set(err, -ENOMEM, "made to have no memory");
	out->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(out->map, MAP_FAILED);
	out->at = out->map;
	out->mapped = out->bytes = bytes;
	out->huge = huge && !no_huge;
	n_memories++;
	return 0;
}

void loops_memory_free(struct loops_memory *m)
{
	if (!m->map)
		return;
	munmap(m->map, m->mapped);
	n_memories--;
	*m = (struct loops_memory){};
}

/* --- tests --- */

static struct loops l;
static struct err err;
static cpu_set_t before;

static int set_up(void **state)
{
	(void)state;
	memset(seen, 0, sizeof(seen));
	memset(left_out, 0, sizeof(left_out));
	memset(&l, 0, sizeof(l));
	next_job = 0;
	n_asked = 0;
	memory_fails = -1;
	no_huge = false;
	open_fails = start_fails = stop_fails = -2;
	place = (struct loops_place){ .cpu = sched_getcpu(),
				      .other_cpu = -1,
				      .node = 7,
				      .other_node = 9,
				      .l1 = L1,
				      .l2 = L2,
				      .l3 = L3 };
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	return 0;
}

/* All that was opened is closed, and the thread runs where it did. */
static int tear_down(void **state)
{
	cpu_set_t now;

	(void)state;
	assert_int_equal(n_open, 0);
	assert_int_equal(n_memories, 0);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	return 0;
}

static void run(void)
{
	if (loops_run(&l, &err))
		fail_msg("%s", err.text);
}

static void is(enum loop_figure figure, double expected, double measured,
	       unsigned long long samples)
{
	const struct loop_row *r = &l.rows[figure];

	if (!r->known)
		fail_msg("%d: %s", figure, r->why);
	near(r->expected, expected);
	near(r->measured, measured);
	assert_int_equal(r->samples, samples);
}

static void is_unknown(enum loop_figure figure, const char *why)
{
	assert_false(l.rows[figure].known);
	assert_string_equal(l.rows[figure].why, why);
}

/* How often an access was done, beside samples times the period, for as long as sampling was on. */
static void is_count(enum loop_figure figure, enum job job, unsigned int stops, unsigned int ops,
		     unsigned long long samples)
{
	const struct loop_row *r = &l.rows[figure];
	const double period = seen[job].period;

	assert_true(r->known);
	assert_int_equal(r->samples, samples);
	near(r->measured, samples * period);
	assert_int_equal(seen[job].stops, stops);
	/* 60,000 samples a second of rounds of @ops, unless the period is at a bound; each time for 10 ms */
	if (period > PERIOD_MIN + 32 && period < PERIOD_MAX - 32) {
		const double rounds = stops * (period * 60000 / ops * .01 + 1);

		assert_true(r->expected > 8 * rounds * .99 && r->expected < 8 * rounds * 1.01);
	}
}

/* A latency is beside the time of a step, which is that of this machine. */
static void is_latency(enum loop_figure figure, double measured, unsigned long long samples)
{
	const struct loop_row *r = &l.rows[figure];

	if (!r->known) {
		assert_string_equal(r->why, "a step of the chain takes no time");
		return;
	}
	assert_true(r->expected >= 1);
	near(r->measured, measured);
	assert_int_equal(r->samples, samples);
}

static int another_cpu(void)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &before) && cpu != (int)place.cpu)
			return cpu;
	return -1;
}

static void test_all(void **state)
{
	(void)state;
	place.other_cpu = another_cpu();
	left_out[SHARING] = place.other_cpu < 0;
	run();
	is_count(LOOPS_BRANCHES, BRANCHES, 2, 18, 2000);
	is_count(LOOPS_STORES, STORES, 1, 17, 300);
	is_count(LOOPS_LOADS, LOADS, 1, 25, 260);
	is(LOOPS_L1, 1, .9, 100);
	is(LOOPS_L2, 1, .8, 125);
	is_latency(LOOPS_LAT_L2, 22, 100);
	is(LOOPS_L3, 1, .6, 100);
	is_latency(LOOPS_LAT_L3, 50, 60);
	is(LOOPS_DRAM, 1, .8, 100);
	is_latency(LOOPS_LAT_DRAM, 400, 80);
	is(LOOPS_LOCAL, 1, .75, 80);
	is(LOOPS_REMOTE, 1, .75, 120);
	is(LOOPS_PAGES_4K, 1, .9, 70);
	is(LOOPS_PAGES_2M, 0, .1, 80);
	if (place.other_cpu >= 0)
		is(LOOPS_SHARING, 1, .75, 80);
	is(LOOPS_CODE_L1, 0, .1, 100);
	is(LOOPS_CODE_L2, 1, .9, 90);
	for (int i = 0; i < JOBS; i++) {
		if (left_out[i])
			continue;
		assert_string_equal(seen[i].event,
				    i >= SMALL_CODE ? "ibs_fetch/rand_en=1/" : "ibs_op/cnt_ctl=1/");
		assert_in_range(seen[i].period, PERIOD_MIN, PERIOD_MAX);
		assert_int_equal(seen[i].period % 32, 16);
	}
	/* memory of this node, in small pages, and of another node */
	assert_int_equal(n_asked, 3);
	assert_int_equal(asked[0].bytes, 3 * L3);
	assert_true(asked[0].huge);
	assert_int_equal(asked[0].node, 7);
	assert_int_equal(asked[1].bytes, PAGES);
	assert_false(asked[1].huge);
	assert_int_equal(asked[1].node, -1);
	assert_int_equal(asked[2].bytes, 3 * L3);
	assert_true(asked[2].huge);
	assert_int_equal(asked[2].node, 9);
}

/* A machine with less. */
static void test_less(void **state)
{
	static const char walks[] = "without pages of 2 MiB a step also waits for page walks";

	(void)state;
	place.other_node = -1;
	no_huge = true;
	memory_fails = 1;
	left_out[REMOTE] = left_out[SMALL_PAGES] = left_out[LARGE_PAGES] = left_out[SHARING] = true;
	run();
	is(LOOPS_L2, 1, .8, 125);
	is_unknown(LOOPS_LAT_L2, walks);
	is_unknown(LOOPS_LAT_L3, walks);
	is_unknown(LOOPS_LAT_DRAM, walks);
	is_unknown(LOOPS_REMOTE, "no other node has memory");
	is_unknown(LOOPS_PAGES_4K, "no memory");
	is_unknown(LOOPS_PAGES_2M, "the kernel gave no pages of this size");
	is_unknown(LOOPS_SHARING, "there is no other core to share with");
	is(LOOPS_CODE_L2, 1, .9, 90);
	assert_int_equal(n_asked, 2);
}

static void test_no_caches(void **state)
{
	static const enum loop_figure of_caches[] = { LOOPS_L1,	     LOOPS_L2,	   LOOPS_L3,
						      LOOPS_DRAM,    LOOPS_LAT_L2, LOOPS_LAT_L3,
						      LOOPS_LAT_DRAM };

	(void)state;
	place.l1 = place.l2 = place.l3 = 0;
	start_fails = -1;
	for (int i = LEVEL_1; i <= REMOTE; i++)
		left_out[i] = true;
	left_out[SHARING] = true;
	run();
	for (size_t i = 0; i < ARRAY_SIZE(of_caches); i++)
		is_unknown(of_caches[i], "the sizes of the caches are unknown");
	is_unknown(LOOPS_REMOTE, "no other node has memory");
	assert_int_equal(asked[0].bytes, 8 << 20);
	/* one cache is larger than the memory */
	set_up(NULL);
	place.l2 = 8 * L3;
	start_fails = -1;
	left_out[LEVEL_2] = left_out[SHARING] = true;
	run();
	is_unknown(LOOPS_L2, "the sizes of the caches are unknown");
	is_unknown(LOOPS_L3, "made not to start");
}

/* A figure whose samples cannot be had is unknown; the others are known. */
static void test_failures(void **state)
{
	static const char dropped[] = "the kernel dropped samples: throttled, or busy";

	(void)state;
	left_out[SHARING] = true;
	stop_fails = LEVEL_2;
	open_fails = LARGE_CODE;
	start_fails = LOADS;
	run();
	is(LOOPS_L1, 1, .9, 100);
	is_unknown(LOOPS_L2, dropped);
	is_unknown(LOOPS_LAT_L2, dropped);
	is_unknown(LOOPS_LOADS, "made not to start");
	is_unknown(LOOPS_CODE_L2, "made not to open");
	is(LOOPS_CODE_L1, 0, .1, 100);
}

static void test_all_fail(void **state)
{
	(void)state;
	place.other_cpu = another_cpu();
	left_out[SHARING] = place.other_cpu < 0;
	start_fails = -1;
	run();
	for (int i = 0; i < LOOPS_N; i++) {
		if (i == LOOPS_SHARING && left_out[SHARING])
			continue;
		/* that of the local node comes with that of DRAM */
		assert_false(l.rows[i].known);
		assert_string_equal(l.rows[i].why, i == LOOPS_LOCAL ? "" : "made not to start");
	}
	assert_int_equal(seen[BRANCHES].stops, 0);
}

/* Nothing can be sampled, or there is no memory at all. */
static void test_nothing(void **state)
{
	(void)state;
	open_fails = PROBE;
	assert_int_equal(loops_run(&l, &err), -EACCES);
	assert_string_equal(err.text, "made not to open");
	assert_int_equal(n_asked, 0);
	assert_int_equal(seen[PROBE].period, PERIOD_MAX);
	set_up(NULL);
	memory_fails = 0;
	assert_int_equal(loops_run(&l, &err), -ENOMEM);
	assert_string_equal(err.text, "made to have no memory");
	assert_int_equal(next_job, BRANCHES);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_all),	  T(test_less),	    T(test_no_caches),
		T(test_failures), T(test_all_fail), T(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
