/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples added up by all that the views of the HTML report show of them. */
#ifndef IBSCOPE_HTML_ROWS_H
#define IBSCOPE_HTML_ROWS_H

#include "base/u64_map.h"

#include <stdbool.h>

#define HTML_NO_LATENCY 255 /* bucket of samples without a valid latency */
#define HTML_BINS_MAX	240 /* of time */

/* The page has the same values (2-data.js); the low bits are enum ibs_op_kind. */
enum html_flag {
	HTML_HITM = 1 << 3, /* answered by a cache that had modified the line */
	HTML_WALK = 1 << 4, /* missed both levels of the data TLB */
	HTML_TLB_VALID = 1 << 5,
};

struct html_key {
	__u32 stack;
	__u16 time; /* bin */
	__u16 group;
	__u16 cpu;
	__u8 source, flags, bucket, pad[3]; /* compared bytewise: keep zero */
};
_Static_assert(sizeof(struct html_key) == 16, "html_key has implicit padding");

struct html_row {
	struct html_key key;
	__u64 samples, latencies;  /* number, and the sum of their latencies in cycles */
	double operations, cycles; /* sums of period, and of period times latency */
	__u32 max;		   /* latency */
};

/* The zero value is empty. */
struct html_rows {
	struct html_row *row;
	size_t n, room;
	struct u64_map of_key;	/* numbers of rows by the hash of the key */
	__u64 start_ns, end_ns; /* of the samples */
	__u64 bin_ns;
	bool has_time;
};

/**
 * html_rows_add() - add one sample
 * @key: its `time` is not looked at
 * @time_ns: 0: not known, counts as the first one
 *
 * Bins double when the recording outgrows them.
 *
 * Return: 0, -ENOMEM, or -E2BIG above HTML_ROWS_MAX.
 */
int html_rows_add(struct html_rows *r, const struct html_key *key, __u64 time_ns, __u32 latency,
		  __u64 period);

/* What many samples add up to; @what has no key. Else as html_rows_add(). */
int html_rows_add_sums(struct html_rows *r, const struct html_key *key, __u64 time_ns,
		       const struct html_row *what);

/* Bins from the first sample to the last. */
unsigned int html_rows_bins(const struct html_rows *r);

/* Order by time first, so that columns compress well; nothing can be added any more. */
void html_rows_sort(struct html_rows *r);

void html_rows_free(struct html_rows *r);

#endif
