/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The copies of stacks that the samples of a block refer to. Private to recording_*.c */
#ifndef IBSCOPE_RECORDING_COPIES_H
#define IBSCOPE_RECORDING_COPIES_H

#include "recording_format.h"

#include "trace/trace.h"

struct recording_copies {
	unsigned char *data; /* malloc()ed */
	__u32 *at;	     /* where each begins */
	size_t n, room;
	/* the copy that was found last */
	struct trace_copy found;
	__u64 regs[IBS_USER_REGS];
};

/* Replace them by those of a block. Return: false, and no copies, if it holds anything else. */
bool recording_copies_take(struct recording_copies *c, const unsigned char *data, size_t bytes);

/* The copy with a number, if it is that of the sample @ev; else NULL. It lives until the next call. */
const struct trace_copy *recording_copies_find(struct recording_copies *c, __u64 number,
					       const struct trace_event *ev);

void recording_copies_free(struct recording_copies *c);

#endif
