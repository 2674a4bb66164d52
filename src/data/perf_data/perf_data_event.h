/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts records of perf.data to events of trace.h. */
#ifndef IBSCOPE_PERF_DATA_EVENT_H
#define IBSCOPE_PERF_DATA_EVENT_H

#include "perf_data_attr.h"
#include "perf_data_build_id.h"
#include "trace/trace.h"

/* Context of a conversion, and storage for the pointers of an event. */
struct perf_convert {
	__u32 quirks; /* of the processor that took the samples */
	const struct perf_build_ids *build_ids;
	bool lost_by_event; /* LOST_SAMPLES at the end include all of LOST */
	__u64 stack[TRACE_STACK_MAX];
};

enum perf_converted {
	PERF_CONVERTED,
	PERF_NOT_OURS, /* no such event in trace.h */
	PERF_DAMAGED,
};

/* Is it a kernel record that becomes an event if it is valid? */
bool perf_is_event(const struct perf_record *rec);

/**
 * perf_record_time() - read the time of a record
 *
 * Return: false if the record ends before; *time is 0 if unknown.
 */
bool perf_record_time(const struct perf_attr *a, const struct perf_record *rec, __u64 *time);

/**
 * perf_convert() - convert a record to an event
 * @a:	  its attr; of kind PERF_ATTR_OP or PERF_ATTR_FETCH, and with a pmu, if it is a sample
 * @time: 0: unknown
 * @ev:	  points into @rec and @c
 */
enum perf_converted perf_convert(struct perf_convert *c, const struct perf_attr *a,
				 const struct perf_record *rec, __u64 time, struct trace_event *ev);

/* The kind of event of a sample, by the size of its raw record, for files that do not say. */
enum perf_attr_kind perf_guess_kind(const struct perf_sample_body *body);

#endif
