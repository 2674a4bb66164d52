/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples added up by all properties that the views of the HTML report show. */
#ifndef IBSCOPE_HTML_ROWS_H
#define IBSCOPE_HTML_ROWS_H

#include "base/u64_map.h"

#include <stdbool.h>

#define HTML_NO_LATENCY 255 /* bucket of samples without a valid latency */
#define HTML_BINS_MAX	240 /* of time */
#define HTML_ROWS_MAX	(1u << 19)
#define HTML_NO_NODE	255 /* unknown memory node */

/* The page has the same values (1-data.js); the low bits are enum ibs_op_kind. */
enum html_flag {
	HTML_HITM = 1 << 3, /* data from a cache that had modified the line */
	HTML_WALK = 1 << 4, /* missed both levels of the data TLB */
	HTML_TLB_VALID = 1 << 5,
};

struct html_key {
	__u32 stack;
	__u16 time; /* bin */
	__u16 group;
	__u16 cpu;			/* number of the place, see html_places.h */
	__u16 rank, role, region, site; /* numbers of names; 0: none */
	__u8 source, flags, bucket, memory;
	__u8 pad[2]; /* compared bytewise: keep zero */
};
_Static_assert(sizeof(struct html_key) == 24, "html_key has implicit padding");

struct html_row {
	struct html_key key;
	__u64 samples, latencies;  /* number, and the sum of their latencies in cycles */
	double operations, cycles; /* sums of period, and of period times latency */
	double exposed;		   /* cycles: exposed.h */
	double squares;		   /* of periods */
	__u32 max;		   /* latency */
};

/* The zero value is empty. */
struct html_rows {
	struct html_row *row;
	size_t n, room;
	struct u64_map of_key;	/* numbers of rows by the hash of the key */
	__u64 start_ns, end_ns; /* of the samples */
	__u64 bin_ns;
	unsigned int bins_max; /* 0: HTML_BINS_MAX */
	size_t rows_max;       /* 0: HTML_ROWS_MAX */
	bool has_time;
};

/* The sums of one sample; its key is zero. @period: see html_report_add(). */
struct html_row html_row_of_sample(const struct html_key *key, __u32 latency, __u64 period);

/**
 * html_rows_add() - add samples with the same key
 * @key: its `time` is ignored
 * @time_ns: 0: unknown, counts as the first time
 * @what: its key is ignored
 *
 * Bins double when the recording outgrows them, and move when a sample is earlier than all before.
 *
 * Return: 0, or -E2BIG at the maximum number of rows: html_rows_rekey() can make room.
 */
int html_rows_add(struct html_rows *r, const struct html_key *key, __u64 time_ns,
		  const struct html_row *what);

/* Change the key of each row with @change, and merge rows with equal keys. */
void html_rows_rekey(struct html_rows *r, void (*change)(struct html_key *key, void *ctx),
		     void *ctx);

/* Limit the number of bins to @max from now on. */
void html_rows_limit_bins(struct html_rows *r, unsigned int max);

/* The number of bins from the first sample to the last. */
unsigned int html_rows_bins(const struct html_rows *r);

/* Sort by time first, so that columns compress well; call it after the last addition. */
void html_rows_sort(struct html_rows *r);

void html_rows_free(struct html_rows *r);

#endif
