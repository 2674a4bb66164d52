// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sites of allocations, and what else accesses are called: in the report of allocations on the wrong node, and of lines.
 * Code is in files that do not exist, so that functions have the names of these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/heap_blocks.h"
#include "where/lines_names.h"
#include "where/lines_private.h"

#define PID	7
#define HEAP	0x600000ull
#define CODE(k) (0x100000ull + (k)*0x10000)
#define NODE(n) (0x1000 + (n)*0x100000ull) /* a physical address of its memory */

static struct trace_topology topology = { .n = 4, .node = { 0, 1, 2, 0 } };
static const struct memory_range memory[] = { { .start = 0, .end = 0x100000, .node = 0 },
					      { .start = 0x100000, .end = 0x200000, .node = 1 } };
static const struct trace_info info = {
	.host = "another machine", .topology = &topology, .memory = memory, .n_memory = 2
};
static struct tasks *tasks;
static struct symbols *symbols;

static void map(__u64 start, __u64 bytes, bool exec, const char *path)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };

	ev.mmap = (struct trace_mmap){
		.tgid = PID, .tid = PID, .start = start, .len = bytes, .exec = exec, .path = path
	};
	tasks_add(tasks, &ev);
}

/* 64 bytes at a page of the heap, from the code of file @k. */
static void allocate(unsigned int page, unsigned int k)
{
	const __u64 stack[] = { CODE(k) + 16 };
	struct trace_event ev = { .kind = TRACE_ALLOC, .time = 2 };

	ev.alloc = (struct trace_alloc){ .tgid = PID,
					 .tid = PID,
					 .addr = HEAP + page * 4096,
					 .size = 64,
					 .weight = 64,
					 .stack = stack,
					 .n_stack = 1 };
	tasks_add(tasks, &ev);
}

static int begin(void **state)
{
	const struct symbols_opts opts = { .info = &info };
	char path[32];

	(void)state;
	tasks = tasks_new();
	tasks_keep_heap(tasks);
	map(HEAP, 0x100000, false, "[heap]");
	for (char k = 0; k < 8; k++) {
		snprintf(path, sizeof(path), "/nowhere/%c", 'a' + k);
		map(CODE(k), 0x1000, true, path);
	}
	return symbols_new(&opts, &symbols, NULL);
}

static int end(void **state)
{
	(void)state;
	symbols_free(symbols);
	tasks_free(tasks);
	return 0;
}

static void name_thread(__u32 tid, const char *name)
{
	struct trace_event ev = { .kind = TRACE_COMM, .time = 1 };

	ev.comm.tgid = PID;
	ev.comm.tid = tid;
	ev.comm.name = name;
	tasks_add(tasks, &ev);
}

/* --- allocations on the wrong node --- */

static struct report_homes *homes;

/* @cpu -1: unknown */
static void touch(__u32 tid, int cpu, unsigned int page, __u64 phys, __u64 time)
{
	const struct report_opts opts = { .info = &info, .tasks = tasks, .symbols = symbols };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = time };
	struct ibs_op_sample *op = &ev.sample.op;

	ev.sample.has_task = true;
	ev.sample.tgid = PID;
	ev.sample.tid = tid;
	ev.sample.has_cpu = cpu >= 0;
	ev.sample.cpu = cpu < 0 ? 0 : cpu;
	op->present = ~0u;
	op->reg[IBS_OP_DATA3] =
		IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID;
	op->reg[IBS_DC_LINADDR] = HEAP + page * 4096 + 8;
	op->reg[IBS_DC_PHYSADDR] = phys;
	report_homes_add(homes, &opts, &ev);
}

static const char *print_homes(void)
{
	static char *text;
	size_t n;
	FILE *f;

	free(text);
	f = open_memstream(&text, &n);
	report_homes_print(f, homes, tasks);
	fclose(f);
	report_homes_free(homes);
	homes = report_homes_new();
	return text;
}

static int begin_homes(void **state)
{
	homes = report_homes_new();
	return begin(state);
}

static int end_homes(void **state)
{
	report_homes_free(homes);
	report_homes_free(NULL);
	return end(state);
}

#define HOMES "\nallocations used most from another node than the one of their memory:\n"

