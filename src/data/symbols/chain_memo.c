// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chain.h"

#include "base/array.h"
#include "base/u64_map.h"

#define KNOWN_BITS 18 /* 8 MiB */

/* Half a cache line: a lookup waits for memory once. */
struct chain_known {
	__u64 addr;
	__u32 tgid, maps, parent;
	__u32 round; /* of the memo; 0: free */
	__u32 number, unused;
};
_Static_assert(sizeof(struct chain_known) == 32, "two places fill a cache line");

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

static struct chain_known *known_at(const struct chain_memo *m, __u64 addr, __u32 tgid,
				    __u32 parent)
{
	const __u64 hash = u64_hash(addr ^ (__u64)tgid << 40 ^ (__u64)parent << 20);

	return &m->known[hash >> (64 - KNOWN_BITS)];
}

/* What was kept for another state or before a change is no longer valid. */
static bool is_current(const struct chain_memo *m, const struct chain_place *p)
{
	return m->known && p->state && p->state == m->state && p->changes == m->changes;
}

bool chain_memo_get(const struct chain_memo *m, const struct chain_place *p, __u32 *number)
{
	const struct chain_known *k;

	if (!is_current(m, p))
		return false;
	k = known_at(m, p->addr, p->tgid, p->parent);
	if (k->addr != p->addr || k->tgid != p->tgid || k->maps != p->maps ||
	    k->parent != p->parent || k->round != m->round)
		return false;
	*number = k->number;
	return true;
}

void chain_memo_prefetch(const struct chain_memo *m, __u64 addr, __u32 tgid, __u32 parent)
{
	if (m->known)
		__builtin_prefetch(known_at(m, addr, tgid, parent));
}

void chain_memo_put(struct chain_memo *m, const struct chain_place *p, __u32 number)
{
	if (!p->state)
		return;
	if (!m->known) {
		m->room = xcalloc((1 << KNOWN_BITS) + 1, sizeof(*m->known));
		m->known = (void *)(((uintptr_t)m->room + 31) & ~(uintptr_t)31);
		array_huge_pages(m->known, sizeof(*m->known) << KNOWN_BITS);
	}
	if (!is_current(m, p)) {
		m->state = p->state;
		m->changes = p->changes;
		m->round++;
	}
	*known_at(m, p->addr, p->tgid, p->parent) = (struct chain_known){ .addr = p->addr,
									  .tgid = p->tgid,
									  .maps = p->maps,
									  .parent = p->parent,
									  .round = m->round,
									  .number = number };
}

void chain_memo_free(struct chain_memo *m)
{
	free(m->room);
}
