/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far a sum over samples may be from the truth: intervals that contain it 95 times of 100.
 *
 * Samples are drawn at random and independently, and each stands for a part of the sum, its weight. A
 * sum of few samples is bounded like a Poisson number of them, with an allowance for a heavy sample
 * that was not drawn. What no sample hints at, no interval contains: latencies of which one in thirty
 * is thirty times the others need a thousand samples.
 */
#ifndef IBSCOPE_ESTIMATE_H
#define IBSCOPE_ESTIMATE_H

/* Standard deviations that 95 % of a normal distribution lie within. */
#define ESTIMATE_Z 1.959964

struct estimate {
	double sum;	/* of the weights */
	double squares; /* sum of the squares of the weights */
	double largest; /* weight */
	double common;	/* standard error of all weights together, relative to them */
};

struct bounds {
	double low, high; /* NAN: unknown */
};

/* Add @weight, of one sample. */
void estimate_add(struct estimate *e, double weight);
void estimate_merge(struct estimate *to, const struct estimate *e);

/**
 * estimate_interval() - the interval of a sum
 * @drawn: samples drawn in all, with any weight or none, if their number says nothing about the sum;
 *	   0: unknown, which widens the interval of a sum over most samples
 */
struct bounds estimate_interval(const struct estimate *e, double drawn);

/* The interval of the share of a part of a sum, from 0 to 1; a common error of both does not change it. */
struct bounds estimate_share(const struct estimate *part, const struct estimate *all);

/**
 * estimate_ranks() - the interval of a quantile, by the order of samples
 * @n: independent samples; it need not be whole
 * @q: 0 < q < 1
 *
 * Return: shares of the samples, ordered by value, that the lower and the upper bound are not above; NAN: too few
 * samples for a bound on both sides.
 */
struct bounds estimate_ranks(double n, double q);

/* Half the width of an interval over its sum; NAN: unknown. */
double estimate_error(const struct estimate *e, double drawn);

#endif
