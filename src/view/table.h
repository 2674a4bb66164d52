/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The row model of every view: groups ranked by what they cost, with the rest and the total. hist,
 * replay and ctl snapshot print it.
 *
 * The currency is miss cycles: latencies, each times the ops that its sample stands for.
 */
#ifndef IBSCOPE_TABLE_H
#define IBSCOPE_TABLE_H

#include "counts/rows.h"
#include "screen.h"

struct err;

/*
 * X(ID, "name", "HEADING", rank, "meaning"). The column of the lowest rank is left out first where
 * the width is small; rank 0 is only printed if asked for.
 */
#define TABLE_COLUMN_TABLE(X)                                                                     \
	X(SAMPLES, "samples", "SAMPLES", 3, "samples")                                            \
	X(VALID, "valid", "VALID", 0, "samples with a valid latency")                             \
	X(OPS, "estimated_ops", "EST. OPS", 0, "estimated ops (or cycles) that the samples stand for")      \
	X(CYCLES, "cycles", "MISS CYCLES/s", 10, "latency x ops that a sample stands for")        \
	X(SHARE, "share", "SHARE", 9, "share of all miss cycles")                                 \
	X(DRAM, "dram", "DRAM", 6, "share of the row's miss cycles that DRAM of any node cost")   \
	X(REMOTE, "remote", "REMOTE", 5, "share of the row's miss cycles that other nodes cost")  \
	X(MEAN, "mean", "MEAN", 0, "mean latency, cycles")                                        \
	X(P50, "p50", "p50", 2, "median latency, cycles")                                         \
	X(P90, "p90", "p90", 4, "90th percentile, cycles")                                        \
	X(P99, "p99", "p99", 8, "99th percentile, cycles; needs 100 samples")                     \
	X(HISTOGRAM, "histogram", "", 7, "distribution of latencies, 16 to 4096 cycles, log scale")

enum table_column {
#define TABLE_COLUMN_ENUM(id, ...) TABLE_##id,
	TABLE_COLUMN_TABLE(TABLE_COLUMN_ENUM)
#undef TABLE_COLUMN_ENUM
		TABLE_COLUMNS
};

/* How many names of group keys a row has at most. */
#define TABLE_NAMES LABEL_N

struct table_row {
	char *name[TABLE_NAMES]; /* printable; NULL in the rows of rest and total */
	struct series all;	 /* every source and op; src and op mean nothing */
	double cycles;		 /* miss cycles; NAN: unknown */
	double dram, remote;	 /* of those whose source is known, 0 to 1; NAN: none is known */
};

struct table {
	unsigned int labels; /* 1 << enum label bits */
	bool joined;	     /* name[0] is the container, else the cgroup; it is the only name */
	enum ibs_metric metric;
	double seconds;
	size_t n, n_rest; /* rows, and how many groups are in rest */
	struct table_row *row, rest, total;
	enum table_column sort;
};

/* Beside label bits: one name for all of cgroup, container and pod. */
#define TABLE_JOINED (1U << 31)
/* The view's own choice of keys: the container, or the cgroup if it is in none. */
#define TABLE_LABELS \
	(TABLE_JOINED | 1U << LABEL_CGROUP | 1U << LABEL_CONTAINER | 1U << LABEL_POD)

/**
 * table_build() - group, rank and fold what a snapshot holds
 * @labels: 1 << enum label bits, or TABLE_LABELS
 * @sort:   largest first
 * @top:    rows; what follows is in rest. 0: all
 * @out:    the caller frees it with table_free()
 *
 * Sources are known whether or not @labels has LABEL_SRC: a snapshot has a series for each.
 *
 * Where the period varied, a sample stands for the mean of its series: miss cycles are then estimates.
 *
 * Return: 0 or -ENOMEM.
 */
int table_build(const struct snapshot *s, enum ibs_metric metric, unsigned int labels,
		enum table_column sort, size_t top, cgroup_namer name, void *arg,
		struct table *out);

void table_free(struct table *t);

/* Miss cycles of one series; NAN if the ops are unknown. */
double series_miss_cycles(const struct series *s);

/**
 * table_print() - the table as text for people
 * @columns: @n of them, all printed; NULL: as many as fit the screen
 */
int table_print(FILE *f, const struct screen *screen, const struct table *t,
		const enum table_column *columns, size_t n, struct err *err);

/* The same rows and all columns for programs; "other" is the rest, and there is no total. */
void table_print_csv(FILE *f, const struct table *t, bool simulated, bool header);

const char *table_column_name(unsigned int c);
const char *table_column_meaning(unsigned int c);

#endif
