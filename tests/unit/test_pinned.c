// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What readers of pins refuse, and what they copy from the collector's status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pins/pinned.h"

#define CPUS 4

/* One that is at some of its limits. */
static struct ibs_meta_layout good(void)
{
	return (struct ibs_meta_layout){
		.n_cpus = CPUS,
		.outcomes = IBS_OUTCOME_N,
		.shards = 1,
		.max_slots = 2,
		.slot_words = 400,
		.metric = IBS_METRIC_DC_MISS_LAT,
		.state_bytes = sizeof(struct ibs_state) + CPUS * sizeof(struct ibs_cpu_state),
	};
}

/* Is it refused with another value of a member? */
#define WITH(member, value)                         \
	({                                          \
		struct ibs_meta_layout l_ = good(); \
                                                    \
		l_.member = (value);                \
		pinned_layout_ok(&l_);              \
	})

static void test_sizes(void **state)
{
	struct ibs_meta_layout l = good();

	(void)state;
	assert_true(pinned_layout_ok(&l));
	assert_false(WITH(n_cpus, 0));
	assert_false(WITH(n_cpus, CPUS + 1)); /* the state has no room for them */
	assert_true(WITH(n_cpus, CPUS - 1));
	assert_false(WITH(state_bytes, l.state_bytes - 1));
	assert_true(WITH(state_bytes, l.state_bytes + 1));
	assert_false(WITH(outcomes, IBS_OUTCOME_N + 1));
	assert_true(WITH(outcomes, IBS_OUTCOME_N - 1));
	assert_false(WITH(shards, 0));
	assert_false(WITH(max_slots, 1));
	assert_true(WITH(max_slots, 3));
	assert_false(WITH(metric, IBS_METRIC_N));
	/* the first words of a slot count what misses the TLB: 6 */
	assert_false(WITH(slot_words, 5));
	assert_true(WITH(slot_words, 6));
	/* the last word that a pair can begin at is 8191, and a histogram reaches 136 words */
	assert_true(WITH(slot_words, 8191 + 136));
	assert_false(WITH(slot_words, 8191 + 137));
	/* slots have 32-bit numbers in all shards together */
	l.shards = 65537;
	l.max_slots = 65535;
	assert_true(pinned_layout_ok(&l));
	l.shards = l.max_slots = 65536;
	assert_false(pinned_layout_ok(&l));
}

#define PLAIN(word) (word)
#define HIST(word)  ((word) | IBS_LAYOUT_HIST)

/* Pairs lie within a slot. A word below 22 is an outcome. */
static void test_pairs(void **state)
{
	const unsigned int last_op = IBS_OP_KIND_N - 1, last_src = IBS_SRC_N - 1;

	(void)state;
	assert_true(WITH(entry[0], PLAIN(22)));
	assert_true(WITH(entry[0], PLAIN(398)));
	assert_false(WITH(entry[0], PLAIN(399)));
	assert_true(WITH(entry[0], HIST(400 - IBS_HIST_WORDS)));
	assert_false(WITH(entry[0], HIST(401 - IBS_HIST_WORDS)));
	assert_true(WITH(entry[last_src * 8 + last_op], PLAIN(398)));
	/* no kind of op, or source, has that number */
	assert_false(WITH(entry[last_op + 1], PLAIN(22)));
	assert_false(WITH(entry[(last_src + 1) * 8], PLAIN(22)));
	assert_false(WITH(entry[255], PLAIN(22)));
	assert_true(WITH(entry[255], PLAIN(21)));
	assert_true(WITH(entry[255], HIST(21)));
}

/* Samples of ibs_fetch have results and translations instead. */
static void test_fetch(void **state)
{
	struct ibs_meta_layout l = good();

	(void)state;
	l.metric = IBS_METRIC_FETCH_LAT;
	l.entry[(IBS_FETCH_CLASS_N - 1) * 8 + IBS_FETCH_ITLB_N - 1] = PLAIN(22);
	assert_true(pinned_layout_ok(&l));
	l.entry[(IBS_FETCH_CLASS_N - 1) * 8 + IBS_FETCH_ITLB_N] = PLAIN(22);
	assert_false(pinned_layout_ok(&l));
	l.entry[(IBS_FETCH_CLASS_N - 1) * 8 + IBS_FETCH_ITLB_N] = 0;
	l.entry[IBS_FETCH_CLASS_N * 8] = PLAIN(22);
	assert_false(pinned_layout_ok(&l));
}

static void test_place(void **state)
{
	struct ibs_meta_layout l = good();
	__u64 series[2], owners[2], counts[2];
	void *const addr[IBS_PIN_N] = {
		[IBS_PIN_SERIES] = series, [IBS_PIN_OWNERS] = owners, [IBS_PIN_STATE] = counts
	};
	struct layout layout;
	struct counts c;

	(void)state;
	l.by = IBS_BY_CGROUP;
	l.shards = 3;
	l.outcomes = 20;
	l.entry[0] = PLAIN(22);
	l.entry[255] = PLAIN(5);
	pinned_place(&l, addr, &layout, &c);
	assert_int_equal(layout.words, 400);
	assert_int_equal(layout.entry[0], 22);
	assert_int_equal(layout.entry[255], 5);
	assert_ptr_equal(c.layout, &layout);
	assert_ptr_equal(c.series, series);
	assert_ptr_equal(c.owners, owners);
	assert_ptr_equal(c.state, counts);
	assert_int_equal(c.n_cpus, CPUS);
	assert_int_equal(c.outcomes, 20);
	assert_int_equal(c.shards, 3);
	assert_int_equal(c.max_slots, 2);
	assert_int_equal(c.by, IBS_BY_CGROUP);
	assert_true(c.has_ops && c.tlb);
	assert_int_equal(c.period, 0);
	assert_null(c.cost);
}

/* All but what the counters say. */
static void test_ledger(void **state)
{
	const struct ibs_meta_status st = { .pmu_samples = 100,
					    .unseen = 7,
					    .pmu_exact = 1,
					    .dropped = 5,
					    .undelivered = 3,
					    .undelivered_known = 1 };
	struct ledger l = { .seen = 93, .outcome = { 90, 3 }, .dropped_known = true };

	(void)state;
	pinned_ledger(&st, &l);
	assert_int_equal(l.seen, 93);
	assert_int_equal(l.outcome[0], 90);
	assert_int_equal(l.outcome[1], 3);
	assert_int_equal(l.pmu_samples, 100);
	assert_int_equal(l.unseen, 7);
	assert_true(l.pmu_exact);
	assert_int_equal(l.dropped, 5);
	assert_false(l.dropped_known);
	assert_int_equal(l.undelivered, 3);
	assert_true(l.undelivered_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),  cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_fetch),  cmocka_unit_test(test_place),
		cmocka_unit_test(test_ledger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
