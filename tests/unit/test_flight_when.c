// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Conditions of --flight-on: which second makes one true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "flight/flight_when.h"

static __u64 web_dram[IBS_LAT_BUCKETS], web_l2[IBS_LAT_BUCKETS], db_dram[IBS_LAT_BUCKETS];

#define ROW(name, source, n, latency, buckets_)               \
	{                                                     \
		.label[LABEL_CONTAINER] = (name), .series = { \
			.src = (source),                      \
			.samples = (n),                       \
			.valid = (n),                         \
			.sum = (n) * (latency),               \
			.cycles = (n) * (latency)*1000,       \
			.buckets = (buckets_)                 \
		}                                             \
	}

/* 200 samples of 1000 cycles and 50 of 20, and 40 of 500 cycles. */
static struct row row[] = {
	ROW("web", IBS_SRC_DRAM, 200, 1000, web_dram),
	ROW("web", IBS_SRC_L2, 50, 20, web_l2),
	ROW("db", IBS_SRC_DRAM, 40, 500, db_dram),
};
static struct rows rows = { 3, row };
static struct snapshot counts;

static bool is_true(const char *text)
{
	struct flight_condition c;
	struct err err;
	char value[64];

	if (flight_condition_parse(text, &c, &err))
		fail_msg("%s: %s", text, err.text);
	return flight_condition_true(&c, &(struct flight_second){ 2, &counts, &rows }, value,
				     sizeof(value));
}

static int setup(void **state)
{
	(void)state;
	web_dram[ibs_lat_bucket(1000)] = 200;
	web_l2[ibs_lat_bucket(20)] = 50;
	db_dram[ibs_lat_bucket(500)] = 40;
	return 0;
}

static void test_values(void **state)
{
	(void)state;
	/* of two seconds */
	assert_true(is_true("samples == 145"));
	assert_false(is_true("samples != 145"));
	assert_true(is_true("container == web && samples == 125"));
	assert_true(is_true("container != web && samples <= 20 && samples >= 20"));
	assert_true(is_true("container == web && src == l2 && mean == 20 && p50 < 30"));
	assert_true(is_true("src == dram && p50 >= 1000 && p50 < 1130"));
	assert_true(is_true("container == db && p90 >= 500"));
	assert_true(is_true("miss_cycles == 110500000"));
	/* 200000 + 1000 cycles in 250 samples */
	assert_true(is_true("container == 'web' && mean == 804"));
}

static void test_texts(void **state)
{
	(void)state;
	assert_true(is_true("container =~ \"w*\" && samples == 125"));
	assert_true(is_true("container =~ * && samples == 145"));
	assert_true(is_true("container == we && samples == 0"));
	assert_true(is_true("container =~ [w]eb && src =~ *ram && samples == 100"));
}

/* What is unknown makes a test false, whichever way it compares. */
static void test_unknown(void **state)
{
	static const char *const how[] = { "<", "<=", ">", ">=", "==", "!=" };
	char text[128];

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		/* 40 samples */
		snprintf(text, sizeof(text), "container == db && p99 %s 500", how[i]);
		assert_false(is_true(text));
		snprintf(text, sizeof(text), "container == none && mean %s 0", how[i]);
		assert_false(is_true(text));
		snprintf(text, sizeof(text), "samples_unseen %s 0", how[i]);
		assert_false(is_true(text));
		row[2].series.cycles = 0;
		snprintf(text, sizeof(text), "miss_cycles %s 0", how[i]);
		assert_false(is_true(text));
		row[2].series.cycles = 20000000;
	}
	assert_true(is_true("container == none && miss_cycles == 0"));
}

static void test_ledger(void **state)
{
	(void)state;
	assert_false(is_true("samples_lost > 0"));
	counts.ledger.outcome[IBS_OUTCOME_LOST_READ] = 3;
	counts.ledger.outcome[IBS_OUTCOME_LOST_LEASE] = 1;
	assert_true(is_true("samples_lost == 2"));
	counts.ledger.pmu_exact = true;
	assert_true(is_true("samples_unseen == 0 && samples_lost > 1"));
	counts.ledger.unseen = 8;
	assert_true(is_true("samples_unseen == 4"));
	memset(&counts, 0, sizeof(counts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_ledger),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
