// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Does the machine's clock count time, or instructions? */
#include "bench_clock.h"

#include "clock.h"

#include <math.h>

#define TELL_TURNS 20000
#define TELL_INSNS (8 * TELL_TURNS) /* of the bodies alone */

/* Eight instructions that wait for each other, and eight that do not. */
static uint64_t tell(bool slow)
{
	unsigned long x = 3;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < TELL_TURNS; i++) {
		if (slow)
			__asm__ volatile(".rept 8\n\timul %0, %0\n\t.endr" : "+r"(x));
		else
			__asm__ volatile(".rept 8\n\tnop\n\t.endr");
	}
	return clock_ns(CLOCK_MONOTONIC) - start;
}

bool bench_clock_counts_instructions(void)
{
	uint64_t best[2] = { UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 10; i++) {
		uint64_t t = tell(i % 2);

		best[i % 2] = t < best[i % 2] ? t : best[i % 2];
	}
	return fabs((double)best[0] / best[1] - 1) < 0.1 && best[0] >= TELL_INSNS &&
	       best[0] < 2 * TELL_INSNS;
}
