/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a record of perf.data to an event of trace.h. */
#ifndef IBSCOPE_PERF_DATA_EVENT_H
#define IBSCOPE_PERF_DATA_EVENT_H

#include "perf_data_attr.h"
#include "perf_data_build_id.h"
#include "trace/trace.h"

/* What a conversion needs to know, and where it puts what an event points to. */
struct perf_convert {
	__u32 quirks; /* of the processor that took the samples */
	const struct perf_build_ids *build_ids;
	bool lost_by_event; /* LOST_SAMPLES at the end include all of LOST */
	__u64 stack[TRACE_STACK_MAX];
};

enum perf_converted {
	PERF_CONVERTED,
	PERF_NOT_OURS, /* nothing that trace.h has */
	PERF_DAMAGED,
};

/* Is it a record of the kernel that becomes an event, if nothing is wrong with it? */
bool perf_is_event(const struct perf_record *rec);

/**
 * perf_record_time() - when it was taken
 *
 * Return: false if the record ends before; *time is 0 if unknown.
 */
bool perf_record_time(const struct perf_attr *a, const struct perf_record *rec, __u64 *time);

/**
 * perf_convert() - make an event of a record
 * @a:	  its attr; of kind PERF_ATTR_OP or PERF_ATTR_FETCH, and with a pmu, if it is a sample
 * @time: 0: not known
 * @ev:	  points into @rec and @c
 */
enum perf_converted perf_convert(struct perf_convert *c, const struct perf_attr *a,
				 const struct perf_record *rec, __u64 time, struct trace_event *ev);

/* By the size of its raw record, what took a sample: for files that do not say. */
enum perf_attr_kind perf_guess_kind(const struct perf_sample_body *body);

#endif
