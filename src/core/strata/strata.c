// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "strata.h"

#include <math.h>
#include <string.h>

#define Z 1.959964 /* of 95 % */

#define SLICE_MIN_S 0.05
#define SLICE_MAX_S 1.0

/* Misses come in bursts, in which nearly each tag interrupts. */
#define PERIOD_MIN 4096

struct strata_slice strata_total(const struct strata_design *d, enum stratum of)
{
	struct strata_slice sum = { .of = of };

	for (unsigned int k = 0; k < d->n; k++) {
		if (of != STRATUM_N && d->slice[k].of != of)
			continue;
		sum.ops += d->slice[k].ops;
		sum.tags += d->slice[k].tags;
		sum.seconds += d->slice[k].seconds;
	}
	return sum;
}

unsigned int strata_slices(const struct strata_design *d, enum stratum of)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < d->n; k++)
		n += d->slice[k].of == of;
	return n;
}

/* Ops of a tag of a stratum in slices of one period; 0: none was tagged. */
static double ops_of_tag(const struct strata_design *d, enum stratum of, unsigned long long period)
{
	double ops = 0, tags = 0;

	for (unsigned int k = 0; k < d->n; k++) {
		const struct strata_slice *s = &d->slice[k];

		ops += s->of == of && s->period == period ? s->ops : 0;
		tags += s->of == of && s->period == period ? s->tags : 0;
	}
	return tags > 0 ? ops / tags : 0;
}

/* Ops of a stratum in slices where it has tags, and the tags that are as good if all had one period. */
static struct strata_slice tagged(const struct strata_design *d, enum stratum of)
{
	struct strata_slice sum = { .of = of };
	double squares = 0;

	for (unsigned int k = 0; k < d->n; k++) {
		const struct strata_slice *s = &d->slice[k];
		const double one = s->of == of ? ops_of_tag(d, of, s->period) : 0;

		sum.ops += one > 0 ? s->ops : 0;
		squares += one * s->ops;
	}
	sum.tags = squares > 0 ? sum.ops * sum.ops / squares : 0;
	return sum;
}

double strata_slice_weight(const struct strata_design *d, unsigned int k, bool reach)
{
	const enum stratum of = d->slice[k].of;
	const struct strata_slice own = tagged(d, of), other = tagged(d, !of);
	const double share = reach ? own.tags / (own.tags + other.tags) : of == STRATUM_FULL;

	if (!(own.ops > 0) || !((of == STRATUM_FULL ? own : other).ops > 0))
		return 0;
	return share * strata_total(d, STRATUM_N).ops / own.ops *
	       ops_of_tag(d, of, d->slice[k].period);
}

void strata_add(struct strata_sum *to, const struct strata_sum *s)
{
	for (unsigned int k = 0; k < STRATA_SLICES; k++)
		to->part[k] += s->part[k];
	for (unsigned int i = 0; i < STRATUM_N; i++)
		to->square[i] += s->square[i];
}

/* --- intervals --- */

/* The variance that a stratum adds to a sum, and the squared error of that estimate. */
struct variance {
	double v, error;
	bool known;
};

/*
 * Slices of a stratum are a sample of all slices, so their variance counts for the share of ops that
 * they did not see; the variance within them counts for the rest. Differences of neighbours ignore
 * slow changes of the load, to which both strata are exposed alike.
 */
static struct variance variance_of(const struct strata_design *d, const struct strata_sum *s,
				   enum stratum of)
{
	const double all = strata_total(d, STRATUM_N).ops;
	const struct strata_slice whole = strata_total(d, of);
	const double seen = whole.ops / all;
	double sum = 0, last = 0, squares = 0, between;
	unsigned int n = 0;

	for (unsigned int k = 0; k < d->n; k++)
		sum += d->slice[k].of == of ? s->part[k] : 0;
	/* of nothing */
	if (!(sum > 0) && !(s->square[of] > 0))
		return (struct variance){ .known = true };
	for (unsigned int k = 0; k < d->n; k++) {
		double rest = s->part[k] - sum * (d->slice[k].ops / whole.ops);

		if (d->slice[k].of != of || d->slice[k].tags <= 0)
			continue;
		if (n++)
			squares += (rest - last) * (rest - last);
		last = rest;
	}
	if (n < 2)
		return (struct variance){};
	between = (1 - seen) * n * squares / (2 * (n - 1));
	return (struct variance){
		.v = between + seen * s->square[of],
		/* differences of neighbours are worth two thirds of their number */
		.error = between * between / (2.0 / 3 * (n - 1)),
		.known = true,
	};
}

