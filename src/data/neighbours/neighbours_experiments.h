/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The times that a suspect was busy, and how much slower a victim was in each. */
#ifndef IBSCOPE_NEIGHBOURS_EXPERIMENTS_H
#define IBSCOPE_NEIGHBOURS_EXPERIMENTS_H

#include "neighbours_private.h"

#define NEIGHBOURS_RUNS_MAX (NEIGHBOURS_HISTORY / 2)

/* A run and the quiet windows beside it; one side may be empty. */
struct run {
	unsigned int begin, end; /* of the suspect's time, without lag */
};

struct experiments {
	const struct window_series *victim;
	const double *latency; /* of the victim, or with the effect removed */
	const enum suspect_state *state;
	unsigned int n;
	int lag; /* the victim's window of a suspect's window w is w + lag, modulo n when shifted */
	bool shifted;
	const bool *leave_out; /* windows of the victim; NULL: none */
	struct run run[NEIGHBOURS_RUNS_MAX];
	unsigned int n_runs;
	double deviations[NEIGHBOURS_RUNS_MAX]; /* of each run that could be used */
};

/* Find the runs. @quiet: another suspect, whose windows other than quiet ones are unknown; NULL: none. @state: to keep while @x is used */
void experiments_begin(struct experiments *x, const struct suspect *s, const struct suspect *quiet,
		       enum suspect_state *state);

/* The victim's window; -1: it says nothing. */
static inline int experiments_window(const struct experiments *x, int at)
{
	int w = at + x->lag;

	if (x->shifted && w >= (int)x->n)
		w -= (int)x->n;
	if (w < 0 || w >= (int)x->n || !(x->victim->weight[w] > 0) ||
	    (x->leave_out && x->leave_out[w]))
		return -1;
	return w;
}

/*
 * Compare each run with the quiet windows beside it. @activity: accesses of the suspect
 *
 * Return: false if no run can be compared.
 */
bool experiments_run(struct experiments *x, const double *activity, struct evidence *out);

#endif
