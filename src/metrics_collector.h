/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of a collector besides the counters of groups. */
#ifndef IBSCOPE_METRICS_COLLECTOR_H
#define IBSCOPE_METRICS_COLLECTOR_H

#include "metrics.h"

struct metrics_collector {
	const struct ibs_meta *meta; /* a copy, or the reader's own: its texts do not change */
	struct ibs_meta_status status;
	struct ledger ledger;
	size_t groups;
};

/*
 * Does it run? Not if it ended in order, or has not ticked for ten seconds. Its pid does not tell: in
 * a container it may be another namespace's, and that of one that was killed may be another process'.
 */
bool metrics_collector_alive(const struct ibs_meta *m, const struct ibs_meta_status *st);
enum ibs_metric metrics_histogrammed(const struct ibs_meta *m);

/* @format is one of the text formats. */
void metrics_collector_print(FILE *f, enum metrics_format format,
			     const struct metrics_collector *c);
void metrics_collector_print_none(FILE *f, enum metrics_format format);

/* Members of an object, a comma before each. */
void metrics_collector_json(FILE *f, const struct metrics_collector *c);

void metrics_collector_list(FILE *f);

#endif
