// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What each key of --by says of a sample, and of which samples it says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "heap/heap_blocks.h"
#include "profile/profile.h"
#include "report/report_print.h"
#include "tree.h"

#define CAPS   0xbffu /* Zen 4 */
#define PID    7
#define TIME   1000
#define KERNEL 0xffffffff81000000ull
#define CODE   0x400000ull
#define HEAP   0x600000ull
#define ANON   0x7f0000000000ull
#define SLAB   0xffff888000010000ull

static const struct trace_pmu pmu = {
	.name = "ibs_op//", .op = true, .period = 1000, .stacks = true
};
static struct trace_topology topology;
static const struct memory_range memory[] = { { 0, 0x100000, 0 }, { 0x100000, 0x200000, 1 } };
static struct trace_info info;
static struct tasks *tasks;
static struct symbols *symbols;
static struct report_opts opts;
static struct trace_event ev;

static void add(struct trace_event e)
{
	e.time = e.time ?: 1;
	tasks_add(tasks, &e);
}

static void map(__u64 start, __u64 bytes, bool exec, const char *path)
{
	add((struct trace_event){ .kind = TRACE_MMAP,
				  .mmap = { .tgid = start >> 63 ? 0 : PID,
					    .tid = start >> 63 ? 0 : PID,
					    .kernel = start >> 63,
					    .exec = exec,
					    .start = start,
					    .len = bytes,
					    .path = path } });
}

