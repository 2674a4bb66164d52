/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All counts up to a moment, as plain data for formatters; an interval is a difference of two. */
#ifndef IBSCOPE_SNAPSHOT_H
#define IBSCOPE_SNAPSHOT_H

#include "base/json_writer.h"
#include "strata/strata.h"

#include <ibscope/maps.h>
#include <stddef.h>
#include <stdio.h>

/* Ops of a slice with a latency, and the sum of squares of what each sample represents. */
struct strata_timed {
	__u16 slice, bucket;
	float ops, square;
};

/* Of a series with samples of two strata: what they stand for, each with its own weight. */
struct series_strata {
	/* of the snapshot; NULL: samples have weights of their own, and no slices are known */
	const struct strata_design *design;
	struct strata_sum cycles, ops;	/* miss cycles and estimated ops, by slice */
	__u64 buckets[IBS_LAT_BUCKETS]; /* estimated ops by latency */
	struct strata_timed *timed;	/* the same by slice; only with a design */
	size_t n_timed, timed_room, n_sorted;
};

struct series {
	enum ibs_op_kind op; /* ibs_fetch: enum ibs_fetch_itlb */
	enum ibs_src src;    /* ibs_fetch: enum ibs_fetch_class */
	__u64 samples;	     /* all, including those without a valid latency */
	__u64 valid;	     /* those with a valid latency: the sum of the buckets */
	__u64 sum;	     /* cycles, of valid latencies */
	__u64 ops;	     /* estimated ops (or cycles); 0: unknown */
	__u64 cycles; /* miss cycles: sum of latency times ops; 0 with a nonzero sum: unknown */
	/* These count only loads that missed L1, and only with a miss latency as metric: */
	__u64 open_n, open; /* samples with a valid number of open requests, and their sum */
	__u64 state_n;	    /* samples with a valid line state in the cache it came from */
	__u64 hitm;	    /* miss cycles (latencies if those are unknown) of modified lines */
	/*
	 * Exposed cycles (latencies if ops are unknown). They are known if exposed_n, modulo 2^64, is `valid`: it lacks
	 * all samples of the group of which they are not, whatever their source.
	 */
	__u64 exposed, exposed_n;
	/* extra miss cycles over local memory, set by snapshot_prices(); NAN: unknown */
	double price;
	double share_error; /* of all sums: pmu_share_error(), or 0 if that is unknown */
	__u64 *buckets;	    /* IBS_LAT_BUCKETS of them, or NULL if no sample can have a latency */
	struct series_strata *strata; /* NULL: all samples have the same weight */
};

/* Samples reported to have missed the L1 data TLB. */
struct tlb_counts {
	__u64 l2_hit, l2_miss;
	__u64 l2_hit_ops, l2_miss_ops; /* estimated; 0: unknown */
	__u64 refills, refill_cycles;  /* only those with a valid latency */
};

struct group {
	__u32 slot;
	bool other; /* samples that found no slot of their own */
	bool ended; /* also `other`, but of groups that had a slot: only folds add to it */
	struct ibs_group_key key;
	__u32 symbol;	  /* number of the function; only in recordings, with BY_SYMBOL (rows.h) */
	bool has_tlb;	  /* TLB misses are counted */
	bool has_exposed; /* exposed cycles are counted; read from counters only */
	bool weighted;	  /* samples of its series stand for different numbers of ops */
	struct tlb_counts tlb;
	size_t n_series;
	struct series *series; /* those with samples, ordered by source, then op */
};

struct ledger {
	__u64 seen;
	__u64 outcome[IBS_OUTCOME_N];
	__u64 pmu_samples; /* count / period */
	__u64 unseen;	   /* those that the program never saw */
	bool pmu_exact;	   /* the two above are exact */
	__u64 dropped;	   /* tags (see pmu_state) that the hardware dropped */
	bool dropped_known;
	__u64 undelivered; /* tags that were valid, but never reached the program */
	bool undelivered_known;
};

