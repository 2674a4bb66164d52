/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs have counted, read while they run. From mapped memory that needs no bpf() and
 * so costs no samples; who may not map it gets it by look-ups. Neither needs the loader.
 */
#ifndef IBSCOPE_COUNTS_H
#define IBSCOPE_COUNTS_H

#include "base/err.h"
#include "layout.h"
#include "snapshot.h"

/* Where everything lies. */
struct counts {
	const __u64 *series; /* NULL: read_slot() has them */
	/* The words of a slot, until the next call; NULL if they cannot be read. */
	const __u64 *(*read_slot)(void *arg, __u32 shard, __u32 slot);
	/* Read `owners` and `state` again; NULL: they are mapped. 0 or a negative errno */
	int (*refresh)(void *arg);
	void *arg;
	const struct ibs_slot_owner *owners;
	const struct ibs_state *state;
	unsigned int n_cpus; /* possible ones */
	__u32 shards, max_slots;
	__u32 by;     /* enum ibs_by bits; 0: slot 1 is used though no owner says so */
	bool has_ops; /* the ops of each sample are counted; else each counts as `period` */
	bool tlb;     /* TLB misses are counted */
	__u64 period; /* 0: not known */
	const struct layout *layout;
	struct shard_cost *cost; /* of shards: counts_each() adds to it; NULL: not asked for */
};

/**
 * counts_ledger() - seen and outcomes of all CPUs, each at a moment when no sample was half way
 *
 * Return: 0, or -EUCLEAN with @err if a CPU's do not balance for seconds, which is a bug.
 */
int counts_ledger(const struct counts *c, struct ledger *out, struct err *err);

/* What it leaves in @g is freed when it returns. Return: 0 to continue. */
typedef int counts_cb(void *arg, struct group *g);

/**
 * counts_each() - one group after the other, and the ledger that fits them
 *
 * For whoever needs no more than one at a time: memory does not grow with groups. When it fails
 * with -EUCLEAN, @cb has been called for what does not count.
 *
 * Return: as counts_read(), or what @cb returned.
 */
int counts_each(const struct counts *c, counts_cb *cb, void *arg, struct ledger *out,
		struct err *err);

/**
 * counts_read() - the groups, and a ledger that fits them
 *
 * Aggregated is the sum of the series, and the ledger balances with it. Sets only ledger.seen,
 * ledger.outcome and the groups.
 *
 * Return: 0, the caller frees @out; or with @err -EUCLEAN if series and ledger
 * disagree, as they may once when a group is made or folded meanwhile.
 */
int counts_read(const struct counts *c, struct snapshot *out, struct err *err);

#endif
