/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One function of a recording by instruction. Samples of ops have the exact address of their instruction; samples
 * with an address that the processor marks as invalid, and samples of fetches, belong to no instruction.
 */
#ifndef IBSCOPE_ANNOTATE_H
#define IBSCOPE_ANNOTATE_H

#include "base/intern.h"
#include "base/estimate.h"
#include "symbols/symbols.h"
#include "table/columns.h"

#define ANNOTATE_BYTES_MAX (1u << 20) /* of a function */

extern const struct columns annotate_columns;

struct annotate_sums {
	__u64 samples, valid;
	/* of strata, these, translations and branches count each sample as often as its weight says */
	__u64 timed, sum; /* `valid`, and the sum of their latencies, cycles */
	/* miss cycles, or latencies if a period is unknown; the part with a known source */
	__u64 cycles, known, dram, remote, hitm;
	struct estimate waits;	      /* of `cycles` */
	__u64 cached, states;	      /* samples from other caches; those with the line's state */
	__u64 memory;		      /* samples of loads and stores */
	__u64 stores;		      /* samples that only store: they have no latency */
	__u64 accesses, walks;	      /* samples with a known translation; page walks */
	__u64 branches, mispredicted; /* retired; needs all registers */
	bool no_period;
};

/* An instruction, or bytes that are not a valid instruction. */
struct annotate_row {
	__u64 addr;
	unsigned int len;
	bool inside;		 /* a sample's address is within the row before */
	char *text;		 /* never NULL */
	struct type_access data; /* what it accesses in memory */
	const char *file;	 /* NULL: unknown source */
	int line;
	const struct annotate_sums *sums; /* NULL: no samples */
	const struct inlined *inlined;	  /* NULL: of the function itself */
};

/* A function that called another one. */
struct annotate_caller {
	const char *name, *mangled; /* as long as the symbols; NULL: no call chain says it */
	__u64 samples, cycles;	    /* of the function that it called */
};

/* A function with the requested name. */
struct annotate_function {
	struct symbol_code code;
	struct annotate_sums total, *sums;
	size_t n, room;			 /* of sums: addresses with samples */
	struct u64_map of;		 /* address to index in sums */
	struct annotate_caller *callers; /* most expensive first, after annotate_finish() */
	size_t n_callers, callers_room;
	struct u64_map caller_of; /* by number of the name in annotate.callers + 1; 0: unknown */
	__u32 name;		  /* in annotate.names */
	__u32 next; /* of that name, in annotate.function before annotate_finish(), or U64_MAP_NONE */
};

struct annotate_opts {
	const struct trace_info *info;
	const struct tasks *tasks;
	struct symbols *symbols;
	enum ibs_metric metric;
	const char *
		name; /* of the function, as printed or as the linker has it; NULL: the one with most miss cycles */
	const char *object; /* path or last part of the path of its file; NULL: any */
	bool intel;	    /* syntax */
};

struct annotate {
	struct annotate_opts opts;
	struct annotate_function *function; /* most expensive first, after annotate_finish() */
	size_t n_functions, room;
	struct intern names;   /* of functions with samples */
	struct intern callers; /* mangled names of those that called them */
	const char *
		inlined_into; /* as long as function[0] is none: one with the requested name inlined */
	struct u64_map named; /* the last function with a name */
	struct intern paths;  /* of sources */
	/* samples of ops in function[1] and so on, in functions of other names, and without an exact address */
	__u64 namesakes, elsewhere, inexact;
	__u64 fetches; /* samples of fetches */

	/* of function[0] */
	struct annotate_row *row;
	size_t n, rows_room;
	__u64 types[TYPE_KIND_N]; /* samples by kind of the type that their instructions access */
};

struct annotate *annotate_new(const struct annotate_opts *opts);
void annotate_free(struct annotate *a); /* accepts NULL */

/* Add a sample. */
void annotate_add(struct annotate *a, const struct trace_event *ev);

/**
 * annotate_finish() - choose the function and disassemble it
 *
 * Return: 0, or a negative errno with @err: -ENOENT no samples in such a function, -E2BIG the function is
 * too large, -ENODATA its code cannot be read.
 */
int annotate_finish(struct annotate *a, struct err *err);

/* Are the shares of callers those of miss cycles? Otherwise of samples. */
bool annotate_callers_by_cycles(const struct annotate *a);

/* The value of a column, shares as fractions; NAN: unknown. @total: sums of the function */
double annotate_value(const struct annotate_sums *s, const struct annotate_sums *total,
		      enum table_column column);

#endif
