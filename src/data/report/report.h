/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples added up by keys: a row for each combination of what --by asks for. A key that a sample
 * does not have is absent, which is a value of its own: rows always add up to all samples.
 */
#ifndef IBSCOPE_REPORT_H
#define IBSCOPE_REPORT_H

#include "base/estimate.h"
#include "rows/rows.h"
#include "symbols/symbols.h"
#include "table/columns.h"
#include "trace/tasks.h"

extern const struct columns report_columns;

/* "src,op" to keys in that order. Return: 0, or -EINVAL with @err naming what there is. */
int report_keys_parse(const char *text, enum label *keys, unsigned int *n, struct err *err);

/* What the meaning of a key or column is, for --help. */
void report_terms(FILE *f);

/**
 * report_keys_check() - do samples of the event have all keys?
 * @fetch: the event is ibs_fetch, else ibs_op
 *
 * Return: 0; or -EINVAL with @err naming one that they do not have.
 */
int report_keys_check(const enum label *keys, unsigned int n, bool fetch, struct err *err);

/* Return: 0; or -ENODATA with @err naming a key that needs call chains or allocations, which @file has not. */
int report_check_recorded(const enum label *keys, unsigned int n, const struct trace_info *info,
			  const char *file, struct err *err);

/* KEY_* flags of all keys, combined. */
unsigned int report_keys_flags(const enum label *keys, unsigned int n);

/* Those of keys that need functions or files, and those of keys that need the tasks of a recording. */
#define REPORT_NEEDS_SYMBOLS (KEY_SYMBOLS | KEY_DATA | KEY_TYPES)
#define REPORT_NEEDS_TASKS   (KEY_TASKS | REPORT_NEEDS_SYMBOLS)

struct report_opts {
	enum label by[LABEL_ALL];
	unsigned int n_by;
	enum ibs_metric metric; /* of the event whose samples are added up */
	bool phys;		/* pages and lines are those of physical addresses */
	bool cpus, threads;	/* count those of TABLE_CPUS and _THREADS */
	const char *type; /* only accesses of this one, if their types are asked for; NULL: all */
	bool price;	  /* TABLE_PRICE is wanted, and rows are of nodes */
	bool pages;	  /* count them for TABLE_PAGES and _MISPLACED */

	/* all outlive the report */
	const struct trace_info *info;
	const struct tasks *tasks;
	struct symbols *symbols; /* needed with keys of REPORT_NEEDS_SYMBOLS */
};

/* Is @key one of opts->by? */
bool report_by(const struct report_opts *opts, enum label key);

/**
 * report_columns_default() - default columns of CSV and JSON
 * @several: recordings are added up
 * @columns: room for TABLE_COLUMNS
 *
 * Return: how many.
 */
unsigned int report_columns_default(const struct report_opts *opts, bool several,
				    enum table_column *columns);

/* Let the report count what @column needs. */
void report_count_column(struct report_opts *opts, enum table_column column);

struct report;

/**
 * report_part() - what follows is of another recording
 *
 * In place of those of the options; they must live until the next part, or the end of the report.
 */
void report_part(struct report *r, const struct trace_info *info, const struct tasks *tasks,
		 struct symbols *symbols);

/* Before the trace is closed that samples were of. */
void report_part_end(struct report *r);

/* Return: 0 */
int report_new(const struct report_opts *opts, struct report **out, struct err *err);
void report_free(struct report *r); /* accepts NULL */

/* Add a sample of the metric's event; other events change nothing. Return: 0 */
int report_add(struct report *r, const struct trace_event *ev);

/*
 * Rows without samples for the fields of opts->type that have none; keys but those of types and fields are unknown.
 * Return: false if no access of the type was added.
 */
bool report_add_fields(struct report *r);

/* What a report of these is grouped by, with opts->type. */
#define REPORT_LAYOUT_KEYS 4
extern const enum label report_layout_keys[REPORT_LAYOUT_KEYS];

/* As text: the functions that read and write each field, and the bytes of its cache lines. */
void report_layout_print(FILE *f, struct report *r);

/* The latency of a sample of the metric's event. Return: false if it has none. */
bool report_latency(enum ibs_metric metric, const struct trace_sample *s, __u32 *lat);

/* What a sample waited, and for what. */
struct report_wait {
	__u32 lat;
	__u64 cycles;	  /* miss cycles; the latency if the period is unknown */
	enum ibs_src src; /* IBS_SRC_NONE, or _UNKNOWN: `known` is false; fetches have none */
	bool known;
	/* @cached: from another cache; @has_state: which reported the line's state; @hitm: modified (M, not O) */
	bool cached, has_state, hitm;
};

/* @period: of report_period(). Return: false if it has no latency. */
bool report_wait(enum ibs_metric metric, const struct trace_sample *s, __u64 period,
		 struct report_wait *out);

/* What a counter counts from one sample to the next. */
enum report_unit { REPORT_OPS = 1, REPORT_CYCLES = 2, REPORT_FETCHES = 4 };

struct container;

