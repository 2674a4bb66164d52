// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pages of rows, prices of remote memory and imbalances of ranks in a report, of a few samples added up by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/report_private.h"
#include "table/table.h"

#define near(a, b) assert_true(fabs((a) - (double)(b)) < 1e-6)

/* CPUs 0 and 1 on node 0, 2 and 3 on node 1, and memory of both. */
static const struct trace_topology topology = { .n = 4, .node = { 0, 0, 1, 1 } };
static const struct memory_range memory[] = { { 0, 0x100000, 0 }, { 0x100000, 0x200000, 1 } };
static const struct trace_info info = { .topology = &topology, .memory = memory, .n_memory = 2 };

static struct report *new_report(const struct trace_info *of)
{
	struct report_opts opts = { .info = of };
	struct report *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->opts = opts;
	return r;
}

static void free_report(struct report *r)
{
	u64_map_free(&r->cell_of);
	u64_map_free(&r->page_of);
	u64_map_free(&r->ranks);
	free(r->cells);
	free(r->page_node);
	free(r);
}

/* A load from DRAM, of the node that the processor says. */
static struct trace_event load(unsigned int cpu, __u64 phys, bool remote)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct trace_sample *s = &ev.sample;

	s->has_cpu = true;
	s->cpu = cpu;
	s->op.cpu.caps = 0xbff; /* Zen 4 */
	s->op.nregs = IBS_OP_REG_FIXED;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS |
				  IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID;
	s->op.reg[IBS_OP_DATA2] = 3 | (remote ? IBS_OP_DATA2_RMT_NODE : 0);
	s->op.reg[IBS_DC_PHYSADDR] = phys;
	return ev;
}

static void test_count(void **unused)
{
	struct report *r = new_report(&info);

	(void)unused;
	assert_true(report_count(r, 5, CELL_CPU, 7, 2));
	assert_false(report_count(r, 5, CELL_CPU, 7, 3));
	assert_true(report_count(r, 5, CELL_THREAD, 7, 1));
	assert_true(report_count(r, 6, CELL_CPU, 7, 1));
	assert_true(report_count(r, 5, CELL_CPU, ~0u, 1));
	assert_int_equal(r->n_cells, 4);
	assert_int_equal(r->cells[0].count, 5);
	assert_int_equal(cell_row(&r->cells[0]), 5);
	assert_int_equal(cell_kind(&r->cells[0]), CELL_CPU);
	assert_int_equal((__u32)r->cells[3].key, ~0u);
	assert_int_equal(cell_row(&r->cells[3]), 5);
	free_report(r);
}

/* --- pages --- */

static void add_page(struct report *r, size_t row, unsigned int cpu, __u64 phys, unsigned int times)
{
	const struct trace_event ev = load(cpu, phys, false);

	while (times--)
		report_pages_add(r, row, &ev);
}

/* A page is misplaced if another node than its own accesses it more. */
static void test_pages(void **unused)
{
	struct report *r = new_report(&info);
	struct report_row rows[2] = {};
	struct report_table t = { .rows = rows, .n = 2 };
	struct trace_event ev = load(0, 0x1000, false);

	(void)unused;
	add_page(r, 0, 0, 0x1000, 2); /* node 0, from node 0 */
	add_page(r, 0, 2, 0x1fff, 2); /* the same page from node 1, as often */
	add_page(r, 0, 3, 0x2000, 1); /* the next one, from node 1 only */
	add_page(r, 1, 1, 0x100000, 3);
	add_page(r, 1, 2, 0x100fff, 2);
	add_page(r, 1, 2, 0x1000, 0);
	add_page(r, 1, 2, 0x101000, 5);
	add_page(r, 1, 0, 0x101000, 4);
	add_page(r, 1, 4, 0x102000, 1); /* a CPU that is not known */
	add_page(r, 1, 0, 0x200000, 1); /* memory of no known node */
	ev.sample.has_cpu = false;
	ev.sample.op.reg[IBS_DC_PHYSADDR] = 0x103000;
	report_pages_add(r, 1, &ev);
	ev.sample.op.reg[IBS_OP_DATA3] &=
		~IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID; /* no page */
	report_pages_add(r, 1, &ev);
	report_pages(r, &t);
	assert_int_equal(rows[0].pages, 2);
	assert_int_equal(rows[0].placed, 2);
	assert_int_equal(rows[0].misplaced, 1);
	assert_int_equal(rows[1].pages, 5);
	assert_int_equal(rows[1].placed, 2);
	assert_int_equal(rows[1].misplaced, 1);
	assert_int_equal(t.total.pages, 7);
	assert_int_equal(t.total.placed, 4);
	assert_int_equal(t.total.misplaced, 2);
	free_report(r);
}

