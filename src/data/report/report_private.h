/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that a report is made of. */
#ifndef IBSCOPE_REPORT_PRIVATE_H
#define IBSCOPE_REPORT_PRIVATE_H

#include "base/intern.h"
#include "report.h"
#include "strata/strata.h"

struct sums {
	__u64 samples, valid, sum, estimated;
	__u64 valid_ops; /* represented by `valid` */
	__u64 loads, stores;
	__u64 translated, walks, aborted;
	__u64 cycles, known, dram, remote, hitm, stateful, cached; /* as in struct report_row */
	__u64 missed, blocking, exposed, unexposed;		   /* as in struct report_row */
	struct estimate waits;					   /* of `cycles` */
	__u64 last;    /* time of the last sample, ns since 1970; 0: unknown */
	__u64 offsets; /* bit n: byte n of the cache line */
	__u32 cpus, threads;
	__u16 max;
	__u8 units; /* enum report_unit bits */
	bool no_estimate;
};

/* One count of a row: of a bucket, a CPU or a thread. */
enum cell_kind {
	CELL_BUCKET,
	CELL_CPU,
	CELL_THREAD,
	CELL_PRICE,
	CELL_RANK,
	CELL_PAGE,
	CELL_PAGE_NODE /* of a page rather than a row: accesses from CPUs of a node */
};

struct cell {
	__u64 key; /* cell_key() */
	__u64 count;
};

static inline __u64 cell_key(size_t row, enum cell_kind kind, __u32 value)
{
	return (__u64)row << 35 | (__u64)kind << 32 | value;
}

static inline size_t cell_row(const struct cell *c)
{
	return c->key >> 35;
}

static inline enum cell_kind cell_kind(const struct cell *c)
{
	return c->key >> 32 & 7;
}

/* What heads the column of a key in text. */
const char *report_key_title(const struct report_opts *o, enum label l);

#define REPORT_MAX_ROWS (1u << 29)

/* Fetches that missed the L3 cache, where functions are known. */
struct report_fetches {
	struct intern names; /* functions */
	__u64 *counts;	     /* by number in `names` */
	size_t room;
	__u64 all, named;
};

/* Rows of inlined functions. */
struct inlined_row;
struct report_inlines {
	struct inlined_row *row;
	size_t n, room;
	struct u64_map of_word, of_pointer; /* of texts, and of struct inlined of this part */
};

struct report {
	struct report_opts opts;
	struct report_fetches fetches;
	unsigned int words; /* of a key */

	__u64 *keys; /* @words a row */
	struct sums *sums;
	size_t n, room, keys_room;
	struct u64_map row_of; /* by the hash of a row's key */

	struct cell *cells;
	size_t n_cells, cell_room;
	struct u64_map cell_of;

	struct intern texts;
	struct u64_map demangled; /* of texts that are mangled names */
	struct u64_map word_of;	  /* of names of functions, by their address; of this part */
	struct report_inlines inlined;
	struct u64_map site_of;	   /* of allocations, by stack and maps; of this part */
	struct u64_map cgroups[3]; /* id to text, for LABEL_CGROUP and the two behind it */
	struct u64_map ranks;	   /* those of MPI that there are, some without samples */
	size_t n_ranks;
	struct u64_map page_of; /* the physical pages, of TABLE_PAGES, */
	__u32 *page_node;	/* and their nodes; ~0: unknown */
	size_t n_pages, page_room;
	unsigned int flags;	  /* KEY_* of the keys; KEY_TYPES with opts.type, too */
	__u64 data[DATA_KIND_N];  /* samples, with KEY_DATA */
	__u64 types[TYPE_KIND_N]; /* samples, with KEY_TYPES */
	__u64 code[CODE_KIND_N];  /* samples, by LABEL_SYMBOL */
	__u64 nodes[NODE_KIND_N]; /* samples, with KEY_NODES */
	__u64 begins; /* bit n: an object of opts.type begins n bytes into a cache line */
	__u32 part;
	bool strata;				     /* buckets have ops, not samples */
	struct estimate weights;		     /* of samples of strata */
	struct strata_spread *spread, spread_of_all; /* of miss cycles; of rows below `spreads` */
	size_t spreads;
};

/* Add to a count. Return: whether it is the first of its kind. */
bool report_count(struct report *r, size_t row, enum cell_kind kind, __u32 value, __u64 n);

/* Add what a sample cost, and as how many ops it counts, to what the price is worked out of. */
void report_price_add(struct report *r, size_t row, const struct trace_event *ev, __u64 cycles,
		      __u64 ops);
/* Set the prices of rows [0, r->n). */
void report_prices(const struct report *r, struct report_row *rows);

/* Add what a sample of a rank cost. */
void report_ranks_add(struct report *r, size_t row, const struct trace_event *ev, __u64 cycles);
/* Set the imbalances of rows, as long as they are in the order of cells, and of the total. */
void report_imbalances(const struct report *r, struct report_table *t);

/* Add the page of a sample. */
void report_pages_add(struct report *r, size_t row, const struct trace_event *ev);
/* Set what is known of the pages of rows, as long as they are in the order of cells, and of the total. */
void report_pages(const struct report *r, struct report_table *t);

/* The words of a field of which there is no sample. */
void report_key_of_field(struct report *r, const struct type_access *field, __u64 *words);

/* Find the word of LABEL_SYMBOL for the function that was inlined at a symbol's address. Return: true */
bool report_inlined_word(struct report *r, const struct inlined *f, const struct symbol *sym,
			 __u64 *word);
/* What follows is of another recording. */
void report_inlines_part(struct report_inlines *all);
void report_inlines_free(struct report_inlines *all);

/* Find the word of LABEL_ALLOCATION. Return: false if the sample has none. */
bool report_allocation_word(struct report *r, const struct trace_event *ev,
			    const struct data_place *place, __u64 *word);

/* Count a sample of ibs_fetch. */
void report_fetches_add(struct report *r, const struct trace_event *ev);

/* "the full stratum", or the other; NULL: the recording has no strata. */
const char *report_strata_of(const struct trace_info *info, unsigned int event);

/* Of strata: add what slices differ in to the miss cycles of a row, and to the intervals of rows and of the total. */
void report_strata_add(struct report *r, size_t row, const struct trace_sample *s, double cycles);
void report_strata_intervals(struct report *r, struct report_table *t);

/* Only of strata: buckets of a row as ops, and its error. */
struct table_row;
void report_strata_row(const struct report_table *t, const struct report_row *row,
		       struct table_row *out);

/* Enter the buckets of a row. */
void report_buckets(const struct report_row *row, __u64 *buckets);

#endif
