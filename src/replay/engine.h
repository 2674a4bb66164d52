/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The decision core (ibscope/decide.h) in user space, over the samples of a recording. */
#ifndef IBSCOPE_ENGINE_H
#define IBSCOPE_ENGINE_H

#include "base/err.h"
#include "counts/snapshot.h"
#include "select/selection.h"

#include <ibscope/hot_lines.h>

/* In place of an id that is not known; no cgroup has it. */
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
	struct ibs_cpu ibs; /* that the samples are of */
	enum ibs_metric metric;
	__u32 by;		     /* enum ibs_by bits, BY_SYMBOL (counts/rows.h) */
	__u32 max_groups;	     /* 0: MAX_GROUPS */
	const struct selection *sel; /* `follow` and `live` mean nothing here */
	__u64 period;		     /* of all samples; 0: not known */
	bool count_ops;		     /* add up the period of each sample */
	bool tlb;
	const struct memory_range *memory; /* sorted; for IBS_BY_MEM_NODE */
	size_t n_memory;
	__u32 line_sets, line_feed; /* as in struct sampler_opts */
	unsigned int complexes;	    /* whose costs are asked for; 0: none */
};

struct engine;

/* Return: 0, or with @err -E2BIG for too many nodes of memory, or -ERANGE for a pid that no kernel gives out. */
int engine_open(const struct engine_opts *opts, struct engine **out, struct err *err);

/**
 * engine_run() - one sample
 * @regs:   IBS_OP_REG_FIXED, or with a metric of ibs_fetch IBS_FETCH_REG_N; NULL if it is of the other
 *	    event: only its task is looked at, nothing counted
 * @period: with `count_ops`: ops that it stands for
 * @out:    what it comes to, of selected ones IBS_OUTCOME_AGGREGATED; may be NULL
 */
void engine_run(struct engine *e, const __u64 *regs, __u64 period, const struct task *task,
		enum ibs_outcome *out);

/* What was counted; the caller frees it. Return: 0 or a negative errno with @err. */
int engine_snapshot(struct engine *e, struct snapshot *out, struct err *err);

/* The hot lines of all samples, as if one CPU had taken them; NULL: not kept. */
const struct ibs_lines *engine_lines(const struct engine *e);

void engine_close(struct engine *e); /* accepts NULL */

#endif
