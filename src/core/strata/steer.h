/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weights of strata that are given to samples when they are taken: for counters that only grow, in which no
 * sample can be weighted afterwards.
 *
 * The weight of a slice comes from the slices before it, so it depends on no sample of its own. What it gets wrong is
 * made up for by later slices: the ops that all samples stand for follow those of the machine for ever, within the ops of
 * a few slices.
 */
#ifndef IBSCOPE_STEER_H
#define IBSCOPE_STEER_H

#include "strata.h"

/* Kinds of samples: only the full stratum takes them, or both do. */
enum steer_kind { STEER_FULL, STEER_BOTH, STEER_KINDS };

struct steer {
	double ops[STRATUM_N],
		tags[STRATUM_N];  /* of recent slices; the older one is, the less it counts */
	double recent;		  /* mean ops of a slice */
	double owed[STEER_KINDS]; /* ops that samples so far should have stood for in addition */
	bool begun;
};

/* Begin with what follows from the periods. @owed: what x->owed was when the samples before were counted; 0: none were */
void steer_begin(struct steer *x, const double period[STRATUM_N],
		 const long long owed[STEER_KINDS]);

/**
 * steer_add() - a slice, or a part of it, has ended
 * @ops:    of the machine since the last call
 * @tags:   tagged ops in it
 * @weight: by which its samples were counted
 */
void steer_add(struct steer *x, enum stratum of, double ops, double tags,
	       const unsigned long long weight[STEER_KINDS]);

/* The period of a stratum changes. */
void steer_period(struct steer *x, enum stratum of, double before, double now);

/* Ops per sample in the next slice; 0: samples of this kind do not count in it. */
void steer_weights(const struct steer *x, enum stratum next,
		   unsigned long long weight[STEER_KINDS]);

#endif
