// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The price of remote memory, from counters, against sums done by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "table/table.h"

/* Each sample stands for 10 ops. */
#define SERIES(source, n, latencies)                                                       \
	{                                                                                  \
		.src = IBS_SRC_##source, .samples = (n), .valid = (n), .sum = (latencies), \
		.cycles = 10 * (latencies)                                                 \
	}
#define GROUP(cpu_node, memory, list)                                                      \
	{                                                                                  \
		.key = { .node = (cpu_node), .mem_node = (memory) + 1 }, .series = (list), \
		.n_series = sizeof(list) / sizeof((list)[0])                               \
	}

static struct series near0[] = { SERIES(DRAM, 4, 400), SERIES(L3, 9, 9) };
static struct series far0[] = { SERIES(REMOTE_DRAM, 2, 500), SERIES(REMOTE_CACHE, 2, 900) };
static struct series wrong0[] = { SERIES(DRAM, 1, 150) }; /* the processor took it for local */
static struct series near1[] = { SERIES(DRAM, 2, 400) };
static struct series far2[] = { SERIES(REMOTE_DRAM, 1, 310), SERIES(REMOTE_CXL, 1, 900) };
static struct series unknown1[] = { SERIES(REMOTE_DRAM, 1, 250), SERIES(DRAM, 2, 400) };
static struct group groups[] = {
	GROUP(0, 0, near0), GROUP(0, 1, far0), GROUP(0, 1, wrong0),
	GROUP(1, 1, near1), GROUP(2, 1, far2), GROUP(1, -1, unknown1),
};
static struct snapshot snap = { .groups = groups, .n_groups = 6 };

static void price_is(double got, double want)
{
	assert_true(fabs(got - want) < 1e-6);
}

static void test_nodes(void **state)
{
	(void)state;
	snap.by = IBS_BY_NODE | IBS_BY_MEM_NODE;
	for (int again = 0; again < 2; again++) {
		snapshot_prices(&snap, IBS_METRIC_DC_MISS_LAT);
		price_is(near0[0].price, 0);
		price_is(near0[1].price, 0);
		price_is(far0[0].price, 5000 - 20 * 100);
		price_is(far0[1].price, 0);
		price_is(wrong0[0].price, 1500 - 10 * 100);
		/* node 2 has no local DRAM: the mean of all, (400 + 400 + 400) / (4 + 2 + 2) */
		price_is(far2[0].price, 3100 - 10 * 150);
		assert_true(isnan(far2[1].price));
		price_is(unknown1[0].price, 2500 - 10 * 200);
		price_is(unknown1[1].price, 0);
	}
}

/* Without nodes, and for groups that share the counters of `other`, the source decides. */
static void test_sources(void **state)
{
	(void)state;
	snap.by = 0;
	snapshot_prices(&snap, IBS_METRIC_DC_MISS_LAT);
	/* (400 + 150 + 400 + 400) / (4 + 1 + 2 + 2) */
	price_is(far0[0].price, 5000 - 20 * 150);
	price_is(wrong0[0].price, 0);
	snap.by = IBS_BY_NODE | IBS_BY_MEM_NODE;
	groups[1].other = true;
	snapshot_prices(&snap, IBS_METRIC_DC_MISS_LAT);
	price_is(far0[0].price, 5000 - 20 * 150);
	groups[1].other = false;
}

static void test_unknown_ops(void **state)
{
	(void)state;
	near1[0].cycles = 0;
	snapshot_prices(&snap, IBS_METRIC_DC_MISS_LAT);
	assert_true(isnan(near1[0].price));
	snapshot_prices(&snap, IBS_METRIC_FETCH_LAT);
	assert_true(isnan(far0[0].price));
	near1[0].cycles = 4000;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_unknown_ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
