/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The intervals of the last ten minutes, packed. Where they need more memory than allowed, old ones
 * are added up in pairs: the past gets coarser, not shorter.
 */
#ifndef IBSCOPE_HISTORY_H
#define IBSCOPE_HISTORY_H

#include "base/u64_map.h"
#include "rows/rows.h"

#define HISTORY_S	600
#define HISTORY_BYTES	(6 << 20)
#define HISTORY_NO_COST (-1.0)

struct place_cost {
	float cycles, remote;
};

/* What is known of an interval beside its groups. */
struct frame {
	__u64 first,
		number; /* of the intervals in it, which count from 1: the first and the last */
	__u64 end_ns;	/* CLOCK_REALTIME */
	__u64 time_ns;	/* its length */
	__u32 by;	/* enum ibs_by bits of its groups */
	double cost;	/* share of the CPUs' time; HISTORY_NO_COST: unknown */
	__u64 period;	/* 0: it varied */
	enum ibs_metric metric;
	struct ledger ledger;
	struct pmu_state pmu;
	size_t n_places;	  /* struct places */
	struct place_cost *place; /* miss cycles, and those of them answered by another node */
	/* private */
	bool strata; /* the interval has a report of strata */
	__u32 n;     /* groups with samples */
	struct frame_group *groups;
	unsigned char *data;
	size_t bytes;
};

struct history;

struct history *history_new(void);
void history_free(struct history *h); /* accepts NULL */

/**
 * history_add() - keep an interval
 * @info: of it; ledger, pmu and time_ns are those of @interval
 * @name: of cgroups, as of now; the names are kept
 */
void history_add(struct history *h, const struct snapshot *interval, const struct frame *info,
		 cgroup_namer name, void *arg);

size_t history_n(const struct history *h);
/* @i: 0 is the newest */
const struct frame *history_frame(const struct history *h, size_t i);
/* The interval again; the caller frees *out. */
void history_snapshot(const struct history *h, size_t i, struct snapshot *out);
/* Names for rows_build(), as they were when the cgroup was last seen; @arg is the history. */
const char *history_name(void *arg, __u64 id, enum label l);

/**
 * history_trend() - miss cycles per second of rows, over @n intervals up to the one @i
 * @rows: from table_row_hash() to rows of @out
 * @out:  @n for each row, the last one for @i; NAN where there is no interval
 */
void history_trend(struct history *h, size_t i, unsigned int labels, const struct u64_map *rows,
		   size_t n_rows, float *out, size_t n);

#endif
