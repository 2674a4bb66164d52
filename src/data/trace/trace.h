/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording as a sequence of events, written by ibscope (recording.h) or perf (perf_data.h). All commands
 * read recordings through this interface.
 */
#ifndef IBSCOPE_TRACE_H
#define IBSCOPE_TRACE_H

#include "base/std.h"
#include "parts.h"
#include "trace_event.h"

/* Filled in by formats; everybody else reads it through the functions below. */
struct trace {
	const struct trace_format *format;
	struct trace_info info;
	struct trace_end end;
	__u64 done, total; /* bytes read so far, and of the whole file */
};

/**
 * trace_open() - open a recording of any known format
 * @path: "-" is standard input, which need not be seekable; FILE#2 is the second recording of a merged file;
 *	   FILE alone works if it has only one
 *
 * Return: 0; or a negative errno with offset and reason in @err: -EINVAL for an unknown format, or if
 * damage leaves nothing to read.
 */
int trace_open(const char *path, struct trace **out, struct err *err);

/* Set the memory limit of a process that reads recordings, in bytes; 0: 1 GiB. Call before the first one is opened. */
void trace_limit_memory(__u64 bytes);

/* The same for one of several recordings. */
int trace_part_open(const struct trace_part *p, struct trace **out, struct err *err);

/* Does this event, in perf's syntax, drop ops in hardware? For trace_pmu.filtered. */
bool trace_event_filtered(const char *event);

static inline const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

/**
 * trace_next() - the next event
 *
 * Events of one CPU are sorted by time; those of several CPUs nearly, as far as the writer sorted them.
 * Damaged parts are skipped if the format allows it, and reported by trace_end().
 *
 * Return: 1 and *ev; 0 at the end; or a negative errno with @err if nothing more can be read.
 */
int trace_next(struct trace *t, struct trace_event *ev, struct err *err);

/* Return to the first event. Return: 0 */
int trace_rewind(struct trace *t, struct err *err);

/* Valid after trace_next() returned 0. */
static inline const struct trace_end *trace_end(const struct trace *t)
{
	return &t->end;
}

void trace_close(struct trace *t); /* accepts NULL */

/* --- interface of a file format; a new one is a row in trace.c --- */

#define TRACE_MAGIC_BYTES 32

/*
 * Recordings expand to at most 20 times their size when they are read. Refuse what expands much further, since
 * its reader would take gigabytes or minutes for a small file.
 */
#define TRACE_EXPANSION	     100
#define TRACE_EXPANSION_FREE (16ULL << 20)

/* Return: 0, or -EBADMSG with @err if @bytes of a file expanded to too many. */
int trace_check_expansion(__u64 bytes, __u64 expanded, struct err *err);

struct trace_format {
	/* Do the first bytes of a file look like it? */
	bool (*magic)(const unsigned char *bytes, size_t n);
	/*
	 * @fd is seekable, and owned by the format from then on, also on failure. The recording begins at @offset
	 * and has @bytes, 0: up to the end of the file; other formats than our own always fill the file. *t is the
	 * first member of the format's struct.
	 */
	int (*open)(int fd, __u64 offset, __u64 bytes, struct trace **t, struct err *err);
	int (*next)(struct trace *t, struct trace_event *ev, struct err *err);
	void (*rewind)(struct trace *t);
	void (*close)(struct trace *t);
};

extern const struct trace_format recording_format; /* recording_read.c */
extern const struct trace_format perf_data_format; /* perf_data.c */

#endif
