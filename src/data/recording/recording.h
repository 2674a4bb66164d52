/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes our own files, described in ibscope-recording(5); trace.h reads them. A file is a sequence of
 * blocks with checksums: whatever happens to the writer, complete blocks are readable.
 */
#ifndef IBSCOPE_RECORDING_H
#define IBSCOPE_RECORDING_H

#include "trace/trace.h"

#include <ibscope/record.h>

#define RECORDING_STACK_KEYS (1 << 17) /* max_entries of a stack map that can be recorded */

struct recording_opts {
	int fd;			       /* written sequentially: may be a pipe */
	const struct trace_info *info; /* only used during the call; at most TRACE_EVENTS pmus */
	bool compress;		       /* with zstd, for blocks that become smaller */
};

struct recording;

/**
 * recording_create() - write the head of a file
 *
 * Return: 0, the caller owns @out and still the fd; or a negative errno with @err.
 */
int recording_create(const struct recording_opts *opts, struct recording **out, struct err *err);

/**
 * recording_copies() - copies of stacks for the records of the next recording_samples() or recording_samples_raw()
 * @copies: a struct ibs_user_copy and its bytes for each record, at a distance of @stride
 */
void recording_copies(struct recording *r, const char *copies, size_t stride);

/* Strata, as enum stratum, of the records of the next recording_samples() or recording_samples_raw(). */
void recording_strata(struct recording *r, const __u8 *strata);

/**
 * recording_samples(), recording_samples_raw() - append records
 * @extra: one for each record, or NULL; pass their stacks to recording_stack() first
 *
 * Records of ibs_op and of ibs_fetch may be mixed.
 *
 * Best called with the records of all CPUs since the last call, sorted by time, and after the events and
 * stacks of that time. Records are buffered, see recording_flush().
 *
 * Return: 0 or a negative errno with @err; after an error nothing more can be written, but
 * recording_finish() may still be tried.
 */
int recording_samples(struct recording *r, const struct ibs_record *records,
		      const struct ibs_record_extra *extra, size_t n, struct err *err);
int recording_samples_raw(struct recording *r, const struct ibs_record_raw *records,
			  const struct ibs_record_extra *extra, size_t n, struct err *err);

/**
 * recording_event() - append an event of any kind but samples
 *
 * Readers merge the events of a flush with its samples by time, so both must be sorted, and events must
 * be passed before the samples that depend on them. Strings are truncated to 8191 bytes.
 */
int recording_event(struct recording *r, const struct trace_event *ev, struct err *err);

/* So many allocations and frees could not be recorded so far; for the ledgers to be written. */
void recording_lost_allocs(struct recording *r, __u64 n);

/**
 * recording_stack() - append the call chain of a key of struct ibs_record_extra
 * @key: below RECORDING_STACK_KEYS; an earlier key refers to the new chain from now on
 * @n:	 of @addresses, innermost first; at most TRACE_STACK_MAX
 */
int recording_stack(struct recording *r, __s32 key, const __u64 *addresses, size_t n,
		    struct err *err);

/**
 * recording_flush() - write all buffered data, and the ledger so far if @ledgers is not NULL
 * @ledgers: one for each event of the recording
 *
 * A flush ends the current blocks, so many small ones cost bytes: once or twice per second is fine.
 */
int recording_flush(struct recording *r, const struct ledger *ledgers, struct err *err);

/* Bytes written, and an estimate of those that are buffered. */
__u64 recording_bytes(const struct recording *r);

/**
 * recording_finish() - flush, and write the ledgers and the end block
 *
 * Return: 0 or a negative errno with @err. Call recording_close() in either case.
 */
int recording_finish(struct recording *r, const struct ledger *ledgers, struct err *err);
void recording_close(struct recording *r); /* accepts NULL */

/**
 * recording_sample() - convert a record to the event that trace_next() returns, to print it without a file
 *
 * The caller sets has_time, the stack, and the event.
 */
void recording_sample(const struct ibs_record *rec, struct ibs_cpu cpu, struct trace_event *out);
int recording_sample_raw(const struct ibs_record_raw *rec, __u32 quirks, struct trace_event *out);

#endif
