/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the decision core (ibscope/decide.h) in user space, on samples of a recording. */
#ifndef IBSCOPE_ENGINE_H
#define IBSCOPE_ENGINE_H

#include "base/err.h"
#include "counts/snapshot.h"
#include "select/selection.h"

#include <ibscope/hot_lines.h>

/* Replaces an unknown id; no cgroup has this one. */
#define CGROUP_UNKNOWN (~0ULL)

/* The task that a sample belongs to. */
struct task {
	__u64 pid_tgid;	 /* tgid << 32 | tid */
	__u64 cgroup_id; /* not 0 */
	__u64 comm[2];	 /* 16 bytes, padded with zeros */
	__u32 cpu;
	__u16 complex, node; /* of the CPU, for IBS_BY_COMPLEX, IBS_BY_NODE and costs */
	__u32 symbol;	     /* for BY_SYMBOL */
	__u64 slab;	     /* of the data, as in trace_sample */
};

struct memory_range;

struct engine_opts {
	struct ibs_cpu ibs; /* processor of the samples */
	enum ibs_metric metric;
	__u32 by;		     /* enum ibs_by bits, BY_SYMBOL (rows/rows.h) */
	__u32 max_groups;	     /* 0: MAX_GROUPS */
	const struct selection *sel; /* `follow` and `live` are ignored */
	__u64 period;		     /* of all samples; 0: unknown */
	bool count_ops;		     /* add up the period of each sample */
	bool strata;		     /* samples have the weights of engine_weigh() */
	__u32 reach;		     /* of strata: 1 << enum ibs_src of samples that both take */
	bool exposed;		     /* count exposed cycles, as in struct sampler_opts */
	bool tlb;
	const struct memory_range *memory; /* sorted; for IBS_BY_MEM_NODE */
	size_t n_memory;
	__u32 line_sets, line_feed; /* as in struct sampler_opts */
	unsigned int complexes;	    /* count costs of so many L3 complexes; 0: none */
};

struct engine;

/* Return: 0, or with @err -E2BIG for too many memory nodes, or -ERANGE for a pid beyond the kernel's limit. */
int engine_open(const struct engine_opts *opts, struct engine **out, struct err *err);

/**
 * engine_run() - process one sample
 * @regs:   IBS_OP_REG_FIXED, or with a metric of ibs_fetch IBS_FETCH_REG_N; NULL for a sample of the other
 *	    event: then only its task is tested, and nothing is counted
 * @period: with `count_ops`: ops that it represents
 * @out:    its outcome, IBS_OUTCOME_AGGREGATED if selected; may be NULL
 */
void engine_run(struct engine *e, const __u64 *regs, __u64 period, const struct task *task,
		enum ibs_outcome *out);

/*
 * With `strata`: ops that the next samples represent, of a source that only the full stratum takes and of one that both
 * take; 0: unknown, such samples are not counted.
 */
void engine_weigh(struct engine *e, const double weight[2]);

/* Read the counts; the caller frees *out. Return: 0 or a negative errno with @err. */
int engine_snapshot(struct engine *e, struct snapshot *out, struct err *err);

/* The hot lines of all samples, in one table for all CPUs; NULL: not kept. */
const struct ibs_lines *engine_lines(const struct engine *e);

void engine_close(struct engine *e); /* accepts NULL */

#endif
