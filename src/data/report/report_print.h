/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A report as text, CSV or JSON, and what stands above it. */
#ifndef IBSCOPE_REPORT_PRINT_H
#define IBSCOPE_REPORT_PRINT_H

#include "report.h"
#include "base/json_writer.h"
#include "base/screen.h"
#include "table/table.h"

/* What was read, and what of it was meant. */
struct report_head {
	const char *file; /* the name of the recording */
	const struct trace_info *info;
	const struct trace_end *end;
	const char *options;		 /* of the command line, as given */
	__u64 op_samples, fetch_samples; /* in the file */
	__u64 selected;
	const char *shown;		  /* which of those follow, for the first line; NULL: all */
	__u64 lost_samples, lost_records; /* reported missing; see trace_lost_kind() */
	const struct report_head *part;	  /* of several recordings: this is their sum */
	size_t n_parts;			  /* 0: of one */
};

/* Two lines about the samples, and one for each incomplete recording; with --verbose all there is. */
void report_print_head(FILE *f, const struct report_head *head, enum ibs_metric metric);
/* The same as members of the object that @w is in. */
void report_head_put(struct json_writer *w, const struct report_head *head, enum ibs_metric metric);

/* Samples by enum type_kind, and the share of accesses of which the type is known. */
void type_kinds_print(FILE *f, const __u64 *samples);

/* Samples by enum data_kind, code_kind or type_kind, as a member; NULL is null. */
void data_kinds_put(struct json_writer *w, const __u64 *samples);
void code_kinds_put(struct json_writer *w, const __u64 *samples);
void type_kinds_put(struct json_writer *w, const __u64 *samples);

/* What is known of the samples of a table, as lines that add up, or as members. */
void report_kinds_print(FILE *f, const struct report_kinds *k);
void report_kinds_put(struct json_writer *w, const struct report_kinds *k);
/* The same lines to standard error: CSV is a table and nothing else. */
void report_kinds_log(const struct report_kinds *k);

/* A line with names that others chose. */
__attribute__((format(printf, 2, 3))) void report_print_line(FILE *f, const char *fmt, ...);

/* Of strata: how good their samples are together, the ledger of each, and the sum. Nothing of other recordings. */
void report_print_strata(FILE *f, const struct report_head *h, const struct report_table *t);

/* The lines below the table, as text. */
void report_print_balance(FILE *f, const struct report_table *t);

/**
 * report_print() - all of it, except for lines below the table
 *
 * JSON is one object; null is what is not known. Of the file: file, format, source, simulated, host,
 * release, command, cpus, cpu {vendor, name, generation, family, model}, events [{name, period,
 * freq, pmu}], filter, samples {op, fetch, selected}, lost {samples, records}, ledger {seen,
 * forwarded, filtered, unseen, lost}, whole, missing, skipped_blocks, skipped_bytes. Of the report:
 * options, metric, estimated_unit, recordings [the same of each, if there are several], ranks,
 * busiest_rank, data {samples by enum data_kind} or null, types {samples by
 * enum type_kind} or null, by [key], rows [{labels {key}, column}], rest {rows, column},
 * total {column}. Columns are those of report_columns.c; shares are fractions,
 * latencies cycles. CSV has a column a key, those, and `source`; its row "[rest]" is `rest`.
 *
 * Text and JSON begin with the head; CSV is a table and nothing else; Markdown is as text. Text is the table of hist, on
 * @screen, with as many columns as fit it if @n_columns is 0. Writes on @f; the caller checks
 * ferror().
 */
void report_print(FILE *f, const struct screen *screen, enum table_format format,
		  const struct report_head *head, const struct report_table *t,
		  const enum table_column *columns, unsigned int n_columns);

#endif
