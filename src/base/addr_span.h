/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A range of addresses or file offsets. */
#ifndef IBSCOPE_ADDR_SPAN_H
#define IBSCOPE_ADDR_SPAN_H

#include "std.h"

struct addr_span {
	__u64 from, until; /* the end is excluded */
};

#define ADDR_SPAN_ALL ((struct addr_span){ 0, ~0ULL })

/* Cut a span at an edge, and keep the side that has @at. */
static inline void addr_span_cut(struct addr_span *span, __u64 at, __u64 edge)
{
	if (edge <= at && edge > span->from)
		span->from = edge;
	else if (edge > at && edge < span->until)
		span->until = edge;
}

#endif
