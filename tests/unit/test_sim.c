// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The registers of simulated samples: a seed gives the same ones in each release. What they must be was
 * worked out by another program, written from the comments of sim.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/std.h"

#include <ibscope/sim.h>

#define N    20000 /* samples */
#define SEED 7
#define ZEN3 0x3ffu

static __u64 digest(__u64 sum, const __u64 *words, int n)
{
	for (int i = 0; i < n; i++)
		sum = (sum ^ words[i]) * 0x100000001b3;
	return sum;
}

#define EMPTY 0xcbf29ce484222325

/* The first numbers are those that splitmix64 is known to give from 0. */
static void test_draws(void **state)
{
	const struct ibs_sim_draw draw = ibs_sim_draw(5, 3, 7);

	(void)state;
	assert_true(ibs_sim_mix(0) == 0xe220a8397b1dcdaf);
	assert_true(ibs_sim_mix(0x9e3779b97f4a7c15) == 0x6e789e6aa1b965f4);
	assert_true(draw.a == 0x3634b1eb5b7e9f3d);
	assert_true(draw.b == 0x9d1f0904f8cdb6e4);
}

static void test_ops(void **state)
{
	static const struct {
		__u32 caps;
		__u64 sum;
	} rows[] = { { ZEN3, 0xd4d2ba4be47fafe3 }, { ZEN3 | IBS_CAPS_ZEN4, 0xb52159f88399acc } };
	__u64 regs[IBS_OP_REG_FIXED];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		__u64 sum = EMPTY;

		for (__u32 n = 0; n < N; n++) {
			ibs_sim_op(SEED, n % 5, n, rows[i].caps, regs);
			sum = digest(sum, regs, IBS_OP_REG_FIXED);
		}
		if (sum != rows[i].sum)
			fail_msg("row %zu: %#llx", i, (unsigned long long)sum);
	}
}

/* Loads, and locked or not both load and store, by what is known of their line, and with any wait. */
static void test_answers(void **state)
{
	static const struct {
		__u32 caps;
		enum ibs_sim_line line;
		__u64 sum;
	} rows[] = {
		{ ZEN3, IBS_SIM_ANY, 0x2f9e99360998afa2 },
		{ ZEN3, IBS_SIM_TOUCHED, 0x4ad7b5f9db2c34ec },
		{ ZEN3, IBS_SIM_COLD, 0xea97a76fbeee3154 },
		{ ZEN3, IBS_SIM_FOREIGN, 0xe045148c10d3496c },
		{ ZEN3 | IBS_CAPS_ZEN4, IBS_SIM_ANY, 0xe181d58f4987a463 },
		{ ZEN3 | IBS_CAPS_ZEN4, IBS_SIM_TOUCHED, 0x88a03f26b75f7bc3 },
		{ ZEN3 | IBS_CAPS_ZEN4, IBS_SIM_COLD, 0xdcc826610abc8ac1 },
		{ ZEN3 | IBS_CAPS_ZEN4, IBS_SIM_FOREIGN, 0xe045148c10d3496c },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		__u64 sum = EMPTY;

		for (__u32 n = 0; n < N; n++) {
			const struct ibs_sim_draw draw = ibs_sim_draw(SEED, 1, n);
			__u64 regs[IBS_OP_REG_FIXED];

			ibs_sim_answer(&draw, rows[i].caps, rows[i].line, 0,
				       IBS_OP_DATA3_LD_OP | (n & 1 ? IBS_OP_DATA3_ST_OP : 0),
				       IBS_SIM_WAIT_UNIT + n, regs);
			sum = digest(sum, &regs[IBS_OP_CTL], 1);
			sum = digest(sum, &regs[IBS_OP_DATA], 3);
		}
		if (sum != rows[i].sum)
			fail_msg("row %zu: %#llx", i, (unsigned long long)sum);
	}
}

static void test_fetches(void **state)
{
	__u64 regs[IBS_FETCH_REG_N], sum = EMPTY;

	(void)state;
	for (__u32 n = 0; n < N; n++) {
		ibs_sim_fetch(SEED, n % 5, n, regs);
		sum = digest(sum, regs, IBS_FETCH_REG_N);
	}
	assert_true(sum == 0x76c4cea2ec4953bd);
}

/* An idle machine; half of the capacity in use; all of it, where an access takes ten times as long. */
static void test_wait(void **state)
{
	const __u64 all = IBS_SIM_QUEUE_NS;

	(void)state;
	assert_int_equal(ibs_sim_wait(0), IBS_SIM_WAIT_UNIT);
	assert_int_equal(ibs_sim_wait(all / 2), 2 * IBS_SIM_WAIT_UNIT);
	assert_int_equal(ibs_sim_wait(all * 3 / 4), 4 * IBS_SIM_WAIT_UNIT);
	assert_int_equal(ibs_sim_wait(all * 230 / 256), IBS_SIM_WAIT_UNIT * 256 / 26);
	assert_int_equal(ibs_sim_wait(all), IBS_SIM_WAIT_UNIT * 256 / 26);
	assert_int_equal(ibs_sim_wait(100 * all), IBS_SIM_WAIT_UNIT * 256 / 26);
	assert_int_equal(ibs_sim_queue_left(1000000, 0), 1000000);
	assert_int_equal(ibs_sim_queue_left(1000000, all / 4), 750000);
	assert_int_equal(ibs_sim_queue_left(1000000, all / 2), 500000);
	assert_true(ibs_sim_queue_left(all, all - 1) > 0);
	assert_int_equal(ibs_sim_queue_left(all, all), 0);
	assert_int_equal(ibs_sim_queue_left(all, 2 * all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_draws),	cmocka_unit_test(test_ops),
		cmocka_unit_test(test_answers), cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
