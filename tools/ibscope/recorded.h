/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What commands share that read recordings: options that mean something there, and how they end. */
#ifndef IBSCOPE_RECORDED_H
#define IBSCOPE_RECORDED_H

#include "replay.h"
#include "sampling.h"
#include "trace.h"

#define RECORDED_ROWS 32

/* Rows of sampling_options, and one that refuses --follow. */
struct recorded_options {
	struct option_row rows[RECORDED_ROWS];
	size_t n;
};

/* Those that select samples; @groups: also those that say how they are added up. */
void recorded_options(struct recorded_options *o, bool groups);

/**
 * recorded_parse() - options, and the one FILE beside them
 *
 * Return: 0; OPTIONS_HELP; or a negative errno with @err.
 */
int recorded_parse(struct sampling *s, int argc, char **argv, const struct option_set *sets,
		   size_t n_sets, const char **file, struct err *err);

/* What was selected, for replay_open(); of @s, which must live as long. */
void recorded_selection(struct sampling *s, struct replay_opts *out);

/* Says on stderr what of a recording is missing. Return: whether nothing is. */
bool recorded_whole(const struct trace *t, const char *file);

#endif
