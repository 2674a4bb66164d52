/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an HTML report is made from, and its limit. */
#ifndef IBSCOPE_HTML_OPTS_H
#define IBSCOPE_HTML_OPTS_H

#include "symbols/symbols.h"
#include "trace/tasks.h"

#define HTML_ROWS_MAX (1u << 24)

/* All that is pointed to outlives the report. */
struct html_report_opts {
	const struct trace_info *info;
	const struct tasks *tasks; /* NULL: of intervals, not of samples */
	struct symbols *symbols;
	const char *file;    /* for the commands that the page shows */
	const char *options; /* of the command line, as given */
};

#endif
