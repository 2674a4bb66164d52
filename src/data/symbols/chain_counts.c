// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is missing in call chains. */
#include "symbols.h"
#include "symbols_private.h"

void symbols_count_chain(struct symbols *s, const struct trace_event *ev, bool cut)
{
	struct chain_counts *c = &s->chains;

	if (c->unwound && c->time == ev->time && c->tid == ev->sample.tid)
		return;
	c->time = ev->time;
	c->tid = ev->sample.tid;
	c->unwound++;
	c->cut += cut;
}

size_t symbols_chain_problems(const struct symbols *s, void (*cb)(const char *text, void *arg),
			      void *arg)
{
	const struct chain_counts *c = &s->chains;
	char text[200];

	if (s->codes.full)
		cb("callers of functions without a frame: the functions are too much code to read "
		   "all",
		   arg);
	if (c->cut) {
		snprintf(text, sizeof(text),
			 "callers behind the copy of the stack ([cut]), in %.2g%% of the call "
			 "chains: "
			 "record more of it, --call-graph dwarf,BYTES",
			 100.0 * c->cut / c->unwound);
		cb(text, arg);
	}
	return s->codes.full + !!c->cut;
}
