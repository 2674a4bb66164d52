/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that select samples, the same for live runs and for recordings. Options of different
 * kinds must all hold, what one of them lists is ORed, and a leading '!' excludes its list.
 */
#ifndef IBSCOPE_SELECT_OPTIONS_H
#define IBSCOPE_SELECT_OPTIONS_H

#include "base/options.h"
#include "filter/filter_options.h"
#include "selection.h"

#define SELECT_PIDS_MAX 1024 /* in one -p or -t */

/* The zero value selects everything. */
struct select_options {
	struct selection sel; /* but cgroups, filter and live */
	__u32 *pids, *tids;   /* of `sel`, as are: */
	char **comms;
	char **cgroups, **containers; /* of --cgroup and --container, one option each */
	size_t n_cgroups, n_containers;
	struct filter_options filter_options;
	struct filter filter; /* made of them by select_options_check() */
	bool explain;	      /* only print the plan, and what --filter tests */
	const char *machine;  /* of --explain: a machine other than this one, or NULL */
};

extern const struct option_row select_option_rows[];
extern const size_t select_option_n_rows;

/**
 * select_options_check() - compile the filter, and check what only shows when all options are known
 *
 * Return: 0, or a negative errno with @err.
 */
int select_options_check(struct select_options *o, struct err *err);

void select_options_free(struct select_options *o);

#endif
