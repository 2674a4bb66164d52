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
#define TABLE_COLUMN_TABLE(X)                                                                    \
	X(SAMPLES, "samples", "SAMPLES", 5, "samples")                                           \
	X(VALID, "valid", "VALID", 0, "samples with a valid latency")                            \
	X(OPS, "estimated_ops", "EST. OPS", 0,                                                   \
	  "estimated ops (or cycles) that the samples stand for")                                \
	X(CYCLES, "cycles", "MISS CYCLES/s", 12, "latency x ops that a sample stands for")       \
	X(SHARE, "share", "SHARE", 11, "share of all miss cycles")                               \
	X(DRAM, "dram", "DRAM", 8, "share of the row's miss cycles that DRAM of any node cost")  \
	X(REMOTE, "remote", "REMOTE", 7, "share of the row's miss cycles that other nodes cost") \
	X(HITM, "hitm", "HITM", 3,                                                               \
	  "share of the row's miss cycles for lines that another cache had modified")            \
	X(MLP, "mlp", "MLP", 2, "requests open when a missed load was filled, on average")       \
	X(WALK, "walk", "WALK", 1,                                                               \
	  "share of loads and stores (or fetches) that walked page tables")                      \
	X(L3_MISS, "l3_miss", "L3 MISS", 8,                                                      \
	  "ibs_fetch: share of cycles that missed the L3; before Zen 4 the L2")                  \
	X(ABORTED, "aborted", "ABORTED", 2, "ibs_fetch: share of fetches that did not complete") \
	X(MEAN, "mean", "MEAN", 0, "mean latency, cycles")                                       \
	X(P50, "p50", "p50", 4, "median latency, cycles")                                        \
	X(P90, "p90", "p90", 6, "90th percentile, cycles")                                       \
	X(P99, "p99", "p99", 10, "99th percentile, cycles; needs 100 samples")                   \
	X(PRICE, "remote_price", "REMOTE PRICE/s", 0,                                            \
	  "miss cycles above those of the same accesses at the mean latency of local "           \
	  "memory")                                                                              \
	X(HISTOGRAM, "histogram", "", 9,                                                         \
	  "distribution of latencies, 16 to 4096 cycles, log scale")                             \
	X(TREND, "trend", "TREND", 10,                                                           \
	  "miss cycles of the last intervals, and whether they changed; in top only")            \
	TABLE_EXTRA_TABLE(X)                                                                     \
	TABLE_LINE_TABLE(X)
/* Columns of recordings only; table_row.extra has them in this order, */
#define TABLE_EXTRA_TABLE(X)                                                            \
	X(SAMPLE_SHARE, "sample_share", "SAMPLES %", 0, "share of all samples")         \
	X(MAX, "max", "MAX", 0, "largest latency, cycles")                              \
	X(TOTAL, "total", "LATENCY SUM", 0, "sum of the latencies, cycles")             \
	X(LOADS, "loads", "LOADS", 5, "samples that load")                              \
	X(STORES, "stores", "STORES", 5, "samples that store")                          \
	X(OFFSETS, "offsets", "OFFSETS", 6, "different bytes of a cache line accessed") \
	X(CPUS, "cpus", "CPUS", 7, "different CPUs")                                    \
	X(THREADS, "threads", "THREADS", 9, "different threads")                        \
	X(LAST, "last_seen", "LAST SEEN", 0, "time of the last sample, s since 1970")   \
	X(PAGES, "pages", "PAGES", 0, "different physical pages")                       \
	X(MISPLACED, "misplaced", "MISPLACED", 0, "pages that another node uses most")  \
	X(IMBALANCE, "imbalance", "IMBALANCE", 9,                                       \
	  "miss cycles of the busiest MPI rank over the mean of all")
/* and then those of cache lines. */
#define TABLE_LINE_TABLE(X)                                                                        \
	X(HITM_CCX, "hitm_ccx", "HITM CCX", 2, "loads that hit modified data of the same complex") \
	X(HITM_NEAR, "hitm_near", "HITM NEAR", 3,                                                  \
	  "loads that hit those of another complex of the node")                                   \
	X(HITM_REMOTE, "hitm_remote", "HITM REMOTE", 4, "loads that hit those of another node")    \
	X(HITM_SOCKET, "hitm_socket", "HITM SOCKET", 3, "loads that hit those of another socket")  \
	X(OWNED, "owned", "OWNED", 1, "loads that hit a line in state O")                          \
	X(TRANSFERS, "transfers", "TRANSFERS", 1, "loads from other caches, state not reported")

enum table_column {
#define TABLE_COLUMN_ENUM(id, ...) TABLE_##id,
	TABLE_COLUMN_TABLE(TABLE_COLUMN_ENUM)
#undef TABLE_COLUMN_ENUM
		TABLE_COLUMNS,
	TABLE_EXTRA = TABLE_SAMPLE_SHARE, /* the first of them */
};

#define TABLE_TREND_MAX 60

/* How many names of group keys a row has at most. */
#define TABLE_NAMES LABEL_N
#define TABLE_KEYS  40 /* and of a recording's */

struct table_row {
	char *name[TABLE_KEYS]; /* printable; NULL in the rows of rest and total */
	struct series all;	/* every source and op; src and op mean nothing */
	double cycles;		/* miss cycles; NAN: unknown */
	double dram, remote;	/* of those whose source is known, 0 to 1; NAN: none is known */
	/* of ibs_fetch `dram` is of those that missed the L3, or L2 before Zen 4 */
	double known; /* miss cycles (or latencies) of those */
	__u64 cached; /* valid samples whose line came from another cache */
	/* page walks; loads and stores (of ibs_fetch, known translations), 0 where walks are not counted */
	__u64 walks, memory;
	__u64 aborted;				   /* fetches that did not complete */
	__u32 max;				   /* percentiles are at most that; 0: any */
	double extra[TABLE_COLUMNS - TABLE_EXTRA]; /* of recordings */
	const float *trend; /* table.n_trend of them, NAN: unknown; NULL: none */
	int change; /* the last of them against those before: -1, 1, or 0 for what may be noise */
};

