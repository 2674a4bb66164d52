// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What runs of a suspect say of a victim: small series, with values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "neighbours/neighbours_experiments.h"

#define N     40
#define QUIET 100. /* cycles that the victim waits */
#define RISE  .5   /* of the logarithm, while the suspect is busy */

#define near(a, b) assert_true(fabs((a) - (double)(b)) < 1e-4)

static struct window_series victim;
static struct suspect suspect;
static struct experiments x;
static enum suspect_state state[NEIGHBOURS_HISTORY];
static double activity[NEIGHBOURS_HISTORY];

/* One sample in each window; the suspect is quiet. */
static int begin(void **unused)
{
	(void)unused;
	memset(&victim, 0, sizeof(victim));
	memset(&suspect, 0, sizeof(suspect));
	memset(activity, 0, sizeof(activity));
	victim.n = N;
	for (unsigned int i = 0; i < N; i++) {
		victim.samples[i] = victim.weight[i] = 1;
		victim.latency[i] = log(QUIET);
		suspect.state[i] = SUSPECT_QUIET;
	}
	x = (struct experiments){ .victim = &victim, .latency = victim.latency, .n = N };
	return 0;
}

/* The suspect is busy, and the victim slower by its effect so many windows later. */
static void busy(unsigned int from, unsigned int to, int lag)
{
	for (unsigned int i = from; i < to; i++) {
		suspect.state[i] = SUSPECT_BUSY;
		activity[i] = 7;
		if ((int)i + lag < N)
			victim.latency[i + lag] += RISE;
	}
}

static struct evidence judge(void)
{
	struct evidence e;

	x.n_runs = 0;
	experiments_begin(&x, &suspect, NULL, state);
	assert_true(experiments_run(&x, activity, &e));
	return e;
}

static bool says_nothing(void)
{
	struct evidence e;

	x.n_runs = 0;
	experiments_begin(&x, &suspect, NULL, state);
	return !experiments_run(&x, activity, &e);
}

/* Variance of one sample: 0.64 for four windows, and the 22 degrees of freedom of both runs, which add nothing. */
#define VARIANCE (4 * .64 / (4 + 22))

static void check_two(const struct evidence *e)
{
	const double first = RISE / sqrt(VARIANCE * (1 / 2. + 1 / 12.)),
		     second = RISE / sqrt(VARIANCE * (1 + 1 / 12.));

	assert_int_equal(x.n_runs, 2);
	assert_int_equal(e->runs, 2);
	assert_int_equal(e->busy, 3);
	assert_int_equal(e->quiet, 24); /* six on each side of each run */
	near(e->rise, RISE);
	near(e->baseline, QUIET);
	near(e->correlation, 1);
	near(e->coincidence, 1);
	near(x.deviations[0], first);
	near(x.deviations[1], second);
	near(e->deviations, (first + second) / sqrt(2));
}

static void test_two_runs(void **unused)
{
	struct evidence e;

	(void)unused;
	busy(10, 12, 0);
	busy(25, 26, 0);
	e = judge();
	check_two(&e);
	assert_int_equal(x.run[0].begin, 10);
	assert_int_equal(x.run[0].end, 12);
	assert_int_equal(x.run[1].begin, 25);
	assert_int_equal(x.run[1].end, 26);
}

static void test_lag(void **unused)
{
	struct evidence e;

	(void)unused;
	busy(10, 12, 3);
	busy(25, 26, 3);
	x.lag = 3;
	e = judge();
	check_two(&e);
	x.lag = 0;
	e = judge();
	assert_true(e.rise < 0); /* the windows after a run are slower than those in it */
}

/* Shifted, the time of the victim goes on from its begin. */
static void test_shifted(void **unused)
{
	(void)unused;
	busy(10, 12, 0);
	x.shifted = true;
	x.lag = 35;
	assert_int_equal(experiments_window(&x, 4), 39);
	assert_int_equal(experiments_window(&x, 5), 0);
	assert_int_equal(experiments_window(&x, 39), 34);
	near(judge().rise,
	     -2 * RISE / 12); /* windows 10 and 11 are two of the twelve beside 5 and 6 */
	x.shifted = false;
	assert_int_equal(experiments_window(&x, 4), 39);
	assert_int_equal(experiments_window(&x, 5), -1);
	x.lag = -1;
	assert_int_equal(experiments_window(&x, 0), -1);
	assert_true(says_nothing() == false);
}

/* At the end of the time there is one side. */
static void test_one_side(void **unused)
{
	struct evidence e;

	(void)unused;
	busy(38, 40, 0);
	e = judge();
	assert_int_equal(e.runs, 1);
	assert_int_equal(e.busy, 2);
	assert_int_equal(e.quiet, 6);
	near(e.deviations, RISE / sqrt(4 * .64 / (4 + 6) * (1 / 2. + 1 / 6.)));
}

