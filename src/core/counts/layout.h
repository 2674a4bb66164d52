/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Position in a slot of the counts of each pair (kind of op, source); see ibscope/maps.h. For
 * ibs_fetch a pair is (enum ibs_fetch_itlb, enum ibs_fetch_class).
 */
#ifndef IBSCOPE_LAYOUT_H
#define IBSCOPE_LAYOUT_H

#include <ibscope/fetch.h>
#include <ibscope/maps.h>

struct layout {
	__u16 entry[IBS_LAYOUT_ENTRIES]; /* by IBS_LAYOUT_IDX() */
	__u32 words;			 /* of a slot */
	__u32 hists;			 /* histograms in a slot */
};

/**
 * layout_init() - lay out a slot
 * @metric: latency to histogram, which determines the event
 * @caps:   of the CPUs; the encoding of DataSrc determines the possible sources
 */
void layout_init(struct layout *l, enum ibs_metric metric, __u32 caps);

/**
 * layout_filter() - drop pairs that are not selected
 * @op_mask:  1 << enum ibs_op_kind of the kinds to keep
 * @src_mask: 1 << enum ibs_src of the sources to keep
 *
 * Filtering by a table that is read anyway costs a kept sample nothing. The size of a slot stays,
 * so that runs with different selections have the same layout.
 */
void layout_filter(struct layout *l, __u32 op_mask, __u32 src_mask);

/* True if the pair has words in a slot. */
static inline bool layout_has(const struct layout *l, unsigned int pair)
{
	return (l->entry[pair] & IBS_LAYOUT_WORD) >= IBS_LAYOUT_FIRST;
}

/* Number of sources, or of fetch classes; number of kinds of op, or of translations. */
static inline unsigned int layout_sources(enum ibs_metric metric)
{
	return ibs_metric_of_fetch(metric) ? (int)IBS_FETCH_CLASS_N : (int)IBS_SRC_N;
}

static inline unsigned int layout_ops(enum ibs_metric metric)
{
	return ibs_metric_of_fetch(metric) ? (int)IBS_FETCH_ITLB_N : (int)IBS_OP_KIND_N;
}

#endif
