/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What commands that read recordings share: options, the input, its memory limit, and how reading ends. */
#ifndef IBSCOPE_RECORDED_H
#define IBSCOPE_RECORDED_H

#include "replay/replay.h"
#include "report/report_print.h"
#include "session/session.h"
#include "trace/job.h"
#include "trace/trace.h"

#define RECORDED_FILE "ibscope.data" /* where `record` writes */

/* Zero is the default: ibscope.data, and 1 GiB. */
struct recorded_input {
	const char *file;     /* "-": standard input */
	bool from_option;     /* -i, not an argument */
	const char *argument; /* name of an argument that is not a file: "FUNCTION" */
	bool takes_fetch;     /* the command shows samples of ibs_fetch too, */
	bool asks_fetch;      /* and an option asks for what only those have */
	bool takes_several;   /* recordings, as arguments: */
	char **files;
	int n_files;
	uint64_t max_memory; /* bytes */
};

/* The arguments that are no options, and the event; the first half of recorded_command(). */
int recorded_parse(struct sampling *s, int argc, char **argv, const struct option_set *sets,
		   size_t n_sets, struct recorded_input *in, struct err *err);

/*
 * Open the recording. From here on this process may take no more memory than @in allows, and *out,
 * which must be NULL before, shows how far reading came if it needs more.
 */
int recorded_open(const struct recorded_input *in, struct trace **out, struct err *err);

/* The name of the input for people. */
const char *recorded_name(const struct recorded_input *in);

/* --btf, --kallsyms, --debug-dir and --debuginfod; their context is struct symbols_opts. */
#define RECORDED_SYMBOL_ROWS 4
extern const struct option_row recorded_symbol_rows[RECORDED_SYMBOL_ROWS];

/* A recording and what tables of its samples need. Zero is none. */
struct recorded {
	struct recorded_input input;
	struct symbols_opts symbols_opts;
	struct trace *trace;
	struct replay *replay; /* NULL: all samples are wanted */
	struct tasks *tasks;
	struct symbols *symbols; /* NULL: not asked for */
	bool places;		 /* what lies at addresses of data is asked for, as whose stack */
	struct report_head head;
	enum trace_kind kind; /* samples that are wanted */
	char *options;	      /* as given, for the head */
	bool usage;	      /* what failed is wrong usage */

	/* several recordings, read one after the other */
	struct trace_part *parts;
	size_t n_parts; /* 1: one, which may be all of a file */
	struct trace_job *job;
	struct recorded_part *done; /* those that were read, n_done of them */
	struct report_head *done_heads;
	size_t n_done;
	struct trace_info sum_info;
	struct trace_end sum_end;
	bool left_out; /* some were not read */
};

/* The recordings that the input names, in r->parts. Return: 0 or a negative errno with @err. */
int recorded_list(struct recorded *r, struct err *err);

/**
 * recorded_start_part() - recorded_start() of one of several
 *
 * What cannot be read or does not belong to those before is reported, and left out.
 *
 * Return: 1; 0 if it is left out.
 */
int recorded_start_part(struct recorded *r, size_t part, struct sampling *s, bool symbols);

/* It was read to its end: close it, and keep its head. */
void recorded_end_part(struct recorded *r);

/* All were: r->head is now their sum. Return: 0, or -ENODATA with @err if none could be read. */
int recorded_sum(struct recorded *r, struct err *err);

/**
 * recorded_start() - open the recording, and read what is asked for beside its samples
 * @names: names of threads and cgroups
 *
 * Return: 0, or a negative errno with @err. recorded_close() is due in any case.
 */
int recorded_start(struct recorded *r, struct sampling *s, bool names, bool symbols,
		   struct err *err);

/* The next sample of the event that is selected. Return: 1; 0 at the end; or a negative errno with @err. */
int recorded_next(struct recorded *r, struct trace_event *ev, struct err *err);

/* Warn of files without symbols: the first ones, or all of them with -v. */
void recorded_problems(const struct recorded *r);
void recorded_close(struct recorded *r);

/* How many rows of a table fit below the head. */
size_t recorded_rows(const struct screen *screen);

/* What was selected, for replay_open(); of @s, which must live as long. */
void recorded_selection(struct sampling *s, struct replay_opts *out);

/* replay_open() into r->replay. */
int recorded_open_replay(struct recorded *r, const struct replay_opts *opts, struct err *err);

/* Report an error of reading. */
void recorded_fail(int ret, const struct err *err);

/* At the end report an error, or what the recording lacks. Return: an exit status. */
int recorded_status(const struct recorded *r, int ret, const struct err *err);

/*
 * Warn that no sample is selected, and which parts of the selection dropped how many.
 * @of: the event; NULL: both
 */
void recorded_nothing(struct replay *r, const char *of);

/* Tell of samples of the other event than the metric's, which are not shown. Return: whether there are any. */
bool recorded_left_out(enum ibs_metric metric, __u64 samples, char *buf, size_t size);

/* --explain of a recording, which has no plan: what --filter tests. Return: an exit status. */
int recorded_explain(const struct select_options *o);

/* A command that reads recordings. */
struct recorded_command {
	struct sampling *sampling; /* zero */
	struct recorded *in;
	struct option_set own; /* options of this command alone */
	void *cmd;	       /* argument of the functions below */
	bool groups;	       /* options that group samples */
	bool symbols;	       /* options about symbols */
	void (*usage)(FILE *f, const struct option_set *sets, size_t n);
	int (*check)(void *cmd, struct err *err); /* options that exclude each other; may be NULL */
	int (*run)(void *cmd);			  /* Return: an exit status */
};

/**
 * recorded_command() - parse the options, and run the command unless they ask for something else
 *
 * With @in->input.argument the only argument is input.files[0] and no recording.
 * The event becomes ibs_fetch without -e too, if other options ask for what only its samples have, or if
 * the first recording has no other event. Standard input is not looked at. Closes @in and @sampling.
 *
 * Return: an exit status.
 */
int recorded_command(const struct recorded_command *c, int argc, char **argv);

#endif
