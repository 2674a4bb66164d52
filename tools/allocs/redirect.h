/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Allocators that define C++'s operators themselves, as jemalloc does, or have functions of their own: calls of these never
 * come to malloc and free. A definition of ours would be before that of any program, also of one without such an
 * allocator, where the operators may be others and mallocx() must not be there.
 */
#ifndef IBSCOPE_ALLOCS_REDIRECT_H
#define IBSCOPE_ALLOCS_REDIRECT_H

#include <stdint.h>

/*
 * Let the program, and the libraries that are loaded, call us instead of those functions that the code from @start to @end
 * defines for all of them. Call it before there are threads.
 */
void redirect_allocator(uintptr_t start, uintptr_t end);

#endif