/**
 * report_cgroup_text() - a cgroup, its container or its pod
 * @key: LABEL_CGROUP, _CONTAINER or _POD
 * @buf: of CONTAINER_LABEL bytes
 *
 * As hist shows them: a cgroup without a path is its number, a container without a name its id.
 *
 * Return: "" for none, NULL for absent; may be in @c or @buf.
 */
const char *report_cgroup_text(const struct tasks *tasks, enum label key, __u64 id,
			       struct container *c, char *buf);

/* Units that one sample represents. Return: 0 if the recording does not say. */
__u64 report_period(const struct trace_info *info, const struct trace_event *ev,
		    enum report_unit *unit);

struct cell;

/*
 * An inlined function, and the next one that it was inlined into, of a label with SCREEN_INLINED. Names are as in struct
 * report_row.
 */
struct report_inlined {
	const char *name, *mangled, *into, *into_mangled;
	const char *function; /* the one that has the code, of the first sample */
};

/* Latencies are cycles of samples that have one: `valid` of them. */
struct report_row {
	const char *const *label;	      /* one a key; NULL: absent */
	const char *const *mangled;	      /* one a key; NULL: the label is not demangled */
	const struct report_inlined *inlined; /* of LABEL_SYMBOL; NULL: it is not inlined */
	__u64 samples, valid, sum;
	__u64 estimated, valid_ops; /* of all, and of `valid` */
	unsigned int units;	    /* enum report_unit bits */
	bool has_estimated;	    /* the period of all is known, and of one unit */
	__u32 max;
	__u64 last;	    /* time of the last sample: ns since 1970; 0: unknown */
	long p50, p90, p99; /* as series_percentile() has them: -1 for too few */
	__u64 loads, stores;
	__u64 translated, walks, aborted; /* of ibs_fetch: known translations, and fetches */
	unsigned int offsets, cpus, threads;
	/* latencies, each times the ops of its sample if they are known; what of it has a source */
	__u64 cycles, known, dram, remote; /* of ibs_fetch `dram` is what missed all caches */
	__u64 hitm, stateful, cached;	   /* as in struct table_row; of `all` hitm and state_n */
	/* the same of loads with a valid DcMissLat, and of those that retirement waited for; exposed cycles;
	   loads of which they are not known */
	__u64 missed, blocking, exposed, unexposed;
	/* physical pages; 0: unknown, or several rows. Those whose nodes are known, and report_cells.c */
	__u32 pages, placed, misplaced;
	struct estimate waits;	  /* of `cycles` */
	double price;		  /* see report_cells.c; NAN: no local memory to compare with */
	double imbalance;	  /* see report_cells.c; NAN: of no ranks */
	__u32 busiest;		  /* the rank with the most */
	const struct cell *cells; /* of its buckets */
	size_t n_cells;
};

/* How far functions of ops are known, and the nodes of their data. X(NAME, "name") */
#define CODE_KIND_TABLE(X)            \
	X(NAMED, "named")             \
	X(NO_SYMBOL, "no_symbol")     \
	X(NO_LIST, "jit_without_map") \
	X(GIVEN_UP, "given_up")       \
	X(NO_TIME, "no_time")         \
	X(NO_FILE, "no_file")         \
	X(NO_ADDRESS, "no_address")
#define NODE_KIND_TABLE(X)          \
	X(KNOWN, "known")           \
	X(NO_ADDRESS, "no_address") \
	X(NO_RANGE, "no_range")     \
	X(NO_CPU, "no_cpu")

enum code_kind {
#define CODE_KIND_ENUM(id, ...) CODE_##id,
	CODE_KIND_TABLE(CODE_KIND_ENUM)
#undef CODE_KIND_ENUM
		CODE_KIND_N
};

enum node_kind {
#define NODE_KIND_ENUM(id, ...) NODE_##id,
	NODE_KIND_TABLE(NODE_KIND_ENUM)
#undef NODE_KIND_ENUM
		NODE_KIND_N
};

/* The NUMA node of the data's physical address, or -1. */
int report_memory_node(const struct trace_info *info, const struct ibs_op_sample *op);

/* @sym: of the address of the op, if there is one; else it is not read */
enum code_kind report_code_kind(bool has_ip, const struct symbol *sym);
enum node_kind report_node_kind(const struct trace_info *info, const struct trace_sample *s);
const char *code_kind_name(enum code_kind k);
const char *node_kind_name(enum node_kind k);

/* "omp N": the number in the OpenMP team; or "start N", order of start. Return: false if neither is known. */
bool report_role(const struct tasks *tasks, const struct trace_event *ev, char *buf, size_t size);

/* Function and line of the OpenMP region that a sample was in. Return: false if it was in none. */
bool report_omp_region(const struct tasks *tasks, struct symbols *symbols,
		       const struct trace_event *ev, char *buf, size_t size);

struct object_name;

/* The function that called the one of a sample. Return: false if it has no call chain, or one without callers. */
bool report_caller(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		   struct object_name *out);

struct heap_block;

/* Where the data of a sample lies. Places are of virtual addresses, also with --phys. */
void report_place(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		  struct data_place *out);

/*
 * The allocation that a sample accessed. Return: false if none is known; @text then has what its data is instead, or "".
 */
