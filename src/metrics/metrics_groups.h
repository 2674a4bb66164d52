/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The groups of one reading, packed: a thousand containers with all their sources fit into memory. */
#ifndef IBSCOPE_METRICS_GROUPS_H
#define IBSCOPE_METRICS_GROUPS_H

#include "base/u64_map.h"
#include "counts/counts.h"

#include <ibscope/pin_layout.h>

/* The edges to show, ascending. */
struct metrics_edges {
	const unsigned int *le;
	size_t n;
};

/* A histogram without its empty buckets. */
struct packed_hist {
	__u64 valid, sum;
	__u64 *below; /* samples at or below each edge; NULL: no samples */
	__u8 *bytes;  /* in the same allocation */
	size_t n;
};

/* Add @buckets, IBS_LAT_BUCKETS of them. Return: 0 or -ENOMEM. */
int packed_add(struct packed_hist *h, const struct metrics_edges *edges, const __u64 *buckets,
	       __u64 sum);
/* The next bucket that is not empty, in ascending order; @at is 0 at first. */
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
/* Add the buckets of @h to @buckets. */
void packed_get(const struct packed_hist *h, __u64 *buckets);

struct metrics_group {
	__u64 cgroup_id;
	char *labels; /* as Prometheus writes them, each followed by a comma */
	char *json;   /* the same as members of a JSON object */
	size_t labels_len;
	__u64 samples, count[IBS_OP_KIND_N][IBS_SRC_N];
	__u64 ops[IBS_OP_KIND_N][IBS_SRC_N]; /* estimated ops */
	struct tlb_counts tlb;
	struct packed_hist hist[IBS_SRC_N]; /* samples with a latency, of all kinds of ops */
};

/* Empty if all is zero but @edges and @by. */
struct metrics_groups {
	struct metrics_edges edges;
	__u32 by; /* enum ibs_by bits: the labels that groups have */
	struct metrics_group **group;
	size_t n, room;
	struct u64_map by_labels; /* by their hash */
	size_t bytes; /* of memory, about */
};

/**
 * metrics_groups_add() - add the counts of a group
 * @name:  of its cgroup; not used if @other
 * @other: add them to `other`
 *
 * Groups with the same labels are added up, except those of a cgroup that was made again: the series
 * is that of the newer one, and the counts of the older one go to `other`. So the series restarts
 * once, as if the workload had restarted, and does not go back when the older one is folded.
 *
 * Return: 0 or -ENOMEM.
 */
int metrics_groups_add(struct metrics_groups *all, const struct group *g,
		       const struct ibs_slot_name *name, bool other);

void metrics_groups_free(struct metrics_groups *all);

#endif