/* Most accesses first; of each, who was first by time, and whether there are several blocks. */
static void test_homes(void **state)
{
	(void)state;
	name_thread(6, "init");
	allocate(0, 0);
	allocate(1, 0);
	allocate(2, 1);
	allocate(3, 2);
	allocate(4, 3);
	for (int i = 0; i < 25; i++)
		touch(7, 0, 2, NODE(1), 1000 + i);
	for (int i = 0; i < 30; i++)
		touch(5, 1, i % 2, NODE(0), 1000 - i);
	touch(6, 3, 1, NODE(0), 50);
	touch(5, 1, 1, 0x900000, 60); /* memory of no node says nothing of it */
	touch(5, -1, 1, NODE(0), 60);
	for (int i = 0; i < 19; i++) /* too few */
		touch(5, 1, 3, NODE(0), 1000);
	for (int i = 0; i < 50; i++) /* where they should be */
		touch(5, 1, 4, NODE(1), 1000);
	touch(5, 1, 9, NODE(0), 1000); /* no allocation is known */
	assert_string_equal(print_homes(),
			    HOMES "  [/nowhere/a]: 30 of 31 accesses from node 1, 31 to memory of "
				  "node 0;\n"
				  "    the first one seen touched by thread 6 (init) on node 0\n"
				  "  [/nowhere/b]: 25 of 25 accesses from node 0, 25 to memory of "
				  "node 1;\n"
				  "    first seen touched by thread 7 on node 0\n");
	assert_string_equal(print_homes(), "");
	/* it was first used on a CPU that is not known; most are from the third node */
	touch(9, -1, 0, NODE(0), 10);
	for (int i = 0; i < 20; i++)
		touch(5, i < 9 ? 1 : 2, 0, NODE(i < 9), 1000);
	assert_string_equal(print_homes(),
			    HOMES "  [/nowhere/a]: 11 of 20 accesses from node 2, 11 to memory of "
				  "node 0;\n"
				  "    first seen touched by thread 9\n");
}

/* The five with most accesses. */
static void test_most_homes(void **state)
{
	const char *text;

	(void)state;
	for (int k = 0; k < 6; k++) {
		allocate(k, k);
		for (int i = 0; i < 20 + k; i++)
			touch(5, 1, k, NODE(0), 1000);
	}
	text = print_homes();
	assert_ptr_equal(strstr(text, HOMES "  [/nowhere/f]: 25 of 25 "), text);
	assert_non_null(strstr(text, "  [/nowhere/b]: 21 of 21 "));
	assert_null(strstr(text, "/nowhere/a"));
}

/* --- what accesses are called --- */

static struct line_namer namer;

static int begin_names(void **state)
{
	const int ret = begin(state);

	namer = (struct line_namer){ .tasks = tasks, .symbols = symbols };
	return ret;
}

static int end_names(void **state)
{
	line_namer_free(&namer);
	return end(state);
}

static struct line_access access_of(__u32 tid, __u64 addr, unsigned int kind, __u64 samples)
{
	return (struct line_access){ .addr = addr,
				     .tgid = PID,
				     .tid = tid,
				     .kind = kind,
				     .width = 8,
				     .has = LINE_HAS_TASK,
				     .samples = samples,
				     .first = 1000 };
}

static void is_called(const struct line_access *a, enum line_name what, const char *want)
{
	struct line_label label;

	line_namer_of(&namer, what, a, &label);
	assert_string_equal(label.name ?: "unknown", want);
	assert_null(label.into);
	assert_string_equal(line_label_text(&namer, &label, false) ?: "unknown", want);
}

