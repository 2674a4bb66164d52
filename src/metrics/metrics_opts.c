// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_opts.h"

#include <errno.h>
#include <ibscope/maps.h>
#include <stdlib.h>

int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err)
{
	size_t n = 0;

	for (const char *p = text;; p++) {
		char *end;
		unsigned long edge = strtoul(p, &end, 10);
		int b = 0;

		if (end == p || *p < '0' || *p > '9' || (*end && *end != ','))
			return err_set(err, -EINVAL, "column %td: expected a number of cycles",
				       p - text + 1);
		while (b < IBS_LAT_BUCKETS - 1 && ibs_lat_le(b) < edge)
			b++;
		if (ibs_lat_le(b) != edge)
			return err_set(err, -EINVAL,
				       "column %td: invalid edge %lu: the nearest edges are %u and "
				       "%u",
				       p - text + 1, edge, b ? ibs_lat_le(b - 1) : 0,
				       ibs_lat_le(b));
		if (n && edge <= opts->edges[n - 1])
			return err_set(err, -EINVAL, "column %td: edges must be in ascending order",
				       p - text + 1);
		if (n == METRICS_EDGES_MAX)
			return err_set(err, -EINVAL, "too many edges: at most %d",
				       METRICS_EDGES_MAX);
		opts->edges[n++] = edge;
		p = end;
		if (!*p)
			break;
	}
	opts->n_edges = n;
	return 0;
}
