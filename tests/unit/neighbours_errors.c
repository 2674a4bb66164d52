// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BURSTS: mean length of the suspect's, and of the pauses; SLOWER: by how much it slows the victim then;
 * SAMPLES/s: of the victim. Print how often neighbours are named rightly and wrongly, over synthetic streams whose couplings are known:
 * neighbours_errors [STREAMS [QUIET_HOURS [FIRST_SEED [WINDOWS]]]]
 *
 * WINDOWS: of a second, 1 or 2; the history has as many windows in either case.
 *
 * POSSIBLE: that a judge can name at best in 10 s, who knows everything but whether the suspect slows the victim, and has the
 *	same limits for false accusations and the least number of runs.
 * TWO: another container slows the same victim at times of its own. RAMP: the suspect reaches its level over 3 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "neighbour_streams.h"

#define COUPLED_FROM 100U /* windows before the culprit comes */
#define COUPLED	     60U  /* windows with it */

#define LIMIT_S 10U /* in which a neighbour should be named */

struct counts_of {
	unsigned int streams, in_10, in_20, in_all, wrong;
	double possible;
};

/* What a judge can know at best, of the windows of LIMIT_S: everything but whether the suspect slows the victim. */
struct best_judge {
	unsigned int runs;
	bool busy;
	double squares; /* of the deviations that the effect is expected to show */
};

enum shape { PLAIN, TWO, RAMP };

static unsigned int first_seed = 1, windows = 1;

static void best_judge_sees(struct best_judge *b, const struct stream_complex *s, double samples)
{
	const struct stream_container *victim = &s->c[0];
	const double level = s->busy[victim->lag][victim->by];
	const double effect = log(1 + victim->strength * fmin(1.5, level));
	const bool busy = level >= 0.5;

	if (busy && !b->busy)
		b->runs++;
	b->busy = busy;
	if (samples > 0)
		b->squares += effect * effect /
			      (victim->dispersion * victim->dispersion / samples +
			       victim->noise * victim->noise);
}

/* Its chance to name the pair, with the limits for false accusations that the judge has. */
static double best_judge_power(const struct best_judge *b)
{
	const double tests = STREAM_CONTAINERS * STREAM_CONTAINERS * (NEIGHBOURS_LAG + 1);
	double needed = 3;

	if (b->runs < NEIGHBOURS_RUNS)
		return 0;
	while (tests * 0.5 * erfc(needed / M_SQRT2) > NEIGHBOURS_FALSE)
		needed += 0.01;
	return 0.5 * erfc((needed - sqrt(b->squares)) / M_SQRT2);
}

static void run_coupled(__u64 seed, double strength, double samples, double burst_s,
			enum shape shape, struct counts_of *out)
{
	struct neighbours *n = neighbours_new(false);
	struct stream_complex s;
	const struct neighbours_pair *pair;
	struct best_judge best = { 0 };
	size_t pairs;

	stream_coupled(&s, seed, strength, samples, burst_s, COUPLED_FROM);
	if (shape == TWO) {
		s.c[2] = stream_bursts(&s.random, burst_s, burst_s);
		s.c[2].from = COUPLED_FROM;
		s.c[0].also_by = 2;
	}
	s.c[1].ramp_s = shape == RAMP ? 3 : 0;
	stream_split(&s, windows);
	for (unsigned int w = 0; w < (COUPLED_FROM + COUPLED) * windows; w++) {
		stream_step(&s, n, 0);
		neighbours_end_window(n, true);
		if (w >= COUPLED_FROM * windows && w < (COUPLED_FROM + LIMIT_S) * windows)
			best_judge_sees(&best, &s, s.emitted[0]);
	}
	out->possible += best_judge_power(&best);
	pair = neighbours_pairs(n, &pairs);
	out->streams++;
	for (size_t i = 0; i < pairs; i++) {
		const unsigned int from = COUPLED_FROM * windows;
		const unsigned int after = (pair[i].first - from) / windows;

		if (shape == TWO && !pair[i].victim && pair[i].suspect == 2)
			continue;
		if (pair[i].victim || pair[i].suspect != 1 || pair[i].first < from) {
			out->wrong++;
			continue;
		}
		out->in_10 += after < LIMIT_S;
		out->in_20 += after < 20;
		out->in_all++;
	}
	neighbours_free(n);
}

