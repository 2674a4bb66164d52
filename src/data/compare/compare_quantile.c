// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a percentile changed by. Latencies of A are a mix of the causes' distributions, and so are
 * those of B. Factors, the mix and the distribution of each cause, are taken from A or from B, one by
 * one in all orders; a factor's share is the mean of the steps that it makes (Shapley), so that the
 * shares add up to the change.
 */
#include "compare_private.h"

#include <math.h>

/* Distributions of one draw. */
struct mix {
	double ops[COMPARE_SIDES][COMPARE_CAUSES];
	double bucket[COMPARE_SIDES][COMPARE_CAUSES][IBS_LAT_BUCKETS]; /* of one op */
};

/* factor[k]: the number of the cause's factor */
struct factors {
	unsigned int n, of[COMPARE_CAUSES];
};

static void mix_of(const struct compare *c, const struct compare_draw *d, struct mix *m)
{
	double all[COMPARE_SIDES] = {};

	memset(m, 0, sizeof(*m));
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int k = 0; k < c->causes.n; k++) {
			const struct compare_part *part = c->side[s].part[k];

			for (unsigned int i = 0; part && i < c->side[s].n; i++)
				for (unsigned int b = 0; d->times[s][i] && b < IBS_LAT_BUCKETS; b++)
					m->bucket[s][k][b] += d->times[s][i] * part[i].bucket[b];
			for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
				m->ops[s][k] += m->bucket[s][k][b];
			for (unsigned int b = 0; m->ops[s][k] > 0 && b < IBS_LAT_BUCKETS; b++)
				m->bucket[s][k][b] /= m->ops[s][k];
			all[s] += m->ops[s][k];
		}
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int k = 0; k < c->causes.n; k++) {
			if (!(m->ops[s][k] > 0)) /* the other side's; nothing weighs it */
				memcpy(m->bucket[s][k], m->bucket[!s][k], sizeof(m->bucket[s][k]));
			m->ops[s][k] /= all[s] > 0 ? all[s] : 1;
		}
}

/* Latencies within a bucket are taken as evenly distributed. */
static double quantile_of(const double *share)
{
	double left = COMPARE_QUANTILE, low;

	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++) {
		low = b ? ibs_lat_le(b - 1) : 0;
		if (share[b] >= left)
			return share[b] > 0 ? low + (ibs_lat_le(b) - low) * left / share[b] : low;
		left -= share[b];
	}
	return IBS_LAT_MAX;
}

/* @set: bit f: factor f is of B. Factor 0 is the mix. */
static double quantile(const struct compare *c, const struct mix *m, const struct factors *f,
		       unsigned int set)
{
	double share[IBS_LAT_BUCKETS] = {};

	for (unsigned int k = 0; k < c->causes.n; k++) {
		const double weight = m->ops[set & 1][k];
		const double *bucket = m->bucket[set >> f->of[k] & 1][k];

		for (unsigned int b = 0; weight > 0 && b < IBS_LAT_BUCKETS; b++)
			share[b] += weight * bucket[b];
	}
	return quantile_of(share);
}

static double factorial(unsigned int n)
{
	return n ? n * factorial(n - 1) : 1;
}

static void shapley(const struct compare *c, const struct mix *m, const struct factors *f,
		    double *part)
{
	double q[1 << COMPARE_FACTORS] = {};

	for (unsigned int set = 0; set < 1u << f->n; set++)
		q[set] = quantile(c, m, f, set);
	for (unsigned int i = 0; i < f->n; i++) {
		part[i] = 0;
		for (unsigned int set = 0; set < 1u << f->n; set++) {
			const unsigned int size = __builtin_popcount(set);

			if (!(set >> i & 1))
				part[i] += factorial(size) * factorial(f->n - size - 1) /
					   factorial(f->n) * (q[set | 1u << i] - q[set]);
		}
	}
}

/* Causes with most ops behind the percentiles have a factor each, the others one. */
static void choose(const struct compare *c, const struct mix *m, double from, struct factors *f,
		   struct compare_result *out)
{
	double tail[COMPARE_CAUSES] = {};

