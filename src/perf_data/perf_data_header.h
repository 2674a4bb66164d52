/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a perf.data holds besides samples: the head of the file and the features behind its data,
 * or, where perf wrote to a pipe, the records that stand for them.
 */
#ifndef IBSCOPE_PERF_DATA_HEADER_H
#define IBSCOPE_PERF_DATA_HEADER_H

#include "perf_data_attr.h"
#include "perf_data_build_id.h"
#include "perf_data_topology.h"
#include "trace/trace.h"

#define PERF_NOTE_BYTES 160

/* The name of an event by its place, which comes before the event itself in a pipe. */
struct perf_event_name {
	__u32 type;
	__u64 config;
	char name[128];
};

struct perf_header {
	bool pipe;
	bool cut; /* the data end before their time, or perf did not write how long they are */
	__u64 begin, end;
	char note[PERF_NOTE_BYTES]; /* what is missing, "" if nothing is */

	bool has_pmus;		   /* the types of PMUs are known */
	__u32 op_type, fetch_type; /* 0: there was no such PMU */
	struct perf_event_name *names;
	size_t n_names;
	unsigned int updates; /* of names */
	char vendor[13], cpu_name[49];
	__u32 family, model, stepping;
	bool has_cpu;
	struct perf_build_ids build_ids;
	struct perf_topology topology;
};

/**
 * perf_header_read() - head and features of a file
 * @h:	  zeroed; perf_header_free() is due also after a failure
 * @a:	  gets the events, if the head has them
 * @info: gets what is known of the machine
 *
 * Return: 0, or a negative errno with @err: -EINVAL where it is not for us, -EBADMSG damage.
 */
int perf_header_read(int fd, struct perf_header *h, struct perf_attrs *a, struct trace_info *info,
		     struct err *err);

/**
 * perf_header_record() - take in a record that replaces a part of the head
 *
 * Return: 0, also for all other records; or a negative errno with @err.
 */
int perf_header_record(struct perf_header *h, const struct perf_record *rec, struct perf_attrs *a,
		       struct trace_info *info, struct err *err);

/* All that comes before samples was read: name the events, and find those that are IBS. */
void perf_header_name_events(const struct perf_header *h, struct perf_attrs *a);

void perf_header_free(struct perf_header *h);

#endif
