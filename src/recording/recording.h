/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing of our own files, which ibscope-recording(5) describes; trace.h reads them. A file is a
 * sequence of blocks with checksums: whatever happens to the writer, complete blocks are readable.
 */
#ifndef IBSCOPE_RECORDING_H
#define IBSCOPE_RECORDING_H

#include "trace/trace.h"

#include <ibscope/record.h>

#define RECORDING_STACK_KEYS (1 << 17) /* max_entries of a stack map that can be recorded */

struct recording_opts {
	int fd;			       /* written in order, never sought: may be a pipe */
	const struct trace_info *info; /* only read during the call; at most TRACE_EVENTS pmus */
	bool compress;		       /* blocks with zstd, where that makes them smaller */
};

struct recording;

/**
 * recording_create() - write the head of a file
 *
 * Return: 0, the caller owns @out and still the fd; or a negative errno with @err.
 */
int recording_create(const struct recording_opts *opts, struct recording **out, struct err *err);

/**
 * recording_samples(), recording_samples_raw() - append records
 * @extra: one behind each record, or NULL; the stacks that they name were given to recording_stack() before
 *
 * Those of ibs_op and of ibs_fetch may be mixed.
 *
 * Best called with the records of all CPUs that came since the last time, sorted by time, and
 * after the events and stacks of that time. They are buffered, see recording_flush().
 *
 * Return: 0 or a negative errno with @err; after one nothing more can be written, but
 * recording_finish() may still be tried.
 */
int recording_samples(struct recording *r, const struct ibs_record *records,
		      const struct ibs_record_extra *extra, size_t n, struct err *err);
int recording_samples_raw(struct recording *r, const struct ibs_record_raw *records,
			  const struct ibs_record_extra *extra, size_t n, struct err *err);

/**
 * recording_event() - append an event of any kind but samples
 *
 * Readers merge the events of a flush with its samples by time, so each of the two is to be
 * sorted, and events are to be given before the samples that they bear on. Strings are cut after
 * 8191 bytes.
 */
int recording_event(struct recording *r, const struct trace_event *ev, struct err *err);

/**
 * recording_stack() - the addresses behind a key of struct ibs_record_extra
 * @key: below RECORDING_STACK_KEYS; one given before means the new chain in samples from now on
 * @n:	 of @addresses, innermost first; at most TRACE_STACK_MAX
 */
int recording_stack(struct recording *r, __s32 key, const __u64 *addresses, size_t n,
		    struct err *err);

/**
 * recording_flush() - write what is buffered, and the ledger so far if @ledgers is not NULL
 * @ledgers: one for each event of the recording
 *
 * A flush makes blocks of their own, so many small ones cost bytes: once or twice a second is fine.
 */
int recording_flush(struct recording *r, const struct ledger *ledgers, struct err *err);

/* Bytes written, and an estimate of those that are buffered. */
__u64 recording_bytes(const struct recording *r);

/**
 * recording_finish() - flush, and write the ledgers and the mark of an orderly end
 *
 * Return: 0 or a negative errno with @err. recording_close() is due in either case.
 */
int recording_finish(struct recording *r, const struct ledger *ledgers, struct err *err);
void recording_close(struct recording *r); /* accepts NULL */

/**
 * recording_sample() - a record as trace_next() gives it, for printing without a file
 *
 * The caller sets has_time, what it knows of the stack, and which event it is of.
 */
void recording_sample(const struct ibs_record *rec, struct ibs_cpu cpu, struct trace_event *out);
int recording_sample_raw(const struct ibs_record_raw *rec, __u32 quirks, struct trace_event *out);

#endif
