// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chains.h"

#include "base/array.h"

void chains_add(struct chains *c, __u64 key, __u64 time, __u32 value)
{
	const __u32 last = u64_map_get(&c->last, key), i = c->n;
	struct chain_link link = { .time = time, .value = value, .before = i, .further = i };
	const struct chain_link *b, *f;

	if (c->n == CHAIN_NONE)
		out_of_memory();
	if (last != CHAIN_NONE) {
		b = &c->links[last];
		f = &c->links[b->further];
		link.before = last;
		link.depth = b->depth + 1;
		/* two equal steps become one of twice the length, as carries of a counter do */
		link.further = b->depth - f->depth == f->depth - c->links[f->further].depth
				       ? f->further
				       : last;
	}
	array_reserve(c->links, c->room, c->n + 1);
	c->links[c->n++] = link;
	u64_map_put(&c->last, key, i);
}

__u32 chains_last(const struct chains *c, __u64 key)
{
	const __u32 last = u64_map_get(&c->last, key);

	return last == CHAIN_NONE ? CHAIN_NONE : c->links[last].value;
}

bool chains_at(const struct chains *c, __u64 key, __u64 time, __u32 *value)
{
	__u32 i = u64_map_get(&c->last, key);

	*value = CHAIN_NONE;
	if (i == CHAIN_NONE)
		return false;
	while (c->links[i].time > time) {
		const struct chain_link *l = &c->links[i];

		if (l->before == i)
			return true;
		i = c->links[l->further].time > time ? l->further : l->before;
	}
	*value = c->links[i].value;
	return true;
}

void chains_free(struct chains *c)
{
	u64_map_free(&c->last);
	free(c->links);
	memset(c, 0, sizeof(*c));
}
