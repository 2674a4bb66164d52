/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the programs' counts while they run. */
#ifndef IBSCOPE_COUNTS_H
#define IBSCOPE_COUNTS_H

#include "base/err.h"
#include "snapshot.h"

#include <ibscope/fetch.h>
#include <ibscope/maps.h>

/*
 * Position in a slot of the counts of each pair (kind of op, source); see ibscope/maps.h. For
 * ibs_fetch a pair is (enum ibs_fetch_itlb, enum ibs_fetch_class).
 */

struct layout {
	__u16 entry[IBS_LAYOUT_ENTRIES]; /* by IBS_LAYOUT_IDX() */
	__u32 words;			 /* of a slot */
	__u32 hists;			 /* histograms in a slot */
};

/**
 * layout_init() - lay out a slot
 * @metric: latency to histogram, which determines the event
 * @caps:   of the CPUs; the encoding of DataSrc determines the possible sources
 */
void layout_init(struct layout *l, enum ibs_metric metric, __u32 caps);

/**
 * layout_filter() - drop pairs that are not selected
 * @op_mask:  1 << enum ibs_op_kind of the kinds to keep
 * @src_mask: 1 << enum ibs_src of the sources to keep
 *
 * Filtering by a table that is read anyway costs a kept sample nothing. The size of a slot stays,
 * so that runs with different selections have the same layout.
 */
void layout_filter(struct layout *l, __u32 op_mask, __u32 src_mask);

/* True if the pair has words in a slot. */
static inline bool layout_has(const struct layout *l, unsigned int pair)
{
	return (l->entry[pair] & IBS_LAYOUT_WORD) >= IBS_LAYOUT_FIRST;
}

/* Number of sources, or of fetch classes; number of kinds of op, or of translations. */
static inline unsigned int layout_sources(enum ibs_metric metric)
{
	return ibs_metric_of_fetch(metric) ? (int)IBS_FETCH_CLASS_N : (int)IBS_SRC_N;
}

static inline unsigned int layout_ops(enum ibs_metric metric)
{
	return ibs_metric_of_fetch(metric) ? (int)IBS_FETCH_ITLB_N : (int)IBS_OP_KIND_N;
}

/*
 * Reads the programs' counts while they run. Reading mapped memory needs no bpf() and so costs no
 * samples; readers that may not map it use lookups. Neither needs the loader.
 */

/* Addresses and layout of the counters. */
struct counts {
	const __u64 *series; /* NULL: use read_slot() */
	/* The words of a slot, valid until the next call; NULL on failure. */
	const __u64 *(*read_slot)(void *arg, __u32 shard, __u32 slot);
	/* Read `owners` and `state` again; NULL: they are mapped. 0 or a negative errno */
	int (*refresh)(void *arg);
	void *arg;
	const struct ibs_slot_owner *owners;
	const struct ibs_state *state;
	unsigned int n_cpus; /* possible ones */
	__u32 outcomes;	     /* that are counted: the first ones of the table */
	__u32 shards, max_slots;
	__u32 by;     /* enum ibs_by bits; 0: slot 1 is used, without an owner */
	bool has_ops; /* ops are counted; else each sample counts as `period` */
	bool tlb;     /* count TLB misses */
	__u64 period; /* 0: not known */
	const struct layout *layout;
	struct shard_cost *cost; /* per shard, counts_each() adds to it; NULL: not needed */
};

/**
 * counts_ledger() - `seen` and outcomes of all CPUs, each read without a sample in progress
 *
 * Return: 0, or -EUCLEAN with @err if a CPU's counts do not balance for seconds, which is a bug.
 */
int counts_ledger(const struct counts *c, struct ledger *out, struct err *err);

/* Called for each group; what it leaves in @g is freed on return. Return: 0 to continue. */
typedef int counts_cb(void *arg, struct group *g);

/**
 * counts_each() - pass the groups one by one, and get the matching ledger
 *
 * Memory use does not grow with the number of groups. If it fails with -EUCLEAN, ignore what @cb
 * was given.
 *
 * Return: as counts_read(), or the error of @cb.
 */
int counts_each(const struct counts *c, counts_cb *cb, void *arg, struct ledger *out,
		struct err *err);

/* What a group has of a few sources. */
struct counts_activity {
	__u64 valid, sum; /* samples with a latency; these added up */
	__u64 ops;
};

/* Return: 0 to continue. */
typedef int counts_activity_cb(void *arg, __u32 slot, const struct ibs_group_key *key,
			       const struct counts_activity *a);

/**
 * counts_each_activity() - pass what each group with a slot of its own has of @sources, 1 << enum ibs_src
 *
 * Costs a fraction of counts_each(). Nothing is compared with the ledger: of a sample that is being added there may be a
 * part.
 *
 * Return: 0, the error of @cb, or -EIO if the counters are no longer readable.
 */
int counts_each_activity(const struct counts *c, __u32 sources, counts_activity_cb *cb, void *arg);

/**
 * counts_read() - read the groups, and the matching ledger
 *
 * `aggregated` is the sum of the series, and the ledger balances with it. Sets only ledger.seen,
 * ledger.outcome and the groups.
 *
 * Return: 0, the caller frees @out; or with @err -EUCLEAN if series and ledger disagree, as can
 * happen once if a group is created or folded during the read.
 */
int counts_read(const struct counts *c, struct snapshot *out, struct err *err);

#endif
