/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines as text, CSV or JSON. */
#ifndef IBSCOPE_LINES_PRINT_H
#define IBSCOPE_LINES_PRINT_H

#include "lines.h"
#include "report/report_print.h"
#include "symbols/symbols.h"

/* X(NAME, "name", column of view/table.h, "meaning") */
#define LINES_COLUMN_TABLE(X)                                                                     \
	X(CYCLES, "miss_cycles", CYCLES, "latency x ops that a sample stands for")                \
	X(SHARE, "share", SHARE, "share of all miss cycles")                                      \
	X(SAMPLES, "samples", SAMPLES, "samples that load or store")                              \
	X(HITM, "hitm", HITM, "share of the line's miss cycles that loads of modified data cost") \
	X(HITM_CCX, "hitm_ccx", HITM_CCX,                                                         \
	  "loads of data modified in the same complex; before Zen 4, the same node")              \
	X(HITM_NEAR, "hitm_near", HITM_NEAR,                                                      \
	  "loads of data modified in another complex of the node")                                \
	X(HITM_REMOTE, "hitm_remote", HITM_REMOTE, "loads of data modified in another node")      \
	X(HITM_SOCKET, "hitm_socket", HITM_SOCKET,                                                \
	  "loads of data modified in another socket; Zen 6")                                      \
	X(OWNED, "owned", OWNED, "loads that a cache with the line in state O answered")          \
	X(TRANSFERS, "transfers", TRANSFERS,                                                      \
	  "loads that another cache answered without reporting the line's state")                 \
	X(LOADS, "loads", LOADS, "samples that load, including prefetches")                       \
	X(STORES, "stores", STORES, "samples that store")                                         \
	X(MEAN, "mean", MEAN, "mean latency, cycles")                                             \
	X(CPUS, "cpus", CPUS, "different CPUs")                                                   \
	X(THREADS, "threads", THREADS, "different threads")

enum lines_column {
#define LINES_COLUMN_ENUM(name, ...) LINES_COLUMN_##name,
	LINES_COLUMN_TABLE(LINES_COLUMN_ENUM)
#undef LINES_COLUMN_ENUM
		LINES_COLUMN_N
};

const char *lines_column_name(unsigned int c);
void lines_terms(FILE *f); /* what columns and verdicts mean, for --help */

struct lines_print {
	const struct report_head *head;
	const struct tasks *tasks;
	struct symbols *symbols;
	const struct screen *screen;
	const char *file; /* the recording, as a word of another command; NULL: none */
	enum ibs_metric metric;
	enum table_format format;
	enum lines_column sort; /* descending */
	size_t top;		/* rows, 0: all */
	bool all;		/* in text, print lines of one thread or CPU, too */
	bool has_line;
	__u64 line; /* with has_line: print the line with this physical, or else virtual, address */
	enum lines_column columns[LINES_COLUMN_N];
	unsigned int n_columns; /* 0: as many as fit; all in CSV and JSON */
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
 * Return: 0, or -ENOENT with @err if no sample is of that line. Of lines of lines_add_window(), which may
 * come again, CSV and JSON (`line` is null) are printed in this case, too, without rows.
 */
int lines_print(FILE *f, const struct lines_print *p, const struct lines *lines, struct err *err);

#endif
