/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks without frame pointers, in a few ns per frame: rules of .eh_frame are interpreted once for each return
 * address, and kept.
 */
#ifndef IBSCOPE_ALLOCS_STACK_H
#define IBSCOPE_ALLOCS_STACK_H

#include <stdint.h>

struct stack_bounds {
	uintptr_t start, end;
};

/**
 * stack_walk() - return addresses of the functions that called us
 * @frame: __builtin_frame_address(0) of a function with a frame pointer, in this library
 * @bounds: of this thread's stack; a walk on another one (a coroutine's, a signal handler's) costs a system call per word
 * @out:   gets at most @max addresses, innermost first, without those in this library
 *
 * Return: their number. Does not allocate memory.
 */
unsigned int stack_walk(const uintptr_t *frame, struct stack_bounds bounds, uint64_t *out,
			unsigned int max);

/* Call after code was unloaded: other code may come to its place. */
void stack_forget(void);

#endif
