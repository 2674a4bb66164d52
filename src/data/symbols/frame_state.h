/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a function's return address is at each of its instructions: who walks by frame pointers misses the caller of a
 * function that has no frame at that point. Found by following the stack pointer from the first instruction on; the
 * code is not trusted.
 */
#ifndef IBSCOPE_FRAME_STATE_H
#define IBSCOPE_FRAME_STATE_H

#include "base/u64_map.h"
#include "disasm/disasm.h"

#define FRAME_CODE_MAX	 (1u << 16) /* bytes of a function */
#define FRAME_CODE_TOTAL (1u << 25) /* of all that are followed */

struct frame_state {
	bool known;   /* the instruction was reached */
	bool framed;  /* the frame pointer is this function's */
	bool foreign; /* it holds something else: callers cannot be walked to */
	int depth;    /* bytes from the stack pointer to the return address; -1: unknown */
};

struct object;

/* Functions that were followed. The zero value is empty. */
struct frame_codes {
	struct frame_code {
		const struct object *object;
		__u64 start, size;
		unsigned char *states; /* one per byte; NULL: not followed */
		__u32 next;	       /* of the same hash */
	} * v;
	size_t n, room, bytes;
	struct u64_map of;
	bool full; /* more code was asked for than FRAME_CODE_TOTAL */
};

/* Return: NULL if the function was not added. */
const struct frame_code *frame_codes_find(const struct frame_codes *c, const struct object *object,
					  __u64 start);

/**
 * frame_codes_add() - follow a function
 * @code: its @size bytes; NULL: they are not known, so no state is
 *
 * Return: valid until the next call.
 */
const struct frame_code *frame_codes_add(struct frame_codes *c, const struct object *object,
					 __u64 start, __u64 size, const unsigned char *code,
					 struct disasm *d);
void frame_codes_free(struct frame_codes *c);

/* Is it small enough? Sets c->full if only the sum is too large. */
bool frame_codes_affords(struct frame_codes *c, __u64 size);

/* The state at an address, before that instruction runs. */
struct frame_state frame_state_at(const struct frame_code *f, __u64 addr);

/* The next instruction that was reached, in the order of addresses; 0: none. */
__u64 frame_state_next(const struct frame_code *f, __u64 addr);

#endif
