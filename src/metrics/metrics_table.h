/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every metric that is not one of groups: one row each. */
#ifndef IBSCOPE_METRICS_TABLE_H
#define IBSCOPE_METRICS_TABLE_H

#include "metrics_out.h"
#include "metrics_self.h"
#include "reading.h"

enum metrics_state {
	METRICS_READ,	/* the counters of a collector were read */
	METRICS_NONE,	/* nothing is pinned */
	METRICS_FAILED, /* they could not be read: nothing is known of the collector */
};

/* What rows take their values from. */
struct metrics_facts {
	enum metrics_state state;
	struct reading reading; /* if READ */
	struct metrics_self self;
	struct process_stats process;
};

#define METRIC_LABELS_MAX 4

/* One line of a metric. */
struct metric_line {
	struct {
		const char *name, *value;
	} label[METRIC_LABELS_MAX]; /* ends with a NULL name */
	char text[16];		    /* room for a label's value */
	double value;		    /* NAN: unknown, there is no such line */
};

struct metric {
	struct metric_head head;
	bool always; /* also if no counters were read */
	/* Set line @i, which is zero before. Return: false after the last line. */
	bool (*line)(const struct metrics_facts *f, unsigned int i, struct metric_line *out);
};

extern const struct metric metrics_table[];
extern const unsigned int metrics_table_n;

/* The metric's text; nothing if it has no line. */
void metric_write(FILE *f, enum metrics_format format, const struct metric *m,
		  const struct metrics_facts *facts);

#endif
