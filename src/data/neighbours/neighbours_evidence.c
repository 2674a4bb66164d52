// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The experiments of one pair: the victim's latency while the suspect is busy and while it is quiet. */
#include "neighbours_private.h"
#include "base/std.h"

#include <math.h>

#define NEAR	       6 /* quiet windows that are compared with, on each side of a run */
#define LONG	       8 /* windows of a run next to these */
#define RUNS_MAX       (NEIGHBOURS_HISTORY / 2)
#define BUSY_LEVEL     0.5 /* of the level that the suspect reaches */
#define QUIET_LEVEL    0.25
#define HIGH	       3   /* the level is that of its third busiest window */
#define HIGH_SAMPLES   16  /* in it; fewer are noise */
#define BUSIER	       1.2 /* the victim was not busier than this in a run than in quiet windows */
#define LAZIER	       2.5 /* waiting longer, it gets less done, but not this much */
#define RUN_MAX	       5.  /* standard deviations that a single run can count for */
#define SIDES_APART    1.5 /* deviations of both sides of a run together beyond those of one alone */
#define DISPERSION     0.64 /* relative variance of a latency, assumed before the data shows it */
#define ASSUMED	       4.   /* windows that this assumption is worth */
#define PLAUSIBLE_RISE 1.02 /* ups of the victim's own may hide the rest */
#define SHIFTS	       64
#define POOL	       2048
#define SHIFT_MIN      3
#define SHIFTS_ENOUGH  12
#define TAIL	       10 /* the highest one of so many of them tell how fast they get rarer */
#define TAIL_MIN       3
#define TAIL_APART     30   /* runs that the windows have room for, one after the other */
#define RUN_LEAST      1e-3 /* probability of a single run that nothing is below */

/* A run and the quiet windows beside it; one side may be empty. */
struct run {
	unsigned int begin, end; /* of the suspect's time, without lag */
};

/* Sums over windows of one kind, weighted by samples. */
struct side_sum {
	double n, y, volume; /* volume: logarithm of samples */
	unsigned int windows;
};

struct experiments {
	const struct window_series *victim;
	const double *latency; /* of the victim, or with the effect removed */
	const enum suspect_state *state;
	unsigned int n;
	int lag; /* the victim's window of a suspect's window w is w + lag, modulo n when shifted */
	bool shifted;
	const bool *leave_out; /* windows of the victim; NULL: none */
	struct run run[RUNS_MAX];
	unsigned int n_runs;
	double deviations[RUNS_MAX]; /* of each run that could be used */
};

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

/* The victim's window; -1: it says nothing. */
static int victim_window(const struct experiments *x, int at)
{
	int w = at + x->lag;

	if (x->shifted && w >= (int)x->n)
		w -= (int)x->n;
	if (w < 0 || w >= (int)x->n || !(x->victim->weight[w] > 0) ||
	    (x->leave_out && x->leave_out[w]))
		return -1;
	return w;
}

static void find_runs(struct experiments *x)
{
	unsigned int i = 0;

	while (i < x->n && x->n_runs < RUNS_MAX) {
		struct run *r = &x->run[x->n_runs];

		while (i < x->n && x->state[i] != SUSPECT_BUSY)
			i++;
		r->begin = i;
		while (i < x->n && x->state[i] == SUSPECT_BUSY)
			i++;
		r->end = i;
		x->n_runs += r->end > r->begin;
	}
}

static void add_window(const struct experiments *x, int at, struct side_sum *s)
{
	int w = victim_window(x, at);

	if (w < 0)
		return;
	s->n += x->victim->samples[w];
	s->y += x->victim->samples[w] * x->latency[w];
	s->volume += x->victim->samples[w] * x->victim->volume[w];
	s->windows++;
}

static void add_sums(struct side_sum *to, const struct side_sum *s)
{
	to->n += s->n;
	to->y += s->y;
	to->volume += s->volume;
	to->windows += s->windows;
}

/* What pooled windows differ by from the mean of their kind, and how that depends on the victim's own volume. */
struct spread {
	double squares, freedom, yv, vv;
};

/* Points for the correlation. */
struct points {
	double n, x, y, xx, yy, xy;
};

static void add_spread(const struct experiments *x, int at, const struct side_sum *s,
		       struct spread *sp)
{
	int w = victim_window(x, at);
	double n, dy, dv;

	if (w < 0)
		return;
	n = x->victim->samples[w];
	dy = x->latency[w] - s->y / s->n;
	dv = x->victim->volume[w] - s->volume / s->n;
	sp->squares += n * dy * dy;
	sp->yv += n * dy * dv;
	sp->vv += n * dv * dv;
}

