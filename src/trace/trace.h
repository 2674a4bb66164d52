/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording as a sequence of events, whether ibscope wrote it (recording.h) or perf
 * (perf_data.h). dump, report and replay read recordings through this interface.
 */
#ifndef IBSCOPE_TRACE_H
#define IBSCOPE_TRACE_H

#include "base/std.h"
#include "parts.h"
#include "trace_event.h"

/* Formats fill it in; everybody else reads it through the functions below. */
struct trace {
	const struct trace_format *format;
	struct trace_info info;
	struct trace_end end;
	__u64 done, total; /* bytes read so far, and of the whole file */
};

/**
 * trace_open() - open a recording of any known format
 * @path: "-" is standard input, which need not be seekable; FILE#2 the second recording of a merged file,
 *	   whose name alone will do if it has only one
 *
 * Return: 0; or a negative errno with @err telling offset and reason: -EINVAL for no format that
 * is known, or damage that leaves nothing to read.
 */
int trace_open(const char *path, struct trace **out, struct err *err);

/* The same for one of several recordings. */
int trace_part_open(const struct trace_part *p, struct trace **out, struct err *err);

/* Does an event, in perf's syntax, drop ops in hardware? For trace_pmu.filtered. */
bool trace_event_filtered(const char *event);

static inline const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

/**
 * trace_next() - the next event
 *
 * Events of a CPU come in the order of their time; those of several CPUs nearly so, as far as the
 * writer sorted them. What is damaged is stepped over where the format allows, and reported by
 * trace_end().
 *
 * Return: 1 and *ev; 0 at the end; or a negative errno with @err where nothing more can be read.
 */
int trace_next(struct trace *t, struct trace_event *ev, struct err *err);

/* Begin again. Return: 0 */
int trace_rewind(struct trace *t, struct err *err);

/* Meaningful after trace_next() returned 0. */
static inline const struct trace_end *trace_end(const struct trace *t)
{
	return &t->end;
}

void trace_close(struct trace *t); /* accepts NULL */

/* --- what a file format provides; a new one is a row in trace.c --- */

#define TRACE_MAGIC_BYTES 32

struct trace_format {
	/* Do the first bytes of a file look like it? */
	bool (*magic)(const unsigned char *bytes, size_t n);
	/*
	 * @fd is seekable; the recording begins at @offset and has @bytes, 0: up to the end, which
	 * only our own format has elsewhere. @fd is the format's from then on, also on failure. *t is
	 * the first member of what the format allocates.
	 */
	int (*open)(int fd, __u64 offset, __u64 bytes, struct trace **t, struct err *err);
	int (*next)(struct trace *t, struct trace_event *ev, struct err *err);
	void (*rewind)(struct trace *t);
	void (*close)(struct trace *t);
};

extern const struct trace_format recording_format; /* recording_read.c */
extern const struct trace_format perf_data_format; /* perf_data.c */

#endif
