// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call chains: a thread, its functions, and what was inlined into them. */
#include "html_facts.h"
#include "html_report.h"

static __u32 node_of(struct html_report *r, __u32 parent, const char *name)
{
	return html_node_of(r, parent, intern_get(&r->frames, name));
}

/* The node of the innermost of inlined functions. */
static __u32 inlined_of(struct html_report *r, __u32 node, const struct inlined *innermost)
{
	const struct inlined *frames[INLINED_MAX];
	unsigned int n = 0;

	for (const struct inlined *i = innermost; i; i = i->into)
		frames[n++] = i;
	while (n--)
		node = node_of(r, node, frames[n]->function.name);
	return node;
}

/* Names of threads live as long as the tasks, and their functions are few. */
static __u32 thread_of(struct html_report *r, const char *comm)
{
	const __u64 key = (uintptr_t)comm;
	__u32 node = u64_map_get(&r->thread_of, key);

	if (node != U64_MAP_NONE)
		return node;
	node = node_of(r, 0, comm ?: "[unknown thread]");
	u64_map_put(&r->thread_of, key, node);
	return node;
}

/* The node of a frame below its caller's, and of what was inlined there. */
static __u32 frame_of(struct html_report *r, const struct trace_event *ev,
		      const struct chain_frame *frame, __u32 parent, enum code_kind *kind)
{
	const struct chain_place place =
		chain_place_of(r->opts.tasks, r->opts.symbols, ev, frame, parent);
	struct symbol symbol;
	__u32 node;

	*kind = CODE_NAMED;
	if (chain_memo_get(&r->memo, &place, &node))
		return node;
	symbols_find(r->opts.symbols, r->opts.tasks, ev->sample.tgid, frame->addr, ev->time,
		     frame->kernel, false, &symbol);
	*kind = report_code_kind(true, &symbol);
	node = inlined_of(r, node_of(r, parent, symbol.name),
			  symbols_inlined(r->opts.symbols, &symbol));
	if (*kind == CODE_NAMED)
		chain_memo_put(&r->memo, &place, node);
	return node;
}

__u32 html_stack_of(struct html_report *r, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	struct chain_frame frames[TRACE_STACK_MAX];
	unsigned int n = chain_frames(r->opts.symbols, r->opts.tasks, ev, frames);
	enum code_kind kind = CODE_NO_FILE;
	const char *comm = NULL;
	__u32 node;

	if (s->has_task)
		comm = tasks_comm(r->opts.tasks, s->tgid, s->tid, ev->time);
	node = thread_of(r, comm);
	r->recent[s->tid % HTML_RECENT] = node;
	if (!n)
		node = node_of(r, node, "[unresolved]");
	while (n--)
		node = frame_of(r, ev, &frames[n], node, &kind);
	r->code_kinds[s->has_ip ? kind : CODE_NO_ADDRESS]++;
	return node;
}

/* The outermost frame; most samples have no other one. */
void html_report_expect(const struct html_report *r, const struct trace_hint *hint)
{
	chain_memo_prefetch(&r->memo, hint->ip, hint->tgid, r->recent[hint->tid % HTML_RECENT]);
}