/* The quiet windows next to a run, on one side of it, in which the victim was as busy as in the run. */
static unsigned int quiet_side(const struct experiments *x, unsigned int run, int step,
			       const struct side_sum *busy, int *at, bool *unlike)
{
	const struct run *r = &x->run[run];
	const double volume = busy->n / busy->windows;
	int w = step < 0 ? (int)r->begin : (int)r->end - 1;
	unsigned int n = 0;

	for (int k = 0; k < NEAR; k++) {
		int v;

		w += step;
		if (w < 0 || w >= (int)x->n || x->state[w] == SUSPECT_BUSY)
			break;
		v = victim_window(x, w);
		if (x->state[w] != SUSPECT_QUIET || v < 0)
			continue;
		if (volume > BUSIER * x->victim->samples[v] ||
		    x->victim->samples[v] > LAZIER * volume) {
			*unlike = true;
			continue;
		}
		at[n++] = w;
	}
	return n;
}

/* One side of a run. */
struct contrast {
	struct side_sum busy, quiet;
	int first, last, at[2 * NEAR]; /* windows of the suspect */
};

/* Return: 1; 0 if there is nothing to compare with; -1 if only windows in which the victim was otherwise busy */
static int contrast_read(const struct experiments *x, unsigned int run, int step,
			 struct contrast *c)
{
	const struct run *r = &x->run[run];
	const unsigned int length = r->end - r->begin > LONG ? LONG : r->end - r->begin;
	unsigned int n;
	bool unlike = false;

	memset(c, 0, sizeof(*c));
	c->first = step < 0 ? (int)r->begin : (int)(r->end - length);
	c->last = c->first + (int)length;
	for (int w = c->first; w < c->last; w++)
		add_window(x, w, &c->busy);
	if (!c->busy.windows)
		return 0;
	n = quiet_side(x, run, step, &c->busy, c->at, &unlike);
	for (unsigned int i = 0; i < n; i++)
		add_window(x, c->at[i], &c->quiet);
	return n ? 1 : unlike ? -1 : 0;
}

static void contrast_spread(const struct experiments *x, const struct contrast *c,
			    struct spread *sp)
{
	for (int w = c->first; w < c->last; w++)
		add_spread(x, w, &c->busy, sp);
	for (unsigned int i = 0; i < c->quiet.windows; i++)
		add_spread(x, c->at[i], &c->quiet, sp);
	sp->freedom += c->busy.windows + c->quiet.windows - 2;
}

/* What the victim's own volume explains: only more latency by more accesses, since a slowed victim accesses less. */
static double rise_of(const struct contrast *c, const struct spread *sp)
{
	double slope = sp->vv > 0 ? fmin(fmax(sp->yv / sp->vv, 0), 1) : 0;
	double volume = c->busy.volume / c->busy.n - c->quiet.volume / c->quiet.n;

	return c->busy.y / c->busy.n - c->quiet.y / c->quiet.n - slope * fmax(volume, 0);
}

static double deviations_of(const struct contrast *c, const struct spread *sp)
{
	double variance = (ASSUMED * DISPERSION + sp->squares) / (ASSUMED + sp->freedom);

	return rise_of(c, sp) / sqrt(variance * (1 / c->busy.n + 1 / c->quiet.n));
}

static void add_points(const struct experiments *x, const double *activity,
		       const struct contrast *c, struct points *p)
{
	for (int i = -(int)c->quiet.windows; i < c->last - c->first; i++) {
		int w = i < 0 ? c->at[-i - 1] : c->first + i, v = victim_window(x, w);
		double n, y;

		if (v < 0)
			continue;
		n = x->victim->samples[v];
		y = x->latency[v] - c->quiet.y / c->quiet.n;
		p->n += n;
		p->x += n * activity[w];
		p->y += n * y;
		p->xx += n * activity[w] * activity[w];
		p->yy += n * y * y;
		p->xy += n * activity[w] * y;
	}
}

static double correlation_of(const struct points *p)
{
	double xx = p->xx - p->x * p->x / p->n, yy = p->yy - p->y * p->y / p->n;

	return p->n > 0 && xx > 0 && yy > 0 ? (p->xy - p->x * p->y / p->n) / sqrt(xx * yy) : 0;
}

/* A usable run: its sides that can be compared. */
struct experiment {
	struct contrast side[2];
	unsigned int sides;
};

