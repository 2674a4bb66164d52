/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of an HTML report. */
#ifndef IBSCOPE_HTML_OPTS_H
#define IBSCOPE_HTML_OPTS_H

#include "symbols/symbols.h"
#include "trace/tasks.h"

/* All pointers must outlive the report. */
struct html_report_opts {
	const struct trace_info *info;
	const struct tasks *tasks; /* NULL: a report of intervals, not of samples */
	struct symbols *symbols;
	bool several;	     /* recordings, each announced by html_report_part() */
	size_t rows_max;     /* 0: HTML_ROWS_MAX */
	size_t accesses_max; /* 0: enough */
	bool lines_hidden;   /* the selection hides who shares a cache line */
	const char *file;    /* as people call it */
	const char *again;   /* the same in the commands that the page shows; NULL: none */
	const char *options; /* of the command line, as given */
};

#endif
