/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How Prometheus' text formats write a metric. */
#ifndef IBSCOPE_METRICS_OUT_H
#define IBSCOPE_METRICS_OUT_H

#include "metrics_format.h"

#include <stdio.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_SUMMARY, METRIC_INFO };

struct metric_head {
	const char *name; /* without _total, _info and the like */
	enum metric_type type;
	const char *unit; /* the last word of the name, or "" */
	const char *help;
};

/* "_total", "_info" or "": the end of the names of the metric's samples. */
const char *metric_suffix(const struct metric_head *m);

/* HELP, TYPE and UNIT. @format is one of the text formats. */
void metric_write_head(FILE *f, enum metrics_format format, const struct metric_head *m);

/* NAME="VALUE" after @sep. @value may contain any bytes; unprintable ones are escaped. */
void metric_write_label(FILE *f, const char *sep, const char *name, const char *value);

/* A line for the list of all metrics. */
void metric_describe(FILE *f, const struct metric_head *m);

#endif
