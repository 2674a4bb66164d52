/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One function of a recording by instruction. Samples of ops have the exact address of their instruction;
 * those whose address the processor calls invalid, and samples of fetches, belong to none.
 */
#ifndef IBSCOPE_ANNOTATE_H
#define IBSCOPE_ANNOTATE_H

#include "base/intern.h"
#include "symbols/symbols.h"

#define ANNOTATE_BYTES_MAX (1u << 20) /* of a function */

/* X(NAME, "name", "HEADING", rank, "meaning"); where the width is small the lowest rank is left out first. */
#define ANNOTATE_COLUMN_TABLE(X)                                                                 \
	X(SAMPLES, "samples", "SAMPLES", 9, "samples")                                           \
	X(SAMPLE_SHARE, "sample_share", "SAMPLES %", 1, "share of the function's samples")       \
	X(CYCLES, "miss_cycles", "MISS CYCLES", 8, "latency x ops that a sample stands for")     \
	X(SHARE, "share", "SHARE", 10, "share of the function's miss cycles")                    \
	X(MEAN, "mean", "MEAN", 7, "mean latency, cycles")                                       \
	X(DRAM, "dram", "DRAM", 6, "share of the row's miss cycles that DRAM of any node cost")  \
	X(REMOTE, "remote", "REMOTE", 5, "share of the row's miss cycles that other nodes cost") \
	X(HITM, "hitm", "HITM", 4,                                                               \
	  "share of the row's miss cycles for lines that another cache had modified")            \
	X(WALK, "walk", "WALK", 3, "share of loads and stores that walked page tables")          \
	X(MISP, "mispredicted", "MISPRED", 2, "share of retired branches that were mispredicted")

enum annotate_column {
#define ANNOTATE_COLUMN_ENUM(name, ...) ANNOTATE_##name,
	ANNOTATE_COLUMN_TABLE(ANNOTATE_COLUMN_ENUM)
#undef ANNOTATE_COLUMN_ENUM
		ANNOTATE_COLUMN_N
};

struct annotate_sums {
	__u64 samples, valid, sum; /* latencies of `valid` samples, cycles */
	/* miss cycles, or latencies where a period is unknown; what of them has a source */
	__u64 cycles, known, dram, remote, hitm;
	__u64 cached, states;  /* samples from other caches; those that tell the line's state */
	__u64 memory;	       /* samples of loads and stores */
	__u64 accesses, walks; /* those whose translation is known */
	__u64 branches, mispredicted; /* retired; only samples with all registers tell */
	bool no_period;
};

/* An instruction, or bytes that are none. */
struct annotate_row {
	__u64 addr;
	unsigned int len;
	bool inside;		 /* a sample's address is within the row before */
	char *text;		 /* never NULL */
	struct type_access data; /* what it accesses in memory */
	const char *file;	 /* NULL: the source is not known */
	int line;
	const struct annotate_sums *sums; /* NULL: no samples */
};

/* A function with the name that was asked for. */
struct annotate_function {
	struct symbol_code code;
	struct annotate_sums total, *sums;
	size_t n, room;	   /* of sums: addresses with samples */
	struct u64_map of; /* from an address to its place there */
};

struct annotate_opts {
	const struct trace_info *info;
	const struct tasks *tasks;
	struct symbols *symbols;
	enum ibs_metric metric;
	const char *name;   /* of the function */
	const char *object; /* path or last part of the path of its file; NULL: any */
	bool intel;	    /* syntax */
};

struct annotate {
	struct annotate_opts opts;
	struct annotate_function
		*function; /* the costliest first once annotate_finish() was called */
	size_t n_functions, room;
	struct intern names; /* of functions with samples */
	struct intern paths; /* of sources */
	/* samples of ops in function[1] and so on, in functions of other names, and without an exact address */
	__u64 namesakes, elsewhere, inexact;
	__u64 fetches; /* samples of fetches */

	/* of function[0] */
	struct annotate_row *row;
	size_t n, rows_room;
	__u64 types
		[TYPE_KIND_N]; /* samples by what is known of the data that their instructions access */
};

struct annotate *annotate_new(const struct annotate_opts *opts);
void annotate_free(struct annotate *a); /* accepts NULL */

/* Add a sample. */
void annotate_add(struct annotate *a, const struct trace_event *ev);

/**
 * annotate_finish() - choose the function and disassemble it
 *
 * Return: 0, or a negative errno with @err: -ENOENT no sample is in such a function, -E2BIG it is too
 * large, -ENODATA its code cannot be read.
 */
int annotate_finish(struct annotate *a, struct err *err);

/* What a column says of a row, shares as fractions; NAN: nothing. @total: of the function */
double annotate_value(const struct annotate_sums *s, const struct annotate_sums *total,
		      enum annotate_column column);

const char *annotate_column_name(enum annotate_column c);

#endif
