// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chain.h"

#include "base/array.h"
#include "base/u64_map.h"

#define KNOWN_BITS 16 /* 2.6 MB */

struct chain_known {
	struct chain_place place;
	__u32 number;
};
_Static_assert(sizeof(struct chain_place) == 32, "places are compared byte by byte");

struct chain_place chain_place_of(const struct tasks *tasks, const struct symbols *s,
				  const struct trace_event *ev, const struct chain_frame *frame,
				  __u32 parent)
{
	const __u32 tgid = ev->sample.tgid;
	const __u64 state = frame->kernel ? 0 : tasks_state(tasks);
	const __u32 maps = state ? tasks_maps(tasks, tgid, ev->time) : 0;

	return (struct chain_place){ .state = maps ? state : 0,
				     .addr = frame->addr,
				     .tgid = tgid,
				     .maps = maps,
				     .changes = symbols_changes(s),
				     .parent = parent };
}

static struct chain_known *known_at(const struct chain_memo *m, const struct chain_place *p)
{
	const __u64 hash = u64_hash(p->addr ^ (__u64)p->tgid << 40 ^ (__u64)p->parent << 20);

	return &m->known[hash >> (64 - KNOWN_BITS)];
}

bool chain_memo_get(const struct chain_memo *m, const struct chain_place *p, __u32 *number)
{
	const struct chain_known *k = m->known && p->state ? known_at(m, p) : NULL;

	if (!k || memcmp(&k->place, p, sizeof(*p)) != 0)
		return false;
	*number = k->number;
	return true;
}

void chain_memo_put(struct chain_memo *m, const struct chain_place *p, __u32 number)
{
	if (!p->state)
		return;
	if (!m->known)
		m->known = xcalloc(1 << KNOWN_BITS, sizeof(*m->known));
	*known_at(m, p) = (struct chain_known){ *p, number };
}

void chain_memo_free(struct chain_memo *m)
{
	free(m->known);
}