struct pmu_state {
	unsigned int cpus;
	__u64 counted;		      /* ops or cycles */
	__u64 enabled_ns, running_ns; /* over all CPUs */
	__s64 extra_ns; /* time off the PMU that estimates make up for already, CPU by CPU */
	/*
	 * Variance of the ops (or cycles) that are made up for, as the load in the time of the other user may have been
	 * another one, and the number of differences of the load that it follows from.
	 */
	double share_variance;
	__u64 share_n;
	__u64 throttled;
	__u64 went, came; /* CPUs that went offline and came online */
	/*
	 * from core counters: `tagged` ops that retired, or fetches that were not discarded;
	 * `tag_n`: those while all CPUs sampled, `tag_ops`: retired ops (or cycles, fetches) then
	 */
	__u64 tagged, tag_n, tag_ops;
	bool tags_known;
	__u64 ops;   /* retired ops (or cycles, fetches) while tags were counted */
	__u64 valid; /* tags that raised an interrupt */
	bool valid_known;
};

/* Miss cycles of the CPUs of a shard: those of one or more L3 complexes. */
struct shard_cost {
	__u64 cycles[IBS_SRC_N];
};

/* How an interval was sampled in strata. */
struct strata_report {
	struct strata_design design;
	struct ledger ledger[STRATUM_N];
	__u64 period[STRATUM_N];      /* the last one */
	const char *event[STRATUM_N]; /* of the session */
};

struct snapshot {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	struct ledger ledger;
	struct pmu_state pmu;
	__u32 by; /* enum ibs_by bits: valid members of keys */
	size_t n_groups;
	struct group *groups; /* ordered by slot */
	size_t n_shards;      /* 0: not requested */
	struct shard_cost *shards;
	struct strata_report *strata; /* NULL: one event sampled all the time */
};

/* What a recording says about its making, as opposed to what is computed from it now. */
struct hist_recorded {
	const char *file;	     /* as a word of another command */
	const struct ledger *ledger; /* NULL: not recorded */
	__u64 lost;		     /* records lost while recording */
	bool whole;		     /* complete */
};

/* How an interval was measured. */
struct hist_info {
	const char *source; /* "ibs", "sim", "replay" */
	const char *event;
	__u64 period; /* 0: it varied */
	enum ibs_metric metric;
	bool simulated;
	__u64 end_ns; /* CLOCK_REALTIME of the end of the interval; 0: not printed */
	__u64 since_ns; /* CLOCK_REALTIME of the first sample of counters that only grow; 0: an interval */
	const struct hist_recorded *recorded; /* NULL: not a replay */
};

/**
 * snapshot_diff() - difference of two snapshots of one sampler
 * @older: may be NULL for everything since the start
 * @out:   its time_ns is the length of the interval; the caller frees it
 *
 * If samples have no known period but tags were counted, estimates are based on tags: each sample
 * counts for the ops of one tag.
 */
void snapshot_diff(const struct snapshot *newer, const struct snapshot *older,
		   struct snapshot *out);

/* By how much estimates of an interval must be scaled up for the time that another user had the PMU. */
double pmu_scale(const struct pmu_state *pmu);

/*
 * Standard error of estimates, relative to them, because another user had the PMU for a part of the time. Return: 0 if
 * none had; NAN if it is unknown.
 */
double pmu_share_error(const struct pmu_state *pmu);

/*
 * Estimate the ops of a group's samples from the tags of the interval, if unknown, and scale estimates up
 * by the time that another user had the PMU. Once for each interval.
 */
void group_weigh(struct group *g, const struct pmu_state *pmu);

/* If samples of its series have different weights, make sums of series have them. group_weigh() does that, too. */
void group_weigh_series(struct group *g);

/**
 * stratified_new() - combine slices of two strata
 * @reach: 1 << enum ibs_src of samples that both take; those of other sources that the filter lets
 *	   through are in the ledger only
 */
struct stratified;
struct stratified *stratified_new(__u32 reach);
void stratified_free(struct stratified *s); /* accepts NULL */

/**
 * stratified_add() - add the samples of a slice
 * @period: of the sampler in that slice
 * @slices: more than 1 if these are samples of several slices of one stratum, period, and window (strata/strata.h)
 * @slice:  a difference of two snapshots of the sampler of that stratum
 */
void stratified_add(struct stratified *s, enum stratum of, __u64 period, unsigned int slices,
		    const struct snapshot *slice);

