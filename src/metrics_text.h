/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A reading, and the sections of its text: what metrics.c reads and metrics_text.c writes. */
#ifndef IBSCOPE_METRICS_TEXT_H
#define IBSCOPE_METRICS_TEXT_H

#include "metrics_groups.h"
#include "metrics_out.h"

/* One metric of all groups each, but the last, which is all that is not of groups. */
enum metrics_section {
	METRICS_LATENCY,
	METRICS_SAMPLES,
	METRICS_OPS,
	METRICS_TLB_SAMPLES,
	METRICS_TLB_OPS,
	METRICS_TLB_REFILL,
	METRICS_TAIL,
	METRICS_SECTIONS
};

struct metrics_part {
	char *s; /* NULL: empty */
	size_t len;
};

struct metrics {
	unsigned int edges[METRICS_EDGES_MAX];
	size_t n_edges;
	const struct metric *latency; /* what is histogrammed */
	struct metrics_groups groups;
	/* written when it is read; the lines that follow are made as they are sent */
	struct metrics_part head[METRICS_SECTIONS][METRICS_FORMATS];
};

/* The histogram by what is histogrammed. */
extern const struct metric metrics_latency[IBS_METRIC_N];

/* @m is asked only for the histogram. Not of METRICS_TAIL, which has many. */
const struct metric *metrics_of_section(const struct metrics *m, enum metrics_section s);

#endif