/* Quantile of Student's distribution for 95 %, by Cornish and Fisher. */
static double student(double freedom)
{
	const double n = fmax(freedom, 2), z = Z;

	return z + (pow(z, 3) + z) / (4 * n) +
	       (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n) +
	       (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * n * n * n);
}

static bool all_variance(const struct strata_design *d, const struct strata_sum *s,
			 struct variance *out)
{
	*out = (struct variance){ .known = true };
	for (enum stratum of = 0; of < STRATUM_N; of++) {
		const struct variance one = variance_of(d, s, of);

		if (!one.known)
			return false;
		out->v += one.v;
		out->error += one.error;
	}
	return true;
}

/* Standard deviations that 95 % lie within. */
static double deviations(const struct variance *v)
{
	return v->error > 0 ? student(v->v * v->v / v->error) : Z;
}

bool strata_interval(const struct strata_design *d, const struct strata_sum *s, double *low,
		     double *high)
{
	struct variance v;
	double sum = 0, half;

	for (unsigned int k = 0; k < d->n; k++)
		sum += s->part[k];
	if (sum <= 0 || !all_variance(d, s, &v))
		return false;
	/* sums of few samples are skewed: their logarithm is less so */
	half = deviations(&v) * sqrt(v.v) / sum;
	*low = sum * exp(-half);
	*high = sum * exp(half);
	return true;
}

/*
 * Woodruff (1952): a quantile lies between the quantiles of the shares that the distribution function may have at it.
 * That share is a ratio of two sums, so its variance is that of the sum of what remains of each sample, 1 or 0 less
 * the share. Only differences of slices in the distribution count, not those in the number of ops.
 */
bool strata_share_interval(const struct strata_design *d, const struct strata_sum *below,
			   const struct strata_sum *all, double *low, double *high)
{
	double part = 0, sum = 0, share, half, odds;
	struct variance v = {};
	struct strata_sum rest;

	for (unsigned int k = 0; k < d->n; k++) {
		part += below->part[k];
		sum += all->part[k];
	}
	share = part / sum;
	if (!(sum > 0) || !(share > 0 && share < 1))
		return false;
	for (unsigned int k = 0; k < d->n; k++)
		rest.part[k] = (float)(below->part[k] - share * all->part[k]);
	for (enum stratum of = 0; of < STRATUM_N; of++)
		rest.square[of] = below->square[of] * (1 - share) * (1 - share) +
				  (all->square[of] - below->square[of]) * share * share;
	if (!all_variance(d, &rest, &v))
		return false;
	/* the logarithm of the odds is less skewed, and leads to no share beyond 0 and 1 */
	half = deviations(&v) * sqrt(v.v) / (sum * share * (1 - share));
	odds = log(share / (1 - share));
	*low = 1 / (1 + exp(half - odds));
	*high = 1 / (1 + exp(-half - odds));
	return true;
}

/* --- room for more slices --- */

void strata_merge(struct strata_design *d, unsigned int into[STRATA_SLICES])
{
	int open[STRATUM_N] = { -1, -1 };
	unsigned int n = 0;

	memset(into, 0, STRATA_SLICES * sizeof(*into));
	for (unsigned int k = 0; k < d->n; k++) {
		const struct strata_slice one = d->slice[k];
		const int at = open[one.of];

		open[one.of] = at < 0 ? (int)n : -1;
		into[k] = at < 0 ? n++ : (unsigned int)at;
		if (at < 0) {
			d->slice[into[k]] = one;
			continue;
		}
		d->slice[at].ops += one.ops;
		d->slice[at].tags += one.tags;
		d->slice[at].seconds += one.seconds;
	}
	d->n = n;
}

void strata_sum_merge(struct strata_sum *s, const unsigned int into[STRATA_SLICES])
{
	const struct strata_sum old = *s;

	memset(s->part, 0, sizeof(s->part));
	for (unsigned int k = 0; k < STRATA_SLICES; k++)
		s->part[into[k]] += old.part[k];
}

/* --- the schedule --- */

double strata_slice_s(double interval_s)
{
	if (interval_s <= 0)
		return SLICE_MAX_S;
	return fmin(fmax(interval_s / STRATA_WINDOW, SLICE_MIN_S), SLICE_MAX_S);
}

double strata_next_s(enum stratum of, double mean_s, double random)
{
	const double share = of == STRATUM_FULL ? STRATA_FULL_SHARE : 1 - STRATA_FULL_SHARE;

	return 2 * share * mean_s * (0.5 + random);
}

unsigned long long strata_period(unsigned long long period, double share)
{
	double want = period * fmin(fmax(share, 1.0 / STRATA_RATIO_MAX), 1);

	if (want < PERIOD_MIN)
		want = fmin(PERIOD_MIN, period);
	return (unsigned long long)want / 16 * 16;
}
