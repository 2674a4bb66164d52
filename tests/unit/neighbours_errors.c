// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BURSTS: mean length of the suspect's, and of the pauses; SLOWER: by how much it slows the victim then;
 * SAMPLES/s: of the victim. Print how often neighbours are named rightly and wrongly, over synthetic streams whose couplings are known:
 * neighbours_errors [STREAMS [QUIET_HOURS]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "neighbour_streams.h"

#define COUPLED_FROM 100 /* windows before the culprit comes */
#define COUPLED	     60	 /* windows with it */

struct counts_of {
	unsigned int streams, in_10, in_20, in_all, wrong;
};

static void run_coupled(__u64 seed, double strength, double samples, double burst_s,
			struct counts_of *out)
{
	struct neighbours *n = neighbours_new(false);
	struct stream_complex s;
	const struct neighbours_pair *pair;
	size_t pairs;

	stream_coupled(&s, seed, strength, samples, burst_s, COUPLED_FROM);
	for (unsigned int w = 0; w < COUPLED_FROM + COUPLED; w++) {
		stream_step(&s, n, 0);
		neighbours_end_window(n, true);
	}
	pair = neighbours_pairs(n, &pairs);
	out->streams++;
	for (size_t i = 0; i < pairs; i++) {
		const unsigned int after = pair[i].first - COUPLED_FROM;

		if (pair[i].victim || pair[i].suspect != 1 || pair[i].first < COUPLED_FROM) {
			out->wrong++;
			continue;
		}
		out->in_10 += after < 10;
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

		stream_quiet(&s, 1000 + h);
		for (unsigned int w = 0; w < 3600; w++) {
			stream_step(&s, n, 0);
			neighbours_end_window(n, true);
		}
		neighbours_pairs(n, &pairs);
		named += pairs;
		neighbours_free(n);
	}
	return named;
}

static void print_rows(double burst_s, unsigned int streams)
{
	static const double strengths[] = { 0.15, 0.3, 0.5, 1 }, samples[] = { 30, 100, 300 };

	for (unsigned int i = 0; i < sizeof(strengths) / sizeof(*strengths); i++)
		for (unsigned int k = 0; k < sizeof(samples) / sizeof(*samples); k++) {
			struct counts_of c = { 0 };

			for (unsigned int seed = 1; seed <= streams; seed++)
				run_coupled(seed, strengths[i], samples[k], burst_s, &c);
			printf("%4.1f s  %4.0f %%  %9.0f  %10.1f %%  %4.0f %%  %4.0f %%  %6u  %5u  "
			       "%9.3f\n",
			       burst_s, strengths[i] * 100, samples[k], 100. * c.in_10 / c.streams,
			       100. * c.in_20 / c.streams, 100. * c.in_all / c.streams,
			       c.streams - c.in_all, c.wrong,
			       c.in_all + c.wrong ? (double)c.in_all / (c.in_all + c.wrong) : NAN);
			fflush(stdout);
		}
}

int main(int argc, char **argv)
{
	const unsigned int streams = argc > 1 ? strtoul(argv[1], NULL, 10) : 100,
			   hours = argc > 2 ? strtoul(argv[2], NULL, 10) : 24;

	printf("%u streams each of 8 containers, 56 pairs, one of which is coupled when its "
	       "suspect "
	       "comes after %u s; seeds from 1\n\n",
	       streams, COUPLED_FROM);
	printf("BURSTS  SLOWER  SAMPLES/s  NAMED IN 10 s    20 s    60 s  MISSED  WRONG  "
	       "PRECISION\n");
	print_rows(1.5, streams);
	print_rows(4, streams);
	printf("\n%u quiet hours, 56 pairs: %u named\n", hours, run_quiet(hours));
	return 0;
}
