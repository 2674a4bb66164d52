// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Samples of functions of this program, by instruction. The functions never run. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "annotate/annotate.h"
#include "self_map.h"

#define PID  7
#define CAPS 0xbffu /* Zen 4 */

/* clang-format off */

__asm__(
	".text\n"
	".globl annotated\n.type annotated, @function\nannotated: movq 8(%rdi), %rax\n"
	".globl annotated_call\nannotated_call: call annotated_other\n"
	".globl annotated_jump\nannotated_jump: jz annotated\n"
	".globl annotated_bad\nannotated_bad: .byte 6\n"
	".globl annotated_return\nannotated_return: ret\n"
	".size annotated, . - annotated\n"
	".globl annotated_other\n.type annotated_other, @function\nannotated_other: push %rbp\n"
	"mov %rsp, %rbp\n"
	"call annotated\n"
	".globl annotated_after\nannotated_after: pop %rbp\n"
	"ret\n"
	".size annotated_other, . - annotated_other\n"
	".globl annotated_large\n.type annotated_large, @function\nannotated_large: ret\n"
	".size annotated_large, 0x100001\n");

/* clang-format on */

extern const char annotated[], annotated_call[], annotated_jump[], annotated_bad[],
	annotated_return[], annotated_other[], annotated_after[], annotated_large[];

static struct trace_pmu pmu;
static const struct trace_info info = {
	.host = "another machine", .format = "test", .pmu = &pmu, .n_pmus = 1
};
static struct tasks *tasks;
static struct symbols *symbols;
static struct annotate *a;
static struct err err;
static char path[512];

static __u64 addr(const void *at)
{
	return (uintptr_t)at;
}

static int begin(void **state)
{
	const struct symbols_opts opts = { .info = &info };
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long long start, stop, pgoff;
	char line[1024];

	(void)state;
	pmu = (struct trace_pmu){ .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000 };
	tasks = tasks_new();
	dl_iterate_phdr(self_build_id, &ev.mmap);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx r-xp %llx %*s %*s %511s", &start, &stop, &pgoff, path) <
			    4 ||
		    addr(annotated) < start || addr(annotated) >= stop)
			continue;
		ev.mmap.tgid = ev.mmap.tid = PID;
		ev.mmap.exec = true;
		ev.mmap.start = start;
		ev.mmap.len = stop - start;
		ev.mmap.pgoff = pgoff;
		ev.mmap.path = path;
		tasks_add(tasks, &ev);
		break;
	}
	fclose(f);
	err.text[0] = 0;
	return symbols_new(&opts, &symbols, NULL);
}

static int end(void **state)
{
	(void)state;
	annotate_free(a);
	a = NULL;
	annotate_free(NULL);
	symbols_free(symbols);
	tasks_free(tasks);
	return 0;
}

static void start(const char *name, const char *of)
{
	annotate_free(a);
	a = annotate_new(&(struct annotate_opts){ .info = &info,
						  .tasks = tasks,
						  .symbols = symbols,
						  .metric = IBS_METRIC_DC_MISS_LAT,
						  .name = name,
						  .object = of });
}

static struct trace_event sample(const void *at)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = 1000 };

	ev.sample.has_task = ev.sample.has_ip = true;
	ev.sample.tgid = ev.sample.tid = PID;
	ev.sample.ip = addr(at);
	ev.sample.op.cpu.caps = CAPS;
	ev.sample.op.present = ~0u;
	return ev;
}

/* @n samples of an instruction that accesses no memory. */
static void add(unsigned int n, const void *at)
{
	const struct trace_event ev = sample(at);

	while (n--)
		annotate_add(a, &ev);
}

/* @n loads from a source that took so many cycles. */
static void load(unsigned int n, const void *at, unsigned int source, unsigned int latency)
{
	struct trace_event ev = sample(at);

	ev.sample.op.reg[IBS_OP_DATA2] = source;
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
					 IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_LIN_VALID |
					 (__u64)latency << 32;
	while (n--)
		annotate_add(a, &ev);
}

static const struct annotate_row *row(const void *at)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->row[i].addr == a->function[0].code.start + (addr(at) - addr(annotated)))
			return &a->row[i];
	fail();
	return NULL;
}

static double value(const void *at, enum table_column column)
{
	return annotate_value(row(at)->sums, &a->function[0].total, column);
}

static void near(double v, double want)
{
	if (!(fabs(v - want) < 1e-9 * (1 + fabs(want))))
		fail_msg("%g is not %g", v, want);
}

