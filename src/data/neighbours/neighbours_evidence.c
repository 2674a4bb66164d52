// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the experiments of a pair prove, judged by those at other times. */
#include "neighbours_experiments.h"
#include "base/std.h"

#include <math.h>

#define BUSY_LEVEL     0.5 /* of the level that the suspect reaches */
#define QUIET_LEVEL    0.25
#define HIGH	       3    /* the level is that of its third busiest window */
#define HIGH_SAMPLES   16   /* in it; fewer are noise */
#define PLAUSIBLE_RISE 1.05 /* ups of the victim's own may hide the rest */
#define SHIFTS	       64
#define POOL	       2048
#define SHIFT_MIN      3
#define SHIFTS_ENOUGH  12
#define TAIL	       10 /* the highest one of so many of them tell how fast they get rarer */
#define TAIL_MIN       3
#define TAIL_APART     30   /* runs that the windows have room for, one after the other */
#define RUN_LEAST      1e-3 /* probability of a single run that nothing is below */

bool suspect_prepare(struct suspect *s, const double *total)
{
	const struct window_series *w = &s->series;
	double top[HIGH] = { 0 }, samples = 0, own = 0, all = 0;

	for (unsigned int i = 0; i < w->n; i++)
		for (unsigned int k = 0; k < HIGH; k++)
			if (w->known[i] && w->accesses[i] > top[k]) {
				memmove(&top[k + 1], &top[k], (HIGH - 1 - k) * sizeof(*top));
				top[k] = w->accesses[i];
				break;
			}
	for (unsigned int i = 0; i < w->n; i++) {
		s->state[i] = !w->known[i]				      ? SUSPECT_UNKNOWN
			      : w->accesses[i] <= QUIET_LEVEL * top[HIGH - 1] ? SUSPECT_QUIET
			      : w->accesses[i] >= BUSY_LEVEL * top[HIGH - 1]  ? SUSPECT_BUSY
									      : SUSPECT_BETWEEN;
		s->busy[i] = s->state[i] == SUSPECT_BUSY;
		s->quiet[i] = s->state[i] == SUSPECT_QUIET;
		if (s->state[i] != SUSPECT_BUSY)
			continue;
		samples = fmax(samples, w->samples[i]);
		own += w->accesses[i];
		all += total[i];
	}
	s->share = all > 0 ? own / all : 0;
	return top[HIGH - 1] > 0 && samples >= HIGH_SAMPLES && s->share >= NEIGHBOURS_SHARE;
}

struct shift_sum {
	unsigned int n;
	double squares, most;
	double run[POOL]; /* deviations of single runs */
	unsigned int runs;
	bool tail; /* so many are apart that the highest tell how the others go on */
};

/* Deviations of the same runs at other times, of at least half of @runs. */
static void shift_runs(struct experiments *x, const double *activity, unsigned int runs,
		       struct shift_sum *sum)
{
	const unsigned int step = x->n / SHIFTS + 1;

	x->shifted = true;
	memset(sum, 0, sizeof(*sum));
	for (unsigned int s = SHIFT_MIN; s + SHIFT_MIN < x->n; s += step) {
		struct evidence e;

		x->lag = (int)s;
		if (!experiments_run(x, activity, &e) || 2 * e.runs < runs)
			continue;
		sum->n++;
		sum->squares += e.deviations * e.deviations;
		sum->most = fmax(sum->most, e.deviations);
		for (unsigned int i = 0; i < e.runs && sum->runs < POOL; i++)
			sum->run[sum->runs++] = x->deviations[i];
	}
}

static int descending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

/*
 * The probability of a run of so many deviations, if it is one of those at other times, which are sorted: how many have
 * as many; beyond the highest one it falls as it does among the highest.
 */
static double run_chance(const struct shift_sum *sum, double deviations)
{
	const unsigned int tail = sum->runs / TAIL;
	unsigned int more = 0;
	double excess = 0, chance;

	while (more < sum->runs && sum->run[more] >= deviations)
		more++;
	chance = (more + 1) / (sum->runs + 1.);
	if (more || !sum->tail || tail < TAIL_MIN)
		return chance;
	for (unsigned int i = 0; i < tail; i++)
		excess += sum->run[i] - sum->run[tail];
	if (excess > 0)
		chance *= exp((sum->run[0] - deviations) * tail / excess);
	return fmax(chance, fmin(RUN_LEAST, 1 / (sum->runs + 1.)));
}

