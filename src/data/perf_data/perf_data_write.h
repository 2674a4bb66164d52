/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes a recording as perf.data, for perf and trace.h. */
#ifndef IBSCOPE_PERF_DATA_WRITE_H
#define IBSCOPE_PERF_DATA_WRITE_H

#include "trace/trace.h"

struct perf_writer;

/**
 * perf_writer_open() - write the head
 * @info: outlives the writer
 * @fd:	  stays the caller's; what is not a regular file gets perf's format for pipes, whose samples
 *	  `perf report -D` does not decode
 *
 * Return: 0 or a negative errno with @err.
 */
int perf_writer_open(int fd, const struct trace_info *info, struct perf_writer **out,
		     struct err *err);

/*
 * Append an event. perf.data cannot hold container names, complexes or the ledger. perf_writer_close() reports
 * errors.
 */
void perf_writer_add(struct perf_writer *w, const struct trace_event *ev);

/* Write the rest and free the writer; NULL does nothing. Return: 0 or a negative errno with @err. */
int perf_writer_close(struct perf_writer *w, struct err *err);

#endif
