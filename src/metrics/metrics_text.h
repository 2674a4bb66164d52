/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a reading to text, piece by piece. */
#ifndef IBSCOPE_METRICS_TEXT_H
#define IBSCOPE_METRICS_TEXT_H

#include "metrics_format.h"
#include "metrics_groups.h"
#include "metrics_opts.h"
#include "metrics_table.h"

#include <stdio.h>

/* A reading, which does not change any more. */
struct metrics {
	struct metrics_facts facts;
	unsigned int edges[METRICS_EDGES_MAX];
	size_t n_edges;
	struct metrics_groups groups;
	char *json; /* the collector as members of a JSON object, which the groups end */
	size_t json_len;
};

/* How far the text is written; zero is its beginning. */
struct metrics_cursor {
	unsigned int metric;
	size_t group, at;
	unsigned int src, line;
	bool begun; /* the head of the metric is written */
};

#define METRICS_ROOM 32768

/**
 * metrics_text() - write the next piece of the text
 * @size: at least METRICS_ROOM
 *
 * A thousand containers make tens of megabytes, so the text is never in memory as a whole.
 *
 * Return: bytes written, 0 at the end.
 */
size_t metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		    char *buf, size_t size);

/* All of it. */
void metrics_print(FILE *f, const struct metrics *m, enum metrics_format format);

/* Name, type and help of every metric. */
void metrics_list(FILE *f);

#endif