static void test_names(void **state)
{
	struct line_access a = access_of(5, HEAP + 8, LINE_LOAD, 1);
	struct trace_event cgroup = { .kind = TRACE_CGROUP, .time = 1 };
	struct data_place place;

	(void)state;
	allocate(0, 0);
	name_thread(5, "worker");
	cgroup.cgroup.id = 3;
	cgroup.cgroup.path =
		"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	cgroup.cgroup.container = "web";
	tasks_add(tasks, &cgroup);
	is_called(&a, LINE_VARIABLE, "[/nowhere/a]");
	is_called(&a, LINE_FIELD, "[/nowhere/a] + 8");
	is_called(&a, LINE_COMM, "worker");
	is_called(&a, LINE_FUNCTION, "unknown");
	is_called(&a, LINE_CONTAINER, "unknown");
	a.cgroup_id = 3;
	is_called(&a, LINE_CONTAINER, "web");
	is_called(&a, LINE_CONTAINER, "web");
	a.cgroup_id = 4;
	is_called(&a, LINE_CONTAINER, "#4");
	a.ip = CODE(1) + 4;
	is_called(&a, LINE_FUNCTION, "unknown"); /* as it is not said to be known */
	a.has |= LINE_HAS_IP;
	is_called(&a, LINE_FUNCTION, "[/nowhere/b]");
	a.addr = HEAP;
	is_called(&a, LINE_FIELD, "[/nowhere/a]");
	a.addr = HEAP + 64; /* behind the block */
	is_called(&a, LINE_VARIABLE, "[heap]");
	is_called(&a, LINE_FIELD, "[heap]");
	a.tid = 6;
	is_called(&a, LINE_COMM, "unknown");
	a.tid = 5;
	a.has = 0; /* of no process */
	is_called(&a, LINE_COMM, "unknown");
	is_called(&a, LINE_VARIABLE, "unknown");
	line_namer_place(&namer, &a, &place);
	assert_int_equal(place.kind, DATA_NO_ADDRESS);
	a.has = LINE_HAS_TASK;
	a.addr = 0;
	is_called(&a, LINE_VARIABLE, "unknown");
}

/* The block that most samples of one access are in. */
static void test_block(void **state)
{
	struct line_access a[] = { access_of(5, HEAP, LINE_LOAD, 2),
				   access_of(5, HEAP + 4096, LINE_LOAD, 3),
				   access_of(5, HEAP + 8192, LINE_LOAD, 3) };
	const struct line l = { .access = a, .n_access = 3 }, none = { 0 };
	struct heap_block b;
	const char *site, *again;

	(void)state;
	allocate(0, 0);
	allocate(1, 1);
	allocate(2, 2);
	allocate(3, 1);
	assert_true(line_namer_block(&namer, &l, &b, &site));
	assert_string_equal(site, "[/nowhere/b]");
	assert_int_equal(b.addr, HEAP + 4096);
	/* another block of the same site */
	a[0].samples = 9;
	a[0].addr = HEAP + 3 * 4096;
	assert_true(line_namer_block(&namer, &l, &b, &again));
	assert_ptr_equal(site, again);
	assert_int_equal(b.addr, HEAP + 3 * 4096);
	a[0].addr = HEAP + 5 * 4096;
	assert_false(line_namer_block(&namer, &l, &b, &site));
	assert_null(site);
	assert_false(line_namer_block(&namer, &none, &b, &site));
}

/* Most samples first, then by name; those of other kinds, of other slots and without a name do not count. */
static void test_tally(void **state)
{
	static const char *const names[] = { "e", "c", "d", "b", "a" };
	struct line_access a[] = {
		access_of(1, HEAP, LINE_LOAD, 3),      access_of(2, HEAP, LINE_LOAD, 1),
		access_of(3, HEAP + 8, LINE_LOAD, 3),  access_of(4, HEAP + 8, LINE_STORE, 9),
		access_of(2, HEAP + 16, LINE_LOAD, 4), access_of(5, HEAP, LINE_LOAD, 3),
		access_of(6, HEAP, LINE_LOAD, 7),
	};
	const struct line l = { .access = a, .n_access = 7 };
	struct line_tally t;

	(void)state;
	for (__u32 tid = 1; tid <= 5; tid++)
		name_thread(tid, names[tid - 1]);
	line_tally(&namer, &l, LINE_COMM, LINE_LOAD, ~0u, &t);
	assert_int_equal(t.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(t.v[i].label.name, ((const char *[]){ "c", "a", "d", "e" })[i]);
		assert_int_equal(t.v[i].samples, i ? 3 : 5);
	}
	free(t.v);
	line_tally(&namer, &l, LINE_COMM, LINE_LOAD | LINE_STORE, 1 << 1, &t);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.v[0].label.name, "b");
	assert_int_equal(t.v[0].samples, 9);
	assert_string_equal(t.v[1].label.name, "d");
	free(t.v);
	line_tally(&namer, &l, LINE_FUNCTION, LINE_LOAD, ~0u, &t);
	assert_int_equal(t.n, 0);
	assert_null(t.v);
}

