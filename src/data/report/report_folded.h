/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Call chains added up, in the lines that flame graphs are made of: "comm;outer;inner 123". */
#ifndef IBSCOPE_REPORT_FOLDED_H
#define IBSCOPE_REPORT_FOLDED_H

#include "symbols/symbols.h"

enum folded_weight {
	FOLDED_SAMPLES,
	FOLDED_TOTAL, /* latency in cycles; samples without one weigh nothing */
};

struct folded_opts {
	enum folded_weight weight;
	enum ibs_metric metric;
	bool simulated;		   /* then that is the outermost frame */
	const struct tasks *tasks; /* both outlive it */
	struct symbols *symbols;
};

struct folded;

struct folded *folded_new(const struct folded_opts *opts);
void folded_free(struct folded *f); /* accepts NULL */

/**
 * folded_add() - add a sample
 *
 * A sample without a chain counts by its address alone. Kernel frames end with "_[k]", as flame
 * graphs colour them.
 */
void folded_add(struct folded *f, const struct trace_event *ev);

/* Lines in the order of the alphabet; those of weight 0 are left out. */
void folded_print(FILE *out, struct folded *f);

#endif