/* A page that two rows access is one page of each, judged by both; of another recording it is another one. */
static void test_shared_pages(void **unused)
{
	struct report *r = new_report(&info);
	struct report_row rows[2] = {};
	struct report_table t = { .rows = rows, .n = 2 };

	(void)unused;
	add_page(r, 0, 0, 0x1000, 1);
	add_page(r, 1, 2, 0x1000, 2);
	r->part = 1;
	add_page(r, 1, 0, 0x1000, 1);
	report_pages(r, &t);
	assert_int_equal(rows[0].pages, 1);
	assert_int_equal(rows[0].misplaced, 1);
	assert_int_equal(rows[1].pages, 2);
	assert_int_equal(rows[1].misplaced, 1);
	assert_int_equal(t.total.pages, 2);
	assert_int_equal(t.total.misplaced, 1);
	free_report(r);
}

/* --- prices --- */

/* What remote accesses cost above the mean of local ones of their node. */
static void test_prices(void **unused)
{
	const struct trace_event near0 = load(0, 0x1000, true), far0 = load(1, 0x100000, false),
				 near1 = load(2, 0x100000, true), far1 = load(3, 0x1000, false);
	struct trace_event other = far0;
	struct report *r = new_report(&info);
	struct report_row rows[3] = {};

	(void)unused;
	report_price_add(r, 0, &near0, 1000,
			 10); /* the nodes decide, not what the processor says */
	report_price_add(r, 1, &near0, 3000, 10);
	report_price_add(r, 1, &far0, 5000, 10);
	report_price_add(r, 2, &near1, 900, 3);
	report_price_add(r, 2, &far1, 4000, 5);
	report_price_add(r, 2, &far1, 4000, 5);
	other.sample.op.reg[IBS_OP_DATA3] &= ~IBS_OP_DATA3_L2_MISS; /* from the L2: no memory */
	report_price_add(r, 2, &other, 1 << 20, 1);
	other = far0;
	other.sample.op.present &= ~(1u << IBS_OP_DATA2); /* of an unknown source */
	report_price_add(r, 2, &other, 1 << 20, 1);
	report_prices(r, rows);
	near(rows[0].price, 0);
	near(rows[1].price, 5000 - 10 * 200);
	near(rows[2].price, 8000 - 10 * 300);
	free_report(r);
}

/* Without nodes, what the processor says; the mean is that of all. */
static void test_prices_without_nodes(void **unused)
{
	static const struct trace_info nothing = { .n_memory = 0 };
	const struct trace_event near_to = load(0, 0x1000, false), far = load(7, 0x1000, true);
	struct report *r = new_report(&nothing);
	struct report_row rows[2] = {};

	(void)unused;
	report_price_add(r, 0, &near_to, 1000, 10);
	report_price_add(r, 1, &far, 3000, 10);
	report_prices(r, rows);
	near(rows[0].price, 0);
	near(rows[1].price, 2000);
	free_report(r);
}

/* --- ranks --- */

/* The largest sum of a rank over the mean of all of them; of equal ones the first is the busiest. */
static void test_imbalance(void **unused)
{
	struct report *r = new_report(&info);
	struct report_row rows[3] = {};
	struct report_table t = { .rows = rows, .n = 3 };

	(void)unused;
	for (__u32 rank = 0; rank < 4; rank++)
		u64_map_put(&r->ranks, 10 + rank, r->n_ranks++);
	r->n = 3;
	report_count(r, 0, CELL_RANK, 13, 300);
	report_count(r, 0, CELL_RANK, 10, 100);
	report_count(r, 1, CELL_RANK, 12, 50);
	report_count(r, 1, CELL_RANK, 11, 50);
	report_count(r, 1, CELL_CPU, 11, 5000);
	report_imbalances(r, &t);
	near(rows[0].imbalance, 3); /* 300 of a mean of 100 */
	assert_int_equal(rows[0].busiest, 13);
	near(rows[1].imbalance, 2);
	assert_int_equal(rows[1].busiest, 11);
	assert_true(isnan(rows[2].imbalance));
	near(t.total.imbalance, 300. * 4 / 500);
	assert_int_equal(t.total.busiest, 13);
	free_report(r);
}

/* Rows of single ranks have none. */
static void test_imbalance_by_rank(void **unused)
{
	struct report *r = new_report(&info);
	struct report_row rows[1] = { { .imbalance = -1 } };
	struct report_table t = { .rows = rows, .n = 1 };

	(void)unused;
	r->opts.by[0] = LABEL_RANK;
	r->opts.n_by = 1;
	u64_map_put(&r->ranks, 10, r->n_ranks++);
	u64_map_put(&r->ranks, 11, r->n_ranks++);
	r->n = 1;
	report_count(r, 0, CELL_RANK, 11, 300);
	report_imbalances(r, &t);
	near(rows[0].imbalance, -1);
	near(t.total.imbalance, 2);
	assert_int_equal(t.total.busiest, 11);
	free_report(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_shared_pages),
		cmocka_unit_test(test_prices),
		cmocka_unit_test(test_prices_without_nodes),
		cmocka_unit_test(test_imbalance),
		cmocka_unit_test(test_imbalance_by_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
