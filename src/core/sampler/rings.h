/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rings that programs forward records to, one per CPU, and their reader: it delivers the
 * records in order of time, and computes how long it can wait before the next read.
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
	struct ibs_cpu_state *states; /* indexed by CPU */
	int bell_fd;		      /* of the ring buffer that wakes the reader */
	const unsigned int *cpus;     /* CPUs that get a ring */
	size_t n_cpus;
	__u32 slots;	  /* of each ring */
	bool raw;	  /* struct ibs_record_raw, else struct ibs_record */
	bool extra;	  /* each record is followed by a struct ibs_record_extra */
	__u32 copy_bytes; /* with `extra`: then by a struct ibs_user_copy and so many bytes; 0: none */
};

/* Size of a slot. */
size_t rings_record_bytes(bool raw, bool extra, __u32 copy_bytes);

/* Kernel memory of @n rings. */
__u64 rings_bytes(__u64 n, __u32 slots, size_t record_bytes);

/**
 * rings_open() - create the rings; what @opts refers to must outlive them
 *
 * Return: 0, or a negative errno with @err and nothing left behind.
 */
int rings_open(const struct rings_opts *opts, struct rings **out, struct err *err);
void rings_close(struct rings *r); /* accepts NULL */

/* Valid during the call. */
struct record_batch {
	/* one of the two is set */
	const struct ibs_record *records;
	const struct ibs_record_raw *raw;
	const struct ibs_record_extra *extra; /* one per record; NULL: not recorded */
	const char *
		copies; /* a struct ibs_user_copy per record, `copy_stride` bytes apart; NULL: not recorded */
	size_t copy_stride;
	size_t n; /* > 0 */
};

/* Return: 0 to continue, or a negative errno with @err. */
typedef int record_cb(const struct record_batch *batch, void *arg, struct err *err);

/**
 * rings_drain() - take the records of all rings up to a time, in order of time
 * @until: CLOCK_MONOTONIC in ns; later records stay in the rings. UINT64_MAX takes all
 *
 * Successive passes with rising @until keep the order of time, except for records that were being
 * written during a pass: their time is taken in the NMI, microseconds before they become readable.
 * Once sampling has stopped, a pass with UINT64_MAX leaves nothing.
 *
 * Return: 0, or the error of @cb; the records of that batch count as taken.
 */
int rings_drain(struct rings *r, __u64 until, record_cb *cb, void *arg, struct err *err);

/**
 * rings_join() - make rings_drain() of @r deliver the records of @other, too, in order of time
 * @first_stack: added to the keys of their stacks
 *
 * Both must have been opened with the same `raw`, `extra` and `copy_bytes`. Afterwards use @other only for
 * rings_fd(), and close it after the last rings_drain().
 */
void rings_join(struct rings *r, const struct rings *other, __s32 first_stack);

/**
 * rings_mark() - numbers of records put into each ring so far, modulo 2^32
 * @mark: one for each ring: rings_n()
 */
void rings_mark(const struct rings *r, __u32 *mark);
size_t rings_n(const struct rings *r);

/* Records put into all rings since a mark. */
struct rings_kept {
	__u64 kept;	   /* the copy has them */
	__u64 overwritten; /* newer records took their place */
};

/**
 * rings_copy() - copy the records of rings that keep the last ones, while programs write on
 * @since: leave out the records before this mark, which is fewer than 2^32 records old
 *
 * Return: the copy, which has only complete records: drain it like other rings, but do not wait for
 * it; closed by the caller.
 */
struct rings *rings_copy(const struct rings *r, const __u32 *since, struct rings_kept *out);

/* Call @cb for the process of each record that a copy has, once for successive ones of the same process. */
void rings_each_process(const struct rings *copy, void (*cb)(__u32 tgid, void *arg), void *arg);

/* Readable if a ring has become more than half full since the last rings_drain(). */
int rings_fd(const struct rings *r);

/**
 * rings_delay_ms() - how long the reader may sleep, unless rings_fd() wakes it
 *
 * Time to fill one eighth of the fullest ring at the last rate: from 1 to RINGS_DELAY_MAX_MS.
 */
unsigned int rings_delay_ms(const struct rings *r);

#define RINGS_DELAY_MAX_MS 500

#endif
