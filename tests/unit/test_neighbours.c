// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who slows whom, by streams whose couplings are known; neighbours_errors prints the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "counts/snapshot.h"
#include "neighbour_streams.h"
#include "neighbours/neighbours_private.h"

#include <math.h>

#define SEEDS		6
#define FROM		100
#define SOON_SEEDS	12
#define REGULAR_SEEDS	20
#define REGULAR_WINDOWS 50
#define TWO_SEEDS	6

static struct neighbours *run(struct stream_complex *s, unsigned int complex, unsigned int windows)
{
	struct neighbours *n = neighbours_new(true);

	for (unsigned int w = 0; w < windows; w++) {
		stream_step(s, n, complex);
		neighbours_end_window(n, true);
	}
	return n;
}

static void test_coupled(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct stream_complex s;
		struct neighbours *n;
		const struct neighbours_pair *p;
		size_t pairs;

		stream_coupled(&s, seed, 1, 300, 1.5, FROM);
		n = run(&s, 3, FROM + 20);
		p = neighbours_pairs(n, &pairs);
		assert_int_equal(pairs, 1);
		assert_int_equal(p->complex, 3);
		assert_int_equal(p->victim, 0);
		assert_int_equal(p->suspect, 1);
		assert_int_equal(p->lag, s.c[0].lag);
		assert_in_range(p->first, FROM + 3, FROM + 19);
		assert_true(p->latency > 1.5 * p->baseline && p->latency < 2.5 * p->baseline);
		assert_true(p->correlation > 0.8);
		assert_true(p->chance < NEIGHBOURS_FALSE);
		neighbours_free(n);
	}
}

/*
 * A suspect that is busy at regular times, and a victim that is slower still for a while after each: as long as the runs
 * at other times meet what is left of these effects, the victim seems to have such ups of its own.
 */
static void test_regular(void **state)
{
	const double on_s = 2.3, off_s = 3.4, drain_s = 0.6, step_s = 0.01;

	(void)state;
	for (unsigned int seed = 1; seed <= REGULAR_SEEDS; seed++) {
		struct stream_random r = { seed };
		struct neighbours *n = neighbours_new(false);
		const struct neighbours_pair *p;
		double now = seed * 0.9, wait = 0;
		size_t pairs;

		for (unsigned int w = 0; w < REGULAR_WINDOWS; w++) {
			struct neighbours_activity victim = { 440, 0, 0 }, suspect = { 0, 0, 0 };
			double sum = 0, busy = 0;

			for (double end = now + 1; now < end; now += step_s) {
				const bool on = fmod(now, on_s + off_s) < on_s;

				wait += (on - wait) * step_s / drain_s;
				sum += wait * step_s;
				busy += on * step_s;
			}
			victim.latency = 440 * 370 * (1 + 0.6 * sum) * exp(0.05 * stream_gauss(&r));
			suspect.samples = floor(540 * busy);
			suspect.latency = suspect.samples * 500;
			neighbours_add(n, 0, 0, &victim);
			neighbours_add(n, 0, 1, &suspect);
			neighbours_end_window(n, true);
		}
		p = neighbours_pairs(n, &pairs);
		if (pairs != 1)
			print_message("seed %u: %zu pairs\n", seed, pairs);
		assert_int_equal(pairs, 1);
		assert_int_equal(p->victim, 0);
		assert_int_equal(p->suspect, 1);
		neighbours_free(n);
	}
}

/* Within ten seconds, where bursts are short and the effect is plain. */
static void test_soon(void **state)
{
	unsigned int soon = 0;

	(void)state;
	for (unsigned int seed = 21; seed < 21 + SOON_SEEDS; seed++) {
		struct stream_complex s;
		struct neighbours *n;
		size_t pairs;

		stream_coupled(&s, seed, 0.5, 300, 2.5, FROM);
		n = run(&s, 0, FROM + 10);
		neighbours_pairs(n, &pairs);
		assert_in_range(pairs, 0, 1);
		soon += pairs;
		neighbours_free(n);
	}
	assert_true(soon > SOON_SEEDS / 2);
}

