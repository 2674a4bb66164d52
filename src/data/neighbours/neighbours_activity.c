// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a container does at L3 and beyond, by its counts. */
#include "neighbours.h"

#include "counts/snapshot.h"
#include "table/table.h"

static bool is_beyond_l2(enum ibs_src src)
{
	return src == IBS_SRC_L3 || src == IBS_SRC_LOCAL_CACHE || src == IBS_SRC_NEAR_CACHE ||
	       src == IBS_SRC_REMOTE_CACHE || table_is_dram(src);
}

bool neighbours_activity_of(const struct group *g, struct neighbours_activity *out)
{
	*out = (struct neighbours_activity){};
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];

		if (!is_beyond_l2(s->src))
			continue;
		out->samples += s->valid;
		out->latency += s->sum;
		out->accesses += s->ops;
	}
	return !g->other && out->samples > 0;
}
