/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_METRICS_OPTS_H
#define IBSCOPE_METRICS_OPTS_H

#include "base/err.h"

#include <linux/types.h>

#define METRICS_EDGES_MAX 32

struct metrics_opts {
	unsigned int edges[METRICS_EDGES_MAX]; /* ascending, each an edge of ibs_lat_le() */
	size_t n_edges;			       /* 0: the default ones */
	__u32 max_groups; /* groups in later slots are added to `other`; 0: no limit */
};

/**
 * metrics_edges_parse() - "128,256,512" to edges
 *
 * Return: 0, or -EINVAL with @err naming the nearest valid edges.
 */
int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err);

#endif
