/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the programs' counts while they run. Reading mapped memory needs no bpf() and so costs no
 * samples; readers that may not map it use lookups. Neither needs the loader.
 */
#ifndef IBSCOPE_COUNTS_H
#define IBSCOPE_COUNTS_H

#include "base/err.h"
#include "layout.h"
#include "snapshot.h"

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
