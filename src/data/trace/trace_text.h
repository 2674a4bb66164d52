/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a recording holds beside samples, in text and JSON lines. */
#ifndef IBSCOPE_TRACE_TEXT_H
#define IBSCOPE_TRACE_TEXT_H

#include "trace.h"

/* What the recording is: lines that begin with "# ", or one JSON object of type "recording". */
void trace_print_info(FILE *f, const struct trace_info *info, bool json);

/* One event other than a sample, in one line. */
void trace_print_event(FILE *f, const struct trace_event *ev, bool json);

#endif
