/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The row model of every view: groups ranked by cost, with the rest and the total. hist, replay and
 * ctl snapshot print it.
 *
 * The unit of cost is miss cycles: latency times estimated ops of the sample.
 */
#ifndef IBSCOPE_TABLE_H
#define IBSCOPE_TABLE_H

#include "base/screen.h"
#include "rows/rows.h"
#include "counts/snapshot.h"

struct err;

/*
 * X(ID, "name", "HEADING", rank, "meaning"). If the width is small, columns of the lowest rank are
 * dropped first; rank 0 is only printed on request.
 */
#define TABLE_COLUMN_TABLE(X)                                                                    \
	X(SAMPLES, "samples", "SAMPLES", 5, "samples")                                           \
	X(VALID, "valid", "VALID", 0, "samples with a valid latency")                            \
	X(OPS, "estimated_ops", "EST. OPS", 0,                                                   \
	  "estimated ops (or cycles) that the samples stand for")                                \
	X(CYCLES, "cycles", "MISS CYCLES/s", 12, "latency x ops that a sample stands for")       \
	X(SHARE, "share", "SHARE", 11, "share of all miss cycles")                               \
	X(DRAM, "dram", "DRAM", 7, "share of the row's miss cycles for data from DRAM")          \
	X(REMOTE, "remote", "REMOTE", 6,                                                         \
	  "share of the row's miss cycles for data from other nodes")                            \
	X(HITM, "hitm", "HITM", 3,                                                               \
	  "share of the row's miss cycles for lines that another cache had modified")            \
	X(MLP, "mlp", "MLP", 2, "requests open when a missed load was filled, on average")       \
	X(WALK, "walk", "WALK", 1,                                                               \
	  "share of loads and stores (or fetches) that walked page tables")                      \
	X(L3_MISS, "l3_miss", "L3 MISS", 8,                                                      \
	  "ibs_fetch: share of cycles that missed the L3; before Zen 4 the L2")                  \
	X(ABORTED, "aborted", "ABORTED", 2, "ibs_fetch: share of fetches that did not complete") \
	X(MEAN, "mean", "MEAN", 0, "mean latency, cycles")                                       \
	X(P50, "p50", "p50", 9, "median latency, cycles")                                        \
	X(P90, "p90", "p90", 4, "90th percentile, cycles")                                       \
	X(P99, "p99", "p99", 10, "99th percentile, cycles; needs 100 samples")                   \
	X(PRICE, "remote_price", "REMOTE PRICE/s", 0,                                            \
	  "miss cycles above those of the same accesses at the mean latency of local "           \
	  "memory")                                                                              \
	X(HISTOGRAM, "histogram", "", 8,                                                         \
	  "distribution of latencies, 16 to 4096 cycles, log scale")                             \
	X(TREND, "trend", "TREND", 10,                                                           \
	  "miss cycles of the last intervals, and whether they changed; in top only")            \
	TABLE_EXTRA_TABLE(X)                                                                     \
	TABLE_LINE_TABLE(X)
/* Columns of recordings only, in the order of table_row.extra; */
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
/* columns of cache lines, which follow */
#define TABLE_LINE_TABLE(X)                                                                        \
	X(HITM_CCX, "hitm_ccx", "HITM CCX", 2, "loads that hit modified data of the same complex") \
	X(HITM_NEAR, "hitm_near", "HITM NEAR", 3,                                                  \
	  "loads that hit modified data of another complex of the node")                           \
	X(HITM_REMOTE, "hitm_remote", "HITM REMOTE", 4,                                            \
	  "loads that hit modified data of another node")                                          \
	X(HITM_SOCKET, "hitm_socket", "HITM SOCKET", 3,                                            \
	  "loads that hit modified data of another socket")                                        \
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

/* Maximum number of names of group keys in a row. */
#define TABLE_NAMES LABEL_N
#define TABLE_KEYS  LABEL_ALL /* and of a recording's */

struct table_row {
	char *name[TABLE_KEYS]; /* printable; NULL in the rows of rest and total */
	struct series all;	/* all sources and ops; its src and op are not valid */
	double cycles;		/* miss cycles; NAN: unknown */
	double dram, remote;	/* shares of miss cycles with a known source, 0 to 1; NAN: none */
	/* for ibs_fetch, `dram` is the share that missed the L3, or L2 before Zen 4 */
	double known; /* miss cycles (or latencies) with a known source */
	__u64 cached; /* valid samples served by another cache */
	/* page walks; loads and stores (ibs_fetch: translations), 0: walks not counted */
	__u64 walks, memory;
	__u64 aborted;				   /* fetches that did not complete */
	__u32 max;				   /* upper limit of percentiles; 0: none */
	double extra[TABLE_COLUMNS - TABLE_EXTRA]; /* of recordings */
	const float *trend; /* table.n_trend of them, NAN: unknown; NULL: none */
	int change; /* last value compared with earlier ones: -1, 1, or 0 if it may be noise */
};

