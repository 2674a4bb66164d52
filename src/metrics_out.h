/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a metric is written: in the formats that Prometheus reads, and as a member of a JSON object. */
#ifndef IBSCOPE_METRICS_OUT_H
#define IBSCOPE_METRICS_OUT_H

#include "metrics.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_SUMMARY, METRIC_INFO };

struct metric {
	const char *name; /* without _total, _info and the like */
	enum metric_type type;
	const char *unit; /* the last word of the name, or "" */
	const char *help;
};

/*
 * Of a table X(NAME, "name", TYPE, "unit", "help"): its rows, and the names M_NAME of their numbers.
 *
 *   static const struct metric metrics[] = { TABLE(METRIC_ROW) };
 *   enum metric_id { TABLE(METRIC_ENUM) METRICS };
 */
#define METRIC_ROW(NAME, name, type, unit, help) { name, METRIC_##type, unit, help },
#define METRIC_ENUM(NAME, ...)			 M_##NAME,

/* "_total", "_info" or "", as samples of the metric are named. */
const char *metric_suffix(const struct metric *m);

/* HELP, TYPE and UNIT. @format is one of the text formats. */
void metric_head(FILE *f, enum metrics_format format, const struct metric *m);

/* A metric without labels, its head included. */
void metric_one(FILE *f, enum metrics_format format, const struct metric *m, double value);

/* NAME="VALUE", behind @sep. Any bytes may be in a cgroup's name; what is no UTF-8 is replaced. */
void metric_label(FILE *f, const char *sep, const char *name, const char *value);

/* ,"NAME":VALUE; null if it is not known. */
void metric_json_number(FILE *f, const char *name, __u64 value, bool known);

/* For the list of all metrics. */
void metric_describe(FILE *f, const struct metric *m);

#endif
