/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile in the format of pprof (github.com/google/pprof, profile.proto): call chains by what
 * they cost, with labels.
 */
#ifndef IBSCOPE_REPORT_PPROF_H
#define IBSCOPE_REPORT_PPROF_H

#include "report_print.h"

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

/**
 * pprof_write() - the profile, compressed with gzip
 * @fd: stays the caller's
 *
 * Values are samples, miss_cycles, remote_miss_cycles and estimated_ops. Where the period of a
 * sample is unknown, latency and remote_latency take the place of the last three: sums of the
 * latencies of the samples themselves. Addresses are offsets in their file, so that profiles of
 * several processes add up.
 */
int pprof_write(const struct pprof *p, const struct report_head *head, int fd, struct err *err);

#endif
