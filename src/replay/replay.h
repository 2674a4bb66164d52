/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The samples of a recording, run through the decisions of the BPF program in user space: what a
 * histogram would have been, had it been asked for at the time.
 */
#ifndef IBSCOPE_REPLAY_H
#define IBSCOPE_REPLAY_H

#include "base/cpulist.h"
#include "filter/filter.h"
#include "select/selection.h"
#include "counts/rows.h"
#include "trace/trace.h"

/* In place of an unknown pid. */
#define REPLAY_NO_TASK (~0U)

struct replay_opts {
	enum ibs_metric metric;	     /* samples are those of its event */
	__u32 by;		     /* enum ibs_by bits, BY_SYMBOL */
	__u32 max_groups;	     /* 0: MAX_GROUPS */
	__u64 period;		     /* of all samples; 0: not known */
	struct selection sel;	     /* without cgroups and filter */
	const struct filter *filter; /* NULL: none */
	char *const *cgroups;	     /* of --cgroup, see replay_cgroups.h */
	size_t n_cgroups;
	char *const *containers; /* of --container */
	size_t n_containers;
	const struct cpulist *cpus; /* NULL: all */
	bool names;		    /* replay_comm() will be called */
	bool costs;		    /* of L3 complexes, where the recording tells the topology */
	/* for BY_SYMBOL: the number of the function of a sample, which the caller can name */
	__u32 (*symbol)(void *arg, const struct trace_event *sample);
	void *symbol_arg;
};

struct replay;

/* Does @opts select some of the samples, rather than all of them? */
bool replay_selects(const struct replay_opts *opts);

/**
 * replay_open() - read what a recording says beside its samples
 * @opts: what it points to, and @trace, must live as long as *out
 *
 * Return: 0; or a negative errno with @err: -ENOENT for a cgroup that the recording does not have,
 * -ENODATA for a selection by something that the recording lacks, what trace_next() returned.
 */
int replay_open(struct trace *trace, const struct replay_opts *opts, struct replay **out,
		struct err *err);

/**
 * replay_run() - all samples of the event, in the order of the file
 *
 * Return: 0; or a negative errno with @err.
 */
int replay_run(struct replay *r, struct err *err);

/**
 * replay_until() - the samples up to a time, that of the file's clock
 * @next: set to the time of the sample after them; at the end, to that of the last sample
 *
 * Samples without a time belong to the one before.
 *
 * Return: 1 if there are more, 0 at the end; or a negative errno with @err.
 */
int replay_until(struct replay *r, __u64 time, __u64 *next, struct err *err);

/**
 * replay_snapshot() - what came out
 *
 * time_ns is the time from the first sample to the last, pmu.cpus the CPUs that the recording is
 * of, or else those that have samples. ledger.seen counts samples of the event on the CPUs asked for.
 *
 * Return: 0, the caller frees *out; or a negative errno with @err.
 */
int replay_snapshot(struct replay *r, struct snapshot *out, struct err *err);

/* What is in the recording, but not in the ledger of the replay. */
struct replay_rest {
	__u64 other_event; /* samples of ibs_fetch, or of ibs_op where those are replayed */
	__u64 other_cpus;  /* of CPUs that were not asked for */
	__u64 no_cgroup;   /* of those replayed: samples whose cgroup is not told */
	__u64 no_task;	   /* the same with the task */
	__u64 lost;	   /* records that never came, by the recording's own notices */
};

void replay_rest(const struct replay *r, struct replay_rest *out);

/**
 * replay_judge() - is a sample selected?
 *
 * In place of replay_run(). Samples of the other event are not selected where anything of the registers is
 * asked for.
 *
 * Return: 0 or 1; or a negative errno with @err.
 */
int replay_judge(struct replay *r, const struct trace_event *sample, struct err *err);

/* What a sample would be grouped by; its name only with opts.names, and no symbol. */
void replay_key(const struct replay *r, const struct trace_event *sample,
		struct ibs_group_key *key);

/* The name of the thread that a sample is of. NULL if not known. */
const char *replay_comm(const struct replay *r, const struct trace_event *sample);

/* For rows_build(): arg is the replay. Containers have ids only: their names were not recorded. */
const char *replay_cgroup_name(void *arg, __u64 id, enum label label);

void replay_close(struct replay *r); /* accepts NULL; leaves the trace open */

#endif
