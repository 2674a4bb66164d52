// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The slices of two intervals as those of one. */
#include "snapshot.h"

#include <string.h>

/* Merge neighbouring slices of an interval. */
static void merge(struct snapshot *s)
{
	unsigned int into[STRATA_SLICES];

	strata_merge(&s->strata->design, into);
	for (size_t g = 0; g < s->n_groups; g++) {
		for (size_t i = 0; i < s->groups[g].n_series; i++) {
			struct series_strata *x = s->groups[g].series[i].strata;

			if (!x)
				continue;
			strata_sum_merge(&x->cycles, into);
			strata_sum_merge(&x->ops, into);
			for (size_t k = 0; k < x->n_timed; k++)
				x->timed[k].slice = into[x->timed[k].slice];
			x->n_timed = x->n_sorted =
				x->n_timed ? strata_timed_sort(x->timed, x->n_timed) : 0;
		}
	}
}

/* The first slice of the sum becomes number @by. */
static void shift_sum(struct strata_sum *s, unsigned int by)
{
	memmove(s->part + by, s->part, (STRATA_SLICES - by) * sizeof(*s->part));
	memset(s->part, 0, by * sizeof(*s->part));
}

static void shift(struct snapshot *s, unsigned int by, const struct strata_design *d)
{
	for (size_t g = 0; g < s->n_groups; g++) {
		for (size_t i = 0; i < s->groups[g].n_series; i++) {
			struct series_strata *x = s->groups[g].series[i].strata;

			if (!x)
				continue;
			x->design = d;
			shift_sum(&x->cycles, by);
			shift_sum(&x->ops, by);
			for (size_t k = 0; k < x->n_timed; k++)
				x->timed[k].slice += by;
		}
	}
}

void snapshot_share_design(struct snapshot *a, struct snapshot *b, unsigned int most)
{
	struct strata_design *d = &a->strata->design;
	const struct strata_design *more = &b->strata->design;

	while (d->n + more->n > most)
		merge(d->n >= more->n ? a : b);
	shift(b, d->n, d);
	memcpy(d->slice + d->n, more->slice, more->n * sizeof(*more->slice));
	d->n += more->n;
	for (int of = 0; of < STRATUM_N; of++) {
		ledger_join(&a->strata->ledger[of], &b->strata->ledger[of]);
		a->strata->period[of] = b->strata->period[of];
		a->strata->event[of] = b->strata->event[of];
	}
}
