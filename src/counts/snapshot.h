/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All that was counted up to a moment, as plain data. Every formatter takes one; an interval is the
 * difference of two.
 */
#ifndef IBSCOPE_SNAPSHOT_H
#define IBSCOPE_SNAPSHOT_H

#include <ibscope/maps.h>
#include <stddef.h>

struct series {
	enum ibs_op_kind op; /* of ibs_fetch an enum ibs_fetch_itlb, */
	enum ibs_src src;    /* and an enum ibs_fetch_class */
	__u64 samples;	     /* all, also those without a valid latency */
	__u64 valid;	     /* of them, those with one: the sum of the buckets */
	__u64 sum;	     /* cycles, of the valid ones */
	__u64 ops;	     /* estimated ops (or cycles); 0: unknown */
	__u64 cycles; /* miss cycles: latencies, each times the ops of its sample; 0 with a sum: unknown */
	/* These count only loads that missed L1, and only if the latency is that of the miss: */
	__u64 open_n, open; /* those that tell how many requests were open, and the sum of that */
	__u64 state_n; /* those that tell the state of the line in the cache that it came from */
	__u64 hitm;    /* miss cycles (latencies if those are unknown) of modified lines */
	double price; /* miss cycles above those of local memory, set by snapshot_prices(); NAN: unknown */
	__u64 *buckets; /* IBS_LAT_BUCKETS of them, or NULL where no sample can have a latency */
};

/* Samples that missed the L1 data TLB, as far as they report how. */
struct tlb_counts {
	__u64 l2_hit, l2_miss;
	__u64 l2_hit_ops, l2_miss_ops; /* estimated; 0: unknown */
	__u64 refills, refill_cycles;  /* only those with a valid latency */
};

struct group {
	__u32 slot;
	bool other; /* what found no slot of its own */
	bool ended; /* `other` too, but of groups that had a slot: nothing is added as it is sampled */
	struct ibs_group_key key;
	__u32 symbol; /* number of the function; only of recordings by BY_SYMBOL (rows.h) */
	bool has_tlb; /* they are counted */
	struct tlb_counts tlb;
	size_t n_series;
	struct series *series; /* those with samples, ordered by source, then op */
};

struct ledger {
	__u64 seen;
	__u64 outcome[IBS_OUTCOME_N];
	__u64 pmu_samples; /* count / period, as the kernel had it */
	__u64 unseen;	   /* of them, those that the program never saw */
	bool pmu_exact;	   /* the two before are exact */
	__u64 dropped;	   /* tags (see pmu_state) that were dropped by the hardware */
	bool dropped_known;
	__u64 undelivered; /* tags that were valid, but never reached the program */
	bool undelivered_known;
};

struct pmu_state {
	unsigned int cpus;
	__u64 counted;		      /* ops or cycles */
	__u64 enabled_ns, running_ns; /* over all CPUs */
	__u64 throttled;
	__u64 went, came; /* CPUs that went offline and came online meanwhile */
	/*
	 * by core counters: tagged ops that retired, or tagged fetches that were not discarded;
	 * while all CPUs sampled, those, and retired ops (or cycles, or fetches)
	 */
	__u64 tagged, tag_n, tag_ops;
	bool tags_known;
	__u64 valid; /* the tags that interrupted */
	bool valid_known;
};

/* Miss cycles of CPUs that share their counters: those of an L3 complex, or of some of them. */
struct shard_cost {
	__u64 cycles[IBS_SRC_N];
};

struct snapshot {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct ledger ledger;
	struct pmu_state pmu;
	__u32 by; /* enum ibs_by bits: members of keys that mean something */
	size_t n_groups;
	struct group *groups; /* ordered by slot */
	size_t n_shards;      /* 0: not asked for */
	struct shard_cost *shards;
};

/**
 * snapshot_diff() - what happened between two snapshots of one sampler
 * @older: may be NULL for all since the start
 * @out:   its time_ns is the length of the interval; the caller frees it
 *
 * Where samples have no period to stand for, but what was tagged is known, estimates come from that:
 * each sample stands for the ops of one tag.
 */
void snapshot_diff(const struct snapshot *newer, const struct snapshot *older,
		   struct snapshot *out);

/* What a group counted since @older, which may be NULL; only series with new samples. The caller frees @out. */
void group_diff(const struct group *newer, const struct group *older, struct group *out);

/* Estimate what a group's samples stand for from what was tagged meanwhile, where it is not known. */
void group_weigh(struct group *g, const struct pmu_state *pmu);

/* Frees its series, and leaves it without any. */
void group_free(struct group *g);

/* Frees what @s owns and zeroes it; @s may be zero already. */
void snapshot_free(struct snapshot *s);

/* How many groups have counters of their own. */
size_t snapshot_groups(const struct snapshot *s);

/* Add @l to @to, -1: take it away; both are exact or the sum is not. */
void ledger_add(struct ledger *to, const struct ledger *l, int sign);

/* Sum over an outcome kind. */
__u64 ledger_sum(const struct ledger *l, enum ibs_outcome_kind kind);

/* seen - (aggregated + forwarded + filtered + lost): 0, or something is wrong. */
long long ledger_residual(const struct ledger *l);

/* The names of the tables in ibscope/. */
const char *outcome_name(enum ibs_outcome o);
enum ibs_outcome_kind outcome_kind(enum ibs_outcome o);
const char *op_kind_name(enum ibs_op_kind op);
const char *src_name(enum ibs_src src);
const char *fetch_class_name(unsigned int c); /* enum ibs_fetch_class */
const char *itlb_name(unsigned int itlb);     /* enum ibs_fetch_itlb */
const char *metric_name(enum ibs_metric m);
const char *mode_name(unsigned int mode); /* enum ibs_mode */

/**
 * series_percentile() - the latency that a share of a series' samples does not exceed
 * @q: 0 < q < 1
 *
 * Needs so many valid samples that at least one lies beyond: 1 / (1 - q), 100 for p99.
 *
 * Return: the upper edge of the bucket that holds it, at most 1/8 too high; or -1 if the count
 * does not support it.
 */
long series_percentile(const struct series *s, double q);

void tlb_add(struct tlb_counts *a, const struct tlb_counts *b);

/* Add @b to @a; the buckets too. */
void series_add(struct series *a, const struct series *b);

#endif
