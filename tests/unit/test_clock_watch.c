// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which changes of the clocks are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collector/clock_watch.h"

#define S 1000000000LL

static struct clock_watch watch;
static struct clock_reading now;

static int up(void **state)
{
	(void)state;
	now = (struct clock_reading){
		.monotonic = 100 * S, .boottime = 107 * S, .realtime = 1700000000 * S, .width = 1000
	};
	clock_watch_start(&watch, &now);
	return 0;
}

/* Time goes on; of it the machine sleeps @slept, and the clock is set ahead by @step. */
static void pass(int64_t awake, int64_t slept, int64_t step)
{
	now.monotonic += awake;
	now.boottime += awake + slept;
	now.realtime += awake + slept + step;
}

static void expect(int64_t step, int64_t slept)
{
	struct clock_change c;

	assert_int_equal(clock_watch_check(&watch, &now, &c), step || slept);
	assert_int_equal(c.step_ns, step);
	assert_int_equal(c.slept_ns, slept);
}

static void test_changes(void **state)
{
	(void)state;
	pass(S, 0, 0);
	expect(0, 0);
	pass(S, 0, 3600 * S);
	expect(3600 * S, 0);
	pass(S, 0, 0);
	expect(0, 0);
	pass(S, 0, -7200 * S);
	expect(-7200 * S, 0);
	pass(S, 60 * S, 0);
	expect(0, 60 * S);
	pass(S, 5 * S, -S);
	expect(-S, 5 * S);
	expect(0, 0);
}

/* Clocks are read one after the other: what can be of that is no change. */
static void test_width(void **state)
{
	(void)state;
	now.width = S;
	pass(S, 0, S / 2);
	expect(0, 0);
	now.width = 1000;
	expect(S / 2, 0);
}

static void test_small_steps_add_up(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		pass(S, 0, CLOCK_CHANGE_MIN_NS / 4);
		if (i < 4)
			expect(0, 0);
	}
	expect(5 * CLOCK_CHANGE_MIN_NS / 4, 0);
}

static void test_real_clocks(void **state)
{
	struct clock_change c;

	(void)state;
	clock_read(&now);
	clock_watch_start(&watch, &now);
	for (int i = 0; i < 1000; i++) {
		clock_read(&now);
		assert_true(now.width >= 0);
		assert_false(clock_watch_check(&watch, &now, &c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_changes, up),
		cmocka_unit_test_setup(test_width, up),
		cmocka_unit_test_setup(test_small_steps_add_up, up),
		cmocka_unit_test_setup(test_real_clocks, up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
