/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The counters at the last reading, in bounded memory, and their increase since then. */
#ifndef IBSCOPE_METRICS_BASE_H
#define IBSCOPE_METRICS_BASE_H

#include "metrics_private.h"

/*
 * Bytes of the counts that are kept of all groups of an event, the costliest first. Only a group whose counts are
 * kept, or that is new, can have a row of its own in the next interval.
 */
#define METRICS_BASE_MAX (2 << 20)

struct base_group {
	__u64 samples;
	double cost;
	__u32 at;	  /* of its packed counts; BASE_NONE: not kept */
	__u32 histograms; /* where they begin in them */
};

/* One event of a reading. Zero: there was none. */
struct metrics_base {
	bool any, coarse;
	__u64 start_ns; /* when the counters began */
	__u32 starts;	/* of collectors */
	struct ledger ledger;
	struct base_group whole;
	struct base_group *group;
	size_t n, room;
	struct u64_map by_labels; /* by the hash of the labels */
	unsigned char *counts;
	size_t n_counts, counts_room;
};

/* A group of a reading, and its cost since the base. */
struct base_rank {
	__u32 group;
	bool active; /* it has new samples */
	__u64 hash;
	double cost, recent;
};

/* An event of a reading beside its base. */
struct base_event {
	const struct metrics_groups *groups;
	const struct reading *reading;
	struct base_rank *rank; /* of all groups, the costliest since the base first */
	size_t n_active;
};

/* Rank the groups. Free it with base_event_free(). */
void base_event_init(struct base_event *e, const struct metrics *m, unsigned int event,
		     const struct metrics_base *base);
void base_event_free(struct base_event *e);

/* Keep a reading as the next base. */
void base_keep(struct metrics_base *base, const struct base_event *e);
void base_drop(struct metrics_base *base);
size_t base_bytes(const struct metrics_base *base);

/* Counts of a group between two readings. */
struct base_work {
	struct metrics_group now, old, rest;
};

/* The whole since the base as w->rest. Return: false if a counter decreased: the counters began again. */
bool base_rest(const struct metrics_base *base, const struct base_event *e, struct base_work *w);

/*
 * The group of rank @i since the base as w->now, and subtract it from w->rest. Return: 1; 0 if its counts were
 * not kept, so that it stays in the rest; -EUCLEAN if the rest was less, which is then spoiled.
 */
int base_take(const struct metrics_base *base, const struct base_event *e, size_t i,
	      struct base_work *w);

/* The ledger since the base; what is not known to have only increased becomes unknown. */
bool base_ledger(const struct metrics_base *base, const struct base_event *e, struct ledger *out);

#endif
