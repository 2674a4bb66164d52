/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a collector has pinned, as Prometheus reads it. */
#ifndef IBSCOPE_METRICS_H
#define IBSCOPE_METRICS_H

#include "pinned.h"

#include <stdio.h>

enum metrics_format {
	METRICS_TEXT,	     /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
};

#define METRICS_EDGES_MAX 32

struct metrics_opts {
	enum metrics_format format;
	unsigned int edges[METRICS_EDGES_MAX]; /* ascending, each an edge of ibs_lat_le() */
	size_t n_edges;			       /* 0: the default ones */
};

/**
 * metrics_edges_parse() - "128,256,512" to edges
 *
 * Return: 0, or -EINVAL with @err naming the edges that are near.
 */
int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err);

/**
 * metrics_print() - all metrics of a collector
 *
 * Groups of one container, as by its child cgroups, are one series. Buckets are exact: every edge is
 * one of the counters' own. What is not known, such as samples unseen when another profiler shares
 * the PMU, is not there.
 *
 * Return: 0, or a negative errno with @err; then what is in @f is not to be shown.
 */
int metrics_print(FILE *f, const struct pinned *p, const struct metrics_opts *opts,
		  struct err *err);

/* Every metric and what it means, for the documentation. */
void metrics_list(FILE *f);

#endif
