/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Columns of tables: what they are called, mean, and how they are printed, and the options that
 * choose columns, rows and format. Each view has a list of columns, and a function for their values.
 */
#ifndef IBSCOPE_COLUMNS_H
#define IBSCOPE_COLUMNS_H

#include "base/json_writer.h"
#include "base/options.h"
#include "base/screen.h"

/* What a column needs of the data, and when programs get it without asking; 0: always. */
enum {
	COLUMN_OF_OP = 1 << 0,	  /* samples of ibs_op */
	COLUMN_OF_FETCH = 1 << 1, /* samples of ibs_fetch */
	COLUMN_OF_DATA = 1 << 2,  /* keys of KEY_ADDRESS: it is costly */
	COLUMN_OF_RANKS = 1 << 3, /* several recordings */
	COLUMN_OF_PRICE = 1 << 4, /* opts->price of a report */
	COLUMN_OF_PAGES = 1 << 5, /* opts->pages of a report */
	/* a processor that reports the state of lines, the distance of caches, or other sockets */
	COLUMN_OF_STATES = 1 << 6,
	COLUMN_OF_CACHES = 1 << 7,
	COLUMN_OF_SOCKETS = 1 << 8,
	COLUMN_OF_SLOT = 1 << 9, /* known of each slot of a hot line */
	COLUMN_KEPT = 1 << 10,	 /* what the view is for: other columns and long names give way */
};

#define COLUMN_DIGITS (-1) /* in place of digits behind the point: nine that are significant */

/*
 * The columns of hist, top and replay:
 * X(ID, "name", "HEADING", rank, UNIT, digits, COLUMN_*, value of row `r` with series `s`, "meaning")
 *
 * If the width is small, columns of the lowest rank are dropped first; rank 0 is only printed on
 * request. UNIT is a unit of enum column_unit.
 */