/* --- advice --- */

/* Of a function of file @k; -1: unknown. Threads have a CPU each. */
static struct line_access use(__u32 tid, unsigned int offset, unsigned int kind, __u64 samples,
			      int k)
{
	struct line_access a = access_of(tid, HEAP + offset, kind, samples);

	a.cpu = tid;
	a.has |= LINE_HAS_CPU | (k < 0 ? 0 : LINE_HAS_IP);
	a.ip = k < 0 ? 0 : CODE(k) + 4;
	return a;
}

static void advice_is(enum line_verdict verdict, const struct line_access *a, size_t n,
		      const char *want)
{
	const struct line l = { .verdict = verdict, .access = a, .n_access = n };
	char *text = line_advice(&namer, &l);

	assert_string_equal(text ?: "(none)", want);
	free(text);
}

#define APART	 " to lines of their own, 64 bytes apart"
#define LESS(by) " less often (written by " by "): batch the updates or keep one copy per CPU"

/* The busiest two slots that disturb each other, and the busiest one that several threads write. */
static void test_advice(void **state)
{
	struct line_access a[] = {
		use(5, 8, LINE_STORE, 10, 1),  use(6, 32, LINE_LOAD, 20, 2),
		use(6, 32, LINE_LOAD, 5, 3),   use(7, 48, LINE_LOAD, 24, -1),
		use(5, 16, LINE_STORE, 1, 4),  use(6, 56, LINE_PREFETCH | LINE_LOAD, 99, 1),
		use(6, 8, LINE_STORE, 30, 5),  use(7, 24, LINE_STORE, 26, 6),
		use(5, 24, LINE_STORE, 25, 7),
	};

	(void)state;
	allocate(0, 0);
	advice_is(LINE_VERDICT_FALSE - 1, a, 6, "(none)");
	/* all samples of a slot count, but not those of prefetches */
	advice_is(LINE_VERDICT_FALSE, a, 6,
		  "move offset 8 (written by [/nowhere/b]) and offset 32 (read by [/nowhere/c] "
		  "(+1))" APART);
	a[3].samples = 26;
	advice_is(
		LINE_VERDICT_FALSE, a, 6,
		"move offset 8 (written by [/nowhere/b]) and offset 48 (read by [unknown])" APART);
	a[3].kind = LINE_STORE;
	advice_is(LINE_VERDICT_FALSE, a, 6,
		  "move offset 48 (written by [unknown]) and offset 32 (read by [/nowhere/c] "
		  "(+1))" APART);
	a[1].kind = LINE_STORE;
	advice_is(LINE_VERDICT_FALSE, a, 6,
		  "move offset 32 (written by [/nowhere/c]) and offset 48 (written by "
		  "[unknown])" APART);
	/* two threads write one slot, then another one */
	advice_is(LINE_VERDICT_TRUE, &a[6], 1, "");
	advice_is(LINE_VERDICT_TRUE, &a[7], 2, "write offset 24" LESS("[/nowhere/g] (+1)"));
	a[3] = a[0];
	a[4] = a[6];
	advice_is(LINE_VERDICT_TRUE, &a[3], 2, "write offset 8" LESS("[/nowhere/f] (+1)"));
	a[5] = a[0];
	advice_is(LINE_VERDICT_TRUE, &a[5], 4, "write offset 24" LESS("[/nowhere/g] (+1)"));
	a[6].samples = 42;
	advice_is(LINE_VERDICT_TRUE, &a[5], 4, "write offset 8" LESS("[/nowhere/f] (+1)"));
	/* both */
	a[5] = use(6, 56, LINE_LOAD, 3, 2);
	a[6] = use(5, 24, LINE_STORE, 5, 2);
	advice_is(LINE_VERDICT_MIXED, &a[5], 4,
		  "move offset 24 (written by [/nowhere/g] (+2)) and offset 56 (read by "
		  "[/nowhere/c])" APART "; write offset 24" LESS("[/nowhere/g] (+2)"));
}

