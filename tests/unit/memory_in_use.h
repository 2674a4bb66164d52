/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests that memory is given back, also in builds without a sanitizer. */
#ifndef IBSCOPE_TESTS_MEMORY_IN_USE_H
#define IBSCOPE_TESTS_MEMORY_IN_USE_H

#include <malloc.h>

/* malloc counts what it keeps at hand; a loop of 300 that loses anything at all loses more than that. */
#define MEMORY_SLACK 4096

static inline size_t memory_in_use(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

#endif
