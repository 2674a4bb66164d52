// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Weights that samples of strata get when they are taken, over simulated minutes of a collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "strata/steer.h"

#include <math.h>
#include <stdint.h>

#define PERIOD	1000000.0
#define RATIO	32
#define OPS_S	2e9
#define LONGER	1.3 /* tags of the miss stratum are so much rarer than its period says */
#define SLICE_S 1.0

static const long long no_debt[STEER_KINDS];

static double uniform(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

enum load { STEADY, RANDOM, PHASES, LOADS };

/* Ops a second of the machine in the slice that begins at @t. */
static double rate(enum load load, double t, uint64_t *random)
{
	if (load == RANDOM)
		return OPS_S * 2 * uniform(random);
	if (load == PHASES) /* as long as two slices */
		return OPS_S * (fmod(t, 2 * SLICE_S) < SLICE_S ? 1.8 : 0.2);
	return OPS_S;
}

/* A kind's share of ops is 1 here, so that the estimates are of all ops. */
struct run {
	double truth, estimate[STEER_KINDS];
};

static struct run run(enum load load, int slices, uint64_t seed)
{
	double period[STRATUM_N] = { PERIOD, PERIOD / RATIO }, t = 0;
	enum stratum of = STRATUM_FULL;
	struct run r = { 0 };
	uint64_t random = seed;
	struct steer x;

	steer_begin(&x, period, no_debt);
	for (int i = 0; i < slices; i++, of = !of) {
		const double s = strata_next_s(of, SLICE_S, uniform(&random));
		const double ops = rate(load, t, &random) * s;
		const double tags = ops / period[of] / (of == STRATUM_MISS ? LONGER : 1);
		unsigned long long weight[STEER_KINDS];

		if (i == slices / 2) { /* a governor */
			for (int k = 0; k < STRATUM_N; k++) {
				steer_period(&x, k, period[k], 2 * period[k]);
				period[k] *= 2;
			}
		}
		steer_weights(&x, of, weight);
		if (of == STRATUM_MISS)
			assert_int_equal(weight[STEER_FULL], 0);
		else
			assert_true(weight[STEER_FULL] > weight[STEER_BOTH]);
		r.truth += ops;
		for (int kind = 0; kind < STEER_KINDS; kind++)
			r.estimate[kind] += tags * (double)weight[kind];
		steer_add(&x, of, ops, tags, weight);
		t += s;
	}
	return r;
}

#define SEEDS 200

/* Fifty windows of ten seconds: no bias above half a percent, and little chance, whatever the load. */
static void unbiased(void **state)
{
	(void)state;
	for (enum load load = 0; load < LOADS; load++) {
		double mean[STEER_KINDS] = { 0 }, squares[STEER_KINDS] = { 0 };

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			const struct run r = run(load, 500, seed * 12345);

			for (int kind = 0; kind < STEER_KINDS; kind++) {
				const double error = r.estimate[kind] / r.truth - 1;

				mean[kind] += error / SEEDS;
				squares[kind] += error * error / SEEDS;
			}
		}
		for (int kind = 0; kind < STEER_KINDS; kind++)
			if (fabs(mean[kind]) > 0.005 || sqrt(squares[kind]) > 0.01)
				fail_msg("load %d, kind %d: %+.2f %% +-%.2f %%", load, kind,
					 100 * mean[kind], 100 * sqrt(squares[kind]));
	}
}

