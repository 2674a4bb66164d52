/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rings that programs forward records to, one a CPU, and their reader: it hands the records over
 * in the order of time, and computes how long it can wait before it reads again.
 */
#ifndef IBSCOPE_RINGS_H
#define IBSCOPE_RINGS_H

#include "base/err.h"

#include <ibscope/maps.h>
#include <ibscope/record.h>
#include <stddef.h>

struct rings;

struct rings_opts {
	const void *records;	      /* n_cpus * slots of them, shared with the programs */
	struct ibs_cpu_state *states; /* by CPU, too */
	int bell_fd;		      /* of the ring buffer that wakes us */
	const unsigned int *cpus;     /* that get a ring */
	size_t n_cpus;
	__u32 slots; /* of each ring */
	bool raw;    /* struct ibs_record_raw, else struct ibs_record */
	bool extra;  /* with struct ibs_record_extra behind each */
};

/* Size of a slot. */
size_t rings_record_bytes(bool raw, bool extra);

/* Kernel memory of @n rings. */
__u64 rings_bytes(__u64 n, __u32 slots, size_t record_bytes);

/**
 * rings_open() - make the rings; what @opts names must outlive them
 *
 * Return: 0, or a negative errno with @err and nothing left behind.
 */
int rings_open(const struct rings_opts *opts, struct rings **out, struct err *err);
void rings_close(struct rings *r); /* accepts NULL */

/* Lives during the call. */
struct record_batch {
	/* one of the two is set */
	const struct ibs_record *records;
	const struct ibs_record_raw *raw;
	const struct ibs_record_extra *extra; /* one a record; NULL without */
	size_t n;			      /* > 0 */
};

/* Return: 0 to go on, or a negative errno with @err. */
typedef int record_cb(const struct record_batch *batch, void *arg, struct err *err);

/**
 * rings_drain() - take out the records of all rings up to a time, in the order of time
 * @until: CLOCK_MONOTONIC in ns; later records stay where they are. UINT64_MAX takes all
 *
 * Passes with rising @until keep that order from one to the next too, but for records that were
 * being written meanwhile: their time is taken in the NMI, microseconds before they can be read.
 * Once sampling is stopped a pass with UINT64_MAX leaves nothing.
 *
 * Return: 0, or what @cb returned; the records of that batch count as taken.
 */
int rings_drain(struct rings *r, __u64 until, record_cb *cb, void *arg, struct err *err);

/**
 * rings_join() - let rings_drain() of @r hand over the records of @other too, in the order of time of all
 * @first_stack: added to the keys of their stacks
 *
 * Both were opened with the same `raw` and `extra`. From then on @other is for rings_fd() only, and
 * is closed after the last rings_drain().
 */
void rings_join(struct rings *r, const struct rings *other, __s32 first_stack);

/* Records taken since rings_open(). */
__u64 rings_taken(const struct rings *r);

/* Readable when a ring has become more than half full since the last rings_drain(). */
int rings_fd(const struct rings *r);

/**
 * rings_delay_ms() - how long the reader may sleep, if rings_fd() does not wake it
 *
 * Until the fullest ring is at an eighth, at the rate of the last pass: from 1 to RINGS_DELAY_MAX_MS.
 */
unsigned int rings_delay_ms(const struct rings *r);

#define RINGS_DELAY_MAX_MS 500

#endif
