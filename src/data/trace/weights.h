/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Weights of samples that were taken in strata: the ops that each represents, from the slices of a recording. */
#ifndef IBSCOPE_TRACE_WEIGHTS_H
#define IBSCOPE_TRACE_WEIGHTS_H

#include "base/std.h"
#include "strata/strata.h"

#include <linux/types.h>

/* A slice of time in which one stratum sampled. */
struct trace_slice {
	__u64 end;
	struct strata_slice counts;
	double weight
		[2]; /* of a sample that only this stratum reaches, and of one that both do; 0: unknown */
};

/* Zero is none. */
struct trace_weights {
	struct trace_slice *slice; /* in order of time */
	size_t n, room, last;	   /* last: where the last sample was */
};

/* Add a slice; its weights are set by _end(), after the last one. */
void trace_weights_add(struct trace_weights *w, const struct trace_slice *slice);
void trace_weights_end(struct trace_weights *w);
void trace_weights_free(struct trace_weights *w);

/**
 * trace_weights_at() - the weight of a sample
 * @reach: it is of a kind that both strata sample
 *
 * Return: 0 if unknown.
 */
double trace_weights_at(struct trace_weights *w, unsigned int stratum, __u64 time, bool reach);

#endif
