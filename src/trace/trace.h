/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording as a sequence of events, whether ibscope wrote it (recording.h) or perf
 * (perf_data.h). dump, report and replay read recordings through this interface.
 */
#ifndef IBSCOPE_TRACE_H
#define IBSCOPE_TRACE_H

#include "base/err.h"
#include "trace_event.h"

struct trace;

/**
 * trace_open() - open a recording of whatever known format
 * @path: "-" is standard input, which need not be seekable
 *
 * Return: 0; or a negative errno with @err telling offset and reason: -EINVAL for no format that
 * is known, or damage that leaves nothing to read.
 */
int trace_open(const char *path, struct trace **out, struct err *err);

const struct trace_info *trace_info(const struct trace *t);

/**
 * trace_next() - the next event
 *
 * Events of a CPU come in the order of their time; those of several CPUs nearly so, as far as the
 * writer sorted them. What is damaged is stepped over where the format allows, and told by
 * trace_end().
 *
 * Return: 1 and *ev; 0 at the end; or a negative errno with @err where nothing more can be read.
 */
int trace_next(struct trace *t, struct trace_event *ev, struct err *err);

/* Begin again. Return: 0 or a negative errno with @err. */
int trace_rewind(struct trace *t, struct err *err);

/* Meaningful after trace_next() returned 0. */
const struct trace_end *trace_end(const struct trace *t);

/* Bytes read so far and of the whole file, 0 if not known: for progress. */
void trace_progress(const struct trace *t, __u64 *done, __u64 *total);

void trace_close(struct trace *t); /* accepts NULL */

#endif
