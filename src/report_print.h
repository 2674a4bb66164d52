/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A report as text, CSV or JSON, and what stands above it. */
#ifndef IBSCOPE_REPORT_PRINT_H
#define IBSCOPE_REPORT_PRINT_H

#include "report.h"

#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON };

/* What was read, and what of it was meant. */
struct report_head {
	const struct trace_info *info;
	const struct trace_end *end;
	const char *options;		 /* of the command line, as given */
	__u64 op_samples, fetch_samples; /* in the file */
	__u64 selected;
	__u64 lost_samples, lost_records; /* said to be missing; of records it is not known what */
};

/* On lines of their own: what a reader must know of the numbers that follow. */
void report_print_head(FILE *f, const struct report_head *head, enum ibs_metric metric);

/**
 * report_print() - all of it
 *
 * Text and JSON begin with the head; CSV is a table and nothing else. Writes on @f;
 * the caller checks ferror().
 */
void report_print(FILE *f, enum report_format format, const struct report_head *head,
		  const struct report_table *t, const enum report_column *columns,
		  unsigned int n_columns);

#endif
