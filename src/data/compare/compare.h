/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The difference between two streams of samples, A and B, as causes that add up to it.
 *
 * The quantity is y = miss cycles / base, where base is what the difference is per: ops, accesses or
 * seconds. For each cause k (a source, say) with n[k] ops with a latency per base and mean latency
 * l[k], y is the sum of n[k] * l[k]. In midpoint form
 *
 *	yB - yA = sum of (nB[k] - nA[k]) * (lA[k] + lB[k]) / 2		more often
 *		+ sum of (lB[k] - lA[k]) * (nA[k] + nB[k]) / 2		slower
 *
 * exactly. A cause that one side lacks has the other side's latency, so that all of its difference is
 * "more often". Rows of "where" (containers, functions) add up to the same difference.
 *
 * Samples come in bursts, so intervals are those of a block bootstrap: each side is cut into blocks of
 * about a second, which are drawn again with replacement.
 */
#ifndef IBSCOPE_COMPARE_H
#define IBSCOPE_COMPARE_H

#include "base/std.h"

#include <ibscope/histogram.h>

struct err;

enum compare_side { COMPARE_A, COMPARE_B, COMPARE_SIDES };

#define COMPARE_CAUSES	 64	      /* different ones; the others are added up in one */
#define COMPARE_NAMES	 64	      /* of a row */
#define COMPARE_BLOCKS	 128	      /* at most, on each side */
#define COMPARE_SECOND	 (1ULL << 30) /* in ns; blocks are not shorter if there are enough */
#define COMPARE_MIN	 100	      /* samples with a latency on each side: fewer say nothing */
#define COMPARE_FEW	 8	      /* blocks: fewer say nothing about how they differ */
#define COMPARE_ROUNDS	 1000
#define COMPARE_FALSE	 0.02 /* expected share of false ones among the findings */
#define COMPARE_QUANTILE 0.99

/* What one sample, or many of the same cause and row, add. */
struct compare_amount {
	__u64 samples, valid; /* valid: with a latency */
	double base;	      /* ops or accesses; not used with per_second */
	double ops, cycles;   /* of the valid ones: ops, and latency x ops */
};

struct compare;

/*
 * compare_new() - start a comparison
 * @per_second: base is the time between the first and the last sample; else the sum of amounts' base
 * @rounds:	of the bootstrap, 2 or more
 */
struct compare *compare_new(bool per_second, unsigned int rounds);
void compare_free(struct compare *c); /* accepts NULL */

/* The number of a cause, and of a row of @n names, NULL for absent ones; all rows have the same @n. */
unsigned int compare_cause(struct compare *c, const char *name);
__u32 compare_row(struct compare *c, const char *const *names, unsigned int n);

/*
 * compare_at() - what is added next is of this side and time
 * @ns: of any clock, per side; 0: unknown, the order of calls is the time
 *
 * A time before the first one counts as that.
 */
void compare_at(struct compare *c, enum compare_side side, __u64 ns);

/* Before the first compare_at() of a side: its blocks are not shorter than @ns. */
void compare_width(struct compare *c, enum compare_side side, __u64 ns);

void compare_add(struct compare *c, __u32 row, unsigned int cause, const struct compare_amount *a);

/* Add latencies of a bucket of histogram.h, of samples that stand for @ops; only percentiles need them. */
void compare_latency(struct compare *c, unsigned int cause, __u32 bucket, double ops);

/*
 * compare_wide() - the same of a bucket as wide as several, which are @from to @to
 *
 * Latencies in it are taken as evenly distributed; that they may not be is in the bounds of percentiles.
 */
void compare_wide(struct compare *c, unsigned int cause, __u32 from, __u32 to, double ops);

/* Latencies of some samples are unknown: there are no percentiles. */
void compare_no_latency(struct compare *c);

/*
 * compare_spread() - add counts without times, as samples that are independent of each other
 * @buckets: of @a->valid samples, in all; IBS_LAT_BUCKETS of them
 *
 * They are spread over blocks at random, the same way in each run.
 */
void compare_spread(struct compare *c, enum compare_side side, __u32 row, unsigned int cause,
		    const struct compare_amount *a, const __u64 *buckets);

/* How long a side took, if times of samples do not say; needed with per_second. */
void compare_seconds(struct compare *c, enum compare_side side, double seconds);

/* A difference and its interval of 95 %. */
struct compare_change {
	double change, low, high;
	double p;     /* of a difference at least as large if there were none; NAN: not tested */
	bool finding; /* more than noise, with COMPARE_FALSE over all of a result */
	bool gone;    /* it was there, but not at the end of B */
};

enum compare_kind { COMPARE_OFTEN, COMPARE_COST };

/* A term of the sum; @a and @b are ops per base, or mean latencies (NAN: none). */
struct compare_term {
	unsigned int cause;
	enum compare_kind kind;
	double a, b;
	struct compare_change change;
};

struct compare_where {
	const char *const *name; /* NULL: absent */
	double a, b;		 /* miss cycles per base */
	__u64 valid;		 /* of both sides */
	struct compare_change change;
	unsigned int cause; /* the term with the largest part in its change */
	enum compare_kind kind;
	/* the row that lost or won the same under another name, so that neither is a finding; -1: none */
	long moved;
};

/* A share of the change of a percentile: the causes' latencies, or the mix of causes. */
struct compare_factor {
	int cause; /* COMPARE_FACTOR_MIX, COMPARE_FACTOR_OTHERS */
	struct compare_change change;
};
#define COMPARE_FACTOR_MIX    (-1)
#define COMPARE_FACTOR_OTHERS (-2)
#define COMPARE_FACTORS	      7

struct compare_result {
	struct compare_side_sum {
		__u64 samples, valid;
		double effective; /* samples with a latency of equal weights that say as much */
		double base, y;
		double seconds; /* from the first to the last sample; 0: unknown */
		unsigned int blocks;
	} side[COMPARE_SIDES];
	struct compare_change change;

	struct compare_term *term; /* findings first, then the others, largest first */
	size_t n_terms, n_findings;
	struct compare_change other_terms; /* the sum of those that are no findings */

	struct compare_where *row; /* the same */
	size_t n_rows, n_row_findings;
	struct compare_change other_rows;

	/* cycles that COMPARE_QUANTILE of the ops with a latency do not exceed; has_quantile: both are known */
	bool has_quantile;
	double quantile[COMPARE_SIDES];
	/* with compare_wide(): edges of the bucket that it is in, which also widen intervals of its changes */
	bool quantile_wide;
	double quantile_low[COMPARE_SIDES], quantile_high[COMPARE_SIDES];
	struct compare_change quantile_change;
	struct compare_factor factor[COMPARE_FACTORS]; /* they add up to quantile_change */
	size_t n_factors;

	double detectable; /* smallest change that 4 of 5 such comparisons would find, as a share of yA */

	size_t tests;  /* changes that were tested at once */
	double longer; /* times as many samples with which 4 of 5 would find `change`; 0: unknown */
};

/*
 * compare_finish() - the result
 *
 * Return: 0; or -ENODATA with @err if a side has fewer than COMPARE_MIN samples with a latency, or
 * COMPARE_FEW blocks. The caller frees *out with compare_result_free(), before @c.
 */
int compare_finish(struct compare *c, struct compare_result *out, struct err *err);
void compare_result_free(struct compare_result *r);

const char *compare_cause_name(const struct compare *c, unsigned int cause);

/* Samples on each side that would find a change of @share of yA; 0: unknown. */
double compare_needed(const struct compare_result *r, double share);

#endif
