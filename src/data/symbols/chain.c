// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chain.h"

#include "callers.h"
#include "unwind.h"

#include <linux/perf_event.h>

#define FIRST_MARK ((__u64)-4095) /* context marks lie above (PERF_CONTEXT_MAX) */

unsigned int chain_walked(const struct trace_sample *s, struct chain_frame *frames)
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

/* Put a frame before that with an index. Return: how many there are. */
static unsigned int insert(struct chain_frame *frames, unsigned int n, unsigned int at, __u64 addr)
{
	if (n == TRACE_STACK_MAX)
		n--;
	memmove(frames + at + 1, frames + at, (n - at) * sizeof(*frames));
	frames[at] = (struct chain_frame){ addr, false };
	return n + 1;
}

/* Programs of 32 bits have neither these words nor code that could be followed. */
static bool is_64_bit(const struct trace_sample *s, __u64 user)
{
	if (!s->top || user >> 32)
		return true;
	for (unsigned int i = 0; i < IBS_STACK_TOP; i++)
		if (s->top[i])
			return true;
	return false;
}

/* Add the caller of the first function in user space, whose index is @at, if a walk by frame pointers misses it. */
static unsigned int add_caller(struct symbols *symbols, const struct tasks *tasks,
			       const struct trace_event *ev, struct chain_frame *frames,
			       unsigned int n, unsigned int at)
{
	const struct trace_sample *s = &ev->sample;
	const bool exact = at || frames[0].addr != s->ip;
	const struct caller c =
		symbols_caller(symbols, tasks, ev, frames[at].addr,
			       at + 1 < n ? frames[at + 1].addr + 1 : 0, s->top, exact);

	if (c.kind == CALLER_WALKED)
		return n;
	if (c.kind == CALLER_LAST)
		n = at + 1;
	return insert(frames, n, at + 1, c.kind == CALLER_FOUND ? c.addr - 1 : 0);
}

/* The chain may begin where the interrupt was: then the op is in this function, its caller, or one that has returned. */
static unsigned int begin_at_op(struct symbols *symbols, const struct tasks *tasks,
				const struct trace_event *ev, struct chain_frame *frames,
				unsigned int n)
{
	const __u64 op = ev->sample.ip, walked = frames[0].addr;

	/* both functions must be known */
	if (op == walked || !symbols_same_function(symbols, tasks, ev, op, op) ||
	    !symbols_same_function(symbols, tasks, ev, walked, walked))
		return n;
	if (n > 1 && symbols_same_function(symbols, tasks, ev, op, frames[1].addr) &&
	    !symbols_same_function(symbols, tasks, ev, op, walked))
		memmove(frames, frames + 1, --n * sizeof(*frames));
	else if (!symbols_same_function(symbols, tasks, ev, op, walked))
		return insert(frames, n, 0, op);
	frames[0].addr = op;
	return n;
}

unsigned int chain_frames(struct symbols *symbols, const struct tasks *tasks,
			  const struct trace_event *ev, struct chain_frame *frames)
{
	const struct trace_sample *s = &ev->sample;
	unsigned int n = chain_walked(s, frames), at = 0;

	if (!trace_has_chain(s) || !s->has_task)
		return n;
	if (s->copy) {
		/* an op of user space is the first frame, see begin_at_op() */
		at = n && s->kernel ? n : 0;
		n = at + unwind(symbols, tasks, ev, frames + at, TRACE_STACK_MAX - at);
		return at || !s->has_ip ? n : begin_at_op(symbols, tasks, ev, frames, n);
	}
	while (at < n && frames[at].kernel)
		at++;
	if (at < n && is_64_bit(s, frames[at].addr))
		n = add_caller(symbols, tasks, ev, frames, n, at);
	if (!at && s->has_ip && !s->kernel)
		n = begin_at_op(symbols, tasks, ev, frames, n);
	return n;
}