/* Eight windows at the begin of a long run, and eight at its end. */
static void test_long_run(void **unused)
{
	struct evidence e;

	(void)unused;
	busy(10, 30, 0);
	for (unsigned int i = 18; i < 22; i++)
		victim.latency[i] += 10; /* in the middle */
	e = judge();
	assert_int_equal(e.runs, 1);
	assert_int_equal(e.busy, 16);
	assert_int_equal(e.quiet, 12);
	near(e.rise, RISE);
	/* the cap of a single run is five deviations */
	for (unsigned int i = 0; i < N; i++)
		victim.samples[i] = 1000;
	near(judge().deviations, 5);
	for (unsigned int i = 10; i < 30; i++)
		victim.latency[i] -= 2 * RISE;
	near(judge().deviations, -5);
}

/* A victim that is slower from then on was not slowed by the run: the side after it says so. */
static void test_step(void **unused)
{
	double after, variance = 4 * .64 / (4 + 14);

	(void)unused;
	busy(10, 13, 0);
	for (unsigned int i = 13; i < N; i++)
		victim.latency[i] += RISE;
	for (unsigned int i = 0; i < N; i++)
		victim.samples[i] = 20;
	after = 0; /* no rise against the windows after it */
	near(judge().deviations,
	     fmin(after + 1.5, (RISE / 2) / sqrt(variance * (1 / 60. + 1 / 240.))));
}

/* Windows without enough samples, left out, and between busy and quiet, say nothing. */
static void test_left_out(void **unused)
{
	bool out[NEIGHBOURS_HISTORY] = {};
	struct evidence e;

	(void)unused;
	busy(10, 12, 0);
	victim.weight[11] = 0;
	suspect.state[9] = SUSPECT_BETWEEN;
	suspect.state[8] = SUSPECT_UNKNOWN;
	out[12] = true;
	x.leave_out = out;
	e = judge();
	assert_int_equal(e.busy, 1);
	assert_int_equal(e.quiet, 4 + 5); /* of six on each side */
	near(e.rise, RISE);
	out[10] = true;
	assert_true(says_nothing());
}

/* Another run ends the quiet windows. */
static void test_close_runs(void **unused)
{
	struct evidence e;

	(void)unused;
	busy(10, 12, 0);
	busy(14, 16, 0);
	e = judge();
	assert_int_equal(e.runs, 2);
	assert_int_equal(e.quiet, 6 + 2 + 2 + 6);
	near(e.rise, RISE);
}

static void test_no_runs(void **unused)
{
	(void)unused;
	assert_true(says_nothing());
	assert_int_equal(x.n_runs, 0);
	busy(0, N, 0); /* never quiet */
	assert_true(says_nothing());
	assert_int_equal(x.n_runs, 1);
}

static void set_quiet_samples(double samples)
{
	for (unsigned int i = 0; i < N; i++)
		if (suspect.state[i] == SUSPECT_QUIET)
			victim.samples[i] = samples;
}

/* Quiet windows in which the victim was otherwise busy are not compared with. */
static void test_other_volume(void **unused)
{
	(void)unused;
	busy(10, 12, 0);
	victim.samples[10] = victim.samples[11] = 12;
	set_quiet_samples(10);
	assert_false(says_nothing());
	set_quiet_samples(9.9);
	assert_true(says_nothing());
	set_quiet_samples(30);
	assert_false(says_nothing());
	set_quiet_samples(30.1);
	assert_true(says_nothing());
	victim.samples[9] =
		12; /* one side is enough, unless the other has only windows that are unlike */
	assert_true(says_nothing());
	victim.samples[12] = 12;
	assert_int_equal(judge().quiet, 2);
}

/* What another suspect does while it is not quiet is unknown. */
static void test_other_suspect(void **unused)
{
	static struct suspect other;

	(void)unused;
	busy(10, 12, 0);
	for (unsigned int i = 0; i < N; i++)
		other.state[i] = SUSPECT_QUIET;
	other.state[10] = SUSPECT_BUSY;
	other.state[20] = SUSPECT_BETWEEN;
	experiments_begin(&x, &suspect, &other, state);
	assert_int_equal(state[9], SUSPECT_QUIET);
	assert_int_equal(state[10], SUSPECT_UNKNOWN);
	assert_int_equal(state[11], SUSPECT_BUSY);
	assert_int_equal(state[20], SUSPECT_UNKNOWN);
	assert_int_equal(x.n_runs, 1);
	assert_int_equal(x.run[0].begin, 11);
}

/* More latency by more accesses of its own is not the suspect's: a slope of 1 between both explains it. */
static void test_own_volume(void **unused)
{
	(void)unused;
	busy(10, 14, 0);
	for (unsigned int i = 0; i < N; i++) {
		const double own = i % 2 ? .1 : -.1;

		victim.volume[i] = own + (suspect.state[i] == SUSPECT_BUSY ? .2 : 0);
		victim.latency[i] += own;
	}
	near(judge().rise, RISE - .2);
	/* with fewer accesses it is slowed: nothing is explained */
	for (unsigned int i = 10; i < 14; i++)
		victim.volume[i] -= .4;
	near(judge().rise, RISE);
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_two_runs), T(test_lag),		T(test_shifted),       T(test_one_side),
		T(test_long_run), T(test_step),		T(test_left_out),      T(test_close_runs),
		T(test_no_runs),  T(test_other_volume), T(test_other_suspect), T(test_own_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