static void experiment_read(const struct experiments *x, unsigned int run, struct experiment *e)
{
	e->sides = 0;
	for (int step = -1; step <= 1; step += 2) {
		int ret = contrast_read(x, run, step, &e->side[e->sides]);

		if (ret < 0) {
			e->sides = 0;
			return;
		}
		e->sides += ret;
	}
}

/* Both sides of a run as one. */
static void merge_sides(const struct experiment *e, struct contrast *out)
{
	*out = e->side[0];
	if (e->sides < 2)
		return;
	for (unsigned int i = 0; i < e->side[1].quiet.windows; i++)
		out->at[out->quiet.windows + i] = e->side[1].at[i];
	add_sums(&out->quiet, &e->side[1].quiet);
	if (e->side[1].first == out->first)
		return;
	/* a long run: its begin and its end */
	add_sums(&out->busy, &e->side[1].busy);
	out->last = e->side[1].last;
}

/* The sides of a run must agree: a victim that is slower from then on was not slowed by the run. */
static double experiment_deviations(const struct experiment *e, const struct contrast *both,
				    const struct spread *sp)
{
	double z = deviations_of(both, sp);

	for (unsigned int i = 0; i < e->sides; i++)
		z = fmin(z, deviations_of(&e->side[i], sp) + SIDES_APART);
	return fmax(fmin(z, RUN_MAX), -RUN_MAX);
}

static void sum_up(struct experiments *x, const double *activity, const struct experiment *all,
		   unsigned int n, const struct spread *sp, struct evidence *out)
{
	double z = 0, zz = 0, weight = 0, rise = 0, base = 0, base_n = 0;
	struct points points = { 0 };

	*out = (struct evidence){ .runs = n, .coincidence = 1 };
	for (unsigned int i = 0; i < n; i++) {
		struct contrast c;
		double w, one;

		merge_sides(&all[i], &c);
		w = 1 / (1 / c.busy.n + 1 / c.quiet.n);
		one = experiment_deviations(&all[i], &c, sp);
		x->deviations[i] = one;
		z += one;
		zz += one * one;
		weight += w;
		rise += w * rise_of(&c, sp);
		base += c.quiet.y;
		base_n += c.quiet.n;
		out->busy += c.busy.windows;
		out->quiet += c.quiet.windows;
		add_points(x, activity, &c, &points);
	}
	/* runs that differ more than by chance: of a victim with ups and downs, or of another cause */
	out->deviations = z / sqrt(n) / (n > 1 ? fmax(1, sqrt((zz - z * z / n) / (n - 1))) : 1);
	out->rise = rise / weight;
	out->baseline = exp(base / base_n);
	out->correlation = correlation_of(&points);
}

static bool experiments_run(struct experiments *x, const double *activity, struct evidence *out)
{
	static struct experiment all[RUNS_MAX];
	struct spread sp = { 0 };
	unsigned int n = 0;

	for (unsigned int run = 0; run < x->n_runs; run++) {
		experiment_read(x, run, &all[n]);
		for (unsigned int s = 0; s < all[n].sides; s++)
			contrast_spread(x, &all[n].side[s], &sp);
		n += all[n].sides > 0;
	}
	if (!n)
		return false;
	sum_up(x, activity, all, n, &sp, out);
	return true;
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

/*
 * Divide the deviations by those of the same runs at other times, when they are larger than they should be: of a
 * victim whose latency has ups and downs of its own. These are looked for in windows in which the suspect was not
 * busy; or if there are too few, in all, after removing the effect.
 */
static void calibrate(const struct experiments *found, const double *activity, struct evidence *out)
{
	static struct experiments x;
	double latency[NEIGHBOURS_HISTORY];
	bool busy[NEIGHBOURS_HISTORY] = { false };
	static struct shift_sum sum;

	x = *found;
	memcpy(latency, found->latency, sizeof(latency));
	for (unsigned int w = 0; w < x.n; w++) {
		int v = victim_window(found, (int)w);

		if (v < 0 || x.state[w] != SUSPECT_BUSY)
			continue;
		latency[v] -= out->rise;
		busy[v] = true;
	}
	x.latency = latency;
	x.leave_out = busy;
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

static void experiments_begin(struct experiments *x, const struct suspect *s,
			      const struct suspect *quiet, enum suspect_state *state)
{
	for (unsigned int i = 0; i < x->n; i++)
		state[i] =
			quiet && quiet->state[i] != SUSPECT_QUIET ? SUSPECT_UNKNOWN : s->state[i];
	x->state = state;
	find_runs(x);
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

/* 1 << lag of those at which the victim is slower in all busy windows together than in all quiet ones. */
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
