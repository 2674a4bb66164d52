// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The bootstrap, intervals, and how many of them may be false. */
#include "compare_private.h"

#include <limits.h>
#include <math.h>

#define RUN    4    /* blocks, at most */
#define RUNS   12   /* at least: few runs say little about how they differ */
#define GONE_P 0.01 /* of a difference between parts of B, or to A */

void compare_draw_all(const struct compare *c, struct compare_draw *d)
{
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int i = 0; i < COMPARE_BLOCKS; i++)
			d->times[s][i] = i < c->side[s].n;
}

/*
 * A burst that ends in one block began in the one before, so that blocks which are drawn singly vary less than they do: a
 * sum that bursts move as a whole is drawn in runs of blocks. Single causes and rows vary by what is sampled, for which runs
 * would only be fewer. Blocks of samples that are independent are always drawn singly.
 */
static unsigned int run_of(const struct compare_stream *s, enum compare_drawn drawn)
{
	const unsigned int most = s->n / RUNS;

	return drawn == COMPARE_SINGLY || s->spread || most < 1 ? 1 : most < RUN ? most : RUN;
}

void compare_draw(const struct compare *c, enum compare_drawn drawn, __u64 *state,
		  struct compare_draw *d)
{
	memset(d, 0, sizeof(*d));
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		const unsigned int n = c->side[s].n, run = run_of(&c->side[s], drawn);

		for (unsigned int i = 0, at = 0; i < n; i++, at++) {
			if (i % run == 0)
				at = compare_random(state, n);
			d->times[s][at % n]++;
		}
	}
}

void compare_sum(const struct compare *c, const struct compare_draw *d, struct compare_sums *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		for (unsigned int i = 0; i < c->side[s].n; i++) {
			const struct compare_stream *side = &c->side[s];
			const unsigned int times = d->times[s][i];

			out->base[s] += times * side->base[i];
			for (unsigned int k = 0; times && k < c->causes.n; k++) {
				if (!side->part[k])
					continue;
				out->cause[s][k].ops += times * side->part[k][i].ops;
				out->cause[s][k].cycles += times * side->part[k][i].cycles;
			}
		}
}

double compare_line_sum(const struct compare *c, const struct compare_draw *d, size_t line,
			enum compare_side side)
{
	const float *v = c->line[line].cycles[side];
	const __u8 *times = d->times[side];
	float sum = 0;

	for (unsigned int i = 0; i < COMPARE_BLOCKS; i++)
		sum += times[i] * v[i];
	return sum;
}

void compare_terms(const struct compare_cell cell[COMPARE_SIDES], const double base[COMPARE_SIDES],
		   double term[2])
{
	double n[COMPARE_SIDES], l[COMPARE_SIDES];

	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		n[s] = base[s] > 0 ? cell[s].ops / base[s] : 0;
		l[s] = cell[s].ops > 0 ? cell[s].cycles / cell[s].ops : NAN;
	}
	for (unsigned int s = 0; s < COMPARE_SIDES; s++)
		if (isnan(l[s]))
			l[s] = isnan(l[!s]) ? 0 : l[!s];
	term[COMPARE_OFTEN] = (n[COMPARE_B] - n[COMPARE_A]) * (l[COMPARE_A] + l[COMPARE_B]) / 2;
	term[COMPARE_COST] = (l[COMPARE_B] - l[COMPARE_A]) * (n[COMPARE_A] + n[COMPARE_B]) / 2;
}

void compare_moment(struct compare_moments *m, double v)
{
	double d = v - m->mean;

	m->n++;
	m->mean += d / m->n;
	m->square += d * (v - m->mean);
}

/* Abramowitz and Stegun, 26.7.3 and 26.7.4. */
double compare_student(double t, unsigned int df)
{
	const double x = atan(fabs(t) / sqrt(df)), cosine = cos(x);
	double sum = 0, term = df % 2 ? cosine : 1;

	for (unsigned int i = df % 2 ? 1 : 0; i + 2 <= df; i += 2) {
		sum += term;
		term *= cosine * cosine * (i + 1) / (i + 2);
	}
	sum *= sin(x);
	return 1 - (df % 2 ? (x + sum) * 2 / M_PI : sum);
}

double compare_student_of(double p, unsigned int df)
{
	double low = 0, high = 1000;

	for (int i = 0; i < 60; i++) {
		double t = (low + high) / 2;

		*(compare_student(t, df) > p ? &low : &high) = t;
	}
	return high;
}

