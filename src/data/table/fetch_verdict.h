/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Advice from the counts of an ibs_fetch interval, in a line or two. */
#ifndef IBSCOPE_FETCH_VERDICT_H
#define IBSCOPE_FETCH_VERDICT_H

#include "table.h"

/* Minimum samples of a kind, and share of the cycles, for advice. */
#define VERDICT_SAMPLES 100
#define VERDICT_SHARE	0.1

/* Print the verdicts that @s supports, one per line, if any. */
void fetch_verdict(FILE *f, const struct screen *screen, const struct snapshot *s,
		   enum ibs_metric metric, cgroup_namer name, void *arg);

#endif
