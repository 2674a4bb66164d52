/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a file format provides to trace.h. A new one is a row in trace.c. */
#ifndef IBSCOPE_TRACE_FORMAT_H
#define IBSCOPE_TRACE_FORMAT_H

#include "base/err.h"
#include "trace_event.h"

#include <stddef.h>

#define TRACE_MAGIC_BYTES 32

struct trace_format {
	const char *name;
	/* Do the first bytes of a file look like it? */
	bool (*magic)(const unsigned char *bytes, size_t n);
	/* @fd is seekable and at its start; it is the format's from then on, also on failure. */
	int (*open)(int fd, void **state, struct err *err);
	const struct trace_info *(*info)(const void *state);
	int (*next)(void *state, struct trace_event *ev, struct err *err);
	int (*rewind)(void *state, struct err *err);
	const struct trace_end *(*end)(const void *state);
	void (*progress)(const void *state, __u64 *done, __u64 *total);
	void (*close)(void *state);
};

extern const struct trace_format recording_format; /* recording_read.c */
extern const struct trace_format perf_data_format; /* perf_data.c */

#endif