/* Runs of blocks that overlap tell as much about their variance as 1.5 times the runs that fit beside each other. */
unsigned int compare_freedom(const struct compare *c, enum compare_drawn drawn)
{
	unsigned int least = UINT_MAX;

	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		const unsigned int run = run_of(&c->side[s], drawn), n = c->side[s].n,
				   runs = run > 1 ? 3 * n / (2 * run) : n;

		least = runs < least ? runs : least;
	}
	return least > 1 ? least - 1 : 1;
}

/* What n blocks vary by, relative to draws of them: these do not vary by what the blocks have in common. */
static double widening(const struct compare *c, enum compare_drawn drawn)
{
	double most = 1;

	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		const double n = c->side[s].n, w = n / (n - run_of(&c->side[s], drawn));

		most = w > most ? w : most;
	}
	return most;
}

void compare_interval(const struct compare *c, enum compare_drawn drawn,
		      const struct compare_moments *m, struct compare_change *out)
{
	const unsigned int df = compare_freedom(c, drawn);
	double error = sqrt(m->n > 1 ? m->square / (m->n - 1) * widening(c, drawn) : 0);
	double half = error * compare_student_of(.05, df);

	out->low = out->change - half;
	out->high = out->change + half;
	out->p = error > 0 ? compare_student(out->change / error, df) : out->change != 0 ? 0 : 1;
}

static int by_p(const void *a, const void *b)
{
	const struct compare_change *x = *(struct compare_change *const *)a,
				    *y = *(struct compare_change *const *)b;

	return (x->p > y->p) - (x->p < y->p);
}

void compare_discover(struct compare_change **change, size_t n, size_t tests)
{
	size_t found = 0;

	qsort(change, n, sizeof(*change), by_p);
	for (size_t i = 0; i < n; i++)
		if (change[i]->p <= COMPARE_FALSE * (i + 1) / tests)
			found = i + 1;
	for (size_t i = 0; i < n; i++)
		change[i]->finding = i < found;
}

static double cycles_of_block(const struct compare *c, struct compare_part_of of,
			      enum compare_side side, unsigned int i)
{
	double sum = 0;

	if (of.line >= 0)
		return c->line[of.line].cycles[side][i];
	for (unsigned int k = 0; k < c->causes.n; k++)
		if (c->side[side].part[k] && (of.cause < 0 || k == (unsigned int)of.cause))
			sum += c->side[side].part[k][i].cycles;
	return sum;
}

static double rate(const struct compare *c, struct compare_part_of of, enum compare_side side,
		   unsigned int from, unsigned int to, struct compare_moments *m)
{
	const struct compare_stream *s = &c->side[side];
	double cycles = 0, base = 0;

	for (unsigned int i = from; i < to; i++) {
		cycles += cycles_of_block(c, of, side, i);
		base += s->base[i];
		if (s->base[i] > 0)
			compare_moment(m, cycles_of_block(c, of, side, i) / s->base[i]);
	}
	return base > 0 ? cycles / base : 0;
}

static double error_of(const struct compare_moments *a, const struct compare_moments *b)
{
	return sqrt(a->square / (a->n - 1) / a->n + b->square / (b->n - 1) / b->n);
}

bool compare_is_gone(const struct compare *c, struct compare_part_of of, bool found, bool all_gone)
{
	const struct compare_stream *a = &c->side[COMPARE_A], *b = &c->side[COMPARE_B];
	struct compare_moments before = {}, early = {}, late = {};
	const unsigned int cut = compare_late(c);
	double was = rate(c, of, COMPARE_A, 0, a->n, &before);
	double first = rate(c, of, COMPARE_B, 0, cut, &early) - was;
	double last = rate(c, of, COMPARE_B, cut, b->n, &late) - was;

	if (a->spread || b->spread || before.n < 2 || early.n < 2 || late.n < 2)
		return false;
	if (!found && compare_student(first / error_of(&before, &early), early.n - 1) >= GONE_P)
		return false;
	if (all_gone && compare_student(last / error_of(&before, &late), late.n - 1) >= GONE_P)
		return true;
	return fabs(last) < COMPARE_GONE_SHARE * fabs(first) &&
	       compare_student((first - last) / error_of(&early, &late), late.n - 1) < GONE_P;
}
