/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands that sample the running system in intervals: hist, numa --live, c2c --live. */
#ifndef IBSCOPE_CMD_HIST_H
#define IBSCOPE_CMD_HIST_H

#include "session/session.h"
#include "table/columns.h"

/* Prints something else instead of the tables of hist. */
struct interval_printer {
	/* its options: those of a view by name, and others */
	const char *formats;
	const struct columns *of;
	struct view_opts *view;
	struct option_set own;
	const char *usage;
	/* Called after option parsing. Return: 0, or a negative errno with @err: wrong usage. */
	int (*prepare)(void *arg, struct sampling_opts *o, struct err *err);
	/* @interval: its samples; sampling may continue. Return: 0 or a negative errno with @err. */
	int (*print)(void *arg, struct session *s, const struct snapshot *interval,
		     struct err *err);
	void *arg;
};

/* @numa: print the table of numa; @printer: NULL for a table of hist. Return: an exit status. */
int hist_run(int argc, char **argv, bool numa, const struct interval_printer *printer);

#endif