/* Each of two that slow a victim at times of their own. */
static void test_two(void **state)
{
	unsigned int named = 0;

	(void)state;
	for (unsigned int seed = 21; seed < 21 + TWO_SEEDS; seed++) {
		struct stream_complex s;
		struct neighbours *n;
		const struct neighbours_pair *p;
		size_t pairs;

		stream_coupled(&s, seed, 0.5, 300, 2.5, FROM);
		s.c[2] = stream_bursts(&s.random, 2.5, 2.5);
		s.c[2].from = FROM;
		s.c[0].also_by = 2;
		n = run(&s, 0, FROM + 60);
		p = neighbours_pairs(n, &pairs);
		for (size_t i = 0; i < pairs; i++) {
			assert_int_equal(p[i].victim, 0);
			assert_in_range(p[i].suspect, 1, 2);
		}
		named += pairs;
		neighbours_free(n);
	}
	assert_true(named >= 2 * TWO_SEEDS - 2);
}

static void test_quiet(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct stream_complex s;
		struct neighbours *n;
		size_t pairs;

		stream_quiet(&s, seed);
		n = run(&s, 0, 300);
		neighbours_pairs(n, &pairs);
		assert_int_equal(pairs, 0);
		neighbours_free(n);
	}
}

/* Two that are on at the same times, one of which waits longer by its own load. */
static void test_shared_schedule(void **state)
{
	struct stream_complex s;
	struct neighbours *n;
	size_t pairs;

	(void)state;
	stream_quiet(&s, 1);
	s.n = 2;
	s.c[0] = stream_bursts(&s.random, 2, 2);
	s.c[0].by_own = 0.4;
	s.c[0].low = s.c[0].high / 3;
	s.c[1] = stream_bursts(&s.random, 2, 2);
	s.c[1].follows = 0;
	n = run(&s, 0, 300);
	neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 0);
	neighbours_free(n);
}

/* A single long step is a coincidence as likely as not. */
static void test_one_step(void **state)
{
	struct stream_complex s;
	struct neighbours *n;
	struct neighbours_lack lack;
	size_t pairs;

	(void)state;
	stream_coupled(&s, 2, 1, 300, 1000, 60);
	s.n = 2;
	s.c[1].off_s = 0;
	n = run(&s, 0, 100);
	neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 0);
	neighbours_lack(n, &lack);
	assert_int_equal(lack.undecided, 1);
	assert_true(lack.more_windows > 0);
	neighbours_free(n);
}

static void test_lack(void **state)
{
	const struct neighbours_activity few = { .samples = 2, .latency = 400 };
	struct neighbours *n = neighbours_new(true);
	struct neighbours_lack lack;
	size_t pairs;

	(void)state;
	neighbours_end_window(n, true);
	neighbours_lack(n, &lack);
	assert_int_equal(lack.windows, 1);
	assert_int_equal(lack.containers, 0);
	for (int w = 0; w < 30; w++) {
		neighbours_add(n, 0, 7, &few);
		neighbours_add(n, 0, 8, &few);
		neighbours_end_window(n, true);
	}
	neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 0);
	neighbours_lack(n, &lack);
	assert_int_equal(lack.windows, 31);
	assert_int_equal(lack.containers, 2);
	assert_int_equal(lack.too_few, 2);
	assert_true(lack.more_samples >= 4);
	neighbours_free(n);
	neighbours_free(NULL);
}

/* Windows that were not measured as a whole, and containers that leave for good. */
static void test_unknown_windows(void **state)
{
	struct stream_complex s;
	struct neighbours *n = neighbours_new(true);
	size_t pairs;

	(void)state;
	stream_coupled(&s, 1, 1, 300, 1.5, 0);
	for (unsigned int w = 0; w < 100; w++) {
		stream_step(&s, n, 0);
		neighbours_end_window(n, false);
	}
	neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 0);
	for (unsigned int w = 0; w < 2 * NEIGHBOURS_HISTORY; w++)
		neighbours_end_window(n, true);
	stream_step(&s, n, 0);
	neighbours_end_window(n, true);
	neighbours_free(n);
}

