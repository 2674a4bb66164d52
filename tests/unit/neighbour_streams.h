/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Synthetic containers on one L3 complex, with couplings that are known. */
#ifndef NEIGHBOUR_STREAMS_H
#define NEIGHBOUR_STREAMS_H

#include <math.h>
#include <string.h>

#include "neighbours/neighbours.h"

#define STREAM_CONTAINERS 8
#define STREAM_LAGS	  4

struct stream_random {
	__u64 state;
};

static inline double stream_uniform(struct stream_random *r)
{
	__u64 x = r->state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return ((x ^ x >> 31) >> 11) / 9007199254740992.;
}

static inline double stream_between(struct stream_random *r, double low, double high)
{
	return low + (high - low) * stream_uniform(r);
}

static inline double stream_gauss(struct stream_random *r)
{
	return sqrt(-2 * log(1 - stream_uniform(r))) * cos(2 * M_PI * stream_uniform(r));
}

static inline double stream_count(struct stream_random *r, double mean)
{
	double limit, product = 1;
	int n = 0;

	if (mean > 50)
		return fmax(0, round(mean + sqrt(mean) * stream_gauss(r)));
	limit = exp(-mean);
	while ((product *= stream_uniform(r)) > limit)
		n++;
	return n;
}

/* A schedule: on and off for random or regular times. */
struct stream_container {
	double on_s, off_s; /* mean lengths; off_s 0: always on */
	bool regular,
		even; /* even: lengths are uniform up to nearly twice the mean, else exponential */
	int follows;  /* container whose schedule it shares; -1: its own */
	double high, low;	    /* samples a window while on, off */
	double jitter;		    /* of its volume, from window to window: sd of the logarithm */
	double latency, dispersion; /* mean, cycles; sd of a sample over the mean */
	double noise;		    /* of a window's mean: sd of the logarithm */
	double by_own;		    /* exponent of its own relative volume in its latency */
	double mood,
		mood_s; /* its latency goes up by this factor for so long, by itself; 0: never */
	double drift;	/* amplitude of a slow wave */
	double stays_s, leaves_s; /* comes and goes; 0: stays */
	unsigned int from;	  /* window in which it comes first */
	int by;			  /* container that slows it; -1: none */
	int also_by;		  /* another one; 0: none */
	double ramp_s;		  /* it reaches its level over so long; 0: at once */
	double strength;	  /* latency grows by this share while that one is on */
	unsigned int lag;

	bool on, moody, gone;
	double left, mood_left, stay_left, phase, on_for;
};

struct stream_complex {
	struct stream_random random;
	unsigned int n, window;
	double windows; /* of a second; 0: 1 */
	struct stream_container c[STREAM_CONTAINERS];
	double busy[STREAM_LAGS][STREAM_CONTAINERS]; /* relative volume, the latest ones */
	double emitted[STREAM_CONTAINERS];	     /* samples of this window */
};

static inline void stream_toggle(struct stream_random *r, bool *on, double *left, double on_s,
				 double off_s, bool regular, bool even)
{
	if (!(off_s > 0) || !(on_s > 0)) {
		*on = on_s > 0;
		return;
	}
	*left -= 1;
	while (*left <= 0) {
		double mean;

		*on = !*on;
		mean = *on ? on_s : off_s;
		*left += fmax(1, round(regular ? mean
				       : even  ? stream_between(r, 0.5, 2 * mean - 0.5)
					       : -mean * log(1 - stream_uniform(r))));
	}
}

static inline void stream_move(struct stream_complex *s)
{
	memmove(s->busy[1], s->busy[0], (STREAM_LAGS - 1) * sizeof(*s->busy));
	for (unsigned int i = 0; i < s->n; i++) {
		struct stream_container *c = &s->c[i];
		bool here = !c->gone;

		if (c->follows < 0)
			stream_toggle(&s->random, &c->on, &c->left, c->on_s, c->off_s, c->regular,
				      c->even);
		if (c->mood > 0)
			stream_toggle(&s->random, &c->moody, &c->mood_left, c->mood_s, c->mood_s,
				      false, false);
		if (c->stays_s > 0)
			stream_toggle(&s->random, &here, &c->stay_left, c->stays_s, c->leaves_s,
				      false, false);
		c->gone = !here;
	}
	for (unsigned int i = 0; i < s->n; i++) {
		struct stream_container *c = &s->c[i];
		bool on = c->follows < 0 ? c->on : s->c[c->follows].on;
		double level = 1;

		c->on_for = on ? c->on_for + 1 : 0;
		if (c->ramp_s > 0)
			level = fmin(1, c->on_for / c->ramp_s);

		s->busy[0][i] = c->gone || s->window < c->from
					? 0
					: (on ? fmax(level, c->low / c->high) : c->low / c->high) *
						  exp(c->jitter * stream_gauss(&s->random));
	}
}

/* The sum of latencies, which are lognormal. */
static inline double stream_sum(struct stream_random *r, double n, double mean, double dispersion)
{
	const double sd = sqrt(log(1 + dispersion * dispersion));
	double sum = 0;

	if (n > 64)
		return mean * (n + dispersion * sqrt(n) * stream_gauss(r));
	for (int i = 0; i < n; i++)
		sum += mean * exp(sd * stream_gauss(r) - sd * sd / 2);
	return sum;
}

