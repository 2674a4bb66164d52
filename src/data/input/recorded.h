/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by commands that read recordings: options, the input, its memory limit, and the exit status. */
#ifndef IBSCOPE_RECORDED_H
#define IBSCOPE_RECORDED_H

#include "replay/replay.h"
#include "report/report_print.h"
#include "session/session.h"
#include "job.h"
#include "trace/trace.h"

#define RECORDED_FILE "ibscope.data" /* the default of `record` */

/*
 * Recordings with strata, whose samples represent different numbers of ops: the command refuses them,
 * uses the weights, or only shows samples.
 */
enum recorded_strata { RECORDED_NO_STRATA, RECORDED_WEIGHTS, RECORDED_SAMPLES };

/* Zero is the default: ibscope.data, and 1 GiB. */
struct recorded_input {
	const char *file;     /* "-": standard input */
	bool from_option;     /* -i, not an argument */
	const char *argument; /* name of an optional argument that is not a file: "FUNCTION" */
	bool takes_fetch;     /* the command can show samples of ibs_fetch */
	bool asks_fetch;      /* an option applies only to ibs_fetch */
	enum recorded_strata strata;
	bool takes_several; /* recordings, in files: */
	char **files;
	int n_files;
	uint64_t max_memory; /* bytes */
};

/* Open the recording, and limit the memory of this process to what @in allows. */
int recorded_open(const struct recorded_input *in, struct trace **out, struct err *err);

/* The name of the input for messages. */
const char *recorded_name(const struct recorded_input *in);
/* The same as a word of another command, for screen_next(): "-" if that cannot read it again. */
const char *recorded_again(const struct recorded_input *in);

/* --btf, --kallsyms, --debug-dir, --debuginfod, --no-demangle and --no-inline; their context is struct symbols_opts. */
#define RECORDED_SYMBOL_ROWS 6
/* All but the last, for commands that never look for inlined functions. */
#define RECORDED_NAME_ROWS 5
extern const struct option_row recorded_symbol_rows[RECORDED_SYMBOL_ROWS];

/* A recording, and the data for tables of its samples. Zero is none. */
struct recorded {
	struct recorded_input input;
	struct symbols_opts symbols_opts;
	struct trace *trace;
	struct replay *replay; /* NULL: all samples are selected */
	struct tasks *tasks;
	struct symbols *symbols; /* NULL: not needed */
	bool heap;		 /* also keep allocations, if there are any; needs names */
	bool places; /* also read what is at data addresses, such as the thread of a stack */
	bool places_last; /* with `places`: nobody asks for it before all samples are read, unless there are allocations */
	struct report_head head;
	enum trace_kind kind; /* of the selected event */
	char *options;	      /* as given, for the head */
	bool usage;	      /* the error is wrong usage */

	/* several recordings, read one after the other */
	struct trace_part *parts;
	size_t n_parts; /* 1: one, which may be all of a file */
	struct trace_job *job;
	struct recorded_part *done; /* the n_done parts read so far */
	struct report_head *done_heads;
	size_t n_done;
	struct trace_info sum_info;
	struct trace_end sum_end;
	bool left_out; /* some were not read */
};

/* List the recordings of the input in r->parts. Return: 0 or a negative errno with @err. */
int recorded_list(struct recorded *r, struct err *err);

/**
 * recorded_start_part() - recorded_start() for one of several recordings
 *
 * Reports and leaves out a recording that cannot be read or does not belong to the earlier ones.
 *
 * Return: 1; 0 if it is left out.
 */
int recorded_start_part(struct recorded *r, size_t part, struct sampling_opts *s, bool symbols);

/* Close a recording that was read to its end, and keep its head. */
void recorded_end_part(struct recorded *r);

/* After the last part, make r->head their sum. Return: 0, or -ENODATA with @err if none could be read. */
int recorded_sum(struct recorded *r, struct err *err);

/**
 * recorded_start() - open the recording, and prepare names and symbols if needed
 * @names: names of threads and cgroups
 *
 * Return: 0, or a negative errno with @err. Call recorded_close() in any case.
 */
int recorded_start(struct recorded *r, struct sampling_opts *s, bool names, bool symbols,
		   struct err *err);

/* Read the next selected sample. Return: 1; 0 at the end; or a negative errno with @err. */
int recorded_next(struct recorded *r, struct trace_event *ev, struct err *err);

/* For output without a head: warn of samples that were lost while recording. @head: of one that was read to its end */
void recorded_losses(const struct report_head *head);

/* Warn of files without symbols: the first ones, or all of them with -v. */
void recorded_problems(const struct recorded *r);
void recorded_close(struct recorded *r);

/* How many rows of a table fit below the head. */
size_t recorded_rows(const struct screen *screen);

/* Convert the selection of @s for replay_open(); @s must outlive it. */
void recorded_selection(struct sampling_opts *s, struct replay_opts *out);

/* replay_open() into r->replay. */
int recorded_open_replay(struct recorded *r, const struct replay_opts *opts, struct err *err);

/* Report an error, or that the recording is incomplete. Return: an exit status. */
int recorded_status(const struct recorded *r, int ret, const struct err *err);

/*
 * Warn that no sample is selected, and how many each part of the selection dropped.
 * @of: the event; NULL: both
 */
void recorded_nothing(struct replay *r, const char *of);

/* Format a note about samples of the other event, which are not shown. Return: whether there are any. */
bool recorded_left_out(enum ibs_metric metric, __u64 samples, char *buf, size_t size);

/* --explain for a recording, which has no plan: print the tests of --filter. Return: an exit status. */
int recorded_explain(const struct select_options *o);

/* A command that reads recordings. */
struct recorded_command {
	struct sampling_opts *sampling; /* zero */
	struct recorded *in;
	struct option_set own;	/* options of this command alone */
	struct option_set view; /* of view_options(), or empty */
	void *cmd;		/* argument of the functions below */
	bool groups;		/* take options that group samples */
	bool symbols;		/* take options about symbols */
	bool inlined;		/* and that about inlined functions */
	void (*usage)(FILE *f, const struct option_set *sets, size_t n);
	int (*check)(void *cmd, struct err *err); /* options that exclude each other; may be NULL */
	int (*run)(void *cmd);			  /* Return: an exit status */
};

/**
 * recorded_command() - parse the options, and run the command unless they are --help, --version or --explain
 *
 * With @in->input.argument that is input.files[0] if there is any, and a recording may be behind it; if the only
 * argument is a recording and none is given with -i, it is read, and argument becomes NULL.
 * Without -e, the event is ibs_fetch if other options apply only to it, or if the first recording has no
 * other event; standard input cannot be checked for that. Closes @in and @sampling.
 *
 * Return: an exit status.
 */
int recorded_command(const struct recorded_command *c, int argc, char **argv);

#endif
