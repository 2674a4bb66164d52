/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A machine sampled in strata, by random numbers: a container whose load changes, its ops from DRAM
 * and its hits in the L3. What the container really did is known, and so is what one event with the
 * same rate of interrupts finds.
 */
#ifndef IBSCOPE_STRATA_SIM_H
#define IBSCOPE_STRATA_SIM_H

#include "strata/strata.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum sim_load { SIM_STEADY, SIM_STEPS, SIM_BEAT, SIM_BURSTS, SIM_LOADS };
/* SIM_ALL: the sum of both, as of a container */
enum sim_kind { SIM_DRAM, SIM_L3, SIM_KINDS, SIM_ALL = SIM_KINDS, SIM_ROWS };

#define SIM_WINDOW_S 10.0
#define SIM_STEP_S   0.1
#define SIM_STEPS_N  100
#define SIM_OPS_S    2e9  /* of the whole machine */
#define SIM_TAGS_S   2000 /* of one event that samples all ops: its interrupts */
#define SIM_SHARE    0.25 /* of the ops, on average, of the container */

/* Two in five ops are loads. One in twenty of those comes from DRAM, 7 % hit the L3. */
static const double sim_part[SIM_KINDS] = { 0.02, 0.028 };
static const double sim_mean[SIM_KINDS] = { 450, 55 }, sim_sigma[SIM_KINDS] = { 0.5, 0.3 };

struct sim {
	uint64_t state;
	enum sim_load load;
	double rate[SIM_STEPS_N][SIM_KINDS]; /* samples per tag */
	double mean_s;			     /* of slices; 0: as for this window */
	double full_share;		     /* of the time; 0: STRATA_FULL_SHARE */
	double part[SIM_KINDS];		     /* of ops; 0: sim_part */
	double quantile;		     /* of latencies from DRAM, to judge; 0: none */
	bool contended;			     /* DRAM is faster or slower at each step */
	double slow[SIM_STEPS_N];	     /* its latencies compared with the mean */
	double limit;			     /* the true quantile of the window */
	unsigned int n, n_below;	     /* samples, and those up to the limit */
};

struct sim_result {
	double truth[SIM_ROWS]; /* miss cycles of the container in the window */
	double estimate[SIM_ROWS], low[SIM_ROWS], high[SIM_ROWS];
	double one[SIM_ROWS], one_half[SIM_ROWS]; /* of one event: estimate, half of its interval */
	double interrupts;			  /* compared with one event */
	bool known;
	double share_low, share_high; /* at the true quantile */
	bool share_known;
	double alike; /* samples from DRAM with equal weights that would tell as much */
};

static inline double sim_part_of(const struct sim *s, enum sim_kind kind)
{
	return s->part[kind] > 0 ? s->part[kind] : sim_part[kind];
}

