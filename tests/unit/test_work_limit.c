// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The collector's own work: what is accounted for, and how much others can make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collector/work_limit.h"

#define MS 1000000ULL

/* Whoever asks for it without pause for @seconds, in calls of @call_ns. Return: the share of a CPU. */
static double flood(struct work_limit *w, enum ibs_work kind, double *now, double seconds,
		    __u64 call_ns)
{
	const __u64 before = w->part[kind].ns;
	const double end = *now + seconds;

	while (*now < end) {
		double wait = work_limit_wait(w, kind, *now);

		*now += wait;
		if (wait > 0)
			assert_true(work_limit_wait(w, kind, *now) < 1e-6);
		*now += call_ns / 1e9;
		work_limit_charge(w, kind, call_ns, *now);
	}
	return (w->part[kind].ns - before) / 1e9 / seconds;
}

static void test_flood_is_bounded(void **state)
{
	struct work_limit w = {};
	double now = 1000, share;

	(void)state;
	work_limit_set_budget(&w, 0.005, 2);
	assert_true(w.rate == 0.02);
	/* what comes at once after a quiet time is done at once */
	assert_true(work_limit_wait(&w, IBS_WORK_CGROUPS, now) == 0);
	work_limit_charge(&w, IBS_WORK_CGROUPS, 400 * MS, now);
	assert_true(work_limit_wait(&w, IBS_WORK_CGROUPS, now) == 0);
	now += 100;
	share = flood(&w, IBS_WORK_CGROUPS, &now, 1000, 3 * MS);
	assert_true(share > 0.0195 && share < 0.0215);
	assert_in_range(w.part[IBS_WORK_CGROUPS].delayed_ns, 970000 * MS, 990000 * MS);
	/* and costs no other part anything */
	assert_true(work_limit_wait(&w, IBS_WORK_WEB, now) == 0);
	assert_int_equal(w.part[IBS_WORK_WEB].delayed_ns, 0);
	/* also in calls that are longer than what is given at a time */
	share = flood(&w, IBS_WORK_WEB, &now, 1000, 900 * MS);
	assert_true(share > 0.019 && share < 0.023);
}

static void test_long_call(void **state)
{
	struct work_limit w = {};
	double now = 1;

	(void)state;
	work_limit_set_budget(&w, 0.005, 2);
	work_limit_charge(&w, IBS_WORK_WEB, 3600000 * MS, now);
	assert_true(work_limit_wait(&w, IBS_WORK_WEB, now) <= 50.001);
	now += 51;
	assert_true(work_limit_wait(&w, IBS_WORK_WEB, now) == 0);
	/* a clock that stands still or goes back gives nothing */
	work_limit_charge(&w, IBS_WORK_WEB, 1000 * MS, now);
	assert_true(work_limit_wait(&w, IBS_WORK_WEB, now - 10) > 0);
}

static void test_budget(void **state)
{
	struct work_limit w = {};
	double now = 5;

	(void)state;
	/* none was set yet */
	work_limit_charge(&w, IBS_WORK_WEB, 5000 * MS, now);
	assert_true(work_limit_wait(&w, IBS_WORK_WEB, now) == 0);
	work_limit_set_budget(&w, 0, 96);
	assert_true(w.rate == 0.02);
	work_limit_set_budget(&w, 0.005, 96);
	assert_true(w.rate > 0.119 && w.rate < 0.121);
	/* what sampling needs is never put off */
	work_limit_charge(&w, IBS_WORK_COUNTERS, 100000 * MS, now);
	assert_true(work_limit_wait(&w, IBS_WORK_COUNTERS, now) == 0);
	assert_int_equal(w.part[IBS_WORK_COUNTERS].ns, 100000 * MS);
	/* another budget does not forgive what was spent */
	work_limit_charge(&w, IBS_WORK_CGROUPS, 1200 * MS, now);
	work_limit_set_budget(&w, 0.01, 96);
	assert_true(work_limit_wait(&w, IBS_WORK_CGROUPS, now) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_is_bounded),
		cmocka_unit_test(test_long_call),
		cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
