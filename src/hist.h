/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One interval as latency histograms: bars for people, an object a line for programs. */
#ifndef IBSCOPE_HIST_H
#define IBSCOPE_HIST_H

#include "rows.h"

struct err;

/* What a recording says of its own making, apart from what is made of it now. */
struct hist_recorded {
	const struct ledger *ledger; /* NULL: not told */
	__u64 lost;		     /* records that its notices say never came */
	bool whole;		     /* nothing of it is missing */
};

/* What an interval was measured with. */
struct hist_info {
	const char *source; /* "ibs", "sim", "replay" */
	const char *event;
	__u64 period; /* 0: it varied */
	enum ibs_metric metric;
	bool simulated;
	const struct hist_recorded *recorded; /* NULL: it is no replay */
};

/* Writes on @f; the caller checks ferror(). */
void hist_print_text(FILE *f, const struct hist_info *info, const struct snapshot *interval,
		     const struct rows *rows);

/* One line. Return: 0, or -ENOMEM with @err. */
int hist_print_json(FILE *f, const struct hist_info *info, const struct snapshot *interval,
		    const struct rows *rows, struct err *err);

/* The ledger in words: "seen N = aggregated N + filtered N (pid N) + lost N; unseen N". */
void ledger_print(FILE *f, const struct ledger *l);

/* The object that hist_print_json() has of it, a line of its own. Return: 0, or -ENOMEM with @err. */
int ledger_print_json(FILE *f, const struct ledger *l, struct err *err);

#endif
