/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The buffer of the writer of perf.data, and the features of its head. Private to perf_data_write.c. */
#ifndef IBSCOPE_PERF_DATA_FEATURES_H
#define IBSCOPE_PERF_DATA_FEATURES_H

#include "perf_data_format.h"
#include "trace/trace.h"

#include <stdio.h>

#define PERF_CNT_CTL	(1ULL << 19)
#define PERF_ID_OF(pmu) ((pmu) + 1ULL)

struct perf_writer {
	const struct trace_info *info;
	FILE *f;
	bool pipe;
	unsigned char buf[1 << 15]; /* a record or feature: strings of events are at most 8 KiB */
	size_t n;
	__u64 data, round;
};

/* Append to the buffer; what does not fit is only counted. */
void perf_put(struct perf_writer *w, const void *p, size_t n);
void perf_put32(struct perf_writer *w, __u32 v);
void perf_put64(struct perf_writer *w, __u64 v);
/* A string with its final 0, up to a multiple of @align bytes. */
void perf_put_padded(struct perf_writer *w, const char *text, size_t align);

bool perf_is_op_count(const struct trace_pmu *p);
struct perf_event_attr perf_attr_of(const struct trace_pmu *p);

#define PERF_FEATURES 13
extern const enum perf_feature perf_features[PERF_FEATURES];
/* Return: false if the contents of the feature are unknown. */
bool perf_put_feature(struct perf_writer *w, enum perf_feature nr);

#endif
