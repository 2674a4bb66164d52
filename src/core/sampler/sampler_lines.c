// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables of hot lines: two per CPU, the current and the previous one. */
#include "sampler_private.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct ibs_lines *table(const struct sampler *s, __u32 n, unsigned int half)
{
	return (void *)((char *)s->hot_lines.addr +
			(2ull * n + half) * IBS_LINES_BYTES(s->line_sets));
}

/*
 * Each program runs in an RCU read-side section, and membarrier() waits for the end of all of them.
 * Kernels with nohz_full= lack it: there, read all events, each by an interrupt of its CPU, which
 * cannot arrive before an NMI has ended.
 */
void sampler_wait_for_programs(struct sampler *s)
{
	struct perf_events_total ignored;

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) && s->events)
		perf_events_read(s->events, &ignored);
}

void sampler_lines_next(struct sampler *s)
{
	const __u8 half = s->line_half ^= 1;

	for (__u32 n = 0; n < s->line_tables; n++)
		memset(table(s, n, half), 0, IBS_LINES_BYTES(s->line_sets));
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++) {
		__u32 *lines = &s->state->cpu[cpu].lines;

		if (*lines != ~0u)
			__atomic_store_n(lines, (*lines & ~1u) | half, __ATOMIC_SEQ_CST);
	}
	sampler_wait_for_programs(s);
}

const struct ibs_lines *sampler_lines(const struct sampler *s, __u32 n, bool current)
{
	return n < s->line_tables ? table(s, n, s->line_half ^ !current) : NULL;
}
