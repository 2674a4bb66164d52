/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What commands that read recordings share: the input, its memory limit, and how reading ends. */
#ifndef IBSCOPE_RECORDED_H
#define IBSCOPE_RECORDED_H

#include "replay/replay.h"
#include "session/session.h"
#include "trace/trace.h"

#define RECORDED_ROWS 32

/* The rows of options that mean something for recordings. */
struct recorded_options {
	struct option_row select[RECORDED_ROWS]; /* their context is struct select_options */
	struct option_row other[RECORDED_ROWS];	 /* of these: struct sampling */
	size_t n_select, n_other;
};

/* @groups: also those that group samples. */
void recorded_options(struct recorded_options *o, bool groups);

/* Zero is the default: ibscope.data, and 1 GiB. */
struct recorded_input {
	const char *file; /* "-": standard input */
	bool from_option; /* -i, not an argument */
	uint64_t max_memory; /* bytes */
};

#define RECORDED_INPUT_ROWS 2

/* -i and --max-memory; their context is struct recorded_input. */
extern const struct option_row recorded_input_rows[RECORDED_INPUT_ROWS];

/**
 * recorded_parse() - options, and the file if it is given as an argument
 * @sets: one of them is recorded_input_rows
 *
 * Return: 0 with @in->file set; OPTIONS_HELP; or a negative errno with @err.
 */
int recorded_parse(struct sampling *s, int argc, char **argv, const struct option_set *sets,
		   size_t n_sets, struct recorded_input *in, struct err *err);

/*
 * Open the recording. From here on this process may take no more memory than @in allows, and *out,
 * which must be NULL before, tells how far it came when it needs more.
 */
int recorded_open(const struct recorded_input *in, struct trace **out, struct err *err);

/* The name of the input for people. */
const char *recorded_name(const struct recorded_input *in);

/* What was selected, for replay_open(); of @s, which must live as long. */
void recorded_selection(struct sampling *s, struct replay_opts *out);

/* Report an error of reading. */
void recorded_fail(int ret, const struct err *err);

/* Warn that no sample is selected, and which parts of the selection dropped how many. */
void recorded_nothing(struct replay *r);

/* Report on stderr what a recording lacks. Return: true if it is complete. */
bool recorded_complete(const struct recorded_input *in, const struct trace *t);

#endif
