/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much a sum over samples of strata differs between slices, from the samples in order of time: what
 * strata_interval() computes of all slices, without keeping them for each sum.
 */
#ifndef IBSCOPE_SPREAD_H
#define IBSCOPE_SPREAD_H

#include "strata.h"

/* Zero is empty. */
struct strata_spread {
	const struct strata_design *d; /* the window that goes on; NULL: none */
	struct strata_run {
		bool any, has_last;
		unsigned int at,
			last_at;  /* the slice that goes on, and the last one with samples before */
		double now, last; /* their sums */
		double sum, squares; /* of all slices; of the summands */
		double steps,
			leaning; /* squares of differences of neighbours; these times that of their ops */
	} of[STRATUM_N];
	double variance; /* of the windows that have ended, beyond that of independent samples; may be negative */
};

/* Add a sample of slice @k of a window, whose design stays until the end of the window. */
void strata_spread_add(struct strata_spread *s, const struct strata_design *d, unsigned int k,
		       double x);

/* End the window. Return: s->variance */
double strata_spread_end(struct strata_spread *s);

#endif
