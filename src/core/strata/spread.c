// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "strata.h"

#include <stddef.h>

/* The next slice of the same stratum, or with @step -1 the one before; -1: none. */
static int neighbour(const struct strata_design *d, unsigned int k, int step)
{
	for (int i = (int)k + step; i >= 0 && i < (int)d->n; i += step)
		if (d->slice[i].of == d->slice[k].of)
			return i;
	return -1;
}

static void add_step(struct strata_run *r, double difference, double ops)
{
	r->steps += difference * difference;
	r->leaning += difference * ops;
}

/* The slice after the last one with samples has none. */
static void leave(struct strata_run *r, const struct strata_design *d)
{
	const int next = r->has_last ? neighbour(d, r->last_at, 1) : -1;

	if (next >= 0)
		add_step(r, -r->last, d->slice[next].ops - d->slice[r->last_at].ops);
}

static void end_slice(struct strata_run *r, const struct strata_design *d)
{
	const int before = neighbour(d, r->at, -1);
	const double ops = before >= 0 ? d->slice[r->at].ops - d->slice[before].ops : 0;

	if (r->has_last && (int)r->last_at == before) {
		add_step(r, r->now - r->last, ops);
	} else if (before >= 0) {
		leave(r, d);
		add_step(r, r->now, ops);
	}
	r->last_at = r->at;
	r->last = r->now;
	r->has_last = true;
	r->any = false;
	r->now = 0;
}

/* As variance_of() of strata.c. */
static double beyond(const struct strata_run *r, const struct strata_design *d, enum stratum of)
{
	const double all = strata_total(d, STRATUM_N).ops, ops = strata_total(d, of).ops;
	const unsigned int n = strata_slices(d, of);
	double squares = 0, slope, between;

	if (n < 2 || !(ops > 0))
		return 0;
	for (unsigned int k = 0; k < d->n; k++) {
		const int next = d->slice[k].of == of ? neighbour(d, k, 1) : -1;
		const double step = next < 0 ? 0 : d->slice[next].ops - d->slice[k].ops;

		squares += step * step;
	}
	slope = r->sum / ops;
	between =
		n * (r->steps - 2 * slope * r->leaning + slope * slope * squares) / (2.0 * (n - 1));
	return (1 - ops / all) * (between - r->squares);
}

double strata_spread_end(struct strata_spread *s)
{
	for (enum stratum of = 0; s->d && of < STRATUM_N; of++) {
		struct strata_run *r = &s->of[of];

		if (r->any)
			end_slice(r, s->d);
		leave(r, s->d);
		if (r->sum > 0)
			s->variance += beyond(r, s->d, of);
		*r = (struct strata_run){};
	}
	s->d = NULL;
	return s->variance;
}

void strata_spread_add(struct strata_spread *s, const struct strata_design *d, unsigned int k,
		       double x)
{
	struct strata_run *r = &s->of[d->slice[k].of];

	if (s->d != d)
		strata_spread_end(s);
	s->d = d;
	/* a sample that comes late counts in the slice that goes on */
	if (r->any && k > r->at)
		end_slice(r, d);
	if (!r->any)
		r->at = r->has_last && r->last_at >= k ? r->last_at : k;
	r->any = true;
	r->now += x;
	r->sum += x;
	r->squares += x * x;
}
