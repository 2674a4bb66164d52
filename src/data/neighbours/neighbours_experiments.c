// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The victim's latency while the suspect is busy, against that while it is quiet, run by run. */
#include "neighbours_experiments.h"

#include <math.h>

#define NEAR	    6	 /* quiet windows that are compared with, on each side of a run */
#define LONG	    8	 /* windows of a run next to these */
#define BUSIER	    1.2	 /* the victim was not busier than this in a run than in quiet windows */
#define LAZIER	    2.5	 /* waiting longer, it gets less done, but not this much */
#define RUN_MAX	    5.	 /* standard deviations that a single run can count for */
#define SIDES_APART 1.5	 /* deviations of both sides of a run together beyond those of one alone */
#define DISPERSION  0.64 /* relative variance of a latency, assumed before the data shows it */
#define ASSUMED	    4.	 /* windows that this assumption is worth */

/* Sums over windows of one kind, weighted by samples. */
struct side_sum {
	double n, y, volume; /* volume: logarithm of samples */
	unsigned int windows;
};

static void find_runs(struct experiments *x)
{
	unsigned int i = 0;

	while (i < x->n && x->n_runs < NEIGHBOURS_RUNS_MAX) {
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
	int w = experiments_window(x, at);

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
	int w = experiments_window(x, at);
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
		v = experiments_window(x, w);
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
		int w = i < 0 ? c->at[-i - 1] : c->first + i, v = experiments_window(x, w);
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

bool experiments_run(struct experiments *x, const double *activity, struct evidence *out)
{
	static struct experiment all[NEIGHBOURS_RUNS_MAX];
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

void experiments_begin(struct experiments *x, const struct suspect *s, const struct suspect *quiet,
		       enum suspect_state *state)
{
	for (unsigned int i = 0; i < x->n; i++)
		state[i] =
			quiet && quiet->state[i] != SUSPECT_QUIET ? SUSPECT_UNKNOWN : s->state[i];
	x->state = state;
	find_runs(x);
}
