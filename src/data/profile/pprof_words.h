/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a profile counts, found by words. */
#ifndef IBSCOPE_PPROF_WORDS_H
#define IBSCOPE_PPROF_WORDS_H

#include "base/array.h"
#include "base/parallel.h"
#include "base/u64_map.h"

/* Things by their words; the numbers of equal ones are the same. */
struct word_table {
	__u64 *words;
	size_t n, room;
	struct u64_map of;
	__u32 *recent; /* indexes that word_table_again() returned */
};

/* The index of some words in @t, in units of a word. */
__u32 word_table_at(struct word_table *t, const void *words, size_t n);
/* The same for words that often come again soon. */
__u32 word_table_again(struct word_table *t, const void *words, size_t n);
void word_table_free(struct word_table *t);

/* One cache line: there are nearly as many rows as samples. */
struct pprof_row {
	__u32 labels, stack; /* their indexes */
	__u32 service;	     /* index of its name; 0: none */
	__u32 dram;	     /* samples whose data came from DRAM */
	__u64 samples, latency, remote_latency, cycles, remote_cycles, estimated;
};

#define PPROF_AT_ONCE 32   /* lookups that wait for memory together */
#define PPROF_BATCH   4096 /* rows of a job */

/* The zero value is empty. Complete after pprof_rows_flush(); before that, another thread may add to them. */
struct pprof_rows {
	struct pprof_row *row;
	size_t n, room;
	struct u64_map of;
	struct parallel_queue queue; /* of struct pprof_row */
};

/* Add up rows of the same labels, stack and service. */
void pprof_rows_add(struct pprof_rows *r, const struct pprof_row *row);
/* Add what waits. */
void pprof_rows_flush(struct pprof_rows *r);
void pprof_rows_free(struct pprof_rows *r);

#endif