struct table {
	unsigned int labels; /* 1 << enum label bits */
	struct label_order order;
	const char *const *key; /* headings of n_keys names, instead of labels; NULL: labels */
	unsigned int n_keys;
	bool data;	 /* rows are memory: sharing matters */
	bool spread;	 /* rows are from several MPI ranks */
	const char *ops; /* estimated unit if not ops */
	bool joined;	 /* name[0] is the container, else the cgroup; the only name */
	enum ibs_metric metric;
	double seconds;	  /* 0: unknown; miss cycles are then sums */
	size_t n, n_rest; /* rows, and number of groups in rest */
	unsigned int n_trend;
	struct table_row *row, rest, total;
	enum table_column sort;
	const enum table_column *usual; /* default columns, as many as fit; NULL: as hist */
	size_t n_usual;
};

/* Names in tables of the root cgroup, and of no container or pod; not in JSON and report's CSV. */
#define TABLE_ROOT "/"
#define TABLE_NONE "[none]"

/* A bit in addition to label bits: one name for cgroup, container and pod. */
#define TABLE_JOINED (1U << 31)
/* Default keys of views: the container, or the cgroup if it is in none. */
#define TABLE_LABELS (TABLE_JOINED | 1U << LABEL_CGROUP | 1U << LABEL_CONTAINER | 1U << LABEL_POD)

/**
 * table_build() - group, rank and fold the contents of a snapshot, with its prices
 * @labels: 1 << enum label bits, or TABLE_LABELS
 * @sort:   largest first
 * @top:    rows; further ones are added to rest. 0: all
 * @out:    the caller frees it with table_free()
 *
 * Sources are known even if @labels lacks LABEL_SRC: a snapshot has a series for each.
 */
void table_build(struct snapshot *s, enum ibs_metric metric, unsigned int labels,
		 enum table_column sort, size_t top, cgroup_namer name, void *arg,
		 struct table *out);

/*
 * Fewer samples than this with a latency: the interval of 95 % of a sum of latencies is then wider
 * than +-45 %, so views for people rank such rows behind the others, dim them and print "~".
 */
#define TABLE_FEW 20
bool table_is_weak(__u64 valid);
/* With fewer than TABLE_FEW samples in all, or a weak sum above zero. */
bool table_is_few(__u64 samples, __u64 valid);
/* Share of all miss cycles from which rows with enough samples answer for the table. */
#define TABLE_ANSWER 0.5
/* True if a row of few samples, with @kept rows before it, belongs into the rest of such a table. */
bool table_folds(size_t kept, __u64 samples, __u64 valid, double share);

/**
 * table_rank_weak() - rank rows of few samples behind the others
 * @top:  rows, as for table_build(), which got 0
 * @fold: also add rows of few samples and a small share to rest, below the first rows, if the
 *        others have most miss cycles
 *
 * Tables sorted by a number of samples keep their order.
 */
void table_rank_weak(struct table *t, size_t top, bool fold);

void table_free(struct table *t);

/* The options that select the samples of a row by one of its names, the narrowest first. */
struct table_option {
	enum label label;
	const char *option;
};
#define TABLE_OPTIONS 6
extern const struct table_option table_options[TABLE_OPTIONS];
/* False for a name of a row that no option finds: of no container or an unknown one, or escaped. */
bool table_is_selectable(const char *name);

/* Hash of the name of a group's row, without labels of sources and ops. */
__u64 table_group_hash(const struct group *g, unsigned int labels, cgroup_namer name, void *arg);
__u64 table_row_hash(const struct table_row *r);

/**
 * table_window() - @n rows from @first on; all others are in rest
 *
 * *out borrows the rows of @t. Release it with table_window_free().
 */
void table_window(const struct table *t, size_t first, size_t n, struct table *out);
void table_window_free(struct table *t);

/* Shares from 0 to 1, or means; NAN: unknown, as on CPUs that do not report it. */
double table_hitm(const struct table_row *r);
double table_mlp(const struct table_row *r);
double table_walk(const struct table_row *r);
double table_aborted(const struct table_row *r);
/* Share of all miss cycles; if those are unknown, of all latencies. */
double table_share(const struct table *t, const struct table_row *r);
/* Caches that can report the state of a line (CacheHitSt). */
bool table_is_other_cache(enum ibs_src src);
/* True if it is a label, or a key of that name. */
bool table_groups_by(const struct table *t, enum label l);
/* Sources that count as DRAM of any node, and as caches and memory of other nodes. */
bool table_is_dram(enum ibs_src src);
bool table_is_remote(enum ibs_src src);

/* Miss cycles of one series; NAN if the ops are unknown. */
double series_miss_cycles(const struct series *s);

