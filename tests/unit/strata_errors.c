// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How good estimates and intervals of strata are, over simulated windows whose truth is known:
 * strata_errors [WINDOWS [SEED [SLICE_S]]]
 *
 * BIAS and ERROR: of miss cycles, in percent; COVERED: windows whose interval has the truth; WIDTH: of the interval
 * compared with that of one event; SPREAD: the same for the error itself; INTERRUPTS: compared with one event.
 */
#include <stdio.h>
#include <stdlib.h>

#include "strata_sim.h"

static const char *const loads[SIM_LOADS] = { "steady", "other load every 100 ms",
					      "100 ms on, 100 ms off", "phases of seconds" };
static const char *const rows[SIM_ROWS] = { "DRAM", "L3 hits", "both" };

static const double quantiles[] = { 0.5, 0.9, 0.99 };

/* QUANTILE: of latencies from DRAM; COVERED: windows in which the interval of the share below the true quantile has it. */
static void print_quantiles(unsigned int windows, uint64_t seed)
{
	printf("\n%-24s %-9s %8s %9s %6s %8s\n", "LOAD", "LATENCIES", "QUANTILE", "KNOWN", "+-",
	       "COVERED");
	for (int i = 0; i < SIM_LOADS * 2 * 3; i++) {
		struct sim s = { .state = seed * SIM_LOADS + i / 6,
				 .load = (enum sim_load)(i / 6),
				 .contended = i / 3 % 2,
				 .quantile = quantiles[i % 3] };
		struct sim_score score[SIM_ROWS];
		const struct sim_score *c = &score[SIM_DRAM];

		sim_score(&s, windows, score);
		printf("%-24s %-9s %8.2f %8.2f%% %5.2f%% %7.2f%%\n", loads[s.load],
		       s.contended ? "change" : "stay", s.quantile, 100.0 * c->shares / c->n,
		       100 * c->share_half / c->shares, 100.0 * c->shares_covered / c->shares);
	}
}

#define SAMPLE_S    2.9e-6 /* what a sample costs (TPDS'23) */
#define BUDGET	    0.005  /* of each CPU's time */
#define P99_SAMPLES 368	   /* with equal weights, for an interval of p99 */

/* How long a container of a CPU's share must be sampled until p99 of its loads from DRAM has an interval. */
static void print_times(unsigned int windows, uint64_t seed)
{
	static const double shares[] = { 0.1, 0.01, 0.001 };
	struct sim s = { .state = seed };
	struct sim_score score[SIM_ROWS];
	double of_one, of_strata;

	sim_score(&s, windows, score);
	/* samples from DRAM of each interrupt that hits this container */
	of_one = sim_part[SIM_DRAM];
	of_strata = score[SIM_DRAM].alike / score[SIM_DRAM].interrupts / SIM_WINDOW_S / SIM_TAGS_S /
		    SIM_SHARE;
	printf("\np99 of loads from DRAM has an interval, of a container, at %.1f %% of each CPU\n",
	       100 * BUDGET);
	printf("%-24s %14s %14s\n", "THAT HAS", "ONE EVENT", "STRATA");
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		const double each_s = P99_SAMPLES / (BUDGET / SAMPLE_S * shares[i]);

		printf("%4.1f%% of a CPU's ops      %12.0f s %12.0f s\n", 100 * shares[i],
		       each_s / of_one, each_s / of_strata);
	}
}

int main(int argc, char **argv)
{
	const unsigned int windows = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	printf("%u windows of %.0f s, seed %llu\n", windows, SIM_WINDOW_S,
	       (unsigned long long)seed);
	printf("%-24s %-8s %7s %7s %8s %6s %7s %11s\n", "LOAD", "KIND", "BIAS", "ERROR", "COVERED",
	       "WIDTH", "SPREAD", "INTERRUPTS");
	for (int load = 0; load < SIM_LOADS; load++) {
		struct sim s = { .state = seed * SIM_LOADS + load,
				 .load = load,
				 .mean_s = argc > 3 ? strtod(argv[3], NULL) : 0 };
		struct sim_score score[SIM_ROWS];

		sim_score(&s, windows, score);
		for (int row = 0; row < SIM_ROWS; row++) {
			const struct sim_score *c = &score[row];

			printf("%-24s %-8s %6.2f%% %6.1f%% %7.2f%% %6.3f %7.3f %11.3f\n",
			       loads[load], rows[row], 100 * c->bias / c->n,
			       100 * sqrt(c->error / c->n), 100.0 * c->covered / c->n,
			       c->half / c->one_half, sqrt(c->error / c->one_error),
			       c->interrupts / c->n);
		}
	}
	print_quantiles(windows, seed);
	print_times(windows, seed);
	return 0;
}