static void test_labels(void **state)
{
	const struct line_label plain = { .name = "get", .mangled = "_Z3getv" },
				in = { .name = "get",
				       .mangled = "_Z3getv",
				       .into = "find",
				       .into_mangled = "_Z4findv" },
				none = { 0 };

	(void)state;
	assert_string_equal(line_label_text(&namer, &plain, false), "get");
	assert_string_equal(line_label_text(&namer, &plain, true), "_Z3getv");
	assert_string_equal(line_label_text(&namer, &in, false), "get (inlined into find)");
	assert_string_equal(line_label_text(&namer, &in, true), "_Z3getv (inlined into _Z4findv)");
	assert_int_equal(line_label_compare(&plain, &plain), 0);
	assert_true(line_label_compare(&in, &plain) < 0); /* what is not known is last */
	assert_true(line_label_compare(&plain, &in) > 0);
	assert_true(line_label_compare(&plain, &none) < 0);
}

/* --- pages that moved --- */

static struct line_access at_page(__u32 tgid, unsigned int page, __u64 phys, __u64 first,
				  __u64 last)
{
	return (struct line_access){ .phys = phys * 4096,
				     .addr = 0x10000 + page * 4096,
				     .tgid = tgid,
				     .has = LINE_HAS_TASK,
				     .first = first,
				     .last = last };
}

static void find_pages(struct line_access *a, size_t n, struct line_pages *out, __u32 *page)
{
	const struct line_set set = { .access = a, .n = n };

	line_pages_find(&set, out, page);
	for (size_t i = 0; i < n; i++)
		page[i] = page[i] == U64_MAP_NONE ? page[i] : out->page[page[i]].root;
}

/* One after the other is one page; what is used meanwhile is another. */
static void test_moved(void **state)
{
	struct line_access a[] = {
		at_page(1, 0, 5, 10, 20), at_page(1, 0, 6, 30, 40), at_page(1, 0, 7, 50, 60),
		at_page(1, 1, 8, 10, 20), at_page(1, 1, 9, 20, 40), at_page(2, 0, 4, 70, 80),
		at_page(1, 0, 0, 1, 90),
	};
	struct line_pages p;
	__u32 page[7];

	(void)state;
	find_pages(a, 7, &p, page);
	assert_int_equal(p.moved, 2);
	assert_int_equal(p.n, 6);
	assert_int_equal(page[0], page[2]);
	assert_int_equal(page[1], page[2]);
	assert_int_equal(p.page[page[2]].page, 7 * 4096);
	assert_int_equal(p.page[page[2]].first, 10);
	assert_true(page[3] != page[4]); /* used in the same moment */
	assert_true(page[5] != page[2]); /* of another process */
	assert_int_equal(page[6], U64_MAP_NONE);
	line_pages_free(&p);
	/* as many as are looked up at once, and none */
	for (size_t n = 0; n <= 64; n += 32) {
		struct line_access *many = calloc(n + 1, sizeof(*many));
		__u32 of[65];

		for (size_t i = 0; i < n; i++)
			many[i] = at_page(1, i, 100 + i, 10, 20);
		find_pages(many, n, &p, of);
		assert_int_equal(p.n, n);
		assert_int_equal(p.moved, 0);
		line_pages_free(&p);
		free(many);
	}
}

/* Two processes copy a page on write: it is where the first of them goes on. */
static void test_copied(void **state)
{
	struct line_access a[] = { at_page(1, 0, 5, 10, 20), at_page(2, 0, 5, 10, 20),
				   at_page(1, 0, 6, 50, 60), at_page(2, 0, 7, 30, 70) };
	struct line_pages p;
	__u32 page[4];

	(void)state;
	find_pages(a, 4, &p, page);
	assert_int_equal(p.moved, 1);
	assert_int_equal(page[0], page[3]);
	assert_true(page[2] != page[3]);
	line_pages_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_homes, begin_homes, end_homes),
		cmocka_unit_test_setup_teardown(test_most_homes, begin_homes, end_homes),
		cmocka_unit_test_setup_teardown(test_names, begin_names, end_names),
		cmocka_unit_test_setup_teardown(test_block, begin_names, end_names),
		cmocka_unit_test_setup_teardown(test_tally, begin_names, end_names),
		cmocka_unit_test_setup_teardown(test_advice, begin_names, end_names),
		cmocka_unit_test_setup_teardown(test_labels, begin_names, end_names),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
