/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where records go: a recording, or lines of text; one file, or one after the other. */
#ifndef IBSCOPE_RECORD_OUTPUT_H
#define IBSCOPE_RECORD_OUTPUT_H

#include "sampler/rings.h"
#include "trace/sample_text.h"

#include <signal.h>

enum output_format { OUTPUT_RECORDING, OUTPUT_CSV, OUTPUT_JSON };

struct output_opts {
	const char *path; /* "-": standard output. NULL: it for text, OUTPUT_DEFAULT_PATH else */
	int fd;		  /* a file that is open, instead of the one of that name; 0: none */
	enum output_format format;
	bool compress;
	unsigned int rotate;		   /* files to keep; 0: no rotation */
	const volatile sig_atomic_t *stop; /* set to stop waiting for the reader of a FIFO */
	const struct trace_info *info;	   /* lives as long as the output */
};

#define OUTPUT_DEFAULT_PATH "ibscope.data"

struct output;

bool output_to_stdout(const struct output_opts *opts);

/* Will it be on a terminal? Then nothing else should write there. */
bool output_on_terminal(const struct output_opts *opts);

/**
 * output_open() - make the file
 *
 * A regular file of that name is kept as NAME.old, in whose place it goes.
 *
 * Return: 0, or a negative errno with @err: -EINVAL for a recording on a terminal.
 */
int output_open(const struct output_opts *opts, struct output **out, struct err *err);

const char *output_name(const struct output *o);

/* Return: 0, or a negative errno with @err, after which nothing more can be written. */
int output_samples(struct output *o, const struct record_batch *batch, struct err *err);

/* Has the file that is open now this call chain? */
bool output_has_stack(const struct output *o, __s32 id);
int output_stack(struct output *o, __s32 id, const __u64 *addresses, size_t n, struct err *err);

/* The event is remembered for what is printed, too. */
int output_event(struct output *o, const struct trace_event *ev, struct err *err);

/* Was a name of this cgroup given to the file that is open now? */
bool output_has_cgroup(const struct output *o, __u64 id);

/* What came so far is to be found, if we crash. @ledgers: of this file, one for each event. */
int output_flush(struct output *o, const struct ledger *ledgers, struct err *err);

__u64 output_bytes(const struct output *o);	  /* of this file */
__u64 output_total_bytes(const struct output *o); /* of all */
__u64 output_records(const struct output *o);	  /* in this file */
__u64 output_fetches(const struct output *o);	  /* those of them that are of ibs_fetch */

/**
 * output_rotate() - end this file and begin the next
 *
 * Files become NAME.1, NAME.2 and so on, up to one less than are to be kept.
 */
int output_rotate(struct output *o, const struct ledger *ledgers, struct err *err);

/* An orderly end. output_close() is due in either case. */
int output_finish(struct output *o, const struct ledger *ledgers, struct err *err);
void output_close(struct output *o); /* accepts NULL */

#endif
