// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "steer.h"

#include <math.h>

/* Recent are some so many slices. Fewer: weights vary with chance; more: they follow the machine slowly. */
#define RECENT	     16
#define KEEP	     (1 - 1.0 / RECENT)
#define BEGIN_SLICES 4	 /* that the periods are worth at the beginning */
#define PAY_BACK     3.0 /* of what is owed, in the time of recent slices */
#define CHANGE_MAX   2.0 /* of a weight, to pay it back */

static double share(enum stratum of)
{
	return of == STRATUM_FULL ? STRATA_FULL_SHARE : 1 - STRATA_FULL_SHARE;
}

void steer_begin(struct steer *x, const double period[STRATUM_N], const long long owed[STEER_KINDS])
{
	*x = (struct steer){ 0 };
	for (int kind = 0; kind < STEER_KINDS; kind++)
		x->owed[kind] = owed[kind];
	for (int of = 0; of < STRATUM_N; of++) {
		x->ops[of] = 1;
		x->tags[of] = 1 / period[of];
	}
}

void steer_add(struct steer *x, enum stratum of, double ops, double tags,
	       const unsigned long long weight[STEER_KINDS])
{
	if (ops <= 0)
		return;
	if (!x->begun) { /* what the periods say is worth some such slices */
		for (int i = 0; i < STRATUM_N; i++) {
			x->ops[i] *= BEGIN_SLICES * ops;
			x->tags[i] *= BEGIN_SLICES * ops;
		}
		x->recent = ops;
		x->begun = true;
	}
	x->ops[of] = x->ops[of] * KEEP + ops;
	x->tags[of] = x->tags[of] * KEEP + tags;
	x->recent = x->recent * KEEP + ops / RECENT;
	for (int kind = 0; kind < STEER_KINDS; kind++)
		x->owed[kind] += ops - tags * (double)weight[kind];
}

void steer_period(struct steer *x, enum stratum of, double before, double now)
{
	x->tags[of] *= before / now;
}

/* @rate: expected tags of an op */
static unsigned long long weight_of(const struct steer *x, enum steer_kind kind, double rate)
{
	/*
	 * Most tags of a kind come in every other slice, for which they stand and for the one before it: half a
	 * slice is owed then, so that it varies around 0
	 */
	const double owed = x->recent > 0 ? x->owed[kind] / x->recent - 0.5 : 0;
	const double change = 1 + PAY_BACK * owed / RECENT;
	const double ops = fmin(fmax(change, 1 / CHANGE_MAX), CHANGE_MAX) / rate;

	/* 0 would drop the sample */
	return rate > 0 && ops >= 1 ? (unsigned long long)llround(ops) : 1;
}

void steer_weights(const struct steer *x, enum stratum next, unsigned long long weight[STEER_KINDS])
{
	double rate[STRATUM_N];

	for (int of = 0; of < STRATUM_N; of++)
		rate[of] = x->ops[of] > 0 ? share(of) * x->tags[of] / x->ops[of] : 0;
	weight[STEER_FULL] =
		next == STRATUM_FULL ? weight_of(x, STEER_FULL, rate[STRATUM_FULL]) : 0;
	weight[STEER_BOTH] = weight_of(x, STEER_BOTH, rate[STRATUM_FULL] + rate[STRATUM_MISS]);
}
