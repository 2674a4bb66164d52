/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples in the formats of other programs. */
#ifndef IBSCOPE_PROFILE_H
#define IBSCOPE_PROFILE_H

#include "report/report.h"
#include "report/report_print.h"
#include "symbols/symbols.h"

/* Call chains added up, in the lines that flame graphs are made of: "comm;outer;inner 123". */

enum folded_weight {
	FOLDED_SAMPLES,
	FOLDED_TOTAL, /* latency in cycles; samples without one weigh nothing */
};

struct folded_opts {
	enum folded_weight weight;
	enum ibs_metric metric;
	bool allocations;	   /* the stacks that allocated the data, not those of samples */
	bool simulated;		   /* then that is the outermost frame */
	bool strata;		   /* a sample counts as often as it represents ops */
	const struct tasks *tasks; /* both outlive it */
	struct symbols *symbols;
};

struct folded;

struct folded *folded_new(const struct folded_opts *opts);
void folded_free(struct folded *f); /* accepts NULL */

/**
 * folded_add() - add a sample
 *
 * A sample without a chain counts by its address alone. Kernel frames end with "_[k]", and
 * those of inlined functions with "_[i]", as flame graphs colour them. Of data without a known allocation, the frame
 * says what it is.
 */
void folded_add(struct folded *f, const struct trace_event *ev);

/* Lines in the order of the alphabet; those of weight 0 are left out. */
void folded_print(FILE *out, struct folded *f);

/*
 * A profile in the format of pprof (github.com/google/pprof, profile.proto): call chains by what
 * they cost, with labels.
 */

/* Labels of a profile unless others are asked for. */
#define PPROF_LABELS	   "container,pod,src,op,node,page_size,pid,tid,comm"
#define PPROF_FETCH_LABELS "container,pod,fetch,itlb,node,page_size,pid,tid,comm"

struct pprof;

/* @opts->by are the labels; tasks and symbols are needed. */
struct pprof *pprof_new(const struct report_opts *opts);
void pprof_free(struct pprof *p); /* accepts NULL */

/*
 * Add a sample; a sample without a chain counts by its address alone. @service: the label of that name;
 * NULL: none
 */
void pprof_add(struct pprof *p, const struct trace_event *ev, const char *service);

/* Begin to load what a sample to come will need. */
void pprof_expect(const struct pprof *p, const struct trace_hint *hint);

/* Number of samples by how much is known of their functions. */
__u64 pprof_samples(const struct pprof *p, enum code_kind kind);

/**
 * pprof_write() - the profile, compressed with gzip
 * @fd: stays the caller's
 *
 * Values are samples, miss_cycles, remote_miss_cycles, estimated_ops and, of ops, dram: the samples
 * whose data came from DRAM. Where the period of a sample is unknown, latency and remote_latency take
 * the place of the three in the middle: sums of the latencies of the samples themselves. Addresses are offsets in their file, so that profiles of
 * several processes add up.
 */
int pprof_write(struct pprof *p, const struct report_head *head, int fd, struct err *err);

/* The machine of a recording in the XML of hwloc, which lstopo and programs with that library read. */

/* Is there a topology, as the kernel may have it? */
bool report_hwloc_can(const struct trace_info *info);

/**
 * report_hwloc() - write the topology, and what the samples of each CPU add up to
 * @info: report_hwloc_can()
 * @cpus: rows by LABEL_CPU
 *
 * A CPU with samples has the infos "ibscope.samples" and "ibscope.miss_cycles". Cores are not recorded.
 */
void report_hwloc(FILE *f, const struct trace_info *info, const struct report_table *cpus);

#endif
