/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One interval: a table for people; CSV rows or one JSON object per line for programs. */
#ifndef IBSCOPE_HIST_H
#define IBSCOPE_HIST_H

#include "base/options.h"
#include "table/table.h"

struct err;

/* How to print; zero is the default. */
struct hist_view {
	struct view_opts opts;
	bool histograms;
	bool goes_on;	     /* more intervals follow: do not use the pager */
	bool header_printed; /* of CSV */
	struct label_order order;
};

/* --histogram, under a title in the help. */
struct option_set hist_options(const char *title, struct hist_view *v);

/* Return: 0, or -EINVAL with @err if options are mutually exclusive. */
int hist_view_check(const struct hist_view *v, struct err *err);

/**
 * hist_print() - print one interval as text, CSV or JSON
 * @labels: 1 << enum label bits; 0: the default, for text one row per container
 * @name:   as for rows_build()
 *
 * Text that is too long for a terminal goes through the pager.
 *
 * Return: 0, or -EIO with @err.
 */
int hist_print(FILE *f, struct hist_view *v, const struct hist_info *info,
	       struct snapshot *interval, unsigned int labels, cgroup_namer name, void *arg,
	       struct err *err);

/* The same as text on a screen other than the one of @f. */
void hist_print_text(FILE *f, const struct screen *screen, const struct hist_view *v,
		     const struct hist_info *info, struct snapshot *interval, unsigned int labels,
		     cgroup_namer name, void *arg);

/* The full histogram of a row. */
void hist_print_row(FILE *f, const struct hist_info *info, const struct label_order *order,
		    const struct table_row *r);

#endif
