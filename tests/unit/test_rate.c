// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which periods are too short, and what to use instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "session/session.h"

#define SECOND 1000000000ull

static char text[512];

/* Two CPUs for a second. */
static bool warns(__u64 seen, __u64 unseen, __u64 period, __u64 throttled)
{
	const struct snapshot s = {
		.ledger = { .seen = seen,
			    .pmu_samples = seen + unseen,
			    .unseen = unseen,
			    .pmu_exact = true },
		.pmu = { .cpus = 2,
			 .enabled_ns = 3 * SECOND,
			 .running_ns = 2 * SECOND,
			 .throttled = throttled },
	};

	memset(text, 0, sizeof(text));
	return sampling_rate_warning(&s, period, text, sizeof(text));
}

static void test_cost(void **state)
{
	(void)state;
	/* 34,483 a second on a CPU are a tenth of its time */
	assert_false(warns(68900, 0, 100000, 0));
	assert_true(warns(69000, 0, 100000, 0));
	assert_true(warns(200000, 0, 20000, 0));
	assert_non_null(
		strstr(text, "100,000 samples a second on each CPU cost about 29% of its time"));
	assert_non_null(strstr(text, "a period of at least 58,000 (-c)"));
	/* with -F there is no period */
	assert_true(warns(200000, 0, 0, 0));
	assert_non_null(strstr(text, "at most 34,482 Hz (-F)"));
	assert_false(warns(0, 0, 0, 0));
}

static void test_delivery(void **state)
{
	(void)state;
	assert_true(warns(750, 250, 10000, 0));
	assert_non_null(strstr(text, "25% of the samples were never delivered"));
	assert_non_null(strstr(text, "period of 10,000 is too short; use at least 100,000 (-c)"));
	assert_false(warns(950, 50, 10000, 0));
	/* something else is the cause */
	assert_false(warns(750, 250, 1000000, 0));
	assert_false(warns(750, 250, 10000, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cost),
					    cmocka_unit_test(test_delivery) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