static void add_world(void)
{
	static const __u64 stack[] = { CODE + 0x21, 0x500031 };

	add((struct trace_event){
		.kind = TRACE_COMM, .time = 3, .comm = { PID, 9, false, "work;er" } });
	add((struct trace_event){ .kind = TRACE_RANK, .rank = { .tgid = PID, .rank = 3 } });
	add((struct trace_event){ .kind = TRACE_FORK, .fork = { PID, 8, PID, PID } });
	add((struct trace_event){ .kind = TRACE_FORK, .time = 2, .fork = { PID, 9, PID, PID } });
	add((struct trace_event){
		.kind = TRACE_CGROUP,
		.cgroup = {
			.id = 5,
			.path = "/docker/"
				"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			.container = "web" } });
	add((struct trace_event){ .kind = TRACE_CGROUP, .cgroup = { .id = 6, .path = "/plain" } });
	add((struct trace_event){
		.kind = TRACE_REGION, .time = 3, .region = { .tid = 9, .name = "solve" } });
	add((struct trace_event){
		.kind = TRACE_REGION, .time = 4, .region = { .tid = 9, .name = "inner" } });
	add((struct trace_event){ .kind = TRACE_REGION,
				  .region = { .tid = 12,
					      .omp = true,
					      .number = 4,
					      .team = 12,
					      .addr = CODE + 8,
					      .name = "" } });
	add((struct trace_event){
		.kind = TRACE_SLAB,
		.slab = { .id = 0x1000, .object_size = 64, .size = 64, .name = "dentry" } });
	add((struct trace_event){ .kind = TRACE_ALLOC,
				  .time = 2,
				  .alloc = { .tgid = PID,
					     .tid = PID,
					     .addr = HEAP + 0x100,
					     .size = 64,
					     .weight = 64,
					     .stack = stack,
					     .n_stack = 2 } });
	add((struct trace_event){ .kind = TRACE_ALLOC,
				  .time = 2,
				  .alloc = { .tgid = PID,
					     .tid = PID,
					     .addr = HEAP + 0x400,
					     .size = 64,
					     .weight = 64 } });
	map(KERNEL, 0x200000, true, "[kernel.kallsyms]");
	map(CODE, 0x1000, true, "/nowhere/prog");
	map(0x500000, 0x1000, true, "/nowhere/lib;x");
	map(HEAP, 0x2000, false, "[heap]");
	map(ANON, 0x2000, false, "//anon");
	map(0x7ffd00000000, 0x1000, false, "[stack]");
}

/* A load of thread 9 of the program, of local memory. */
static void plain_op(void)
{
	struct trace_sample *s = &ev.sample;

	ev = (struct trace_event){ .kind = TRACE_SAMPLE_OP, .time = TIME };
	s->has_task = s->has_cpu = s->has_ip = true;
	s->tgid = PID;
	s->tid = 9;
	s->cpu = 3;
	s->cgroup_id = 5;
	s->ip = CODE + 0x10;
	s->op.cpu.caps = CAPS;
	s->op.nregs = IBS_OP_REG_FIXED;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_RIP] = s->ip;
	s->op.reg[IBS_OP_DATA2] = 3;
	s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS |
				  IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID | 300ull << 32;
	s->op.reg[IBS_DC_LINADDR] = HEAP + 0x148;
	s->op.reg[IBS_DC_PHYSADDR] = 0x1fff;
}

static int set_up(void **state)
{
	static char list[128];
	const struct symbols_opts symbols_opts = { .info = &info, .kallsyms = list };

	new_root(state);
	put_file("/list", "ffffffff81000000 T _text\n"
			  "ffffffff81000100 T do_fault\n"
			  "ffffffff81000200 T handle\n"
			  "ffffffff81000300 T other\n"
			  "ffffffff81000400 T more\n"
			  "ffffffff82000000 D jiffies\n"
			  "ffffffff82000010 D next\n");
	snprintf(list, sizeof(list), "%s/list", root);
	topology = (struct trace_topology){ .n = 4, .node = { 0, 0, 1, 1 }, .ccx = { 0, 1, 2, 5 } };
	topology.distance.of[1][0] = 32;
	info = (struct trace_info){ .host = "another machine",
				    .pmu = &pmu,
				    .n_pmus = 1,
				    .topology = &topology,
				    .memory = memory,
				    .n_memory = 2 };
	tasks = tasks_new();
	tasks_keep_heap(tasks);
	add_world();
	plain_op();
	opts = (struct report_opts){ .n_by = 1, .info = &info };
	return symbols_new(&symbols_opts, &symbols, NULL);
}

static int clean_up(void **state)
{
	symbols_free(symbols);
	tasks_free(tasks);
	return remove_root(state);
}

/* The label of the row of the sample; "(absent)" if it has none. */
static const char *label(const char *key)
{
	static char text[8192];
	struct report_table t;
	struct report *r;

	assert_int_equal(report_keys_parse(key, opts.by, &opts.n_by, NULL), 0);
	opts.tasks = tasks;
	opts.symbols = symbols;
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	for (int again = 0; again < 2; again++)
		assert_int_equal(report_add(r, &ev), 0);
	assert_int_equal(report_table(r, &(struct report_order){ .sort = TABLE_SAMPLES }, &t), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.rows[0].samples, 2);
	snprintf(text, sizeof(text), "%s", t.rows[0].label[0] ?: "(absent)");
	report_table_free(&t);
	report_free(r);
	return text;
}

static void is(const char *key, const char *want)
{
	const char *text = label(key);

	if (strcmp(text, want) != 0)
		fail_msg("%s: '%s', not '%s'", key, text, want);
}

#define ABSENT "(absent)"

static void test_who(void **state)
{
	(void)state;
	is("pid", "7");
	is("tid", "9");
	is("comm", "work;er");
	is("rank", "3");
	is("region", "solve/inner");
	is("thread_role", "start 2");
	is("omp_region", ABSENT);
	is("container", "web");
	is("pod", "");
	is("cgroup", "/docker/"
		     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	ev.sample.cgroup_id = 6;
	is("container", "");
	is("cgroup", "/plain");
	ev.sample.cgroup_id = 4;
	is("container", "#4");
	is("cgroup", "#4");
	ev.sample.cgroup_id = 0;
	is("cgroup", ABSENT);
	ev.sample.tid = 12;
	is("thread_role", "omp 4");
	is("omp_region", "[/nowhere/prog]");
	is("comm", ABSENT);
	is("region", ABSENT);
	ev.sample.tid = 30;
	is("thread_role", ABSENT);
	ev.sample.tgid = 100;
	is("rank", ABSENT);
	ev.sample.tgid = ev.sample.tid = ~0u; /* perf's for a task that is gone */
	is("pid", ABSENT);
	is("tid", ABSENT);
	plain_op();
	ev.sample.has_task = false;
	is("pid", ABSENT);
	is("comm", ABSENT);
	is("rank", ABSENT);
	is("region", ABSENT);
	is("thread_role", ABSENT);
	ev.sample.tid = 12;
	is("omp_region", ABSENT);
}

static void test_where(void **state)
{
	(void)state;
	is("cpu", "3");
	is("ccx", "5");
	is("node", "1");
	is("mem_node", "0");
	is("distance", "32");
	is("host", "another machine");
	ev.sample.op.reg[IBS_DC_PHYSADDR] = 0x100000;
	is("mem_node", "1");
	is("distance", ABSENT); /* it is not known of these two */
	ev.sample.op.reg[IBS_DC_PHYSADDR] = 0x200000;
	is("mem_node", ABSENT);
	is("distance", ABSENT);
	ev.sample.cpu = 4;
	is("cpu", "4");
	is("node", ABSENT);
	is("ccx", ABSENT);
	ev.sample.cpu = 3;
	ev.sample.has_cpu = false;
	is("cpu", ABSENT);
	is("node", ABSENT);
	plain_op();
	ev.sample.op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_PHY_VALID;
	is("mem_node", ABSENT);
	plain_op();
	info.topology = NULL;
	is("node", ABSENT);
	info.n_memory = 0;
	is("mem_node", ABSENT);
	*info.host = 0;
	is("host", ABSENT);
}

static void test_op(void **state)
{
	__u64 *data3 = &ev.sample.op.reg[IBS_OP_DATA3];

	(void)state;
	is("event", "ibs_op//");
	is("src", "dram");
	is("op", "load");
	is("mode", "user");
	is("prefetch", "none");
	is("miss", "primary");
	is("page_size", "4096");
	is("ip", "0x400010");
	is("symbol", "[/nowhere/prog]");
	is("dso", "/nowhere/prog");
	is("srcline", ABSENT);
	is("fetch", ABSENT);
	is("itlb", ABSENT);
	*data3 |= IBS_OP_DATA3_NO_MAB | IBS_OP_DATA3_SW_PF | 1 << 4;
	is("prefetch", "software");
	is("op", "prefetch");
	is("miss", "secondary");
	is("page_size", "2097152");
	*data3 &= ~(IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS);
	is("miss", ABSENT);
	*data3 = 0;
	is("prefetch", ABSENT);
	is("page_size", ABSENT);
	is("src", "none");
	plain_op();
	*data3 ^= 3 << 4; /* of both sizes */
	ev.sample.op.cpu.caps |= IBS_CAPS_OPDTLBPGSIZE;
	is("page_size", ABSENT);
	ev.sample.op.present &= ~(1u << IBS_OP_DATA3);
	is("page_size", ABSENT);
	is("src", ABSENT);
	is("op", ABSENT);
	plain_op();
	ev.sample.ip = ev.sample.op.reg[IBS_OP_RIP] = KERNEL + 0x104;
	ev.sample.kernel = true;
	is("mode", "kernel");
	is("symbol", "do_fault");
	is("dso", "[kernel]");
	ev.sample.op.reg[IBS_OP_DATA] |= IBS_OP_DATA_RIP_INVALID;
	is("mode", ABSENT);
	plain_op();
	ev.sample.has_ip = false;
	is("mode", ABSENT);
	is("ip", ABSENT);
	is("symbol", ABSENT);
	is("dso", ABSENT);
	ev.sample.pmu = 1;
	is("event", ABSENT);
}

static void test_fetch(void **state)
{
	struct ibs_fetch_sample *f = &ev.sample.fetch;

	(void)state;
	opts.metric = IBS_METRIC_FETCH_LAT;
	ev.kind = TRACE_SAMPLE_FETCH;
	*f = (struct ibs_fetch_sample){ .cpu.caps = CAPS, .present = 7 };
	f->reg[IBS_FETCH_CTL] =
		IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_OC_MISS | IBS_FETCH_CTL_PHY_VALID | 1ull << 53;
	is("fetch", "l1");
	is("itlb", "l1");
	is("page_size", "2097152");
	is("mode", "user");
	is("src", ABSENT);
	is("op", ABSENT);
	is("line", ABSENT);
	is("variable", ABSENT);
	ev.sample.kernel = true;
	is("mode", "kernel");
	f->reg[IBS_FETCH_CTL] &= ~IBS_FETCH_CTL_PHY_VALID;
	is("page_size", ABSENT);
	f->present = 6;
	is("fetch", ABSENT);
}

static void test_addresses(void **state)
{
	__u64 *addr = &ev.sample.op.reg[IBS_DC_LINADDR];

	(void)state;
	is("line", "0x600140");
	is("page", "0x600000");
	is("phys_page", "0x1000");
	is("space", "7");
	opts.phys = true;
	is("line", "0x1fc0");
	is("page", "0x1000");
	opts.phys = false;
	*addr = 0xffff888000000000;
	is("space", "kernel");
	ev.sample.has_task = false;
	is("space", "kernel");
	*addr = HEAP;
	is("space", ABSENT);
	plain_op();
	ev.sample.op.reg[IBS_OP_DATA3] &= ~(IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID);
	is("line", ABSENT);
	is("space", ABSENT);
	is("phys_page", ABSENT);
	is("variable", ABSENT);
	is("mapping", ABSENT);
}

static void test_data(void **state)
{
	__u64 *addr = &ev.sample.op.reg[IBS_DC_LINADDR];

	(void)state;
	is("mapping", "[heap]");
	is("range", "0x600000-0x602000");
	is("variable", "[heap]");
	is("offset", ABSENT);
	*addr = HEAP + 0x120;
	is("allocation", "[/nowhere/prog]");
	*addr = HEAP + 0x140; /* behind it */
	is("allocation", "[heap, not noted]");
	*addr = ANON;
	is("mapping", "[anon]");
	is("allocation", "[anon, not noted]");
	*addr = 0x7ffd00000010;
	is("variable", "[stack]");
	is("allocation", "[stack]");
	*addr = 0x300000;
	is("mapping", "[unmapped]");
	is("range", ABSENT);
	is("allocation", "[unmapped]");
	*addr = CODE;
	is("variable", "[/nowhere/prog]");
	is("allocation", "[/nowhere/prog]");
	*addr = 0xffffffff82000008;
	is("variable", "jiffies");
	is("offset", "8");
	is("mapping", "[kernel]");
	is("allocation", "[kernel]");
	ev.sample.has_task = false;
	is("variable", "jiffies");
	*addr = HEAP;
	is("variable", ABSENT);
	is("allocation", ABSENT);
}

static void test_slabs(void **state)
{
	(void)state;
	is("slab", "[user]");
	ev.sample.op.reg[IBS_DC_LINADDR] = SLAB;
	is("slab", "[no slab]");
	ev.sample.slab = 0x2000;
	is("slab", "[gone]");
	ev.sample.slab = 0x1001;
	is("slab", "dentry");
	is("type", "[slab dentry]");
	is("field", ABSENT);
	ev.sample.op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_LIN_VALID;
	is("slab", ABSENT);
	tasks_free(tasks);
	tasks = tasks_new(); /* without slabs */
	plain_op();
	is("slab", ABSENT);
}

static void test_types(void **state)
{
	(void)state;
	is("type", "[no_object]");
	is("field", ABSENT);
	is("field_offset", ABSENT);
	is("field_size", ABSENT);
	ev.sample.ip = 0x123;
	is("type", "[no_file]");
	ev.sample.has_ip = false;
	is("type", "[no_address]");
	plain_op();
	ev.sample.kernel = true;
	is("type", "[kernel]");
	plain_op();
	ev.sample.has_task = false;
	is("type", "[no_file]");
	ev.sample.op.reg[IBS_OP_DATA3] = 0;
	is("type", "[no_access]");
}

static void test_chains(void **state)
{
	static const __u64 stack[] = { CODE + 0x10, 0x500021, CODE + 0x31 };
	static const __u64 kernel[] = { (__u64)PERF_CONTEXT_KERNEL, KERNEL + 0x104, KERNEL + 0x10,
					(__u64)PERF_CONTEXT_USER, CODE + 0x10 };

	(void)state;
	is("caller", ABSENT);
	is("stack", ABSENT);
	ev.sample.stack = stack;
	ev.sample.n_stack = 1;
	is("caller", ABSENT);
	is("stack", "[/nowhere/prog]");
	ev.sample.n_stack = 3;
	is("caller", "[/nowhere/lib;x]");
	is("stack", "[/nowhere/prog];[/nowhere/lib:x];[/nowhere/prog]");
	ev.sample.stack = kernel;
	ev.sample.n_stack = 5;
	ev.sample.kernel = true;
	ev.sample.ip = KERNEL + 0x104;
	is("caller", "_text");
	is("stack", "[/nowhere/prog];_text;do_fault");
}

/* A chain longer than its room loses its inner functions; a long name is cut. */
static void test_long_chain(void **state)
{
	static __u64 stack[TRACE_STACK_MAX];
	static char path[400], text[600], all[REPORT_STACK];

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	map(0x700000, 0x10000, true, path);
	for (unsigned int i = 0; i < TRACE_STACK_MAX; i++)
		stack[i] = 0x700001 + i;
	ev.sample.stack = stack;
	ev.sample.n_stack = TRACE_STACK_MAX;
	assert_true(report_stack(symbols, tasks, &ev, text, sizeof(text)));
	assert_int_equal(strlen(text), 2 * 255 + 1);
	assert_int_equal(text[255], ';');
	assert_memory_equal(text, "[/ppp", 5);
	assert_true(report_stack(symbols, tasks, &ev, all, sizeof(all)));
	assert_int_equal(strlen(all), TRACE_STACK_MAX * 256 - 1);
}

/* Flame graphs of the stacks that allocated the data, or of what is known of it. */
static void test_folded_allocations(void **state)
{
	struct folded_opts of = { .metric = IBS_METRIC_DC_MISS_LAT,
				  .allocations = true,
				  .simulated = true,
				  .tasks = tasks,
				  .symbols = symbols };
	__u64 *addr = &ev.sample.op.reg[IBS_DC_LINADDR];
	struct folded *f = folded_new(&of);
	char *text = NULL;
	size_t size;
	FILE *out;

	(void)state;
	*addr = HEAP + 0x120;
	folded_add(f, &ev);
	folded_add(f, &ev);
	*addr = HEAP + 0x200;
	folded_add(f, &ev);
	*addr = HEAP + 0x420; /* of an unknown stack */
	folded_add(f, &ev);
	ev.sample.op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_LIN_VALID;
	folded_add(f, &ev);
	ev.sample.has_task = false;
	folded_add(f, &ev);
	ev.kind = TRACE_SAMPLE_FETCH;
	folded_add(f, &ev);
	out = open_memstream(&text, &size);
	folded_print(out, f);
	fclose(out);
	assert_string_equal(text, "SIMULATED;[unknown];[unknown] 1\n"
				  "SIMULATED;work:er;[/nowhere/lib:x];[/nowhere/prog] 2\n"
				  "SIMULATED;work:er;[heap, not noted] 1\n"
				  "SIMULATED;work:er;[no stack] 1\n"
				  "SIMULATED;work:er;[unknown] 1\n");
	free(text);
	folded_free(f);
	folded_free(NULL);
}

static void add_fetches(struct report *r, __u64 ip, unsigned int n)
{
	ev.sample.has_ip = ip;
	ev.sample.ip = ip;
	ev.sample.kernel = ip >> 63;
	while (n--)
		assert_int_equal(report_add(r, &ev), 0);
}

static const char *print_fetches(const struct report *r)
{
	static char text[512];
	FILE *f;

	*text = 0;
	f = fmemopen(text, sizeof(text), "w");
	report_fetches_print(f, r);
	fclose(f);
	return text;
}

/* The functions of fetches that missed the L3 cache, if there are enough of those. */
static void test_missed_fetches(void **state)
{
	struct ibs_fetch_sample *f = &ev.sample.fetch;
	struct report *r;

	(void)state;
	opts = (struct report_opts){
		.metric = IBS_METRIC_FETCH_LAT, .info = &info, .tasks = tasks, .symbols = symbols
	};
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	ev.kind = TRACE_SAMPLE_FETCH;
	*f = (struct ibs_fetch_sample){ .cpu.caps = CAPS, .present = 7 };
	f->reg[IBS_FETCH_CTL] = IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_IC_MISS | IBS_FETCH_CTL_L2_MISS;
	add_fetches(r, KERNEL + 0x104, 200); /* from the L3 */
	f->reg[IBS_FETCH_CTL] |= IBS_FETCH_CTL_L3_MISS;
	add_fetches(r, KERNEL + 0x404, 5);
	add_fetches(r, KERNEL + 0x304, 14);
	add_fetches(r, KERNEL + 0x104, 50);
	add_fetches(r, KERNEL + 0x204, 30);
	assert_string_equal(print_fetches(r), "");
	add_fetches(r, KERNEL + 0x304, 1);
	assert_string_equal(print_fetches(r),
			    "L3-miss code fetches come from 4 functions: do_fault 50.0%, handle "
			    "30.0%, other 15.0%, ..\n");
	add_fetches(r, CODE, 20);
	add_fetches(r, 0, 5);
	assert_string_equal(print_fetches(r),
			    "L3-miss code fetches come from 4 functions: do_fault 40.0%, handle "
			    "24.0%, other 12.0%, ..; no function is known of 20.0%\n");
	report_free(r);
	/* none of a function that is known; one */
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	add_fetches(r, CODE, 100);
	assert_string_equal(print_fetches(r), "");
	add_fetches(r, KERNEL + 0x104, 100);
	assert_string_equal(print_fetches(r),
			    "L3-miss code fetches come from 1 function: do_fault 50.0%; no "
			    "function is known of 50.0%\n");
	report_free(r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_who),
		T(test_where),
		T(test_op),
		T(test_fetch),
		T(test_addresses),
		T(test_data),
		T(test_slabs),
		T(test_types),
		T(test_chains),
		T(test_long_chain),
		T(test_folded_allocations),
		T(test_missed_fetches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
