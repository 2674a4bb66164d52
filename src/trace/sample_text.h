/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Single samples in text, CSV and JSON lines: what dump and record print. */
#ifndef IBSCOPE_SAMPLE_TEXT_H
#define IBSCOPE_SAMPLE_TEXT_H

#include "trace.h"

enum sample_format {
	SAMPLE_TEXT, /* perf's words for every field */
	SAMPLE_CSV,  /* a column a field; absent fields are empty */
	SAMPLE_JSON, /* an object a line; absent fields are absent */
};

/* What a sample does not know of itself. NULL: not known. */
struct sample_names {
	const char *comm, *cgroup;
};

/* The line above a CSV; nothing for the others. @fetch: of ibs_fetch samples. */
void sample_print_head(FILE *f, enum sample_format format, bool fetch);

/**
 * sample_print() - one sample
 *
 * A field that is not valid, or lies in a register that the record lacks, is absent.
 */
void sample_print(FILE *f, enum sample_format format, const struct trace_info *info,
		  const struct trace_event *ev, const struct sample_names *names);

#endif
