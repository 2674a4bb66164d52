// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Readers wait for a sample or a fold in progress, for seconds, but not forever. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "counts/counts.h"

#define CAPS   0xbffU /* Zen 4 */
#define SHARDS 1
#define SLOTS  2
#define CPUS   2

#include "slots.h"

static struct counts counts_of(void)
{
	return (struct counts){ .owners = owners,
				.series = series,
				.state = state,
				.n_cpus = CPUS,
				.outcomes = IBS_OUTCOME_N,
				.shards = SHARDS,
				.max_slots = SLOTS,
				.layout = &layout };
}

/* A virtual CPU may be descheduled in the middle of its NMI. The message names one that never comes back. */
static void test_balance(void **unused)
{
	const double began = now_s();
	const struct counts c = counts_of();
	struct ledger l;
	struct err err = {};

	(void)unused;
	state->cpu[1].seen = 1;
	assert_int_equal(counts_ledger(&c, &l, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "cpu 1: "));
	assert_true(now_s() - began > 1 && now_s() - began < 60);
	state->cpu[1].seen = 0;
}

static void test_fold(void **unused)
{
	const double began = now_s();
	const struct counts c = counts_of();
	struct snapshot s = {};
	struct err err = {};

	(void)unused;
	state->control.fold = 1;
	assert_int_equal(counts_read(&c, &s, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "died while folding"));
	assert_true(now_s() - began > 1 && now_s() - began < 60);
	state->control.fold = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_fold),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