/* 300 of 310 samples are misses, though L3 answered most of the accesses. */
static void test_weights(void **state)
{
	struct series series[] = {
		{ .src = IBS_SRC_L3,
		  .samples = 10,
		  .valid = 10,
		  .sum = 500,
		  .ops = 10000,
		  .cycles = 500000 },
		{ .src = IBS_SRC_DRAM,
		  .samples = 300,
		  .valid = 300,
		  .sum = 120000,
		  .ops = 3000,
		  .cycles = 1200000 },
		{ .src = IBS_SRC_L2,
		  .samples = 5,
		  .valid = 5,
		  .sum = 60,
		  .ops = 5000,
		  .cycles = 60000 },
	};
	const struct group g = { .weighted = true, .n_series = 3, .series = series };
	const double mean = 1700000. / 13000;
	struct neighbours_activity before, now, w;

	(void)state;
	assert_true(neighbours_activity_of(&g, &before));
	w = neighbours_activity_weighed(&before);
	assert_true(fabs(w.latency / w.samples - mean) < 1e-9 * mean);
	assert_true(fabs(w.samples - 13000. * 13000 / (10000. * 10000 / 10 + 3000. * 3000 / 300)) <
		    1e-6);
	/* twice as much: the difference is the same again */
	for (int i = 0; i < 3; i++) {
		series[i].samples *= 2;
		series[i].valid *= 2;
		series[i].sum *= 2;
		series[i].ops *= 2;
		series[i].cycles *= 2;
	}
	assert_true(neighbours_activity_of(&g, &now));
	neighbours_activity_since(&now, &before);
	now = neighbours_activity_weighed(&now);
	assert_memory_equal(&now, &w, sizeof(w));
	/* without weights, samples are as they are */
	w = neighbours_activity_weighed(&(struct neighbours_activity){ 5, 2000, 7 });
	assert_true(w.samples == 5 && w.latency == 2000 && w.accesses == 7);
}

/* Containers on different complexes do not slow each other, whatever it looks like. */
static void test_complexes(void **state)
{
	(void)state;
	for (unsigned int complex = 0; complex < 2; complex++) {
		struct neighbours *n = neighbours_new(true);
		struct neighbours_lack lack;
		struct stream_complex s;
		size_t pairs;

		stream_coupled(&s, 1, 1, 300, 1.5, 0);
		s.n = 2;
		for (unsigned int w = 0; w < 120; w++) {
			stream_move(&s);
			stream_emit(&s, n, 0, 0);
			stream_emit(&s, n, 1, complex);
			s.window++;
			neighbours_end_window(n, true);
		}
		neighbours_pairs(n, &pairs);
		assert_int_equal(pairs, !complex);
		neighbours_lack(n, &lack);
		assert_int_equal(lack.containers, 2);
		neighbours_free(n);
	}
}

/* The clearest pair is first, then by complex and container; those not seen for a while can be forgotten. */
static void test_order(void **state)
{
	static const struct neighbours_pair sorted[] = {
		{ .complex = 2, .deviations = 9, .last = 90 },
		{ .complex = 1, .victim = 5, .suspect = 6, .deviations = 8, .last = 91 },
		{ .complex = 2, .victim = 3, .suspect = 1, .deviations = 8, .last = 92 },
		{ .complex = 2, .victim = 4, .suspect = 0, .deviations = 8, .last = 93 },
		{ .complex = 2, .victim = 4, .suspect = 2, .deviations = 8, .last = 94 },
		{ .complex = 0, .deviations = 7, .last = 95 },
	};
	static const unsigned int mixed[] = { 5, 2, 4, 1, 0, 3 };
	struct neighbours *n = neighbours_new(false);
	const struct neighbours_pair *p;
	size_t pairs;

	(void)state;
	assert_null(neighbours_pairs(n, &pairs));
	assert_int_equal(pairs, 0);
	array_reserve(n->pair, n->room_pairs, 6);
	for (n->n_pairs = 0; n->n_pairs < 6; n->n_pairs++)
		n->pair[n->n_pairs] = sorted[mixed[n->n_pairs]];
	p = neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 6);
	assert_memory_equal(p, sorted, sizeof(sorted));
	n->window = 100;
	neighbours_forget(n, 8);
	p = neighbours_pairs(n, &pairs);
	assert_int_equal(pairs, 4);
	assert_memory_equal(p, &sorted[2], 4 * sizeof(*sorted));
	neighbours_free(n);
}

/* L3, other caches, and memory of all kinds. */
static void test_sources(void **state)
{
	(void)state;
	assert_int_equal(neighbours_sources(),
			 1 << IBS_SRC_L3 | 1 << IBS_SRC_LOCAL_CACHE | 1 << IBS_SRC_NEAR_CACHE |
				 1 << IBS_SRC_REMOTE_CACHE | 1 << IBS_SRC_DRAM |
				 1 << IBS_SRC_REMOTE_DRAM | 1 << IBS_SRC_PMEM |
				 1 << IBS_SRC_REMOTE_PMEM | 1 << IBS_SRC_CXL |
				 1 << IBS_SRC_REMOTE_CXL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coupled),
		cmocka_unit_test(test_regular),
		cmocka_unit_test(test_soon),
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_shared_schedule),
		cmocka_unit_test(test_one_step),
		cmocka_unit_test(test_lack),
		cmocka_unit_test(test_unknown_windows),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_complexes),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