/* Each instruction is a row, and what is between samples and instructions adds up. */
static void test_rows(void **state)
{
	struct trace_event ev = sample(annotated);

	(void)state;
	start("annotated", NULL);
	load(6, annotated, 3, 100);
	load(2, annotated, 8, 300); /* memory of another kind */
	add(5, annotated_return);
	add(2, annotated + 1); /* inside of the first one */
	add(4, annotated_other);
	add(3, (const void *)16);
	ev.sample.op.reg[IBS_OP_DATA] = IBS_OP_DATA_RIP_INVALID;
	annotate_add(a, &ev);
	ev.kind = TRACE_SAMPLE_FETCH;
	annotate_add(a, &ev);
	annotate_add(a, &ev);
	ev.kind = TRACE_EXIT;
	annotate_add(a, &ev);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_int_equal(a->n_functions, 1);
	assert_string_equal(a->function[0].code.name, "annotated");
	assert_string_equal(a->function[0].code.dso, path);
	assert_int_equal(a->function[0].code.size, annotated_return + 1 - annotated);
	assert_int_equal(a->function[0].total.samples, 15);
	assert_int_equal(a->elsewhere, 7);
	assert_int_equal(a->inexact, 1);
	assert_int_equal(a->fetches, 2);
	assert_int_equal(a->namesakes, 0);
	assert_int_equal(a->n, 6);
	assert_int_equal(row(annotated)->sums->samples, 8);
	assert_int_equal(row(annotated)->len, annotated_call - annotated);
	assert_false(row(annotated)->inside);
	assert_non_null(strstr(row(annotated)->text, "8(%rdi)"));
	assert_true(row(annotated + 1)->inside);
	assert_int_equal(row(annotated + 1)->sums->samples, 2);
	/* where a call or a jump leads to, if that is another function */
	assert_non_null(strstr(row(annotated_call)->text, " <annotated_other>"));
	assert_null(strchr(row(annotated_jump)->text, '<'));
	assert_null(row(annotated_call)->sums);
	assert_string_equal(row(annotated_bad)->text, ".byte 0x06");
	assert_int_equal(row(annotated_bad)->len, 1);
	assert_int_equal(row(annotated_return)->sums->samples, 5);
	assert_int_equal(row(annotated_return)->data.kind, TYPE_NO_ACCESS);
	/* samples by what is known of types: eight access memory */
	assert_int_equal(a->types[TYPE_NO_ACCESS], 7);
	assert_int_equal(a->types[row(annotated)->data.kind], 8);
}

/* Six samples of 100 cycles and two of 300; each sample counts for 1000 ops. */
static void test_sums(void **state)
{
	struct trace_event ev = sample(annotated_jump);

	(void)state;
	start("annotated", NULL);
	load(6, annotated, 3, 100);
	load(2, annotated, 2, 300);
	add(12, annotated_return);
	ev.sample.op.reg[IBS_OP_DATA] =
		1ull << 37 | 1ull << 35 | 1ull << 36; /* retired, not as predicted */
	annotate_add(a, &ev);
	ev.sample.op.reg[IBS_OP_DATA] = 1ull << 37 | 1ull << 35;
	annotate_add(a, &ev);
	ev = sample(annotated_call);
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_LIN_VALID;
	annotate_add(a, &ev);
	assert_int_equal(annotate_finish(a, &err), 0);
	near(value(annotated, TABLE_SAMPLES), 8);
	near(value(annotated, TABLE_SAMPLE_SHARE), 8. / 23);
	near(value(annotated, TABLE_INSTRUCTION_CYCLES), 1200000);
	near(value(annotated, TABLE_SHARE), 1);
	near(value(annotated, TABLE_INSTRUCTION_MEAN), 150);
	near(value(annotated, TABLE_DRAM), .5);
	near(value(annotated, TABLE_REMOTE), 0);
	near(value(annotated, TABLE_HITM), .5); /* another cache had it, and had changed it */
	near(value(annotated_return, TABLE_SHARE), 0);
	assert_true(isnan(value(annotated_return, TABLE_INSTRUCTION_MEAN)));
	assert_true(isnan(value(annotated_return, TABLE_LOW)));
	assert_true(value(annotated, TABLE_LOW) < 1200000 &&
		    value(annotated, TABLE_HIGH) > 1200000);
	near(value(annotated_jump, TABLE_MISPREDICTED), .5);
	assert_true(isnan(value(annotated, TABLE_MISPREDICTED)));
	assert_int_equal(a->function[0].total.stores, 1);
	assert_int_equal(a->function[0].total.memory, 9);
	assert_true(isnan(value(annotated, TABLE_MEAN))); /* of another view */
}