	*f = (struct factors){ .n = 1 };
	for (unsigned int k = 0; k < c->causes.n; k++)
		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++)
				tail[k] += ibs_lat_le(b) < from ? 0
								: m->ops[s][k] * m->bucket[s][k][b];
	out->factor[0].cause = COMPARE_FACTOR_MIX;
	for (;;) {
		int most = -1;

		for (unsigned int k = 0; k < c->causes.n; k++)
			if (!f->of[k] && tail[k] > (most < 0 ? 0 : tail[most]))
				most = k;
		if (most < 0 || f->n == COMPARE_FACTORS - 1)
			break;
		out->factor[f->n].cause = most;
		f->of[most] = f->n++;
	}
	for (unsigned int k = 0; k < c->causes.n; k++)
		f->of[k] = f->of[k] ?: f->n;
	out->factor[f->n++].cause = COMPARE_FACTOR_OTHERS;
	out->n_factors = f->n;
}

static bool enough(const struct compare *c, const struct mix *m)
{
	double known[COMPARE_SIDES] = {};

	for (unsigned int k = 0; k < c->causes.n; k++)
		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			known[s] += m->ops[s][k];
	if (!(known[COMPARE_A] > 0 && known[COMPARE_B] > 0)) /* only sums were added */
		return false;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		if (c->side[s].valid < 1 / (1 - COMPARE_QUANTILE))
			return false;
	return true;
}

void compare_quantiles(const struct compare *c, struct compare_result *out)
{
	struct compare_moments all = {}, each[COMPARE_FACTORS] = {};
	struct mix *m = xcalloc(1, sizeof(*m));
	struct compare_draw d;
	struct factors f = { .n = 1 };
	double part[COMPARE_FACTORS];
	__u64 state = 1;

	compare_draw_all(c, &d);
	mix_of(c, &d, m);
	out->has_quantile = enough(c, m);
	out->quantile[COMPARE_A] = quantile(c, m, &f, 0);
	out->quantile[COMPARE_B] = quantile(c, m, &f, 1);
	choose(c, m, fmin(out->quantile[COMPARE_A], out->quantile[COMPARE_B]), &f, out);
	out->quantile[COMPARE_B] = quantile(c, m, &f, (1u << f.n) - 1);
	out->quantile_change.change = out->quantile[COMPARE_B] - out->quantile[COMPARE_A];
	shapley(c, m, &f, part);
	for (unsigned int i = 0; i < f.n; i++)
		out->factor[i].change.change = part[i];
	for (unsigned int r = 0; out->has_quantile && r < c->rounds; r++) {
		compare_draw(c, COMPARE_SINGLY, &state, &d);
		mix_of(c, &d, m);
		shapley(c, m, &f, part);
		compare_moment(&all, quantile(c, m, &f, (1u << f.n) - 1) - quantile(c, m, &f, 0));
		for (unsigned int i = 0; i < f.n; i++)
			compare_moment(&each[i], part[i]);
	}
	compare_interval(c, COMPARE_SINGLY, &all, &out->quantile_change);
	for (unsigned int i = 0; i < f.n; i++)
		compare_interval(c, COMPARE_SINGLY, &each[i], &out->factor[i].change);
	free(m);
}

bool compare_quantile_is_gone(const struct compare *c, const struct compare_result *r)
{
	const struct factors f = { .n = 1 };
	struct mix *m;
	struct compare_draw d;
	double late;

	if (c->side[COMPARE_A].spread || c->side[COMPARE_B].spread)
		return false;
	m = xcalloc(1, sizeof(*m));
	compare_draw_all(c, &d);
	memset(d.times[COMPARE_B], 0, compare_late(c));
	mix_of(c, &d, m);
	late = quantile(c, m, &f, 1);
	free(m);
	return fabs(late - r->quantile[COMPARE_A]) <
	       COMPARE_GONE_SHARE * fabs(r->quantile_change.change);
}
