/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of the commands `report` and `numa`. */
#ifndef IBSCOPE_REPORT_OPTIONS_H
#define IBSCOPE_REPORT_OPTIONS_H

#include "input/recorded.h"
#include "base/options.h"
#include "profile/profile.h"
#include "report/report_print.h"
#include "session/session.h"
#include "base/screen.h"

#define REPORT_OPTIONS_MAX 16

struct report_cmd {
	bool live; /* for --help only: cmd_numa() handles it */
	bool numa; /* the command is numa: group by nodes of CPU and memory, compute the price */
	struct sampling_opts sampling;
	struct report_opts opts;
	struct report_order order;
	struct view_opts view;
	unsigned int n_formats; /* other than those of `view` */
	bool folds;
	bool pages, damon;	    /* --format; --format damon */
	struct report *accessors;   /* functions that use the fields, in text */
	struct report_homes *homes; /* numa: of allocations; NULL: none were recorded */
	bool layout;		    /* print the layout of opts.type */
	enum folded_weight weight;

	struct recorded in;
	struct report *report;
	struct folded *folded;
	const char *html_path; /* NULL: no HTML */
	struct html_report *html;
	const char *pprof_path; /* NULL: no profile */
	struct pprof *pprof;
	struct screen screen;
};

/* The options of report; numa lacks other output formats, but has --live. */
struct option_set report_options(struct option_row out[REPORT_OPTIONS_MAX], struct report_cmd *c);
/* Check for options that exclude each other. Return: 0 or -EINVAL with @err. */
int report_check_options(const struct report_cmd *c, struct err *err);

void report_usage(FILE *f, const struct option_set *sets, size_t n);
void report_numa_usage(FILE *f, const struct option_set *sets, size_t n);

#endif
