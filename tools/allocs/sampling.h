/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which small allocations are noted. All bytes that a thread allocates lie one after the other, and points at
 * exponentially distributed distances fall on them: an allocation is noted if a point falls on it, so that a larger one is
 * noted more often, and no pattern of a program is in step with the points.
 */
#ifndef IBSCOPE_ALLOCS_SAMPLING_H
#define IBSCOPE_ALLOCS_SAMPLING_H

#include <stdint.h>

/* xorshift64*: @state is not 0 */
static inline uint64_t sampling_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

/* Without the library of log(), which programs that are measured may not have loaded. */
static inline double sampling_log(double x)
{
	double y;

	__asm__("fldln2; fldl %1; fyl2x; fstpl %0" : "=m"(y) : "m"(x) : "st", "st(1)");
	return y;
}

/* Bytes up to the next point. */
static inline int64_t sampling_distance(uint64_t *state, uint64_t mean)
{
	/* above 0, at most 1 */
	const double u = ((sampling_random(state) >> 11) + 1) * 0x1p-53;

	return (int64_t)(-sampling_log(u) * mean) + 1;
}

/*
 * Pass an allocation. @left: bytes up to the next point, negative when one has been reached.
 * Return: whether it is noted.
 */
static inline int sampling_pass(int64_t *left, uint64_t bytes)
{
	*left -= (int64_t)bytes;
	return *left < 0;
}

/* Set *left after a point was reached, which may have been left behind by more than one distance. */
static inline void sampling_next(int64_t *left, uint64_t *state, uint64_t mean)
{
	while (*left < 0)
		*left += sampling_distance(state, mean);
}

#endif
