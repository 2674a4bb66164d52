// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chain.h"

#include <linux/perf_event.h>

#define FIRST_MARK ((__u64)-4095) /* context marks lie above (PERF_CONTEXT_MAX) */

unsigned int chain_frames(const struct trace_sample *s, struct chain_frame *frames)
{
	bool kernel = s->kernel, exact = true;
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n_stack && n < TRACE_STACK_MAX; i++) {
		__u64 addr = s->stack[i];

		if (addr >= FIRST_MARK) {
			kernel = addr == (__u64)PERF_CONTEXT_KERNEL;
			exact = true;
			continue;
		}
		frames[n++] = (struct chain_frame){ exact ? addr : addr - 1, kernel };
		exact = false;
	}
	if (!n && s->has_ip)
		frames[n++] = (struct chain_frame){ s->ip, s->kernel };
	return n;
}
