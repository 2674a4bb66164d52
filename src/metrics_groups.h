/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The groups of one reading, small enough to keep a thousand containers with all sources. */
#ifndef IBSCOPE_METRICS_GROUPS_H
#define IBSCOPE_METRICS_GROUPS_H

#include "counts.h"

#include <ibscope/pinned.h>

/* Those that are shown, ascending. */
struct metrics_edges {
	const unsigned int *le;
	size_t n;
};

/* A histogram whose empty buckets take no room. */
struct packed_hist {
	__u64 valid, sum;
	__u64 *below; /* the samples at or below each edge; NULL: there are none */
	__u8 *bytes;  /* behind these */
	size_t n;
};

/* Add @buckets, IBS_LAT_BUCKETS of them. Return: 0 or -ENOMEM. */
int packed_add(struct packed_hist *h, const struct metrics_edges *edges, const __u64 *buckets,
	       __u64 sum);
/* The next bucket that is not empty, in their order; @at is 0 at first. */
static inline bool packed_next(const struct packed_hist *h, size_t *at, unsigned int *bucket,
			       __u64 *n)
{
	const __u8 *p = h->bytes + *at;
	int shift = 0;

	if (*at == h->n)
		return false;
	*bucket = *p++;
	*n = 0;
	do
		*n |= (__u64)(*p & 127) << shift;
	while (shift += 7, *p++ & 128);
	*at = p - h->bytes;
	return true;
}
/* Add what is in @h to @buckets. */
void packed_get(const struct packed_hist *h, __u64 *buckets);

struct metrics_group {
	bool other;
	__u64 cgroup_id;
	char *cgroup; /* its path */
	char *labels; /* as Prometheus writes them, each with a comma behind it */
	char *json;   /* the same as members of a JSON object */
	size_t labels_len;
	__u64 samples, count[IBS_OP_KIND_N][IBS_SRC_N];
	__u64 weight[IBS_OP_KIND_N][IBS_SRC_N]; /* ops that the samples stand for */
	struct tlb_counts tlb;
	struct packed_hist hist[IBS_SRC_N]; /* of those with a latency, all kinds of ops */
};

/* Zero but for the edges is empty. */
struct metrics_groups {
	struct metrics_edges edges;
	struct metrics_group **group;
	size_t n, room;
	__u32 *places; /* by the hash of the path: number + 1, or 0; a power of two */
	size_t n_places;
	size_t bytes; /* of memory, about */
};

/**
 * metrics_groups_add() - what a group has counted
 * @name: of the group; not used if @other
 *
 * Return: 0 or -ENOMEM.
 */
int metrics_groups_add(struct metrics_groups *all, const struct group *g,
		       const struct ibs_slot_name *name, bool other);

void metrics_groups_free(struct metrics_groups *all);

#endif
