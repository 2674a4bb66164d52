/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contents of a recording as text, CSV and JSON lines. */
#ifndef IBSCOPE_DUMP_H
#define IBSCOPE_DUMP_H

#include "trace/trace.h"

/* Single samples in text, CSV and JSON lines, as dump and record print them. */

enum sample_format {
	SAMPLE_TEXT, /* as perf prints every field */
	SAMPLE_CSV,  /* a column per field; absent fields are empty */
	SAMPLE_JSON, /* an object per line; absent fields are left out */
};

/* Names that are not part of a sample. NULL: unknown. */
struct sample_names {
	const char *comm, *cgroup;
};

/* Print the header line of CSV; nothing for other formats. @fetch: for ibs_fetch samples. */
void sample_print_head(FILE *f, enum sample_format format, const struct trace_info *info,
		       bool fetch);

/**
 * sample_print() - print one sample
 *
 * Fields that are not valid, or belong to a register that the record lacks, are absent.
 */
void sample_print(FILE *f, enum sample_format format, const struct trace_info *info,
		  const struct trace_event *ev, const struct sample_names *names);

/* What a recording holds beside samples, in text and JSON lines. */

/* What the recording is: lines that begin with "# ", or one JSON object of type "recording". */
void trace_print_info(FILE *f, const struct trace_info *info, bool json);

/* One event other than a sample, in one line. */
void trace_print_event(FILE *f, const struct trace_event *ev, bool json);

#endif
