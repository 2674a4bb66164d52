/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The call chain of a sample as addresses to look up, and what was found for them before. */
#ifndef IBSCOPE_CHAIN_H
#define IBSCOPE_CHAIN_H

#include "chain_frame.h"
#include "symbols.h"

#include "trace/trace.h"

/**
 * chain_walked() - the chain as recorded, from the innermost frame on
 * @frames: TRACE_STACK_MAX of them
 *
 * perf's context marks are taken out. Addresses behind the first are return addresses, so one is
 * subtracted: a call may be the last instruction of its function. A sample without a chain has the
 * frame of its own address, if that is known.
 *
 * Return: how many frames.
 */
unsigned int chain_walked(const struct trace_sample *s, struct chain_frame *frames);

/**
 * chain_frames() - the same with what a walk by frame pointers misses
 *
 * The caller of a function that has no frame of its own where the task was: found in the words of the stack that were
 * recorded, or a frame with address 0, which is nobody's. The first frame is that of the op, if the function is known.
 */
unsigned int chain_frames(struct symbols *symbols, const struct tasks *tasks,
			  const struct trace_event *ev, struct chain_frame *frames);

/* A frame of a process at a time, below a caller. */
struct chain_place {
	__u64 state, addr; /* tasks_state(); 0: nothing can be kept for it, as for the kernel */
	__u32 tgid, maps, changes; /* tasks_maps(), symbols_changes() */
	__u32 parent;		   /* any number of the user's, which is part of the place */
};

struct chain_place chain_place_of(const struct tasks *tasks, const struct symbols *s,
				  const struct trace_event *ev, const struct chain_frame *frame,
				  __u32 parent);

/*
 * Numbers that users of this room found for places, as many as fit. Keep only those of frames with a name: a missing
 * name may come later. The zero value is empty.
 */
struct chain_memo {
	struct chain_known *known; /* aligned, in `room` */
	void *room;
	__u64 state; /* of all that is known */
	__u32 changes, round;
};

/* Begin to load what chain_memo_get() reads for a frame of a sample to come. */
void chain_memo_prefetch(const struct chain_memo *m, __u64 addr, __u32 tgid, __u32 parent);

bool chain_memo_get(const struct chain_memo *m, const struct chain_place *p, __u32 *number);
void chain_memo_put(struct chain_memo *m, const struct chain_place *p, __u32 number);
void chain_memo_free(struct chain_memo *m);

#endif
