/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the counts of an interval of ibs_fetch suggest, in a line or two. */
#ifndef IBSCOPE_FETCH_VERDICT_H
#define IBSCOPE_FETCH_VERDICT_H

#include "table.h"

/* Fewer samples of a kind, or a smaller share of the cycles, suggest nothing. */
#define VERDICT_SAMPLES 100
#define VERDICT_SHARE	0.1

/* Print the verdicts that @s supports, each a line; none if there are none. */
void fetch_verdict(FILE *f, const struct screen *screen, const struct snapshot *s,
		   enum ibs_metric metric, cgroup_namer name, void *arg);

#endif
