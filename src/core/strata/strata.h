/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statistics of sampling in strata: slices of time alternate between a stratum that samples all ops
 * and one that only ops beyond the L3 can reach, at a shorter period.
 *
 * Each sample has the weight 1 / its expected number of tags: of ops that only the full stratum
 * reaches, all ops of the window divided by the tags of full slices; of the others, divided by the
 * tags of all slices. Tags come from counters that do not depend on which samples were taken, so
 * the estimates are unbiased.
 *
 * A window is STRATA_WINDOW slices, in order of time; the last one is those and the rest, of fewer.
 */
#ifndef IBSCOPE_STRATA_H
#define IBSCOPE_STRATA_H

#include <stdbool.h>

enum stratum { STRATUM_FULL, STRATUM_MISS, STRATUM_N };

/* "full" or "miss"; "unknown" for others. */
static inline const char *stratum_name(unsigned int of)
{
	return of == STRATUM_FULL ? "full" : of == STRATUM_MISS ? "miss" : "unknown";
}

/*
 * Slices whose samples are weighed together: as many as in an interval of hist. In fewer, chance decides how much each
 * stratum saw; in more, the load changes.
 */
#define STRATA_WINDOW 24

/* Slices of a design; with more, neighbours of the same stratum are merged. */
#define STRATA_SLICES 128

struct strata_slice {
	enum stratum of;
	double ops, tags; /* while it lasted, from core counters */
	double seconds;
	unsigned long long period; /* 0: the same in all slices of its stratum */
};

/* Slices, which share nothing with what was sampled in them. */
struct strata_design {
	unsigned int n;
	struct strata_slice slice[STRATA_SLICES];
};

/* A sum over samples, by slice. */
struct strata_sum {
	float part[STRATA_SLICES];
	double square[STRATUM_N]; /* of the summands: the variance of the sum with given rates */
};

/* Sum over the slices of a stratum; STRATUM_N: of all. */
struct strata_slice strata_total(const struct strata_design *d, enum stratum of);

unsigned int strata_slices(const struct strata_design *d, enum stratum of);

/**
 * strata_slice_weight() - ops that a sample of slice @k represents
 * @d:     a window
 * @reach: the sample is of a kind that both strata take
 *
 * If the periods of a stratum's slices differ, the weight follows from slices of the same period: slices of a
 * short period, which come when misses are rare, would otherwise count too much.
 *
 * Return: 0 if unknown, as no op was tagged in the slice or in full slices: without those, nothing is known of
 * ops that the filter drops, and a sum would lack them.
 */
double strata_slice_weight(const struct strata_design *d, unsigned int k, bool reach);

void strata_add(struct strata_sum *to, const struct strata_sum *s);

/**
 * strata_interval() - where a sum over all slices lies, with 95 % confidence
 * @d: one window, or several
 * @s: with the weights of its samples
 *
 * The variance has two parts: that of sampling with given rates, and that of slices, whose rates
 * stand for the time of the other stratum.
 *
 * Return: false if that is unknown: nothing was sampled, or a stratum had fewer than two slices.
 */
bool strata_interval(const struct strata_design *d, const struct strata_sum *s, double *low,
		     double *high);

/**
 * strata_share_interval() - where a share of a sum lies, with 95 % confidence
 * @below: a part of @all, sample by sample
 *
 * Return: false if that is unknown: as of strata_interval(), or the part is nothing or everything.
 */
bool strata_share_interval(const struct strata_design *d, const struct strata_sum *below,
			   const struct strata_sum *all, double *low, double *high);

/**
 * strata_merge() - make room in a full design
 * @into: gets the new index of each slice, for strata_sum_merge()
 */
void strata_merge(struct strata_design *d, unsigned int into[STRATA_SLICES]);
void strata_sum_merge(struct strata_sum *s, const unsigned int into[STRATA_SLICES]);

/*
 * --- intervals of sums without slices ---
 *
 * How much a sum over samples differs between slices, from the samples in order of time: what strata_interval()
 * computes of all slices, without keeping them for each sum.
 */

/* Zero is empty. */
struct strata_spread {
	const struct strata_design *d; /* the window that goes on; NULL: none */
	struct strata_run {
		bool any, has_last;
		unsigned int at,
			last_at;  /* the slice that goes on, and the last one with samples before */
		double now, last; /* their sums */
		double sum, squares; /* of all slices; of the summands */
		double steps,
			leaning; /* squares of differences of neighbours; these times that of their ops */
	} of[STRATUM_N];
	double variance; /* of the windows that have ended, beyond that of independent samples; may be negative */
};

/* Add a sample of slice @k of a window, whose design stays until the end of the window. */
void strata_spread_add(struct strata_spread *s, const struct strata_design *d, unsigned int k,
		       double x);

/* End the window. Return: s->variance */
double strata_spread_end(struct strata_spread *s);

/* --- the schedule --- */

/*
 * Share f of the time for the full stratum. The miss stratum has the rest, at R times the rate of tags.
 *
 * Let m be the mean of the squared latencies of a tag, for ops that pass the filter, and c that for the others. Full slices
 * sample both, miss slices only the former, and samples of a kind have the same weight in both. So the variance of a
 * sum of both, of a steady load, is proportional to
 *
 *	c / f + m / (f + (1 - f) R),	which is least at	f = R / (R - 1 + sqrt((R - 1) m / c)).
 *
 * A load that changes adds variance between slices, in proportion to (1 - f) / f for c and to f / (1 - f) for m.
 *
 * The split is fixed, because what one stratum gains the other one loses. The interval of miss cycles from memory becomes
 * the narrower the less time the full stratum has, whatever the load: those of caches bound it. Compared with one
 * event, an interval of hits in the L3 is at most 1.5 times as wide from 50 % on, and one of memory at most a quarter as
 * wide up to 65 %. Between these, the interval of all miss cycles of a container is at most 12 % narrower with the best
 * split, were that known in advance, than with this one, and 1 % where one in fifty ops comes from memory. Beyond
 * these, it is up to 62 % narrower, of loads that change every 100 ms, and that of hits in the L3 is 2.8 times as wide as
 * now. `make strata-split` prints this.
 */
#define STRATA_FULL_SHARE 0.55
/* Bounds of the split, by the widths above. */
#define STRATA_FULL_LEAST 0.50
#define STRATA_FULL_MOST  0.65

/* Mean length of a slice, in seconds, for windows of @interval_s; 0: without end. */
double strata_slice_s(double interval_s);

/**
 * strata_next_s() - the length of the next slice
 * @mean_s: of strata_slice_s()
 * @random: uniform from 0 to 1
 *
 * Lengths vary by half the mean, so that no load stays in step with them.
 */
double strata_next_s(enum stratum of, double mean_s, double random);

/**
 * strata_period() - the period of the miss stratum that leads to as many interrupts as the full one
 * @period: of the full stratum
 * @share:  of tags that the filter lets through
 *
 * Return: a multiple of 16, from @period / STRATA_RATIO_MAX to @period.
 */
#define STRATA_RATIO_MAX 64
unsigned long long strata_period(unsigned long long period, double share);

#endif