/* Fisher's: the probability of runs like these, if each is one of those at other times. */
static double coincidence(const struct experiments *found, unsigned int runs,
			  const struct shift_sum *sum)
{
	double chance = 0, term = 1, all = 0;

	for (unsigned int i = 0; i < runs; i++)
		chance -= log(run_chance(sum, found->deviations[i]));
	for (unsigned int i = 0; i < runs; i++) {
		all += term;
		term *= chance / (i + 1);
	}
	return fmin(1, all * exp(-chance));
}

/* Where in the effect of a suspect a window is. */
enum effect_place { PLACE_OUTSIDE, PLACE_INSIDE, PLACE_AFTER };

static enum effect_place place_of(const struct experiments *x, unsigned int w)
{
	if (x->state[w] == SUSPECT_BUSY || x->state[w] == SUSPECT_BETWEEN)
		return PLACE_INSIDE;
	return w && (x->state[w - 1] == SUSPECT_BUSY || x->state[w - 1] == SUSPECT_BETWEEN)
		       ? PLACE_AFTER
		       : PLACE_OUTSIDE;
}

/* How much slower the victim still is in the first window after a run, as when queues drain. */
static double aftereffect(const struct experiments *x)
{
	double n[PLACE_AFTER + 1] = { 0 }, y[PLACE_AFTER + 1] = { 0 };

	for (unsigned int w = 0; w < x->n; w++) {
		const enum effect_place place = place_of(x, w);
		const int v = experiments_window(x, (int)w);

		if (v < 0 || x->state[w] == SUSPECT_UNKNOWN)
			continue;
		n[place] += x->victim->samples[v];
		y[place] += x->victim->samples[v] * x->latency[v];
	}
	return n[PLACE_AFTER] > 0 && n[PLACE_OUTSIDE] > 0
		       ? fmax(0,
			      y[PLACE_AFTER] / n[PLACE_AFTER] - y[PLACE_OUTSIDE] / n[PLACE_OUTSIDE])
		       : 0;
}

/* The suspect's accesses in a window in which it is busy. */
static double busy_level(const struct experiments *x, const double *activity)
{
	double level = 0, windows = 0;

	for (unsigned int w = 0; w < x->n; w++)
		if (x->state[w] == SUSPECT_BUSY && experiments_window(x, (int)w) >= 0) {
			level += activity[w];
			windows++;
		}
	return level / windows;
}

/*
 * Latencies without the effect: in proportion to what the suspect accessed, and after a run what is left of it.
 * @inside: where the victim's windows had some
 */
static void without_effect(const struct experiments *x, const double *activity, double rise,
			   double *latency, bool *inside)
{
	const double level = busy_level(x, activity), after = aftereffect(x);

	for (unsigned int w = 0; w < x->n; w++) {
		const enum effect_place place = place_of(x, w);
		const int v = experiments_window(x, (int)w);

		if (v < 0 || x->state[w] == SUSPECT_UNKNOWN)
			continue;
		latency[v] -= place == PLACE_AFTER ? fmin(after, rise) : rise * activity[w] / level;
		inside[v] = place == PLACE_INSIDE;
	}
}

/*
 * Divide the deviations by those of the same runs at other times, when they are larger than they should be: of a
 * victim whose latency has ups and downs of its own. These are looked for in windows in which the suspect was quiet;
 * or if there are too few, in all. The effect is removed from both: a suspect that runs at regular times would find it
 * at other times, too.
 */
static void calibrate(const struct experiments *found, const double *activity, struct evidence *out)
{
	struct experiments x = *found;
	double latency[NEIGHBOURS_HISTORY];
	bool inside[NEIGHBOURS_HISTORY] = { false };
	static struct shift_sum sum;

	memcpy(latency, found->latency, sizeof(latency));
	without_effect(found, activity, out->rise, latency, inside);
	x.latency = latency;
	x.leave_out = inside;
	shift_runs(&x, activity, out->runs, &sum);
	if (sum.n < SHIFTS_ENOUGH) {
		x.leave_out = NULL;
		shift_runs(&x, activity, out->runs, &sum);
	}
	if (sum.n)
		out->deviations /= fmax(1, sqrt(sum.squares / sum.n));
	if (sum.most >= out->deviations)
		out->deviations = 0;
	sum.tail = x.n * out->runs >= TAIL_APART * out->busy;
	qsort(sum.run, sum.runs, sizeof(*sum.run), descending);
	out->coincidence = coincidence(found, out->runs, &sum);
}