/* True if the next slice makes the earlier ones twice as long. */
bool stratified_is_full(const struct stratified *s);

/*
 * All slices as one interval: its ledger is the sum of both, and its estimates are weighted. Then
 * only stratified_free() is allowed. The caller frees @out, and adds names and periods.
 */
void stratified_end(struct stratified *s, struct snapshot *out);

/**
 * snapshot_share_design() - let two intervals of strata have the same slices, so that series_add() can add up theirs
 * @a:    the earlier one; its report becomes that of both
 * @b:    its series have the design of @a from now on, and its own report is of no use
 * @most: slices, 4 to STRATA_SLICES; if there are more, neighbours are merged of the one that has more, or of @a
 */
void snapshot_share_design(struct snapshot *a, struct snapshot *b, unsigned int most);

/* Free what a series owns. */
void series_free(struct series *s);

/* Free its series. */
void group_free(struct group *g);

/* Free everything that @s owns, and zero it; @s may already be zero. */
void snapshot_free(struct snapshot *s);

/* Number of groups with counters of their own. */
size_t snapshot_groups(const struct snapshot *s);

/* Add @l to @to, or with @sign -1 subtract it; the result is exact if both are. */
void ledger_add(struct ledger *to, const struct ledger *l, int sign);

/* Add that of another time, with its tags; they are known if both are. */
void ledger_join(struct ledger *to, const struct ledger *l);

/* Sum over an outcome kind. */
__u64 ledger_sum(const struct ledger *l, enum ibs_outcome_kind kind);

/* seen - (aggregated + forwarded + filtered + lost): 0, or something is wrong. */
long long ledger_residual(const struct ledger *l);

/* The ledger in words: "seen N = aggregated N + filtered N (pid N) + lost N; unseen N". */
void ledger_print(FILE *f, const struct ledger *l);

/* The same as the member "ledger". */
void ledger_put(struct json_writer *w, const struct ledger *l);

/* Print either on a separate line, prefixed with the event unless NULL. */
void ledger_print_line(FILE *f, const char *event, const struct ledger *l, bool json);

/* Names from the tables in ibscope/. */
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
 * Needs enough valid samples for at least one to lie beyond: 1 / (1 - q), 100 for p99.
 *
 * Return: the upper edge of the bucket that holds it, at most 1/8 too high; or -1: too few samples, or their weights are
 * unknown.
 */
long series_percentile(const struct series *s, double q);

/**
 * series_percentile_interval() - where series_percentile() lies, with 95 % confidence
 * @low, @high: edges of the buckets that hold the bounds
 *
 * Return: false if that is unknown. Without slices it takes 6 samples for the median, 36 for p90, and 368 for p99; with
 * them as many that have equal weights, and two slices of each stratum with samples.
 */
bool series_percentile_interval(const struct series *s, double q, long *low, long *high);

/* Estimated ops with a latency. */
__u64 strata_timed_ops(const struct series_strata *x);

/* Add @n entries, with their ops times @shared. */
void strata_timed_add(struct series_strata *to, const struct strata_timed *list, size_t n,
		      double shared);

/* Order by slice and bucket, and combine equal ones. Return: how many are left */
size_t strata_timed_sort(struct strata_timed *list, size_t n);

/* Mean latency of the ops that the samples stand for; NAN: no sample has a latency. */
double series_mean(const struct series *s);

/* 95 % intervals of miss cycles and of estimated ops. Return: false if unknown. */
bool series_cycles_interval(const struct series *s, double *low, double *high);
bool series_ops_interval(const struct series *s, double *low, double *high);

/* Number of ops with the latency of a bucket, all samples, or with a latency, in a unit common to all rows. */
double series_in_bucket(const struct series *s, unsigned int bucket);
double series_counted(const struct series *s);

/* Member "buckets": pairs of a bucket's highest latency in cycles and its samples, of those with samples. */
void series_put_buckets(struct json_writer *w, const struct series *s);

void tlb_add(struct tlb_counts *a, const struct tlb_counts *b);

/* Add @b to @a, including the buckets. */
void series_add(struct series *a, const struct series *b);

#endif