/**
 * table_print() - print the table as text
 * @columns: @n of them, all printed; NULL: as many as fit the screen
 */
void table_print(FILE *f, const struct screen *screen, const struct table *t,
		 const enum table_column *columns, size_t n);

/*
 * Output formats, a row each: X(ID, "option", printer of tables, fences, "help"). FORMAT_TEXT is the
 * default and has no option. Formats with a printer, a function of table_format.c, are printed like
 * text except for the table; @fences puts other text into code blocks. Those without one are for
 * programs: they have all rows and columns, and a function in each view.
 */
#define FORMAT_TABLE(X)                                                                     \
	X(MARKDOWN, "markdown", print_markdown, true, "print the table as GitHub Markdown") \
	X(CSV, "csv", NULL, false, "print a table for programs; unknown values are empty")  \
	X(JSON, "json", NULL, false, "print JSON; unknown values are null")

enum table_format {
	FORMAT_TEXT,
#define FORMAT_ENUM(id, ...) FORMAT_##id,
	FORMAT_TABLE(FORMAT_ENUM)
#undef FORMAT_ENUM
		FORMAT_N
};

/* FORMAT_TABLE(FORMAT_OPTION) makes option rows; JSON is the last. The file has a set_format(). */
#define FORMAT_OPTION(id, name, print, fences, help) \
	{ name, 0, NULL, help, OPTION_WHICH(set_format, FORMAT_##id) },

const char *format_name(enum table_format format);
/* For people rather than programs? */
bool format_is_text(enum table_format format);
/* Return: 0, or -EINVAL with @err if another format was set before. */
int format_set(enum table_format *format, enum table_format which, struct err *err);

/* Print the lines above or below a table, or the table, in a format for people. */
void format_lines(FILE *f, enum table_format format, const char *text);
void format_table(FILE *f, enum table_format format, const struct screen *screen,
		  const struct table *t, const enum table_column *columns, size_t n);

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

#define TABLE_GAP 2 /* blanks between columns of the table */

/* As table_print(); the caller frees *out. */
void table_text_build(const struct screen *screen, const struct table *t,
		      const enum table_column *columns, size_t n, struct table_text *out);
void table_text_free(struct table_text *x);
const char *table_text_cell(const struct table_text *x, size_t line, size_t column);
/* True for left-aligned cells: names and histograms. */
bool table_text_left(const struct table_text *x, size_t column);

/* Values as a row of bars, scaled to the largest; NAN is blank, and so is 0 unless @zero. */
void table_spark(const struct screen *s, const double *v, size_t n, bool zero, char *out,
		 size_t size);
/* The distribution of a series' latencies over TABLE_BINS bins of a fixed scale. */
#define TABLE_BINS 18
void table_bins(const struct series *s, double bin[TABLE_BINS]);

/* Print the same rows and all columns as CSV; "other" is the rest, and there is no total. */
void table_print_csv(FILE *f, const struct table *t, bool simulated, bool header);

const char *table_column_name(unsigned int c);

/*
 * The extra cost of remote memory: the latency of each remote access minus the mean of local ones
 * from the same node to the same kind of memory (DRAM, long-latency DIMMs, extension memory), or if
 * that node has none, of those of all nodes. Caches are not memory.
 *
 * If the nodes of CPU and memory are known, they decide what is remote, else the source does.
 */

#define PRICE_NODE_UNKNOWN 0xffffu
#define PRICE_PLACES	   ((PRICE_NODE_UNKNOWN + 1) * 4)

/**
 * price_place() - encode CPU node and kind of memory as a number below PRICE_PLACES
 * @node:   PRICE_NODE_UNKNOWN if unknown
 * @memory: node of the memory, or -1
 * @remote: set if the data came from memory
 *
 * Return: -1 if the data did not come from memory.
 */
int price_place(enum ibs_src src, __u32 node, int memory, bool *remote);

/* Local accesses by place; the caller frees it. */
struct price_local {
	double cycles, ops; /* miss cycles, and the number of ops */
};
struct price_local *price_local_new(void);
void price_local_add(struct price_local *l, int place, double cycles, double ops);
/* Mean miss cycles per op; NAN if there were none. */
double price_local_mean(const struct price_local *l, int place);

/* Set the price of each series of an interval; ibs_fetch has none. @metric: the counted metric */
void snapshot_prices(struct snapshot *s, enum ibs_metric metric);

/* Advice from the counts of an ibs_fetch interval, in a line or two. */

/* Minimum samples of a kind, and share of the cycles, for advice. */
#define VERDICT_SAMPLES 100
#define VERDICT_SHARE	0.1

/* Print the verdicts that @s supports, one per line, if any. */
void fetch_verdict(FILE *f, const struct screen *screen, const struct snapshot *s,
		   enum ibs_metric metric, cgroup_namer name, void *arg);

#endif