/* Groups that live for some seconds and end are counted too much as often as too little. */
static void groups_that_end(void **state)
{
	const double period[STRATUM_N] = { PERIOD, PERIOD / RATIO };
	double truth = 0, estimate[STEER_KINDS] = { 0 };
	enum stratum of = STRATUM_MISS;
	uint64_t random = 7;
	struct steer x;

	(void)state;
	steer_begin(&x, period, no_debt);
	for (int i = 0; i < 40000; i++, of = !of) {
		const double s = strata_next_s(of, SLICE_S, uniform(&random));
		const double ops = rate(RANDOM, 0, &random) * s, tags = ops / period[of];
		/* a group's part of the slice: none, or all of it from a random time on */
		const double part = fmax(0, 2 * uniform(&random) - 1);
		unsigned long long weight[STEER_KINDS];

		steer_weights(&x, of, weight);
		truth += part * ops;
		for (int kind = 0; kind < STEER_KINDS; kind++)
			estimate[kind] += part * tags * (double)weight[kind];
		steer_add(&x, of, ops, tags, weight);
	}
	for (int kind = 0; kind < STEER_KINDS; kind++)
		if (fabs(estimate[kind] / truth - 1) > 0.015)
			fail_msg("kind %d: %+.2f %%", kind, 100 * (estimate[kind] / truth - 1));
}

/* An idle machine teaches nothing, and its weights are those of the periods. */
static void idle(void **state)
{
	const double period[STRATUM_N] = { PERIOD, PERIOD / RATIO };
	const double full = STRATA_FULL_SHARE, miss = 1 - STRATA_FULL_SHARE;
	unsigned long long first[STEER_KINDS], weight[STEER_KINDS];
	struct steer x;

	(void)state;
	steer_begin(&x, period, no_debt);
	steer_weights(&x, STRATUM_FULL, first);
	assert_true(fabs(first[STEER_FULL] * full / PERIOD - 1) < 1e-3);
	assert_true(fabs(first[STEER_BOTH] * (full + RATIO * miss) / PERIOD - 1) < 1e-3);
	for (int i = 0; i < 10; i++)
		steer_add(&x, i % 2, 0, 0, first);
	steer_weights(&x, STRATUM_FULL, weight);
	assert_memory_equal(weight, first, sizeof(first));
	/* ops without a tag are owed to the next samples, but no sample counts twice as much as it should */
	for (int i = 0; i < 10; i++)
		steer_add(&x, i % 2, 1e9, 0, first);
	steer_weights(&x, STRATUM_FULL, weight);
	assert_true(weight[STEER_FULL] > first[STEER_FULL]);
	/* nor does it count for nothing, which would drop it */
	x = (struct steer){ .begun = true };
	steer_weights(&x, STRATUM_FULL, weight);
	assert_int_equal(weight[STEER_FULL], 1);
	assert_int_equal(weight[STEER_BOTH], 1);
}

/* Collectors that are restarted every ten seconds: what each leaves behind, the next one makes up for. */
static double error_of_restarts(bool keeps)
{
	const double period[STRATUM_N] = { PERIOD, PERIOD / RATIO };
	double truth = 0, estimate = 0;
	uint64_t random = 11;
	struct steer x = {};

	for (int run = 0; run < 200; run++) {
		const long long owed[STEER_KINDS] = { keeps ? llround(x.owed[0]) : 0,
						      keeps ? llround(x.owed[1]) : 0 };
		/* a run begins in the full stratum and can end in either one */
		const int slices = 10 + (int)(2 * uniform(&random));

		steer_begin(&x, period, owed);
		for (int i = 0; i < slices; i++) {
			const enum stratum of = i % 2;
			const double s = strata_next_s(of, SLICE_S, uniform(&random));
			const double ops = rate(RANDOM, 0, &random) * s, tags = ops / period[of];
			unsigned long long weight[STEER_KINDS];

			steer_weights(&x, of, weight);
			truth += ops;
			estimate += tags * (double)weight[STEER_FULL];
			steer_add(&x, of, ops, tags, weight);
		}
	}
	return estimate / truth - 1;
}

static void restarts(void **state)
{
	const double kept = error_of_restarts(true), lost = error_of_restarts(false);

	(void)state;
	print_message("restarts: %+.3f %%, and without what is owed %+.3f %%\n", 100 * kept,
		      100 * lost);
	assert_true(fabs(kept) < 0.001);
	assert_true(fabs(lost) > 10 * fabs(kept));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unbiased),
		cmocka_unit_test(groups_that_end),
		cmocka_unit_test(idle),
		cmocka_unit_test(restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