bool report_sample_block(struct symbols *symbols, const struct tasks *tasks,
			 const struct trace_event *ev, struct heap_block *out, char *text,
			 size_t size);

/**
 * report_block() - the allocation that an address was in
 * @place: of the address, by symbols_data()
 *
 * Return: false if none is known.
 */
bool report_block(const struct tasks *tasks, __u32 tgid, __u64 addr, __u64 time,
		  const struct data_place *place, struct heap_block *out);

/* Function and line of the first frame of an allocation outside of the allocator. */
#define REPORT_SITE 8404 /* bytes */
void report_site(struct symbols *symbols, const struct tasks *tasks, const struct heap_block *b,
		 char *buf, size_t size);

/* Allocations on the wrong node. */
struct report_homes;
struct report_homes *report_homes_new(void);
void report_homes_free(struct report_homes *h); /* accepts NULL */
/* Add an access; opts: info, tasks and symbols are used. */
void report_homes_add(struct report_homes *h, const struct report_opts *opts,
		      const struct trace_event *ev);
/* As text: those that are used most from another node, and who touched them first. Nothing if there are none. */
void report_homes_print(FILE *f, const struct report_homes *h, const struct tasks *tasks);

#define REPORT_STACK \
	32768 /* bytes of a call chain as text; inner functions of a longer one are left out */

/* Functions of the call chain from the outermost on, with SCREEN_FRAME in between. Return: false if there is none. */
bool report_stack(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		  char *buf, size_t size);

/* Samples by what is known of them; NULL: not asked for. */
struct report_kinds {
	const __u64 *data, *types; /* by enum data_kind and type_kind */
	const __u64 *code, *nodes; /* by enum code_kind and node_kind */
};

struct report_table {
	const struct report_opts *opts;
	struct report_row *rows;
	size_t n;
	const char **labels;	/* that rows point to */
	struct report_row rest; /* of those left out */
	size_t n_rest;
	struct report_row total;
	struct cell *cells;
	__u64 total_buckets[IBS_LAT_BUCKETS], rest_buckets[IBS_LAT_BUCKETS];
	enum table_column sort; /* of the rows; never TABLE_CURRENCY */
	size_t n_ranks;		/* of MPI, in all recordings */
	struct report_kinds kinds;
	const char *estimated_unit; /* "ops", "cycles", "fetches"; NULL: not the same for all */
	bool strata;		    /* samples have weights of their own: buckets are ops */
	double effective; /* with strata: samples of equal weights that would be as good */
};

struct report_order {
	enum table_column sort; /* descending; rows that have it first */
	size_t top;		/* rows, 0: all */
	__u64 min_samples;
	bool by_key;		  /* by the first key, a number, ascending */
	bool weak_last, fold_few; /* as table_rank_weak() */
};

/**
 * report_table() - the rows, ordered, with what is left out added up in `rest`
 *
 * Percentiles are those of `hist`, upper edges of buckets and at most 1/8 too high, but never above
 * the maximum.
 *
 * Return: 0; the caller frees with report_table_free(), before @r.
 */
int report_table(struct report *r, const struct report_order *order, struct report_table *out);
void report_table_free(struct report_table *t);

/* What a column says of a row, shares as fractions; NAN: nothing. */
double report_value(const struct report_table *t, const struct report_row *r, enum table_column c);

/*
 * The pages of rows whose first key is one, as ranges in the order of addresses, neighbours joined: a line of START-END
 * in decimal each, as `damo start --regions` takes them.
 * What they cannot say is a warning.
 */
void report_regions_print(FILE *f, const struct report_table *t, bool simulated);

/*
 * After the table, as text: which functions the fetches are of that missed the L3 cache. Nothing without symbols, or of
 * fewer than VERDICT_SAMPLES such fetches.
 */
void report_fetches_print(FILE *f, const struct report *r);

/*
 * The value of a key: a number, an address, an enumerator, or a text by its number or address. The last word of
 * a row's key has bit k set where by[k] is absent.
 */
#define REPORT_WORDS (LABEL_ALL + 1)

/* How many words identify a row. */
static inline unsigned int report_key_words(const struct report_opts *opts)
{
	return opts->n_by + 1;
}

/* Find the words that identify the row of a sample. Return: false if its data is not of the type that is asked for. */
bool report_key_of(struct report *r, const struct trace_event *ev, __u64 *words);

/* The text of a word; @buf is for those that are numbers. NULL: absent. */
const char *report_label(const struct report *r, const __u64 *words, unsigned int k, char *buf,
			 size_t size);

/* Is it a key of names that may be mangled? */
bool report_is_name(enum label key);

/* The names in a text of LABEL_SYMBOL. Return: NULL if it is of a function that was not inlined. */
const struct report_inlined *report_inlined(const struct report *r, const __u64 *words,
					    unsigned int k);

/* The mangled name that a text of such a key is of; NULL: it is not mangled. */
const char *report_mangled(const struct report *r, const __u64 *words, unsigned int k);

/* What enum report_unit bits stand for, or NULL if it is not one thing. */
const char *report_unit_name(unsigned int units);

#endif
