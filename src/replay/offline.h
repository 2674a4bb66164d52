/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the BPF program does with samples of a recording, in user space: the same decode, filter and
 * buckets (include/ibscope), the same layout and the same order of decisions, so the same counts to
 * the unit, without privilege.
 */
#ifndef IBSCOPE_OFFLINE_H
#define IBSCOPE_OFFLINE_H

#include "sampler/sampler.h"

#include <ibscope/twin_area.h>

struct offline;

/**
 * offline_open() - as sampler_open() for a sampler of SAMPLER_TWIN with `replay`
 * @opts: of its selection `follow` and `live` mean nothing here; what it points to must live as
 *        long as *out
 *
 * max_memory_bytes is about kernel memory, so it is not looked at.
 *
 * Return: 0, or with @err -ENOMEM, or -ERANGE for a pid that no kernel gives out.
 */
int offline_open(const struct sampler_opts *opts, struct offline **out, struct err *err);

/* As twin_run_replay(). Return: 0, or -ENOMEM with @err. */
int offline_run(struct offline *o, const struct ibs_twin_sample *samples,
		const struct ibs_twin_who *who, size_t n, struct err *err);

/**
 * offline_judge() - one sample
 * @sample: NULL for one that is not of ibs_op: only whose it is is looked at, nothing is counted
 * @out:    what it comes to; of selected ones IBS_OUTCOME_AGGREGATED
 *
 * Return: 0, or -ENOMEM with @err.
 */
int offline_judge(struct offline *o, const struct ibs_twin_sample *sample,
		  const struct ibs_twin_who *who, enum ibs_outcome *out, struct err *err);

/* As sampler_snapshot(). */
int offline_snapshot(struct offline *o, struct snapshot *out, struct err *err);

void offline_close(struct offline *o); /* accepts NULL */

#endif
