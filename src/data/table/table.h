/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The row model of every view: groups ranked by cost, with the rest and the total. hist, replay and
 * ctl snapshot print it.
 *
 * The unit of cost is miss cycles: latency times estimated ops of the sample.
 */
#ifndef IBSCOPE_TABLE_H
#define IBSCOPE_TABLE_H

#include "base/estimate.h"
#include "columns.h"
#include "rows/rows.h"
#include "counts/snapshot.h"

#define TABLE_TREND_MAX 60

/* Maximum number of names of group keys in a row. */
#define TABLE_NAMES LABEL_N
#define TABLE_KEYS  LABEL_ALL /* and of a recording's */

struct table_row {
	char *name[TABLE_KEYS]; /* printable; NULL in the rows of rest and total */
	struct series all;	/* all sources and ops; its src and op are not valid */
	double cycles;		/* miss cycles; NAN: unknown */
	struct estimate waits;	/* of miss cycles, or of latencies if the ops are unknown */
	double dram, remote;	/* shares of miss cycles with a known source, 0 to 1; NAN: none */
	/* for ibs_fetch, `dram` is the share that missed the L3, or L2 before Zen 4 */
	double known; /* miss cycles (or latencies) with a known source */
	__u64 cached; /* valid samples served by another cache */
	/* page walks; loads and stores (ibs_fetch: translations), 0: walks not counted */
	__u64 walks, memory;
	__u64 aborted; /* fetches that did not complete */
	double *value; /* by enum table_column, rather than from the members above; NULL: from them */
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
	double drawn;	  /* samples, whatever became of them; 0: unknown */
	size_t n, n_rest; /* rows, and number of groups in rest */
	unsigned int n_trend;
	struct table_row *row, rest, total;
	enum table_column sort;
	const enum table_column *usual; /* default columns, as many as fit; NULL: as hist */
	size_t n_usual;
	size_t n_kept;	    /* the first of those; they stay, however long the names are */
	unsigned int whole; /* 1 << key bits: names that are cut only after the others */
};

/* What tables print for an empty label, or the root cgroup; CSV and JSON keep "" and "/". */
const char *table_none(enum label l);
bool table_is_none(const char *text, enum label l);

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
/* The same of a row without miss cycles, in a table that is sorted by them. */
bool table_folds_idle(size_t kept, enum table_column sort, double share);

/**
 * table_rank_weak() - rank rows of few samples behind the others
 * @top:  rows, as for table_build(), which got 0
 * @fold: also add rows without miss cycles to rest, and below the first rows those of few samples
 *        and a small share, if the others have most miss cycles
 *
 * Tables sorted by a number of samples keep their order.
 */
void table_rank_weak(struct table *t, size_t top, bool fold);

void table_free(struct table *t);

/* A label as tables print it; the caller frees it. */
char *table_name(const char *text, enum label l);
/* The same for CSV. */
const char *table_csv_name(const char *name, enum label l);

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

/* The value of a column, shares as fractions; NAN: unknown, as on CPUs that do not report it. */
double table_value(const struct table *t, const struct table_row *r, enum table_column c);
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
/* Exposed cycles (exposed.h) of series; NAN: unknown, where no load missed or a sample lacks what it takes. */
double series_exposed(const struct series *s);
/* Miss cycles, or latencies if the ops are unknown, with what their interval needs. */
struct estimate series_waits(const struct series *s);

/* 95 % interval of their sum; @drawn as of estimate_interval(). Of strata it follows from their slices. */
struct bounds series_interval(const struct series *s, double drawn);

/* Intervals of 95 % of a row's miss cycles, or of their share. */
struct bounds table_interval(const struct table *t, const struct table_row *r);

/* Half of that interval over the sum; NAN: unknown. */
double table_error(const struct table *t, const struct table_row *r);
struct bounds table_share_interval(const struct table *t, const struct table_row *r);

/* The first row of few samples, if such rows are behind others that cost less; else t->n. */
size_t table_first_weak(const struct table *t);

/* In a line, how far the miss cycles of the rows are to be trusted. */
void table_print_trust(FILE *f, const struct screen *screen, const struct table *t);
/* The same below an empty line; the caller frees it. "": there is nothing to say. */
char *table_trust_text(const struct screen *screen, const struct table *t);

/**
 * table_print() - print the table as text
 * @columns: @n of them, all printed; NULL: as many as fit the screen
 */
void table_print(FILE *f, const struct screen *screen, const struct table *t,
		 const enum table_column *columns, size_t n);

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
