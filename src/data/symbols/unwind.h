/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Callers from a copy of a stack, by what object files say of frames. Private to the room. */
#ifndef IBSCOPE_UNWIND_H
#define IBSCOPE_UNWIND_H

#include "chain_frame.h"
#include "symbols.h"

/**
 * unwind() - the frames of user space, from the innermost on
 * @most: frames at most
 *
 * Chains whose callers are not known end with a frame of nobody, address 0; those that go on behind the copy of the stack
 * with address SYMBOLS_CUT.
 *
 * Return: how many frames.
 */
unsigned int unwind(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
		    struct chain_frame *frames, unsigned int most);

#endif
