/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines as text, CSV or JSON. */
#ifndef IBSCOPE_LINES_PRINT_H
#define IBSCOPE_LINES_PRINT_H

#include "lines.h"
#include "report/report_print.h"
#include "symbols/symbols.h"

extern const struct columns lines_columns;

void lines_terms(FILE *f); /* what columns and verdicts mean, for --help */

struct lines_print {
	const struct report_head *head;
	const struct tasks *tasks;
	struct symbols *symbols;
	const struct screen *screen;
	const char *file; /* the recording, as a word of another command; NULL: none */
	bool sampled;	  /* by this command, so that others can sample now */
	enum ibs_metric metric;
	struct view_opts view;
	bool all; /* in text, print lines of one thread or CPU, too */
	bool has_line;
	bool is_address; /* with has_line: print the line with this physical, or else virtual, address */
	__u64 line;
	const char *variable; /* or else the one with this variable; NULL: none */
};

/**
 * lines_print() - all lines, or the one of @p->line
 *
 * CSV has line, address (physical or virtual), pid (of virtual ones; "kernel"), verdict, likely, slots,
 * writers, readers (functions, most samples first, joined by ";"), variables, containers, comms, the
 * columns and source; the row "[rest]" is what is left out. JSON is the head of a report with lines
 * [{the same; slots [{offset, loads, stores, hitm, shared, variables, writers, readers}]; writers,
 * readers and variables [{name, samples}]}], rest, total {columns} and data {samples by enum data_kind}.
 *
 * Of one line, text has a byte ruler, and CSV and JSON (accesses) have a row for each kind of
 * access to an offset: offset, width, access, variable, function, comm, container, the columns. JSON has
 * the line itself as `line`, too. Of lines of lines_add_window() slots take the place of bytes, and what
 * the tables of the kernel have of the whole line alone is missing from the rows.
 *
 * Return: 0, or -ENOENT with @err if no sample is of that line, or several lines have that variable. Of lines of lines_add_window(), which may
 * come again, CSV and JSON (`line` is null) are printed in this case, too, without rows.
 */
int lines_print(FILE *f, const struct lines_print *p, const struct lines *lines, struct err *err);

/* The line that costs most of those that the sentences above the table are about. */
struct lines_hottest {
	char *line; /* its address, with the process if it is virtual */
	enum line_verdict verdict;
	bool likely; /* as in struct line */
	char *name;  /* of what is shared, as in the sentences, with fields or bytes; printable */
	char *function; /* that most of its samples are in; NULL: unknown */
	double share;	/* of HITM, or else of miss cycles, as in the sentences */
	bool of_hitm;
	double cycles_share; /* of all miss cycles */
};

/*
 * @least: share of all miss cycles below which it says nothing
 *
 * Return: false if there is no such line; else the caller frees it with lines_hottest_free().
 */
bool lines_hottest(const struct lines_print *p, const struct lines *lines, double least,
		   struct lines_hottest *out);
void lines_hottest_free(struct lines_hottest *h);

/* "falsely" or "truly", or "" if it is not a line that sentences are about. */
const char *line_verdict_how(enum line_verdict v);

/**
 * lines_put_top() - the @p->view.top lines that cost most, as elements of an array that people see
 * @judged: false: the selection hides who shares a line, so that there are no verdicts
 * @more: adds members to each element; NULL: none
 *
 * Each has line, verdict (as in text; null: not judged), slots (as in text), the writer, reader and variable of
 * most samples, others of each, threads, samples, loads, stores, hitm (share) and
 * cycles (both null: unknown).
 *
 * Return: how many were left out since only one thread or CPU uses them, as by lines_print() as text.
 */
size_t lines_put_top(struct json_writer *w, const struct lines_print *p, const struct lines *lines,
		     bool judged,
		     void (*more)(void *ctx, struct json_writer *w, const struct line *l),
		     void *ctx);

#endif
