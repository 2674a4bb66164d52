// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call chains of samples as texts: who called a function, and from where. */
#include "report.h"

#include "symbols/chain.h"

#define FRAME_BYTES 256 /* of a name in a chain, cut before */

/* The innermost function at a frame: one that was inlined there, or the one that has the code. */
static struct object_name name_of(struct symbols *symbols, const struct tasks *tasks,
				  const struct trace_event *ev, const struct chain_frame *frame)
{
	const struct inlined *f;
	struct symbol sym;

	symbols_find(symbols, tasks, ev->sample.tgid, frame->addr, ev->time, frame->kernel, false,
		     &sym);
	f = symbols_inlined(symbols, &sym);
	return f ? f->function : (struct object_name){ sym.name, sym.mangled };
}

bool report_caller(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		   struct object_name *out)
{
	struct chain_frame frames[TRACE_STACK_MAX];

	if (!trace_has_chain(&ev->sample) || chain_frames(symbols, tasks, ev, frames) < 2)
		return false;
	*out = name_of(symbols, tasks, ev, &frames[1]);
	return true;
}

static char *put_frame(char *to, const char *end, const char *name)
{
	const char *from = to;

	if (end - to < FRAME_BYTES + 2)
		return to;
	to += snprintf(to, FRAME_BYTES, "%s", name) < FRAME_BYTES ? strlen(to) : FRAME_BYTES - 1;
	for (char *c = (char *)from; c < to; c++)
		if (*c == *SCREEN_FRAME)
			*c = ':';
	*to++ = *SCREEN_FRAME;
	*to = 0;
	return to;
}

bool report_stack(struct symbols *symbols, const struct tasks *tasks, const struct trace_event *ev,
		  char *buf, size_t size)
{
	struct chain_frame frames[TRACE_STACK_MAX];
	unsigned int n =
		trace_has_chain(&ev->sample) ? chain_frames(symbols, tasks, ev, frames) : 0;
	const struct inlined *inlined[INLINED_MAX];
	char *to = buf;

	if (!n)
		return false;
	while (n--) {
		unsigned int k = 0;
		struct symbol sym;

		symbols_find(symbols, tasks, ev->sample.tgid, frames[n].addr, ev->time,
			     frames[n].kernel, false, &sym);
		for (const struct inlined *i = symbols_inlined(symbols, &sym); i; i = i->into)
			inlined[k++] = i;
		to = put_frame(to, buf + size, sym.name);
		while (k--)
			to = put_frame(to, buf + size, inlined[k]->function.name);
	}
	to[-1] = 0;
	return true;
}
