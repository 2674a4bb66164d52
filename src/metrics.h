/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a collector has pinned, as Prometheus reads it. */
#ifndef IBSCOPE_METRICS_H
#define IBSCOPE_METRICS_H

#include "metrics_self.h"
#include "pinned.h"

#include <stdio.h>

enum metrics_format {
	METRICS_TEXT,	     /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS, /* application/openmetrics-text; version=1.0.0 */
	METRICS_JSON,	     /* for the page: histograms as fine as they are counted */
	METRICS_FORMATS
};

#define METRICS_EDGES_MAX 32

struct metrics_opts {
	unsigned int edges[METRICS_EDGES_MAX]; /* ascending, each an edge of ibs_lat_le() */
	size_t n_edges;			       /* 0: the default ones */
	__u32 max_groups; /* those in later slots belong to `other`; 0: no limit */
};

/**
 * metrics_edges_parse() - "128,256,512" to edges
 *
 * Return: 0, or -EINVAL with @err naming the edges that are near.
 */
int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err);

/* One reading, which does not change any more. */
struct metrics;

/* Where the counters are. */
struct metrics_source {
	const struct counts *counts;
	const struct ibs_meta *meta;   /* as in struct metrics_collector */
	struct ibs_meta_status status; /* read before the counters */
	void (*name)(const void *arg, const struct group *g, struct ibs_slot_name *out);
	const void *arg;
};

/**
 * metrics_read() - read all counters of a collector
 * @self: of the process that reads
 *
 * Groups of one cgroup are one series. A cgroup that took the path of another has a series that
 * begins anew, as a restarted process would have, and the other one's counts are in `other`. So no
 * series goes back when groups are folded.
 *
 * Return: 0, the caller ends @out with metrics_free(); or a negative errno with @err.
 */
int metrics_read(const struct metrics_source *src, const struct metrics_opts *opts,
		 const struct metrics_self *self, struct metrics **out, struct err *err);

/* The same of what is pinned. */
int metrics_read_pinned(const struct pinned *p, const struct metrics_opts *opts,
			const struct metrics_self *self, struct metrics **out, struct err *err);

/* What can be said when there is no collector: @why. Return: 0 or -ENOMEM. */
int metrics_read_none(const char *why, const struct metrics_self *self, struct metrics **out);

void metrics_free(struct metrics *m); /* accepts NULL */

/* Of memory that it holds. */
size_t metrics_bytes(const struct metrics *m);

/* How far a text is written; zero is its beginning. */
struct metrics_cursor {
	unsigned int section;
	size_t group, at;
	unsigned int src, line;
};

#define METRICS_ROOM 32768

/**
 * metrics_text() - the next piece of the text
 * @size: at least METRICS_ROOM
 *
 * Texts of a thousand containers have tens of megabytes; so they are made as they are sent.
 *
 * Return: bytes written, 0 at the end.
 */
size_t metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		    char *buf, size_t size);

/* All of it. */
void metrics_print(FILE *f, const struct metrics *m, enum metrics_format format);

/* Every metric, its type and what it means, for the documentation. */
void metrics_list(FILE *f);

#endif