/* The lag of 1 << @lags that shows most. Return: it, or -1 */
static int best_lag(struct experiments *x, const double *activity, unsigned int lags,
		    struct evidence *out)
{
	int best = -1;

	for (int lag = 0; lag <= NEIGHBOURS_LAG; lag++) {
		struct evidence e;

		x->lag = lag;
		if (!(lags & 1U << lag) || !experiments_run(x, activity, &e))
			continue;
		if (best < 0 || e.deviations > out->deviations) {
			*out = e;
			out->lag = best = lag;
		}
	}
	return best;
}

/* Does the effect come before its cause? */
static bool is_before(struct experiments *x, const double *activity, double correlation)
{
	for (int lag = -NEIGHBOURS_LAG; lag < 0; lag++) {
		struct evidence e;

		x->lag = lag;
		if (experiments_run(x, activity, &e) && e.correlation > correlation + 0.1)
			return true;
	}
	return false;
}

/* 1 << lag of those at which the victim is that much slower in all busy windows together than in all quiet ones. */
static unsigned int plausible_lags(const struct window_series *victim, const struct suspect *s)
{
	unsigned int lags = 0;

	for (unsigned int lag = 0; lag <= NEIGHBOURS_LAG; lag++) {
		const double *n = victim->weight + lag, *y = victim->weighted + lag;
		double busy_n = 0, busy_y = 0, quiet_n = 0, quiet_y = 0;

		for (unsigned int i = 0; i + lag < victim->n; i++) {
			busy_n += s->busy[i] * n[i];
			busy_y += s->busy[i] * y[i];
			quiet_n += s->quiet[i] * n[i];
			quiet_y += s->quiet[i] * y[i];
		}
		if (busy_n > 0 && quiet_n > 0 &&
		    busy_y / busy_n - quiet_y / quiet_n >= log(PLAUSIBLE_RISE))
			lags |= 1U << lag;
	}
	return lags;
}

bool evidence_estimate(const struct window_series *victim, const struct suspect *s,
		       struct evidence *out)
{
	enum suspect_state state[NEIGHBOURS_HISTORY];
	struct experiments x = { .victim = victim, .latency = victim->latency, .n = victim->n };

	const unsigned int lags = plausible_lags(victim, s);

	if (!lags)
		return false;
	experiments_begin(&x, s, NULL, state);
	return best_lag(&x, s->series.accesses, lags, out) >= 0;
}

bool evidence_gather(const struct window_series *victim, const struct suspect *s,
		     const struct suspect *quiet, struct evidence *out)
{
	enum suspect_state state[NEIGHBOURS_HISTORY];
	struct experiments x = { .victim = victim, .latency = victim->latency, .n = victim->n };
	struct evidence again;
	int best;

	experiments_begin(&x, s, quiet, state);
	best = best_lag(&x, s->series.accesses, ~0U, out);
	if (best < 0)
		return false;
	if (is_before(&x, s->series.accesses, out->correlation))
		out->deviations = 0;
	x.lag = best;
	experiments_run(&x, s->series.accesses, &again); /* for its single runs */
	if (out->deviations > 2)
		calibrate(&x, s->series.accesses, out);
	return true;
}

void evidence_remove(struct window_series *victim, const struct suspect *s,
		     const struct evidence *e)
{
	for (unsigned int i = 0; i + e->lag < victim->n; i++) {
		const unsigned int w = i + e->lag;
		const double part = s->state[i] == SUSPECT_BUSY	     ? 1
				    : s->state[i] == SUSPECT_BETWEEN ? 0.5
								     : 0;

		victim->latency[w] -= part * e->rise;
		victim->weighted[w] = victim->weight[w] * victim->latency[w];
	}
}
