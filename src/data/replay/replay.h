/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the samples of a recording through the decisions of the BPF program in user space, for the histogram that
 * the program would have made at the time.
 */
#ifndef IBSCOPE_REPLAY_H
#define IBSCOPE_REPLAY_H

#include "base/cpulist.h"
#include "filter/filter.h"
#include "select/selection.h"
#include "rows/rows.h"
#include "trace/trace.h"

/* In place of an unknown pid. */
#define REPLAY_NO_TASK (~0U)

struct replay_opts {
	enum ibs_metric metric;	     /* selects the event */
	__u32 by;		     /* enum ibs_by bits, BY_SYMBOL */
	__u32 max_groups;	     /* 0: MAX_GROUPS */
	__u64 period;		     /* of all samples; 0: unknown */
	struct selection sel;	     /* without cgroups and filter */
	const struct filter *filter; /* NULL: none */
	char *const *cgroups;	     /* of --cgroup, see replay_cgroups.h */
	size_t n_cgroups;
	char *const *containers; /* of --container */
	size_t n_containers;
	const struct cpulist *cpus; /* NULL: all */
	bool names;		    /* replay_comm() will be called */
	bool costs;		    /* count costs of L3 complexes, if the topology was recorded */
	/*
	 * Snapshots will be subtracted from each other: of a recording with strata, each sample is counted with
	 * its weight, and nothing is known of slices
	 */
	bool differences;
	/* for BY_SYMBOL: return the caller's number for the function of a sample */
	__u32 (*symbol)(void *arg, const struct trace_event *sample);
	void *symbol_arg;
};

struct replay;

/* Does @opts drop any samples? */
bool replay_selects(const struct replay_opts *opts);

/**
 * replay_open() - read the events of a recording
 * @opts: its pointers, and @trace, must live as long as *out
 *
 * Return: 0; or a negative errno with @err: -ENOENT for a cgroup that the recording does not have,
 * -ENODATA for a selection by data that the recording lacks, or the result of trace_next().
 */
int replay_open(struct trace *trace, const struct replay_opts *opts, struct replay **out,
		struct err *err);

/**
 * replay_run() - process all samples of the event, in the order of the file
 *
 * Return: 0; or a negative errno with @err.
 */
int replay_run(struct replay *r, struct err *err);

/**
 * replay_until() - process the samples up to a time of the file's clock
 * @next: set to the time of the next sample; at the end, to that of the last sample, of whatever CPU
 *
 * Samples without a time belong to the one before.
 *
 * Return: 1 if there are more, 0 at the end; or a negative errno with @err.
 */
int replay_until(struct replay *r, __u64 time, __u64 *next, struct err *err);

/**
 * replay_snapshot() - read the result
 *
 * time_ns is the time from the first sample to the last, pmu.cpus the recorded number of CPUs, or if unknown
 * the number of CPUs with samples. ledger.seen counts samples of the event on the selected CPUs.
 *
 * Return: 0, the caller frees *out; or a negative errno with @err.
 */
int replay_snapshot(struct replay *r, struct snapshot *out, struct err *err);

/* Samples of the recording that are not in the ledger of the replay, and others. */
struct replay_rest {
	__u64 other_event; /* samples of the event that is not replayed */
	__u64 other_cpus;  /* samples of CPUs that are not selected */
	__u64 no_cgroup;   /* replayed samples of unknown cgroup */
	__u64 no_task;	   /* replayed samples of unknown task */
	__u64 lost;	   /* lost records, according to the recording */
};

void replay_rest(const struct replay *r, struct replay_rest *out);

/**
 * replay_judge() - is a sample selected?
 *
 * Instead of replay_run(). Samples of the other event are not selected if the selection tests registers.
 *
 * Return: 0 or 1; or a negative errno with @err.
 */
int replay_judge(struct replay *r, const struct trace_event *sample, struct err *err);

/* The group key of a sample; the thread name only with opts.names, and no symbol. */
void replay_key(const struct replay *r, const struct trace_event *sample,
		struct ibs_group_key *key);

/* The thread name of a sample. NULL if unknown. */
const char *replay_comm(const struct replay *r, const struct trace_event *sample);

/* For rows_build(); arg is the replay. */
const char *replay_cgroup_name(void *arg, __u64 id, enum label label);

void replay_close(struct replay *r); /* accepts NULL; leaves the trace open */

#endif
