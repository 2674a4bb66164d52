// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How the split of the time between the strata changes intervals, over simulated windows: strata_split [WINDOWS [SEED]]
 *
 * DRAM and L3: ops of a container, in percent. FORMULA: the best share of the full stratum for a steady load, by
 * strata.h. BEST: that with the narrowest interval of all miss cycles, of 10 to 90 %, known before the window begins. BOTH,
 * DRAM, L3: widths of intervals compared with the split of the product. WITHIN: the best share that meets both bounds of
 * strata.h, and the width of the interval of all miss cycles.
 */
#include <stdio.h>
#include <stdlib.h>

#include "strata_sim.h"

#define STEP  5 /* percent of the time */
#define LEAST 10
#define MOST  90
#define N     ((MOST - LEAST) / STEP + 1)

static const double parts[][SIM_KINDS] = {
	{ 0.0005, 0.028 }, { 0.002, 0.028 }, { 0.002, 0.1 },
	{ 0.02, 0.028 },   { 0.02, 0.1 },    { 0.1, 0.028 },
};
static const struct {
	enum sim_load load;
	const char *name;
} loads[] = { { SIM_STEADY, "steady" }, { SIM_STEPS, "other load every 100 ms" } };

/* Mean of squared latencies of a tag. */
static double squares(const double *part, enum sim_kind kind)
{
	return part[kind] * sim_mean[kind] * sim_mean[kind] *
	       exp(sim_sigma[kind] * sim_sigma[kind]);
}

static double formula(const double *part)
{
	const double r = 1e6 / strata_period(1000000, part[SIM_DRAM]);

	return r / (r - 1 + sqrt((r - 1) * squares(part, SIM_DRAM) / squares(part, SIM_L3)));
}

static double percent(unsigned int i)
{
	return LEAST + STEP * i;
}

/* The split from @from to @to percent with the narrowest interval of all miss cycles. */
static unsigned int best(double half[N][SIM_ROWS], double from, double to)
{
	unsigned int at = N;

	for (unsigned int i = 0; i < N; i++)
		if (percent(i) >= from && percent(i) <= to &&
		    (at == N || half[i][SIM_ALL] < half[at][SIM_ALL]))
			at = i;
	return at;
}

static void print(const double *part, const char *load, double half[N][SIM_ROWS])
{
	const double *now = half[(unsigned int)(100 * STRATA_FULL_SHARE + 0.5 - LEAST) / STEP];
	const unsigned int all = best(half, LEAST, MOST);
	const unsigned int within = best(half, 100 * STRATA_FULL_LEAST, 100 * STRATA_FULL_MOST);

	printf("%5.2f %5.2f %-24s %6.0f%% %6.0f%% %6.2f %6.2f %6.2f %7.0f%% %6.2f\n",
	       100 * part[SIM_DRAM], 100 * part[SIM_L3], load, 100 * fmin(formula(part), 1),
	       percent(all), half[all][SIM_ALL] / now[SIM_ALL], half[all][SIM_DRAM] / now[SIM_DRAM],
	       half[all][SIM_L3] / now[SIM_L3], percent(within),
	       half[within][SIM_ALL] / now[SIM_ALL]);
}

int main(int argc, char **argv)
{
	const unsigned int windows = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	printf("%u windows of %.0f s, seed %llu; the full stratum has %.0f %% of the time\n",
	       windows, SIM_WINDOW_S, (unsigned long long)seed, 100 * STRATA_FULL_SHARE);
	printf("%5s %5s %-24s %7s %7s %6s %6s %6s %8s %6s\n", "DRAM", "L3", "LOAD", "FORMULA",
	       "BEST", "BOTH", "DRAM", "L3", "WITHIN", "BOTH");
	for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++) {
		for (size_t l = 0; l < sizeof(loads) / sizeof(*loads); l++) {
			double half[N][SIM_ROWS];

			for (unsigned int i = 0; i < N; i++) {
				struct sim s = { .state = seed * SIM_LOADS + loads[l].load,
						 .load = loads[l].load,
						 .full_share = percent(i) / 100 };
				struct sim_score score[SIM_ROWS];

				memcpy(s.part, parts[p], sizeof(s.part));
				sim_score(&s, windows, score);
				for (int row = 0; row < SIM_ROWS; row++)
					half[i][row] = score[row].half;
			}
			print(parts[p], loads[l].name, half);
		}
	}
	return 0;
}