struct table {
	unsigned int labels; /* 1 << enum label bits */
	struct label_order order;
	const char *const *key; /* headings of n_keys names, in place of labels; NULL: labels */
	unsigned int n_keys;
	bool data;	 /* rows are of memory: who shares it matters */
	bool spread;	 /* rows are of several MPI ranks */
	const char *ops; /* what is estimated if it is not ops */
	bool joined;	 /* name[0] is the container, else the cgroup; it is the only name */
	enum ibs_metric metric;
	double seconds;	  /* 0: unknown; miss cycles are then sums */
	size_t n, n_rest; /* rows, and how many groups are in rest */
	unsigned int n_trend;
	struct table_row *row, rest, total;
	enum table_column sort;
	const enum table_column
		*usual; /* if none is asked for, the first that fit; NULL: as hist */
	size_t n_usual;
};

/* What tables print for the root cgroup, and for what is in no container or pod; JSON and the
 * CSV of report leave it empty. */
#define TABLE_ROOT "/"
#define TABLE_NONE "[none]"

/* Beside label bits: one name for all of cgroup, container and pod. */
#define TABLE_JOINED (1U << 31)
/* The view's own choice of keys: the container, or the cgroup if it is in none. */
#define TABLE_LABELS (TABLE_JOINED | 1U << LABEL_CGROUP | 1U << LABEL_CONTAINER | 1U << LABEL_POD)

/**
 * table_build() - group, rank and fold what a snapshot holds, with its prices
 * @labels: 1 << enum label bits, or TABLE_LABELS
 * @sort:   largest first
 * @top:    rows; what follows is in rest. 0: all
 * @out:    the caller frees it with table_free()
 *
 * Sources are known whether or not @labels has LABEL_SRC: a snapshot has a series for each.
 */
void table_build(struct snapshot *s, enum ibs_metric metric, unsigned int labels,
		 enum table_column sort, size_t top, cgroup_namer name, void *arg,
		 struct table *out);

void table_free(struct table *t);

/* A number for the name of a group's row; labels of sources and ops do not enter. */
__u64 table_group_hash(const struct group *g, unsigned int labels, cgroup_namer name, void *arg);
__u64 table_row_hash(const struct table_row *r);

/**
 * table_window() - the rows from @first on, @n at most; all others are in rest
 *
 * *out borrows the rows of @t. Release it with table_window_free().
 */
void table_window(const struct table *t, size_t first, size_t n, struct table *out);
void table_window_free(struct table *t);

/* 0 to 1, or a mean; NAN: unknown for all samples, as on CPUs that do not report it. */
double table_hitm(const struct table_row *r);
double table_mlp(const struct table_row *r);
double table_walk(const struct table_row *r);
double table_aborted(const struct table_row *r);
/* Share of all miss cycles; if those are unknown, of all latencies. */
double table_share(const struct table *t, const struct table_row *r);
/* Caches that can report the state of a line (CacheHitSt). */
bool table_is_other_cache(enum ibs_src src);
/* Is it a label, or a key of that name? */
bool table_groups_by(const struct table *t, enum label l);
/* What counts as DRAM of any node, and as caches and memory of other nodes. */
bool table_is_dram(enum ibs_src src);
bool table_is_remote(enum ibs_src src);

/* Miss cycles of one series; NAN if the ops are unknown. */
double series_miss_cycles(const struct series *s);

/**
 * table_print() - the table as text for people
 * @columns: @n of them, all printed; NULL: as many as fit the screen
 */
void table_print(FILE *f, const struct screen *screen, const struct table *t,
		 const enum table_column *columns, size_t n);

/* The same as cells: the heading, the rows, then rest and total if there are any. */
struct table_text {
	const struct screen *screen;
	const struct table *t;
	size_t lines;	/* heading included */
	size_t n_names; /* columns of names, then those of numbers */
	size_t n_columns;
	enum table_column column[TABLE_COLUMNS];
	char **cell; /* lines x (n_names + n_columns) */
	size_t width[TABLE_KEYS + TABLE_COLUMNS];
	char unit;
};

#define TABLE_GAP 2 /* columns of the screen between those of the table */

/* As table_print(); the caller frees *out. */
void table_text_build(const struct screen *screen, const struct table *t,
		      const enum table_column *columns, size_t n, struct table_text *out);
void table_text_free(struct table_text *x);
const char *table_text_cell(const struct table_text *x, size_t line, size_t column);
/* Cells of names and histograms begin at the left. */
bool table_text_left(const struct table_text *x, size_t column);

/* Values as a row of bars, scaled to the largest; NAN is blank, and so is 0 unless @zero. */
void table_spark(const struct screen *s, const double *v, size_t n, bool zero, char *out,
		 size_t size);
/* The mark of table_row.change, which follows the trend. */
const char *table_change(const struct screen *s, int change);
/* The distribution of a series' latencies over TABLE_BINS bins of a fixed scale. */
#define TABLE_BINS 18
void table_bins(const struct series *s, double bin[TABLE_BINS]);

/* The same rows and all columns for programs; "other" is the rest, and there is no total. */
void table_print_csv(FILE *f, const struct table *t, bool simulated, bool header);

const char *table_column_name(unsigned int c);

#endif
