/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Output of records: a recording, or lines of text; to one file, or rotating. */
#ifndef IBSCOPE_RECORD_OUTPUT_H
#define IBSCOPE_RECORD_OUTPUT_H

#include "sampler/rings.h"
#include "dump/dump.h"

#include <signal.h>

enum output_format { OUTPUT_RECORDING, OUTPUT_CSV, OUTPUT_JSON };

struct output_opts {
	/* "-": standard output. NULL: standard output for text, else OUTPUT_DEFAULT_PATH */
	const char *path;
	int fd; /* open file, used instead of @path; 0: none */
	enum output_format format;
	bool compress;
	unsigned int rotate;		   /* files to keep; 0: no rotation */
	const volatile sig_atomic_t *stop; /* set to stop waiting for the reader of a FIFO */
	const struct trace_info *info;	   /* lives as long as the output */
};

#define OUTPUT_DEFAULT_PATH "ibscope.data"

struct output;

bool output_to_stdout(const struct output_opts *opts);

/* True if it goes to a terminal; nothing else should then write there. */
bool output_on_terminal(const struct output_opts *opts);

/**
 * output_open() - create the file
 *
 * Keeps a regular file of that name as NAME.old, replacing an older one.
 *
 * Return: 0, or a negative errno with @err: -EINVAL for a recording on a terminal.
 */
int output_open(const struct output_opts *opts, struct output **out, struct err *err);

const char *output_name(const struct output *o);

/* Return: 0, or a negative errno with @err, after which nothing more can be written. */
int output_samples(struct output *o, const struct record_batch *batch, struct err *err);

/* True if the current file has this call chain. */
bool output_has_stack(const struct output *o, __s32 id);
int output_stack(struct output *o, __s32 id, const __u64 *addresses, size_t n, struct err *err);

/* Write an event, and remember it for text output. */
int output_event(struct output *o, const struct trace_event *ev, struct err *err);

/* True if the current file has a name of this cgroup. */
bool output_has_cgroup(const struct output *o, __u64 id);

/* Allocations and frees that could not be recorded so far. */
void output_lost_allocs(struct output *o, __u64 n);

/* Make the output so far readable after a crash. @ledgers: of this file, one per event. */
int output_flush(struct output *o, const struct ledger *ledgers, struct err *err);

__u64 output_bytes(const struct output *o);	  /* of this file */
__u64 output_total_bytes(const struct output *o); /* of all */
__u64 output_records(const struct output *o);	  /* in this file */
__u64 output_second(const struct output *o); /* of which of ibs_fetch, or of the miss stratum */

/* Of strata: samples after @since, which is later than all that was written, are of this one. */
void output_slice(struct output *o, enum stratum of, __u64 since);

/**
 * output_rotate() - finish this file and start the next
 *
 * Files are renamed to NAME.1, NAME.2 and so on, up to one less than the number to keep.
 */
int output_rotate(struct output *o, const struct ledger *ledgers, struct err *err);

/* Finish the output. Call output_close() in either case. */
int output_finish(struct output *o, const struct ledger *ledgers, struct err *err);
void output_close(struct output *o); /* accepts NULL */

/* Close, and leave files as they were before output_open(). */
void output_cancel(struct output *o);

#endif