/* Samples of a container in this window, and their mean latency; 0: none. */
static inline unsigned int stream_samples(struct stream_complex *s, unsigned int i, double *mean)
{
	struct stream_container *c = &s->c[i];
	const double volume = s->busy[0][i];
	double slowed = 1;

	*mean = 0;
	if (volume <= 0)
		return 0;
	if (c->by >= 0)
		slowed = 1 + c->strength * fmin(1.5, s->busy[c->lag][c->by]);
	if (c->also_by)
		slowed += c->strength * fmin(1.5, s->busy[c->lag][c->also_by]);
	*mean = c->latency * slowed * pow(volume, c->by_own) *
		exp(c->noise * stream_gauss(&s->random)) * (c->moody ? c->mood : 1) *
		(1 +
		 c->drift * sin(s->window / 200. / (s->windows > 0 ? s->windows : 1) + c->phase));
	/* waiting longer, it does less */
	return (unsigned int)stream_count(&s->random, volume * c->high / sqrt(slowed));
}

static inline void stream_emit(struct stream_complex *s, struct neighbours *n, unsigned int i,
			       unsigned int complex)
{
	struct neighbours_activity a = { 0 };
	double mean;

	a.samples = s->emitted[i] = stream_samples(s, i, &mean);
	if (!(a.samples > 0))
		return;
	a.latency = stream_sum(&s->random, a.samples, mean, s->c[i].dispersion);
	neighbours_add(n, complex, i, &a);
}

static inline void stream_step(struct stream_complex *s, struct neighbours *n, unsigned int complex)
{
	stream_move(s);
	for (unsigned int i = 0; i < s->n; i++)
		stream_emit(s, n, i, complex);
	s->window++;
}

/* --- casts --- */

static inline struct stream_container stream_plain(struct stream_random *r)
{
	return (struct stream_container){ .on_s = 1,
					  .follows = -1,
					  .by = -1,
					  .high = stream_between(r, 60, 400),
					  .jitter = stream_between(r, 0.02, 0.2),
					  .latency = stream_between(r, 150, 500),
					  .dispersion = stream_between(r, 0.5, 1.2),
					  .noise = stream_between(r, 0.01, 0.06),
					  .drift = stream_between(r, 0, 0.15),
					  .phase = stream_between(r, 0, 6) };
}

static inline struct stream_container stream_bursts(struct stream_random *r, double on_s,
						    double off_s)
{
	struct stream_container c = stream_plain(r);

	c.on_s = on_s;
	c.off_s = off_s;
	c.high = stream_between(r, 200, 1000);
	c.low = c.high * stream_between(r, 0, 0.1);
	c.by_own = stream_between(r, 0, 0.15);
	c.regular = stream_uniform(r) < 0.3;
	return c;
}

/* Containers that nobody slows, but that look like it: one of each kind, and some at random. */
static inline void stream_quiet(struct stream_complex *s, __u64 seed)
{
	struct stream_random *r = &s->random;

	*s = (struct stream_complex){ .random = { seed * 0x2545f4914f6cdd1dull }, .n = 8 };
	s->c[0] = stream_plain(r); /* steady */
	s->c[1] = stream_bursts(r, stream_between(r, 1, 6), stream_between(r, 1, 10));
	s->c[2] = stream_bursts(r, stream_between(r, 5, 60), stream_between(r, 10, 120));
	/* shares a schedule, accesses more then, and waits longer by that */
	s->c[3] = stream_bursts(r, 1, 1);
	s->c[3].follows = stream_uniform(r) < 0.5 ? 1 : 2;
	s->c[3].by_own = 0.3;
	s->c[3].low = s->c[3].high * stream_between(r, 0.05, 0.8);
	/* has phases of its own: long ones, short ones */
	s->c[4] = stream_plain(r);
	s->c[4].mood = stream_between(r, 1.2, 2.5);
	s->c[4].mood_s = stream_between(r, 60, 600);
	s->c[5] = stream_plain(r);
	s->c[5].mood = stream_between(r, 1.2, 2.5);
	s->c[5].mood_s = stream_between(r, 2, 15);
	/* comes and goes */
	s->c[6] = stream_bursts(r, stream_between(r, 2, 20), stream_between(r, 2, 20));
	s->c[6].stays_s = stream_between(r, 20, 300);
	s->c[6].leaves_s = stream_between(r, 20, 300);
	/* few samples, and noisy */
	s->c[7] = stream_plain(r);
	s->c[7].high = stream_between(r, 2, 20);
	s->c[7].noise = 0.3;
}

/* 1 comes in a window, and slows 0; the others are as above, one of them shares the culprit's schedule. */
static inline void stream_coupled(struct stream_complex *s, __u64 seed, double strength,
				  double samples, double burst_s, unsigned int from)
{
	struct stream_random *r = &s->random;

	stream_quiet(s, seed);
	s->c[0].high = samples;
	s->c[0].by = 1;
	s->c[0].strength = strength;
	s->c[0].lag = stream_uniform(r) < 0.7 ? 0 : 1;
	s->c[1] = stream_bursts(r, burst_s, burst_s);
	s->c[1].even = true;
	s->c[1].from = from;
	s->c[7] = stream_bursts(r, 1, 1);
	s->c[7].follows = 1;
	s->c[7].from = from;
	s->c[7].high = s->c[1].high * stream_between(r, 0.05, 0.3);
}

/* The same in shorter windows, @windows to a second: fewer samples in each, and more noise, which is of each window alone. */
static inline void stream_split(struct stream_complex *s, unsigned int windows)
{
	const double k = windows;

	s->windows = k;
	for (unsigned int i = 0; i < s->n; i++) {
		struct stream_container *c = &s->c[i];

		c->on_s *= c->off_s > 0 ? k : 1;
		c->off_s *= k;
		c->high /= k;
		c->low /= k;
		c->jitter *= sqrt(k);
		c->noise *= sqrt(k);
		c->mood_s *= k;
		c->stays_s *= k;
		c->leaves_s *= k;
		c->ramp_s *= k;
		c->from *= windows;
		c->lag *= windows;
	}
}

#endif
