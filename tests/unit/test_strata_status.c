// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the status of a collector says of strata, as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "status/reading.h"

static struct ibs_strata strata = {
	.used = 1,
	.on = 1,
	.of = { { .time_ns = 5500000000,
		  .slices = 1234,
		  .seen = 50,
		  .outcome = { [IBS_OUTCOME_AGGREGATED] = 40, [IBS_OUTCOME_FILTERED_PID] = 10 },
		  .tags = 1000,
		  .period = 262144 },
		{ .time_ns = 4460000000,
		  .slices = 11,
		  .seen = 7,
		  .outcome = { [IBS_OUTCOME_AGGREGATED] = 7 },
		  .tags = 500,
		  .period = 16384 } }
};

static const char *text(void)
{
	static char *said;
	size_t n;
	FILE *f;

	free(said);
	f = open_memstream(&said, &n);
	strata_status_print(f, &strata);
	fclose(f);
	return said;
}

static const char *json(void)
{
	static char *said;
	struct json_writer w = {};
	size_t n;

	free(said);
	w.f = open_memstream(&said, &n);
	json_begin_object(&w, NULL);
	strata_status_put(&w, &strata);
	json_put_u64(&w, "next", 1);
	json_finish(&w);
	fclose(w.f);
	return said;
}

#define has(text, what)                                            \
	do {                                                       \
		if (!strstr(text, what))                           \
			fail_msg("'%s' is not in %s", what, text); \
	} while (0)

static void test_text(void **unused)
{
	(void)unused;
	strata.used = strata.on = 1;
	assert_int_equal(strata_effective_samples(&strata), 1500);
	has(text(), "strata: sampled by turns, 55% of the time for the full one; ops beyond the L3 "
		    "as many as in 1,500 samples of all ops\n"
		    "full stratum: 5.5 s in 1,234 slices, period 262,144: seen 50 = ");
	has(text(), "\nmiss stratum: 4.5 s in 11 slices, period 16,384: seen 7 = ");
	strata.on = 0;
	has(text(), "strata: not sampled now, 55% ");
	strata.used = 0;
	assert_string_equal(text(), "");
}

static void test_json(void **unused)
{
	const char *said;

	(void)unused;
	strata.used = strata.on = 1;
	said = json();
	has(said, "{\"strata\":{\"on\":true,\"full_share\":0.55");
	has(said, ",\"effective_samples\":1500,\"full\":{\"seconds\":5.5,\"slices\":1234,"
		  "\"period\":262144,\"tags\":1000,\"ledger\":{");
	has(said, "},\"miss\":{\"seconds\":4.46,\"slices\":11,\"period\":16384,\"tags\":500,"
		  "\"ledger\":{");
	has(said, "}}},\"next\":1}");
	strata.on = 0;
	has(json(), "\"on\":false");
	strata.used = 0;
	has(json(), "{\"next\":1}");
}

static void test_ledger(void **unused)
{
	struct ledger l;

	(void)unused;
	stratum_ledger(&strata.of[0], &l);
	assert_int_equal(l.seen, 50);
	assert_int_equal(l.outcome[IBS_OUTCOME_AGGREGATED], 40);
	assert_int_equal(l.outcome[IBS_OUTCOME_FILTERED_PID], 10);
	assert_int_equal(ledger_residual(&l), 0);
	assert_string_equal(stratum_names[0], "full");
	assert_string_equal(stratum_names[1], "miss");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_ledger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