#define TABLE_COLUMN_TABLE(X)                                                                      \
	X(SAMPLES, "samples", "SAMPLES", 5, COUNT, 0, 0, s->samples, "samples")                    \
	X(VALID, "valid", "VALID", 0, COUNT, 0, 0, s->valid, "samples with a valid latency")       \
	X(OPS, "estimated_ops", "EST. OPS", 0, COUNT, 0, 0, s->ops ? (double)s->ops : (double)NAN, \
	  "estimated ops (or cycles) that the samples stand for")                                  \
	X(CYCLES, "cycles", "MISS CYCLES/s", 12, CYCLES, 0, 0, r->cycles,                          \
	  "latency x ops that a sample represents")                                                \
	X(SHARE, "share", "SHARE", 11, PERCENT, 6, 0, table_share(t, r),                           \
	  "share of all miss cycles")                                                              \
	X(DRAM, "dram", "DRAM", 7, PERCENT, 6, COLUMN_OF_OP, r->dram,                              \
	  "share of the row's miss cycles for data from DRAM")                                     \
	X(REMOTE, "remote", "REMOTE", 6, PERCENT, 6, COLUMN_OF_OP, r->remote,                      \
	  "share of the row's miss cycles for data from other nodes")                              \
	X(HITM, "hitm", "HITM", 3, PERCENT, 6, COLUMN_OF_OP,                                       \
	  s->state_n || !r->cached ? ratio(s->hitm, r->known) : (double)NAN,                       \
	  "share of the row's miss cycles for lines that another cache had modified")              \
	X(MLP, "mlp", "MLP", 2, MEAN, 3, COLUMN_OF_OP, ratio(s->open, s->open_n),                  \
	  "requests open when a missed load was filled, on average")                               \
	X(WALK, "walk", "WALK", 1, PERCENT, 6, 0, ratio(r->walks, r->memory),                      \
	  "share of loads and stores (or fetches) that walked page tables")                        \
	X(L3_MISS, "l3_miss", "L3 MISS", 8, PERCENT, 6, COLUMN_OF_FETCH, r->dram,                  \
	  "ibs_fetch: share of cycles that missed the L3; before Zen 4 the L2")                    \
	X(ABORTED, "aborted", "ABORTED", 2, PERCENT, 6, COLUMN_OF_FETCH,                           \
	  ratio(r->aborted, s->samples), "ibs_fetch: share of fetches that did not complete")      \
	X(MEAN, "mean", "MEAN", 0, COUNT, 3, 0, series_mean(s), "mean latency, cycles")            \
	X(P50, "p50", "p50", 9, COUNT, 0, 0, percentile(s, 0.5), "median latency, cycles")         \
	X(P90, "p90", "p90", 4, COUNT, 0, 0, percentile(s, 0.9), "90th percentile, cycles")        \
	X(P99, "p99", "p99", 10, COUNT, 0, 0, percentile(s, 0.99),                                 \
	  "99th percentile, cycles; needs 100 samples")                                            \
	X(PRICE, "remote_price", "REMOTE PRICE/s", 0, CYCLES, 0, COLUMN_OF_OP, s->price,           \
	  "miss cycles above those of the same accesses at the mean latency of local memory")      \
	X(LOW, "low", "LOW/s", 0, CYCLES, 0, 0, table_interval(t, r).low,                          \
	  "lower end of the 95 % interval of cycles")                                              \
	X(HIGH, "high", "HIGH/s", 0, CYCLES, 0, 0, table_interval(t, r).high, "upper end of it")   \
	X(SHARE_LOW, "share_low", "SHARE LOW", 0, PERCENT, 6, 0, table_share_interval(t, r).low,   \
	  "lower end of the 95 % interval of share")                                               \
	X(SHARE_HIGH, "share_high", "SHARE HIGH", 0, PERCENT, 6, 0,                                \
	  table_share_interval(t, r).high, "upper end of it")                                      \
	X(EXPOSED, "exposed", "EXPOSED/s", 8, CYCLES, 0, COLUMN_OF_OP, series_exposed(s),          \
	  "estimated cycles that retirement waited for loads that missed; events of ops only")     \
	X(HISTOGRAM, "histogram", "", 8, BARS, 0, 0, NAN,                                          \
	  "distribution of latencies, 16 to 4096 cycles, log scale")                               \
	X(ERROR, "error", "+-95%", 6, PERCENT, 6, 0, table_error(t, r),                            \
	  "half of the 95 % interval of cycles, over them")                                        \
	X(TREND, "trend", "TREND", 10, BARS, 0, 0, NAN,                                            \
	  "miss cycles of the last intervals, and whether they changed; in top only")

/* Columns of recordings only, then those of cache lines and of instructions: X(ID, "HEADING", rank, UNIT) */
#define TABLE_OTHER_TABLE(X)                            \
	X(SAMPLE_SHARE, "SAMPLES %", 0, PERCENT)        \
	X(MAX, "MAX", 0, COUNT)                         \
	X(TOTAL, "LATENCY SUM", 0, COUNT)               \
	X(LOADS, "LOADS", 5, COUNT)                     \
	X(STORES, "STORES", 5, COUNT)                   \
	X(OFFSETS, "OFFSETS", 6, COUNT)                 \
	X(CPUS, "CPUS", 7, COUNT)                       \
	X(THREADS, "THREADS", 9, COUNT)                 \
	X(LAST, "LAST SEEN", 0, TIME)                   \
	X(PAGES, "PAGES", 0, COUNT)                     \
	X(MISPLACED, "MISPLACED", 0, COUNT)             \
	X(IMBALANCE, "IMBALANCE", 9, RATIO)             \
	X(BLOCKING, "BLOCKING", 0, PERCENT)             \
	X(HITM_CCX, "HITM CCX", 2, COUNT)               \
	X(HITM_NEAR, "HITM NEAR", 3, COUNT)             \
	X(HITM_REMOTE, "HITM REMOTE", 4, COUNT)         \
	X(HITM_SOCKET, "HITM SOCKET", 3, COUNT)         \
	X(OWNED, "OWNED", 1, COUNT)                     \
	X(TRANSFERS, "TRANSFERS", 1, COUNT)             \
	X(INSTRUCTION_MEAN, "MEAN", 8, MEAN)            \
	X(INSTRUCTION_CYCLES, "MISS CYCLES", 6, CYCLES) \
	X(MISPREDICTED, "MISPRED", 2, PERCENT)

