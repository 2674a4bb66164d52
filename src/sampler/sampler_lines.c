// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables of hot lines: two a CPU, one in use and one that was. */
#include "sampler_private.h"

#include <string.h>
#include <time.h>

/* A program that read the old number of a table has ended after that. */
#define PROGRAM_NS 1000000

static struct ibs_lines *table(const struct sampler *s, __u32 n, unsigned int half)
{
	return (void *)((char *)s->hot_lines.addr +
			(2ull * n + half) * IBS_LINES_BYTES(s->line_sets));
}

void sampler_lines_next(struct sampler *s)
{
	const __u8 half = s->line_half ^= 1;

	for (__u32 n = 0; n < s->line_tables; n++)
		memset(table(s, n, half), 0, IBS_LINES_BYTES(s->line_sets));
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		__atomic_store_n(&s->state->cpu[cpu].live.lines, half, __ATOMIC_RELEASE);
	nanosleep(&(struct timespec){ .tv_nsec = PROGRAM_NS }, NULL);
}

const struct ibs_lines *sampler_lines(const struct sampler *s, __u32 n, bool current)
{
	return n < s->line_tables ? table(s, n, s->line_half ^ !current) : NULL;
}
