/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The events of a perf.data file, and the layout of their records. */
#ifndef IBSCOPE_PERF_DATA_ATTR_H
#define IBSCOPE_PERF_DATA_ATTR_H

#include "base/std.h"
#include "perf_data_format.h"

#define PERF_ATTRS_MAX 4096
#define PERF_IDS_MAX   (1 << 18)

enum perf_attr_kind {
	PERF_ATTR_OTHER,
	PERF_ATTR_OP,
	PERF_ATTR_FETCH,
	PERF_ATTR_UNKNOWN, /* IBS or not: the first sample shows it */
};

struct perf_attr {
	struct perf_event_attr attr;
	char name[128];
	enum perf_attr_kind kind;
	int pmu; /* index in trace_info.pmu, -1 if it has none */

	/* Offsets of fields from the start of a sample; 0: absent. */
	__u16 id, ip, task, time, cpu;
	__u16 fixed; /* start of the fields of variable size */
	/* Offsets of sample_id fields from the end of other records. */
	__u16 end_id, end_task, end_time, end_cpu;
	__u16 trailer; /* bytes of all of it */
};

struct perf_id {
	__u64 id;
	__u32 attr;
};

struct perf_attrs {
	struct perf_attr *attr;
	size_t n, room;
	struct perf_id *id; /* sorted by perf_attrs_finish() */
	size_t n_ids, ids_room;
	const struct perf_id *cache[256];
};

/**
 * perf_attrs_add() - add an event
 * @attr:  as in the file, @bytes long; unknown members are ignored
 * @ids:   of its samples, @n_ids unaligned words
 *
 * Return: its index, or a negative errno with @err: -EBADMSG.
 */
int perf_attrs_add(struct perf_attrs *a, const void *attr, size_t bytes, const void *ids,
		   size_t n_ids, struct err *err);

/**
 * perf_attrs_finish() - call after the last event
 *
 * Return: 0, or -EBADMSG with @err if samples of several events cannot be distinguished, -ENOENT if
 * there is no event.
 */
int perf_attrs_finish(struct perf_attrs *a, struct err *err);

/* The event that a sample or another record of the kernel belongs to, or NULL. */
struct perf_attr *perf_attrs_of_sample(struct perf_attrs *a, const struct perf_record *rec);
struct perf_attr *perf_attrs_of_other(struct perf_attrs *a, const struct perf_record *rec);

/* Linear search, for the time before perf_attrs_finish(). */
struct perf_attr *perf_attrs_by_id(struct perf_attrs *a, __u64 id);

void perf_attrs_free(struct perf_attrs *a);

/* A sample's fields of variable size. */
struct perf_sample_body {
	const unsigned char *stack; /* words without alignment, NULL if there are none */
	size_t n_stack;
	const unsigned char *raw; /* NULL if there is none */
	__u32 raw_bytes;
	__u64 cgroup; /* 0 if unknown */
};

/* Return: whether the record holds all that its event says. */
bool perf_sample_body(const struct perf_attr *a, const struct perf_record *rec,
		      struct perf_sample_body *out);

#endif