static unsigned int run_quiet(unsigned int hours)
{
	unsigned int named = 0;

	for (unsigned int h = 0; h < hours; h++) {
		struct neighbours *n = neighbours_new(false);
		struct stream_complex s;
		size_t pairs;

		stream_quiet(&s, 1000 * first_seed + h);
		stream_split(&s, windows);
		for (unsigned int w = 0; w < 3600 * windows; w++) {
			stream_step(&s, n, 0);
			neighbours_end_window(n, true);
		}
		neighbours_pairs(n, &pairs);
		named += pairs;
		neighbours_free(n);
	}
	return named;
}

static void print_row(enum shape shape, double burst_s, double strength, double samples,
		      unsigned int streams)
{
	static const char *const names[] = { "", "two", "ramp" };
	struct counts_of c = { 0 };

	for (unsigned int i = 0; i < streams; i++)
		run_coupled(first_seed + i, strength, samples, burst_s, shape, &c);
	printf("%4.1f s  %4.0f %%  %9.0f  %10.1f %%  %6.1f %%  %4.0f %%  %4.0f %%  %6u  %5u  %9.3f "
	       " %s\n",
	       burst_s, strength * 100, samples, 100. * c.in_10 / c.streams,
	       100 * c.possible / c.streams, 100. * c.in_20 / c.streams,
	       100. * c.in_all / c.streams, c.streams - c.in_all, c.wrong,
	       c.in_all + c.wrong ? (double)c.in_all / (c.in_all + c.wrong) : NAN, names[shape]);
	fflush(stdout);
}

static void print_rows(double burst_s, unsigned int streams)
{
	static const double strengths[] = { 0.15, 0.3, 0.5, 1 }, samples[] = { 30, 100, 300 };

	for (unsigned int i = 0; i < sizeof(strengths) / sizeof(*strengths); i++)
		for (unsigned int k = 0; k < sizeof(samples) / sizeof(*samples); k++)
			print_row(PLAIN, burst_s, strengths[i], samples[k], streams);
}

/* CPU time of a window of 200 containers on one complex, 8 of which have most of the accesses. */
static double window_ms(void)
{
	struct neighbours *n = neighbours_new(false);
	struct stream_complex s;
	clock_t spent = 0;

	stream_quiet(&s, 1);
	for (unsigned int w = 0; w < 2 * NEIGHBOURS_HISTORY; w++) {
		clock_t began;

		stream_step(&s, n, 0);
		for (unsigned int i = STREAM_CONTAINERS; i < 200; i++) {
			struct neighbours_activity a = { .samples = stream_count(&s.random, 15) };

			a.latency = 300 * a.samples * exp(0.1 * stream_gauss(&s.random));
			neighbours_add(n, 0, i, &a);
		}
		began = clock();
		neighbours_end_window(n, true);
		spent += w < NEIGHBOURS_HISTORY ? 0 : clock() - began;
	}
	neighbours_free(n);
	return 1e3 * spent / CLOCKS_PER_SEC / NEIGHBOURS_HISTORY;
}

int main(int argc, char **argv)
{
	const unsigned int streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 100,
			   hours = argc > 2 ? strtoul(argv[2], NULL, 10) : 24;

	if (argc > 3)
		first_seed = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		windows = strtoul(argv[4], NULL, 10);
	printf("%u streams each of 8 containers, 56 pairs, one of which is coupled when its "
	       "suspect "
	       "comes after %u s; seeds from %u; windows of %.1f s\n\n",
	       streams, COUPLED_FROM, first_seed, 1. / windows);
	printf("BURSTS  SLOWER  SAMPLES/s  NAMED IN 10 s  POSSIBLE    20 s    60 s  MISSED  WRONG  "
	       "PRECISION  SHAPE\n");
	print_rows(1.5, streams);
	print_rows(4, streams);
	for (enum shape shape = PLAIN; shape <= RAMP; shape++) {
		if (shape == PLAIN)
			print_row(shape, 8, 0.5, 100, streams);
		else
			print_row(shape, 1.5, 0.5, 100, streams);
		print_row(shape, 2.5, 0.5, 300, streams);
		print_row(shape, 4, 1, 100, streams);
	}
	printf("\n%u quiet hours, 56 pairs: %u named\n", hours, run_quiet(hours));
	printf("CPU time of a window of 200 containers: %.2f ms\n", window_ms());
	return 0;
}