enum table_column {
#define TABLE_COLUMN_ENUM(id, ...) TABLE_##id,
	TABLE_COLUMN_TABLE(TABLE_COLUMN_ENUM) TABLE_OTHER_TABLE(TABLE_COLUMN_ENUM)
#undef TABLE_COLUMN_ENUM
		TABLE_COLUMNS
};

/* To sort by: the column that table_currency() chooses. */
#define TABLE_CURRENCY ((enum table_column)(TABLE_COLUMNS + 1))

/**
 * table_currency() - the column by which tables rank rows by default
 * @exposed: exposed cycles of all rows together; NAN: unknown
 *
 * Exposed cycles rank rows better than miss cycles (tests/model), so it is those where they are known of all
 * rows. If they are 0, they rank nothing.
 */
enum table_column table_currency(double exposed);

/* A column of a view. */
struct column {
	enum table_column id;
	const char *name;   /* of --columns, CSV and JSON */
	int digits;	    /* of CSV and JSON, behind the point; or COLUMN_DIGITS */
	unsigned int flags; /* COLUMN_* */
	const char *help;
};

struct columns {
	const struct column *column;
	unsigned int n;
	bool exact; /* JSON has all digits */
};

/* Of hist, replay and ctl snapshot; and of top. */
extern const struct columns hist_columns, top_columns;

/*
 * A view has a table of rows X(COLUMN, "name", digits, COLUMN_*, value, "meaning"), which is an array of
 * struct column, and the cases of a switch in the function for its values.
 */
#define COLUMN_ROW(id, name, digits, flags, value, help) { TABLE_##id, name, digits, flags, help },
#define COLUMN_CASE(id, name, digits, flags, value, help) \
	case TABLE_##id:                                  \
		return value;

/* The column of a view, or NULL. */
const struct column *column_find(const struct columns *of, enum table_column id);
const char *column_heading(enum table_column id);
unsigned int column_rank(enum table_column id);

/* What the columns mean, for --help. */
void columns_help(FILE *f, const struct columns *of);

/* Print a value; NAN is unknown. @unit: of miss cycles, of screen_unit() */
void column_text(const struct screen *s, enum table_column id, double v, char unit, char *out,
		 size_t size);
void column_csv(FILE *f, const struct column *c, double v); /* after a comma */
void column_json(struct json_writer *w, const struct columns *of, const struct column *c, double v);

/*
 * Output formats, a row each: X(ID, "option", printer of tables, text, "help"). FORMAT_TEXT is the
 * default and has no option. Formats that are text have a printer, a function of table_format.c, and
 * other text in code blocks. The others are for programs: they have all rows and columns, and a
 * function in each view.
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

const char *format_name(enum table_format format);
/* For people rather than programs? */
bool format_is_text(enum table_format format);
/* Return: 0, or -EINVAL with @err if another format was set before. */
int format_set(enum table_format *format, enum table_format which, struct err *err);

/* What options choose of a table. */
struct view_opts {
	const struct columns *of; /* set by view_options() */
	bool by_name;		  /* --sort takes "name", too: TABLE_COLUMNS */
	enum table_format format;
	size_t top; /* rows; 0: as many as fit, all for programs */
	enum table_column sort;
	bool has_sort;
	enum table_column columns[TABLE_COLUMNS];
	unsigned int n_columns; /* 0: as many as fit, all for programs */
};

#define VIEW_OPTIONS_MAX 6

/**
 * view_options() - the options of a view that a command has
 * @names: of --top, --sort, --columns and the formats, separated by blanks
 *
 * Return: an option set that continues the section before it
 */
struct option_set view_options(struct option_row rows[VIEW_OPTIONS_MAX], const char *names,
			       const struct columns *of, struct view_opts *ctx);
#define VIEW_OPTIONS_ALL "top sort columns markdown csv json"

#endif
