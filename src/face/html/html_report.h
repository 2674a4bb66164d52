/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording as one HTML file that needs no network. Samples are added up by all properties that the views
 * show, so that a selection in one view filters all others.
 */
#ifndef IBSCOPE_HTML_REPORT_H
#define IBSCOPE_HTML_REPORT_H

#include "html_opts.h"

#include "base/err.h"
#include "rows/rows.h"

#include <stdio.h>

struct html_report;

struct html_report *html_report_new(const struct html_report_opts *opts);
void html_report_free(struct html_report *r); /* accepts NULL */

/**
 * html_report_part() - begin another recording
 *
 * The arguments replace those of the options, and must live until the next part. After the last part, call it with
 * the @info of the page and @tasks NULL. Recordings are aligned by time of day.
 */
void html_report_part(struct html_report *r, const struct trace_info *info,
		      const struct tasks *tasks, struct symbols *symbols);

/* After the last sample of a recording, while its tasks and symbols are there; html_report_write() ends the last one. */
void html_report_part_end(struct html_report *r);

/**
 * html_report_add() - add a sample of ibs_op
 * @period: ops (or cycles) that it represents; 0: unknown
 *
 * Memory grows with the combinations of time, container, rank, thread, region, CPU, memory node, source,
 * latency bucket and call chain that occur. Samples of other kinds change nothing.
 *
 * Beyond HTML_ROWS_MAX rows it gives up details, and the page lists them: see html_fold.c.
 *
 * Return: 0; or -E2BIG if there are still more than HTML_ROWS_MAX rows, or too many containers.
 */
int html_report_add(struct html_report *r, const struct trace_event *ev, __u64 period);

/* Begin to load what a sample to come will need. */
void html_report_expect(const struct html_report *r, const struct trace_hint *hint);

/* The labels that html_report_interval() needs. */
#define HTML_LABELS                                                                       \
	(1U << LABEL_CGROUP | 1U << LABEL_CONTAINER | 1U << LABEL_POD | 1U << LABEL_SRC | \
	 1U << LABEL_OP)

/**
 * html_report_interval() - add the counters of an interval, instead of samples
 * @rows:   from rows_build() with HTML_LABELS
 * @end_ns: CLOCK_MONOTONIC
 * @length_ns: nearly the same for all
 *
 * Miss cycles of a series are exact; they are divided among its buckets by their edges.
 *
 * Return: as html_report_add().
 */
int html_report_interval(struct html_report *r, const struct rows *rows, __u64 end_ns,
			 __u64 length_ns);

/**
 * html_report_write() - write the file
 * @end: of the trace, after its last event
 * @fetches: samples of ibs_fetch, which the page does not show
 *
 * The caller checks ferror().
 *
 * Return: as html_report_add(), of which some samples may only now turn out to be too many; then nothing is written.
 */
int html_report_write(struct html_report *r, const struct trace_end *end, __u64 fetches, FILE *f);

#endif
