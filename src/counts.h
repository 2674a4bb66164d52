/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs have counted, read from mapped memory while they go on. Reading needs no bpf()
 * and so costs no samples; nor does it need the loader, or any privilege but to map.
 */
#ifndef IBSCOPE_COUNTS_H
#define IBSCOPE_COUNTS_H

#include "err.h"
#include "layout.h"
#include "snapshot.h"

/* Where everything lies. */
struct counts {
	const __u64 *series;
	const struct ibs_slot_owner *owners;
	const struct ibs_cpu_state *cpus;
	unsigned int n_cpus; /* possible ones */
	__u32 shards, max_slots;
	bool one_group; /* slot 1 is used though no owner says so: --by names nothing */
	const struct layout *layout;
};

/**
 * counts_ledger() - seen and outcomes of all CPUs, each at a moment when no sample was half way
 *
 * Return: 0, or -EUCLEAN with @err if a CPU's do not balance for seconds, which is a bug.
 */
int counts_ledger(const struct counts *c, struct ledger *out, struct err *err);

/**
 * counts_read() - the groups, and a ledger that fits them
 *
 * Aggregated is the sum of the series, and the ledger balances with it. Sets only ledger.seen,
 * ledger.outcome and the groups.
 *
 * Return: 0, the caller frees @out; or with @err -ENOMEM, or -EUCLEAN if series and ledger
 * disagree, as they may once when a group is made meanwhile.
 */
int counts_read(const struct counts *c, struct snapshot *out, struct err *err);

#endif
