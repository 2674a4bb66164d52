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

/* A percentile, and the edges that it lies between, or the change of one with its bounds. */
struct bounded {
	double value, low, high;
};

/* The edges of the wide bucket that a bucket is in. */
static void set_bounds(const struct compare *c, unsigned int bucket, struct bounded *q)
{
	unsigned int from = bucket, to = bucket;

	while (from && c->inner[from - 1])
		from--;
	while (to + 1 < IBS_LAT_BUCKETS && c->inner[to])
		to++;
	q->low = from ? ibs_lat_le(from - 1) : 0;
	q->high = ibs_lat_le(to);
}

/* Latencies within a bucket are taken as evenly distributed. */
static struct bounded quantile_of(const struct compare *c, const double *share)
{
	double left = COMPARE_QUANTILE;
	struct bounded q = { IBS_LAT_MAX, IBS_LAT_MAX, IBS_LAT_MAX };

	for (unsigned int b = 0; b < IBS_LAT_BUCKETS; b++) {
		const double low = b ? ibs_lat_le(b - 1) : 0;

		if (share[b] < left) {
			left -= share[b];
			continue;
		}
		q.value = share[b] > 0 ? low + (ibs_lat_le(b) - low) * left / share[b] : low;
		set_bounds(c, b, &q);
		break;
	}
	return q;
}

/* @set: bit f: factor f is of B. Factor 0 is the mix. */
static struct bounded quantile(const struct compare *c, const struct mix *m,
			       const struct factors *f, unsigned int set)
{
	double share[IBS_LAT_BUCKETS] = {};

	for (unsigned int k = 0; k < c->causes.n; k++) {
		const double weight = m->ops[set & 1][k];
		const double *bucket = m->bucket[set >> f->of[k] & 1][k];

		for (unsigned int b = 0; weight > 0 && b < IBS_LAT_BUCKETS; b++)
			share[b] += weight * bucket[b];
	}
	return quantile_of(c, share);
}

static double factorial(unsigned int n)
{
	return n ? n * factorial(n - 1) : 1;
}

static void shapley(const struct compare *c, const struct mix *m, const struct factors *f,
		    struct bounded *part)
{
	struct bounded q[1 << COMPARE_FACTORS] = {};

	for (unsigned int set = 0; set < 1u << f->n; set++)
		q[set] = quantile(c, m, f, set);
	for (unsigned int i = 0; i < f->n; i++) {
		part[i] = (struct bounded){};
		for (unsigned int set = 0; set < 1u << f->n; set++) {
			const unsigned int size = __builtin_popcount(set);
			const struct bounded *a = &q[set], *b = &q[set | 1u << i];
			double weight;

			if (set >> i & 1)
				continue;
			weight = factorial(size) * factorial(f->n - size - 1) / factorial(f->n);
			part[i].value += weight * (b->value - a->value);
			part[i].low += weight * (b->low - a->high);
			part[i].high += weight * (b->high - a->low);
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

	if (c->no_latency)
		return false;
	for (unsigned int k = 0; k < c->causes.n; k++)
		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			known[s] += m->ops[s][k];
	if (!(known[COMPARE_A] > 0 && known[COMPARE_B] > 0)) /* only sums were added */
		return false;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		if (compare_effective(&c->side[s]) < 1 / (1 - COMPARE_QUANTILE) - .5)
			return false;
	return true;
}

/* What the edges of wide buckets allow is not noise that more samples would remove. */
static void widen(struct compare_change *x, double low, double high)
{
	if (low < 0 && high > 0)
		x->p = 1;
	x->low = fmin(x->low, low);
	x->high = fmax(x->high, high);
}

static void widen_all(struct compare_result *out, const struct bounded *part)
{
	widen(&out->quantile_change, out->quantile_low[COMPARE_B] - out->quantile_high[COMPARE_A],
	      out->quantile_high[COMPARE_B] - out->quantile_low[COMPARE_A]);
	for (size_t i = 0; i < out->n_factors; i++)
		widen(&out->factor[i].change, part[i].low, part[i].high);
}

/* Intervals of the percentile's change and its parts, by drawing blocks. */
static void draw(const struct compare *c, struct mix *m, const struct factors *f,
		 struct compare_result *out)
{
	struct compare_moments all = {}, each[COMPARE_FACTORS] = {};
	struct bounded part[COMPARE_FACTORS];
	struct compare_draw d;
	__u64 state = 1;

	for (unsigned int r = 0; out->has_quantile && r < c->rounds; r++) {
		compare_draw(c, COMPARE_SINGLY, &state, &d);
		mix_of(c, &d, m);
		shapley(c, m, f, part);
		compare_moment(&all, quantile(c, m, f, (1u << f->n) - 1).value -
					     quantile(c, m, f, 0).value);
		for (unsigned int i = 0; i < f->n; i++)
			compare_moment(&each[i], part[i].value);
	}
	compare_interval(c, COMPARE_SINGLY, &all, &out->quantile_change);
	for (unsigned int i = 0; i < f->n; i++)
		compare_interval(c, COMPARE_SINGLY, &each[i], &out->factor[i].change);
}

void compare_quantiles(const struct compare *c, struct compare_result *out)
{
	struct mix *m = xcalloc(1, sizeof(*m));
	struct compare_draw d;
	struct factors f = { .n = 1 };
	struct bounded part[COMPARE_FACTORS], of[COMPARE_SIDES];

	compare_draw_all(c, &d);
	mix_of(c, &d, m);
	out->has_quantile = enough(c, m);
	of[COMPARE_A] = quantile(c, m, &f, 0);
	of[COMPARE_B] = quantile(c, m, &f, 1);
	choose(c, m, fmin(of[COMPARE_A].value, of[COMPARE_B].value), &f, out);
	of[COMPARE_B] = quantile(c, m, &f, (1u << f.n) - 1);
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		out->quantile[s] = of[s].value;
		out->quantile_low[s] = of[s].low;
		out->quantile_high[s] = of[s].high;
	}
	out->quantile_change.change = of[COMPARE_B].value - of[COMPARE_A].value;
	shapley(c, m, &f, part);
	for (unsigned int i = 0; i < f.n; i++)
		out->factor[i].change.change = part[i].value;
	draw(c, m, &f, out);
	out->quantile_wide = c->wide;
	if (c->wide)
		widen_all(out, part);
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
	late = quantile(c, m, &f, 1).value;
	free(m);
	return fabs(late - r->quantile[COMPARE_A]) <
	       COMPARE_GONE_SHARE * fabs(r->quantile_change.change);
}
