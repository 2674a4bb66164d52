/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The caller of the function that a task was in, where a walk by frame pointers misses it. Private to the room. */
#ifndef IBSCOPE_CALLERS_H
#define IBSCOPE_CALLERS_H

#include "symbols.h"

enum caller_kind {
	CALLER_WALKED,	/* the next frame is it, or nothing is known */
	CALLER_MISSING, /* it is not in the chain, and not known */
	CALLER_FOUND,	/* it is not in the chain: its return address */
	CALLER_LAST,	/* the same as MISSING, and what follows in the chain is no frame either */
};

struct caller {
	enum caller_kind kind;
	__u64 addr;
};

/**
 * symbols_caller() - the caller of the function at an address of user space
 * @next:  the next address of the chain, 0: none
 * @top:   IBS_STACK_TOP words from the stack pointer up, or NULL
 * @exact: the stack was as at @addr; else as it was up to a few instructions later
 */
struct caller symbols_caller(struct symbols *s, const struct tasks *tasks,
			     const struct trace_event *ev, __u64 addr, __u64 next, const __u64 *top,
			     bool exact);

/* Where code of a process is. Return: false if it is in no file that can be read. */
bool symbols_locate(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev,
		    __u64 addr, struct object **object, __u64 *offset);

/* Has the code at an address frame pointers instead of tables? That of V8 has, and others' that processes generate may. */
bool symbols_has_frame_pointers(struct symbols *s, const struct tasks *tasks,
				const struct trace_event *ev, __u64 addr);

/* Does a call end before an address? In code that a process generated, there may be one. */
bool symbols_may_return_to(struct symbols *s, const struct tasks *tasks,
			   const struct trace_event *ev, __u64 addr);

/* Are two addresses of user space in the same function? False, too, if they are in none that is known. */
bool symbols_same_function(struct symbols *s, const struct tasks *tasks,
			   const struct trace_event *ev, __u64 a, __u64 b);

#endif
