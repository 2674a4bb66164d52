// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "estimate.h"

#include <math.h>

#define Z ESTIMATE_Z

/* The heavy sample that was not drawn, in largest weights. Chosen by coverage: 0 is too few, 1 too many. */
#define UNSEEN 0.5

void estimate_add(struct estimate *e, double weight)
{
	e->sum += weight;
	e->squares += weight * weight;
	e->largest = fmax(e->largest, weight);
}

void estimate_merge(struct estimate *to, const struct estimate *e)
{
	to->sum += e->sum;
	to->squares += e->squares;
	to->largest = fmax(to->largest, e->largest);
	to->common = fmax(to->common, e->common);
}

/*
 * A bound of the mean of a Poisson distribution, of which @n was drawn, by Wilson and Hilferty's cube
 * (1931); @n need not be whole.
 */
static double poisson_bound(double n, double z)
{
	return n * pow(fmax(1 - 1 / (9 * n) + z / (3 * sqrt(n)), 0), 3);
}

/* The sum behaves like a Poisson number of equal weights, squares / sum (Fay and Feuer, 1997). */
static double bound(double sum, double squares, double z)
{
	return squares > 0 ? squares / sum * poisson_bound(sum * sum / squares, z) : sum;
}

/* A bound of the sum, moved by the common error, which is independent of the samples. */
static double away(const struct estimate *e, double to, int sign)
{
	return e->sum + sign * hypot(to - e->sum, Z * e->common * e->sum);
}

struct bounds estimate_interval(const struct estimate *e, double drawn)
{
	const double known = drawn > 0 ? e->sum * e->sum / drawn : 0;
	const double squares = fmax(e->squares - known, 0);
	const double unseen = e->squares > 0 ? UNSEEN * e->largest * squares / e->squares : 0;

	if (!(e->sum > 0))
		return (struct bounds){ e->sum < 0 ? NAN : e->sum, NAN };
	return (struct bounds){
		fmax(away(e, bound(e->sum, squares, -Z), -1), 0),
		away(e,
		     squares > 0 ? bound(e->sum + unseen, squares + unseen * e->largest, Z)
				 : e->sum,
		     1),
	};
}

struct bounds estimate_share(const struct estimate *part, const struct estimate *all)
{
	const double rest = all->sum - part->sum, share = part->sum / all->sum;
	double error, odds;

	if (!(all->sum > 0) || !(part->sum >= 0))
		return (struct bounds){ NAN, NAN };
	if (!(part->sum > 0))
		return (struct bounds){ 0, NAN };
	/* by rounding */
	if (!(rest > 1e-9 * all->sum))
		return (struct bounds){ share, share };
	/* the logarithm of the odds is nearly normal, and its error does not depend on the number drawn */
	error = Z * sqrt(part->squares / (part->sum * part->sum) +
			 fmax(all->squares - part->squares, 0) / (rest * rest));
	odds = log(part->sum / rest);
	return (struct bounds){ 1 / (1 + exp(error - odds)), 1 / (1 + exp(-error - odds)) };
}

#define RANKS_EXACT \
	100 /* with more samples above the quantile, the binomial distribution is normal */

/* The least number of samples above a quantile that is not exceeded with probability @p; @z: of a normal distribution. */
static double samples_above(double n, double above, double z, double p)
{
	const double odds = log(above / (1 - above));
	double sum = 0, k = -1, log_of = n * log(1 - above);

	if (n * above > RANKS_EXACT)
		return floor(n * above + z * sqrt(n * above * (1 - above)) + 0.5);
	while (sum < p && k < n) {
		if (++k > 0)
			log_of += log((n - k + 1) / k) + odds;
		sum += exp(log_of);
	}
	return k;
}

struct bounds estimate_ranks(double n, double q)
{
	const double whole = floor(n + 1e-6), tail = 0.025;

	if (!(pow(q, whole) <= tail && pow(1 - q, whole) <= tail))
		return (struct bounds){ NAN, NAN };
	return (struct bounds){
		1 - samples_above(whole, 1 - q, Z, 1 - tail) / whole,
		1 - (samples_above(whole, 1 - q, -Z, tail) - 1) / whole,
	};
}

double estimate_error(const struct estimate *e, double drawn)
{
	const struct bounds i = estimate_interval(e, drawn);

	return e->sum > 0 ? (i.high - i.low) / 2 / e->sum : (double)NAN;
}
