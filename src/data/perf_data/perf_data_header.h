/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a perf.data file besides samples: the head of the file and the features after its data, or, if perf
 * wrote to a pipe, the records that replace them.
 */
#ifndef IBSCOPE_PERF_DATA_HEADER_H
#define IBSCOPE_PERF_DATA_HEADER_H

#include "perf_data_attr.h"
#include "perf_data_build_id.h"
#include "perf_data_topology.h"
#include "trace/trace.h"

#define PERF_NOTE_BYTES 160

/* The name of an event by its index; in a pipe, it comes before the event itself. */
struct perf_event_name {
	__u32 type;
	__u64 config;
	char name[128];
};

struct perf_header {
	bool pipe;
	bool cut; /* the data are truncated, or perf did not write their length */
	__u64 begin, end;
	char note[PERF_NOTE_BYTES]; /* what is missing, "" if nothing is */

	bool has_pmus;		   /* the types of PMUs are known */
	__u32 op_type, fetch_type; /* 0: there was no such PMU */
	struct perf_event_name *names;
	size_t n_names;
	__u64 searched; /* ids, for names of events */
	char vendor[13], cpu_name[49];
	__u32 family, model, stepping;
	bool has_cpu;
	struct perf_build_ids build_ids;
	struct perf_topology topology;
};

/**
 * perf_header_read() - read head and features of a file
 * @h:	  zeroed; call perf_header_free() even after a failure
 * @a:	  gets the events, if the head has them
 * @info: gets the description of the machine
 *
 * Return: 0, or a negative errno with @err: -EINVAL for an unsupported file, -EBADMSG for damage.
 */
int perf_header_read(int fd, struct perf_header *h, struct perf_attrs *a, struct trace_info *info,
		     struct err *err);

/**
 * perf_header_record() - process a record that replaces a part of the head
 *
 * Return: 0, also for all other records; or a negative errno with @err.
 */
int perf_header_record(struct perf_header *h, const struct perf_record *rec, struct perf_attrs *a,
		       struct trace_info *info, struct err *err);

/* Call before the first sample: names the events, and finds those of IBS. */
void perf_header_name_events(const struct perf_header *h, struct perf_attrs *a);

void perf_header_free(struct perf_header *h);

#endif
