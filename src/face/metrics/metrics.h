/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exports a collector's counters to Prometheus and the web page. */
#ifndef IBSCOPE_METRICS_H
#define IBSCOPE_METRICS_H

#include "base/err.h"
#include "base/json_writer.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct counts;
struct group;
struct ibs_meta;
struct ibs_slot_name;
struct metrics;
struct pinned;

enum metrics_format {
	METRICS_TEXT,	      /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS,  /* application/openmetrics-text; version=1.0.0 */
	METRICS_OPENMETRICS2, /* version=2.0.0 (draft): with native histograms */
	METRICS_JSON,	      /* for the page: histograms with all their buckets */
	METRICS_FORMATS
};

#define METRICS_EDGES_MAX 32

/* X(NAME, "name"): number of group metrics and of series per metric. */
#define METRICS_DETAIL_TABLE(X) \
	X(LOW, "low")           \
	X(MEDIUM, "medium")     \
	X(FULL, "full")

enum metrics_detail {
#define METRICS_DETAIL_ENUM(NAME, name) METRICS_##NAME,
	METRICS_DETAIL_TABLE(METRICS_DETAIL_ENUM)
#undef METRICS_DETAIL_ENUM
		METRICS_DETAILS
};

const char *metrics_detail_name(unsigned int i);

/* Maximum series per group, with default edges; a native histogram counts as one. */
#define METRICS_LOW_CLASSIC 40
#define METRICS_LOW_NATIVE  12

struct metrics_opts {
	unsigned int edges[METRICS_EDGES_MAX]; /* ascending, each an edge of ibs_lat_le() */
	size_t n_edges;			       /* 0: the default ones */
	enum metrics_detail detail;
};

/**
 * metrics_edges_parse() - parse "128,256,512" to edges
 *
 * Return: 0, or -EINVAL with @err naming the nearest valid edges.
 */
int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err);

/* Self-measurements of the process that serves metrics. */
struct metrics_self {
	double read_s; /* duration of the reading; set by metrics_read() */
	__u64 scrapes, reads, read_errors;
	__u64 connections, crowded_out;
	__u64 passwords_checked, passwords_wrong;
	__u64 config_errors; /* failed reloads of certificates and passwords */
	double history_s;    /* that the history covers */
	size_t history_bytes;
	bool mapped;
	bool coarse;  /* histograms are kept only at the exported edges */
	bool failing; /* the last attempt to read counters failed */
};

/* Source of the counters. */
struct metrics_source {
	const struct counts *counts;
	const struct ibs_meta *meta; /* read before the counters */
	void (*name)(const void *arg, const struct group *g, struct ibs_slot_name *out);
	const void *arg;
};

/*
 * Bytes of a reading of one event with all buckets; a larger one is coarse. Two readings can be in memory at once,
 * of the 64 MiB of the unit.
 */
#define METRICS_FINE_MAX (16 << 20)

/**
 * metrics_read() - read all counters of a collector
 * @self: measurements of the reading process; `coarse` from then on if the reading is
 *
 * Return: 0, the caller frees @out with metrics_free(); or a negative errno with @err.
 */
int metrics_read(const struct metrics_source *src, const struct metrics_opts *opts,
		 struct metrics_self *self, struct metrics **out, struct err *err);

/* The same from pins. */
int metrics_read_pinned(const struct pinned *p, const struct metrics_opts *opts,
			struct metrics_self *self, struct metrics **out, struct err *err);

enum metrics_state {
	METRICS_READ,	/* the counters of a collector were read */
	METRICS_NONE,	/* nothing is pinned */
	METRICS_FAILED, /* counters unreadable: the collector's state is unknown */
};

/**
 * metrics_read_nothing() - metrics of the reading process only
 * @state: NONE or FAILED
 * @why:   for the page
 */
struct metrics *metrics_read_nothing(enum metrics_state state, const char *why,
				     const struct metrics_self *self);

void metrics_free(struct metrics *m); /* accepts NULL */

/* Memory use in bytes. */
size_t metrics_bytes(const struct metrics *m);

/* Position in the text; zero is the beginning. */
struct metrics_cursor {
	unsigned int metric;
	size_t group;
	struct json_writer json;
};

/* Text being written; the caller frees @s. */
struct metrics_buf {
	char *s;
	size_t n, room;
};

/**
 * metrics_text() - append the next pieces of the text, some tens of KiB
 *
 * A thousand containers make tens of megabytes, so the text is never in memory as a whole.
 *
 * Return: false at the end.
 */
bool metrics_text(const struct metrics *m, enum metrics_format format, struct metrics_cursor *c,
		  struct metrics_buf *b);

/* All of it. */
void metrics_print(FILE *f, const struct metrics *m, enum metrics_format format);

/* Name, type and help of every metric. */
void metrics_list(FILE *f);

#endif
