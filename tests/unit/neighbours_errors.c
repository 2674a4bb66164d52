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
 * 9 OF 10 IN: the seconds in which that judge names nine of ten; NAMED: the same of ours. -: not in 60 s.
 * QUIET_HOURS: each of a complex on which nobody slows anybody; pairs are shown as by the metrics of a collector.
 * TWO: another container slows the same victim at times of its own. RAMP: the suspect reaches its level over 3 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "neighbour_streams.h"

#define COUPLED_FROM 100U /* windows before the culprit comes */
#define COUPLED	     60U  /* windows with it */

#define LIMIT_S 10U /* in which a neighbour should be named */
#define ENOUGH	0.9 /* of them */
#define HOUR_S	3600U
#define SHOWN_S 60U /* so long a collector shows a pair that is not named again */

struct counts_of {
	unsigned int streams, in_all, wrong;
	unsigned int named[COUPLED]; /* in this second */
	double possible[COUPLED];    /* up to this second, sum over the streams */
};

/* What a judge can know at best: everything but whether the suspect slows the victim. */
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
		if (w < COUPLED_FROM * windows)
			continue;
		best_judge_sees(&best, &s, s.emitted[0]);
		if (!((w + 1) % windows))
			out->possible[w / windows - COUPLED_FROM] += best_judge_power(&best);
	}
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
		out->named[after]++;
		out->in_all++;
	}
	neighbours_free(n);
}

/* Accusations in hours in which nobody slows anybody, as the metrics of a collector show them. */
struct quiet {
	unsigned int hours, accusations, judgements, shown_s, most_s;
};

static void watch_quiet_hour(__u64 seed, struct quiet *q)
{
	unsigned int shown[STREAM_CONTAINERS][STREAM_CONTAINERS] = { { 0 } };
	bool was[STREAM_CONTAINERS][STREAM_CONTAINERS] = { { false } };
	struct neighbours *n = neighbours_new(false);
	struct stream_complex s;

	stream_quiet(&s, seed);
	stream_split(&s, windows);
	for (unsigned int w = 0; w < HOUR_S * windows; w++) {
		bool is[STREAM_CONTAINERS][STREAM_CONTAINERS] = { { false } };
		const struct neighbours_pair *pair;
		size_t pairs;

		stream_step(&s, n, 0);
		neighbours_end_window(n, true);
		neighbours_forget(n, SHOWN_S * windows);
		pair = neighbours_pairs(n, &pairs);
		for (size_t i = 0; i < pairs; i++) {
			is[pair[i].victim][pair[i].suspect] = true;
			q->accusations += !was[pair[i].victim][pair[i].suspect];
			q->judgements += pair[i].last == w;
			shown[pair[i].victim][pair[i].suspect]++;
		}
		memcpy(was, is, sizeof(was));
	}
	for (unsigned int v = 0; v < STREAM_CONTAINERS; v++)
		for (unsigned int i = 0; i < STREAM_CONTAINERS; i++) {
			const unsigned int shown_s = shown[v][i] / windows;

			q->shown_s += shown_s;
			q->most_s = shown_s > q->most_s ? shown_s : q->most_s;
		}
	q->hours++;
	neighbours_free(n);
}

/* The largest mean of a Poisson number of which so few are seen once in twenty times. */
static double poisson_at_most(unsigned int seen)
{
	double mean = seen;

	for (double chance = 1; chance > 0.05; mean += 0.01) {
		double term = exp(-mean);

		chance = 0;
		for (unsigned int k = 0; k <= seen; k++, term *= mean / k)
			chance += term;
	}
	return mean;
}

static void print_quiet(unsigned int hours)
{
	struct quiet q = { 0 };

	for (unsigned int h = 0; h < hours; h++)
		watch_quiet_hour(1000 * first_seed + h, &q);
	printf("%u quiet hours, 56 pairs, seeds from %u: %u named, %.2f a day, with 95 %% at most "
	       "%.2f",
	       q.hours, 1000 * first_seed, q.accusations, 24. * q.accusations / hours,
	       24 * poisson_at_most(q.accusations) / hours);
	if (q.accusations)
		printf("; each judged so in %.0f windows and shown for %.0f s on average; the pair "
		       "shown longest, for %u s of its hour",
		       (double)q.judgements / q.accusations, (double)q.shown_s / q.accusations,
		       q.most_s);
	puts("");
	fflush(stdout);
}

static void print_seconds(unsigned int s, int width)
{
	if (s)
		printf("  %*u s", width - 2, s);
	else
		printf("  %*s", width, "-");
}

static void print_row(enum shape shape, double burst_s, double strength, double samples,
		      unsigned int streams)
{
	static const char *const names[] = { "", "two", "ramp" };
	struct counts_of c = { 0 };
	unsigned int named = 0, in_10 = 0, in_20 = 0, possible_s = 0, named_s = 0;

	for (unsigned int i = 0; i < streams; i++)
		run_coupled(first_seed + i, strength, samples, burst_s, shape, &c);
	for (unsigned int s = 0; s < COUPLED; s++) {
		named += c.named[s];
		in_10 += s < LIMIT_S ? c.named[s] : 0;
		in_20 += s < 20 ? c.named[s] : 0;
		if (!possible_s && c.possible[s] >= ENOUGH * c.streams)
			possible_s = s + 1;
		if (!named_s && named >= ENOUGH * c.streams)
			named_s = s + 1;
	}
	printf("%4.1f s  %4.0f %%  %9.0f  %10.1f %%  %6.1f %%  %4.0f %%  %4.0f %%  %6u  %5u  "
	       "%9.3f ",
	       burst_s, strength * 100, samples, 100. * in_10 / c.streams,
	       100 * c.possible[LIMIT_S - 1] / c.streams, 100. * in_20 / c.streams,
	       100. * c.in_all / c.streams, c.streams - c.in_all, c.wrong,
	       c.in_all + c.wrong ? (double)c.in_all / (c.in_all + c.wrong) : NAN);
	print_seconds(possible_s, 10);
	print_seconds(named_s, 6);
	printf("  %s\n", names[shape]);
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

static void print_streams(unsigned int streams)
{
	printf("%u streams each of 8 containers, 56 pairs, one of which is coupled when its "
	       "suspect "
	       "comes after %u s; seeds from %u; windows of %.1f s\n\n",
	       streams, COUPLED_FROM, first_seed, 1. / windows);
	printf("BURSTS  SLOWER  SAMPLES/s  NAMED IN 10 s  POSSIBLE    20 s    60 s  MISSED  WRONG  "
	       "PRECISION  9 OF 10 IN   NAMED  SHAPE\n");
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
	puts("");
}

int main(int argc, char **argv)
{
	const unsigned int streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 100,
			   hours = argc > 2 ? strtoul(argv[2], NULL, 10) : 24;

	if (argc > 3)
		first_seed = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		windows = strtoul(argv[4], NULL, 10);
	if (streams)
		print_streams(streams);
	if (hours)
		print_quiet(hours);
	printf("CPU time of a window of 200 containers: %.2f ms\n", window_ms());
	return 0;
}
