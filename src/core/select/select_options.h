/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options that select samples, the same for live runs and recordings. All kinds of options must
 * match; the items of one option are alternatives; a leading '!' excludes the items.
 */
#ifndef IBSCOPE_SELECT_OPTIONS_H
#define IBSCOPE_SELECT_OPTIONS_H

#include "base/options.h"
#include "filter/filter_options.h"
#include "selection.h"

#define SELECT_PIDS_MAX 1024 /* in one -p or -t */

/* The zero value selects everything. */
struct select_options {
	struct selection sel; /* except cgroups, filter and live */
	__u32 *pids, *tids;   /* owned; `sel` points to these and to: */
	char **comms;
	char **cgroups, **containers; /* of --cgroup and --container, one option each */
	size_t n_cgroups, n_containers;
	struct filter_options filter_options;
	struct filter filter[2]; /* for ibs_op and for ibs_fetch, by select_options_check() */
	bool explain;	      /* only print the plan, and the fields that --filter tests */
	const char *machine;  /* of --explain: a machine other than this one, or NULL */
};

extern const struct option_row select_option_rows[];
extern const size_t select_option_n_rows;

/**
 * select_options_check() - compile the filter, and check what depends on several options
 * @fetch: for ibs_fetch, else for ibs_op
 *
 * Return: 0, or a negative errno with @err.
 */
int select_options_check(struct select_options *o, bool fetch, struct err *err);

void select_options_free(struct select_options *o);

#endif
