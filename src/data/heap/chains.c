// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "chains.h"

#include "base/array.h"

#define STEPS 4 /* from the link that was found last, before a search */

static struct chain *chain_of(struct chains *c, __u64 key)
{
	__u32 i = u64_map_get(&c->chain_of, key);

	if (i != CHAIN_NONE)
		return &c->chains[i];
	i = c->n_chains++;
	array_reserve(c->chains, c->chains_room, c->n_chains);
	c->chains[i] = (struct chain){ CHAIN_NONE, CHAIN_NONE };
	u64_map_put(&c->chain_of, key, i);
	return &c->chains[i];
}

void chains_add(struct chains *c, __u64 key, __u64 time, __u32 value)
{
	struct chain *chain = chain_of(c, key);
	const __u32 last = chain->last, i = c->n;
	struct chain_link link = {
		.time = time, .value = value, .before = i, .further = i, .after = i
	};
	struct chain_link *b;
	const struct chain_link *f;

	if (c->n == CHAIN_NONE)
		out_of_memory();
	if (last != CHAIN_NONE) {
		b = &c->links[last];
		f = &c->links[b->further];
		b->after = i;
		link.before = last;
		link.depth = b->depth + 1;
		/* two equal steps become one of twice the length, as carries of a counter do */
		link.further = b->depth - f->depth == f->depth - c->links[f->further].depth
				       ? f->further
				       : last;
	}
	array_reserve(c->links, c->room, c->n + 1);
	c->links[c->n++] = link;
	chain->last = chain->found = i;
}

__u32 chains_last(const struct chains *c, __u64 key)
{
	const __u32 i = u64_map_get(&c->chain_of, key);

	return i == CHAIN_NONE ? CHAIN_NONE : c->links[c->chains[i].last].value;
}

/* The last link up to a time; from @i on, which is later, there is none that is not. CHAIN_NONE: none at all. */
static __u32 search(const struct chains *c, __u32 i, __u64 time)
{
	while (c->links[i].time > time) {
		const struct chain_link *l = &c->links[i];

		if (l->before == i)
			return CHAIN_NONE;
		i = c->links[l->further].time > time ? l->further : l->before;
	}
	return i;
}

bool chains_at(struct chains *c, __u64 key, __u64 time, __u32 *value)
{
	const __u32 k = u64_map_get(&c->chain_of, key);
	struct chain *chain;
	__u32 i;

	*value = CHAIN_NONE;
	if (k == CHAIN_NONE)
		return false;
	chain = &c->chains[k];
	i = chain->found;
	for (int step = 0; step < STEPS && c->links[i].time <= time; step++) {
		const __u32 after = c->links[i].after;

		if (after == i || c->links[after].time > time) {
			chain->found = i;
			*value = c->links[i].value;
			return true;
		}
		i = after;
	}
	i = search(c, c->links[i].time > time ? i : chain->last, time);
	if (i == CHAIN_NONE)
		return true;
	chain->found = i;
	*value = c->links[i].value;
	return true;
}

void chains_free(struct chains *c)
{
	u64_map_free(&c->chain_of);
	free(c->chains);
	free(c->links);
	memset(c, 0, sizeof(*c));
}
