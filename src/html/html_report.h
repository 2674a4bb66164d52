/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording as one HTML file that needs no network: samples are added up by everything that its
 * views show, so that a selection in one view filters all others.
 */
#ifndef IBSCOPE_HTML_REPORT_H
#define IBSCOPE_HTML_REPORT_H

#include "html_opts.h"

#include "base/err.h"

#include <stdio.h>

struct html_report;

/* Return: 0, or -ENOMEM with @err. */
int html_report_new(const struct html_report_opts *opts, struct html_report **out, struct err *err);
void html_report_free(struct html_report *r); /* accepts NULL */

/**
 * html_report_add() - add a sample of ibs_op
 * @period: ops (or cycles) that it stands for; 0: not known
 *
 * Memory grows with the combinations of time, container, CPU, source, latency bucket and call chain
 * that occur. Samples of other kinds change nothing.
 *
 * Return: 0; -ENOMEM; or -E2BIG with more than HTML_ROWS_MAX rows, containers or functions.
 */
int html_report_add(struct html_report *r, const struct trace_event *ev, __u64 period);

/**
 * html_report_write() - the file
 * @end: of the trace, after its last event
 *
 * Return: 0, or -ENOMEM. The caller checks ferror().
 */
int html_report_write(struct html_report *r, const struct trace_end *end, FILE *f);

#endif
