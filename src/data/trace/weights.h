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
	/* of a sample that only this stratum reaches, and of one that both do; 0: unknown */
	double weight[2];
	const struct strata_design *window; /* it is slice `k` of it; NULL: it has no weights */
	unsigned int k;
};

/* Zero is none. */
struct trace_weights {
	struct trace_slice *slice; /* in order of time */
	size_t n, room, last;	   /* last: where the last sample was */
	struct strata_design *window;
};

/* Add a slice; its weights are set by _end(), after the last one. */
void trace_weights_add(struct trace_weights *w, const struct trace_slice *slice);
void trace_weights_end(struct trace_weights *w);
void trace_weights_free(struct trace_weights *w);

/* The slice that a sample belongs to; NULL: unknown. */
const struct trace_slice *trace_weights_at(struct trace_weights *w, unsigned int stratum,
					   __u64 time);

#endif
