/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers that are the same in each run. */
#ifndef IBSCOPE_TESTS_RANDOM_WORD_H
#define IBSCOPE_TESTS_RANDOM_WORD_H

#include <linux/types.h>

/* xorshift64*; the lowest bits are the weakest */
static __u64 random_word(void)
{
	static __u64 seed = 1;

	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dULL;
}

#endif