/* Without a period, latencies are all that is known. */
static void test_no_period(void **state)
{
	(void)state;
	pmu.period = 0;
	start("annotated", NULL);
	load(4, annotated, 3, 100);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_true(isnan(value(annotated, TABLE_INSTRUCTION_CYCLES)));
	near(value(annotated, TABLE_INSTRUCTION_MEAN), 100);
	near(value(annotated, TABLE_SHARE), 1);
}

/* Without a name, the function with most miss cycles; if there are none, with most samples. */
static void test_hottest(void **state)
{
	(void)state;
	start(NULL, NULL);
	add(9, annotated_other);
	load(1, annotated, 3, 100);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_string_equal(a->function[0].code.name, "annotated");
	assert_int_equal(a->elsewhere, 9);
	start(NULL, NULL);
	add(2, annotated);
	add(3, annotated_other);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_string_equal(a->function[0].code.name, "annotated_other");
	assert_int_equal(a->elsewhere, 2);
}

static void test_refused(void **state)
{
	char text[1024];

	(void)state;
	start(NULL, NULL);
	assert_int_equal(annotate_finish(a, &err), -ENOENT);
	assert_string_equal(err.text,
			    "no sample has an exact address in a known function; `ibscope "
			    "report --by symbol,dso` prints where they are");
	start("annotate", NULL);
	add(1, annotated);
	assert_int_equal(annotate_finish(a, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no sample is in a function 'annotate'"));
	assert_non_null(strstr(err.text, "annotated"));
	start("zzz", NULL);
	assert_int_equal(annotate_finish(a, &err), -ENOENT);
	assert_string_equal(err.text, "no sample is in a function 'zzz'; `ibscope report --by "
				      "symbol,dso` prints those that have samples");
	start("annotated", "/bin/other");
	add(1, annotated);
	assert_int_equal(annotate_finish(a, &err), -ENOENT);
	snprintf(text, sizeof(text),
		 "--object: no sample of 'annotated' is in '/bin/other'; there are some in %s",
		 path);
	assert_string_equal(err.text, text);
	start("annotated_large", NULL);
	add(1, annotated_large);
	assert_int_equal(annotate_finish(a, &err), -E2BIG);
	snprintf(text, sizeof(text),
		 "'annotated_large' of %s has 1048577 bytes of code; at most 1048576 can be "
		 "annotated",
		 path);
	assert_string_equal(err.text, text);
	/* by the last part of its path */
	start("annotated", strrchr(path, '/') + 1);
	add(1, annotated);
	assert_int_equal(annotate_finish(a, &err), 0);
	start("annotated", path);
	add(1, annotated);
	assert_int_equal(annotate_finish(a, &err), 0);
}

/* Callers by their miss cycles, if enough latencies are known, else by samples. */
static void test_callers(void **state)
{
	const __u64 stack[] = { addr(annotated), addr(annotated_after) },
		    top[4] = { addr(annotated_after) };
	struct trace_event ev = sample(annotated);

	(void)state;
	pmu.stacks = true;
	start("annotated", NULL);
	ev.sample.op.reg[IBS_OP_DATA2] = 3;
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
					 IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_LIN_VALID |
					 100ull << 32;
	for (int i = 0; i < 60; i++)
		annotate_add(a, &ev);
	ev.sample.stack = stack;
	ev.sample.n_stack = 2;
	ev.sample.top = top;
	ev.sample.op.reg[IBS_OP_DATA3] += 200ull << 32;
	for (int i = 0; i < 40; i++)
		annotate_add(a, &ev);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_true(annotate_callers_by_cycles(a));
	assert_int_equal(a->function[0].n_callers, 2);
	assert_string_equal(a->function[0].callers[0].name, "annotated_other");
	assert_int_equal(a->function[0].callers[0].samples, 40);
	assert_int_equal(a->function[0].callers[0].cycles, 40 * 300 * 1000);
	assert_null(a->function[0].callers[1].name); /* no chain says it */
	assert_int_equal(a->function[0].callers[1].samples, 60);
	start("annotated", NULL);
	for (int i = 0; i < 5; i++)
		annotate_add(a, &ev);
	ev.sample.n_stack = 0;
	ev.sample.top = NULL;
	for (int i = 0; i < 6; i++)
		annotate_add(a, &ev);
	assert_int_equal(annotate_finish(a, &err), 0);
	assert_false(annotate_callers_by_cycles(a));
	assert_null(a->function[0].callers[0].name);
	assert_int_equal(a->function[0].callers[0].samples, 6);
	assert_string_equal(a->function[0].callers[1].name, "annotated_other");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_rows),    T(test_sums),    T(test_no_period),
					    T(test_hottest), T(test_refused), T(test_callers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