static inline double sim_random(struct sim *s)
{
	uint64_t x = s->state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static inline double sim_normal(struct sim *s)
{
	double radius = sqrt(-2 * log(1 - sim_random(s)));

	return radius * cos(6.283185307179586 * sim_random(s));
}

/* Add samples of @tags tags to a sum of latencies, and to one of their squares. */
static inline void sim_take(struct sim *s, enum sim_kind kind, double mean_n, double slow,
			    double *sum, double *square)
{
	const double sigma = sim_sigma[kind], m = log(slow * sim_mean[kind]) - sigma * sigma / 2;
	const double least = exp(-mean_n);

	for (double p = sim_random(s); p > least; p *= sim_random(s)) {
		double lat = exp(m + sigma * sim_normal(s));

		*sum += lat;
		*square += lat * lat;
		s->n++;
		s->n_below += lat <= s->limit;
	}
}

static inline void sim_set_rates(struct sim *s)
{
	const double phase = sim_random(s) * 2;
	double share = SIM_SHARE, miss = 1;

	for (int i = 0; i < SIM_STEPS_N; i++) {
		switch (s->load) {
		case SIM_STEPS: /* another load at each step */
			share = SIM_SHARE * 2 * sim_random(s);
			miss = 2 * sim_random(s);
			break;
		case SIM_BEAT: /* every other step */
			share = SIM_SHARE * (fmod(i + phase, 2) < 1 ? 1.8 : 0.2);
			break;
		case SIM_BURSTS: /* phases of some seconds, in a load that grows */
			miss = sim_random(s) < 0.03 ? 0.5 + 2 * sim_random(s) : miss;
			share = SIM_SHARE * (0.5 + (double)i / SIM_STEPS_N);
			break;
		default:
			break;
		}
		s->rate[i][SIM_DRAM] = share * miss * sim_part_of(s, SIM_DRAM);
		s->rate[i][SIM_L3] = share * sim_part_of(s, SIM_L3);
		s->slow[i] = s->contended ? 0.5 + sim_random(s) : 1;
	}
}

/* The share of DRAM accesses of the window that take at most @lat cycles. */
static inline double sim_share_below(const struct sim *s, double lat)
{
	const double sigma = sim_sigma[SIM_DRAM];
	double all = 0, below = 0;

	for (int i = 0; i < SIM_STEPS_N; i++) {
		const double m = log(s->slow[i] * sim_mean[SIM_DRAM]) - sigma * sigma / 2;

		all += s->rate[i][SIM_DRAM];
		below += s->rate[i][SIM_DRAM] * erfc((m - log(lat)) / sigma / sqrt(2)) / 2;
	}
	return below / all;
}

static inline double sim_true_quantile(const struct sim *s)
{
	double low = 1, high = 1e5;

	for (int i = 0; i < 50; i++) {
		const double lat = sqrt(low * high);

		*(sim_share_below(s, lat) < s->quantile ? &low : &high) = lat;
	}
	return high;
}

/* Sample one kind from @from to @to seconds. */
static inline void sim_sample(struct sim *s, enum sim_kind kind, double from, double to,
			      double tags_s, double *sum, double *square)
{
	for (int i = from / SIM_STEP_S; i < SIM_STEPS_N && i * SIM_STEP_S < to; i++) {
		const double t = fmin(to, (i + 1) * SIM_STEP_S) - fmax(from, i * SIM_STEP_S);

		sim_take(s, kind, s->rate[i][kind] * t * tags_s, kind == SIM_DRAM ? s->slow[i] : 1,
			 sum, square);
	}
}

/* Give samples their weights, which are the same in all slices of a stratum: so are the periods. */
static inline void sim_weigh(const struct strata_design *d, enum sim_kind kind,
			     struct strata_sum *s)
{
	double weight[STRATUM_N] = {};

	for (unsigned int k = 0; k < d->n; k++) {
		const enum stratum of = d->slice[k].of;

		if (!(weight[of] > 0))
			weight[of] = strata_slice_weight(d, k, kind == SIM_DRAM);
		s->part[k] *= weight[of];
	}
	for (int of = 0; of < STRATUM_N; of++)
		s->square[of] *= weight[of] * weight[of];
}

/* The length of a slice; a split that differs from the product's stretches one kind and shortens the other. */
static inline double sim_slice_s(struct sim *s, enum stratum of)
{
	const double full = s->full_share > 0 ? s->full_share : STRATA_FULL_SHARE;
	const double mean_s = s->mean_s > 0 ? s->mean_s : strata_slice_s(SIM_WINDOW_S);

	return strata_next_s(of, mean_s, sim_random(s)) *
	       (of == STRATUM_FULL ? full / STRATA_FULL_SHARE
				   : (1 - full) / (1 - STRATA_FULL_SHARE));
}

/* Numbers of samples from DRAM, and of those up to the true quantile. */
struct sim_counts {
	struct strata_sum all, below;
};

static inline void sim_count(struct sim *s, struct sim_counts *c, enum stratum of, unsigned int k)
{
	c->all.part[k] = s->n;
	c->all.square[of] += s->n;
	c->below.part[k] = s->n_below;
	c->below.square[of] += s->n_below;
}

/* Kish's effective size of weighted samples. */
static inline double sim_alike(const struct strata_design *d, const struct strata_sum *all)
{
	double sum = 0, squares = 0;

	for (unsigned int k = 0; k < d->n; k++)
		sum += all->part[k];
	for (int of = 0; of < STRATUM_N; of++)
		squares += all->square[of];
	return squares > 0 ? sum * sum / squares : 0;
}

/* Sample the window in slices. */
static inline void sim_strata(struct sim *s, struct strata_design *d,
			      struct strata_sum sum[SIM_KINDS], struct sim_counts *c,
			      struct sim_result *r)
{
	/* the machine misses as often as the container does on average */
	const double ratio = 1e6 / strata_period(1000000, sim_part_of(s, SIM_DRAM));
	enum stratum of = sim_random(s) < 0.5;

	for (double from = 0; from < SIM_WINDOW_S; of = !of) {
		const double to = fmin(from + sim_slice_s(s, of), SIM_WINDOW_S);
		const double tags_s = SIM_TAGS_S * (of == STRATUM_MISS ? ratio : 1);
		unsigned int into[STRATA_SLICES];

		if (d->n == STRATA_SLICES) {
			strata_merge(d, into);
			for (int kind = 0; kind < SIM_KINDS; kind++)
				strata_sum_merge(&sum[kind], into);
			strata_sum_merge(&c->all, into);
			strata_sum_merge(&c->below, into);
		}
		d->slice[d->n] = (struct strata_slice){ of, SIM_OPS_S * (to - from),
							tags_s * (to - from), to - from };
		for (int kind = 0; kind < SIM_KINDS; kind++) {
			double part = 0;

			s->n = s->n_below = 0;
			if (of == STRATUM_FULL || kind == SIM_DRAM)
				sim_sample(s, kind, from, to, tags_s, &part, &sum[kind].square[of]);
			sum[kind].part[d->n] = (float)part;
			if (kind == SIM_DRAM)
				sim_count(s, c, of, d->n);
		}
		r->interrupts +=
			d->slice[d->n++].tags * (of == STRATUM_FULL ? 1 : sim_part_of(s, SIM_DRAM));
		from = to;
	}
	r->interrupts /= SIM_TAGS_S * SIM_WINDOW_S;
}

/* One window. The same state gives the same window. */
static inline void sim_window(struct sim *s, struct sim_result *r)
{
	struct strata_design d = {};
	struct strata_sum sum[SIM_ROWS] = {};
	struct sim_counts c = {};
	double squares = 0;

	memset(r, 0, sizeof(*r));
	sim_set_rates(s);
	s->limit = s->quantile > 0 ? sim_true_quantile(s) : 0;
	sim_strata(s, &d, sum, &c, r);
	r->known = true;
	for (enum sim_kind kind = 0; kind < SIM_KINDS; kind++) {
		const double each = SIM_OPS_S / SIM_TAGS_S;
		double one = 0, square = 0;

		for (int i = 0; i < SIM_STEPS_N; i++)
			r->truth[kind] += s->rate[i][kind] * SIM_OPS_S * SIM_STEP_S *
					  sim_mean[kind] * (kind == SIM_DRAM ? s->slow[i] : 1);
		sim_sample(s, kind, 0, SIM_WINDOW_S, SIM_TAGS_S, &one, &square);
		r->one[kind] = one * each;
		r->one_half[kind] = 1.96 * sqrt(square) * each;
		squares += square;
		sim_weigh(&d, kind, &sum[kind]);
		strata_add(&sum[SIM_ALL], &sum[kind]);
		r->truth[SIM_ALL] += r->truth[kind];
		r->one[SIM_ALL] += r->one[kind];
	}
	sim_weigh(&d, SIM_DRAM, &c.all);
	sim_weigh(&d, SIM_DRAM, &c.below);
	r->alike = sim_alike(&d, &c.all);
	r->share_known = strata_share_interval(&d, &c.below, &c.all, &r->share_low, &r->share_high);
	r->one_half[SIM_ALL] = 1.96 * sqrt(squares) * SIM_OPS_S / SIM_TAGS_S;
	for (int row = 0; row < SIM_ROWS; row++) {
		for (unsigned int k = 0; k < d.n; k++)
			r->estimate[row] += sum[row].part[k];
		r->known &= strata_interval(&d, &sum[row], &r->low[row], &r->high[row]);
	}
}

/* What many windows show about one kind. */
struct sim_score {
	unsigned int n, covered, unknown;
	double bias, error, one_error, half, one_half, interrupts; /* sums; relative to the truth */
	unsigned int shares, shares_covered;			   /* of the quantile */
	double share_half, alike;				   /* sums */
};

static inline void sim_score(struct sim *s, unsigned int windows, struct sim_score score[SIM_ROWS])
{
	struct sim_score *dram = &score[SIM_DRAM];
	struct sim_result r;

	memset(score, 0, SIM_ROWS * sizeof(*score));
	for (unsigned int i = 0; i < windows; i++) {
		sim_window(s, &r);
		dram->alike += r.alike;
		dram->shares += r.share_known;
		dram->shares_covered +=
			r.share_known && r.share_low <= s->quantile && s->quantile <= r.share_high;
		dram->share_half += r.share_known ? (r.share_high - r.share_low) / 2 : 0;
		for (int row = 0; row < SIM_ROWS; row++) {
			struct sim_score *c = &score[row];
			const double t = r.truth[row], off = r.estimate[row] / t - 1;
			const double one_off = r.one[row] / t - 1;

			c->n++;
			c->unknown += !r.known;
			c->covered += r.known && r.low[row] <= t && t <= r.high[row];
			c->bias += off;
			c->error += off * off;
			c->one_error += one_off * one_off;
			c->half += (r.high[row] - r.low[row]) / 2 / t;
			c->one_half += r.one_half[row] / t;
			c->interrupts += r.interrupts;
		}
	}
}

#endif
