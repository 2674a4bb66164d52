// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pieces.h"

#include "base/array.h"

#define LEVEL_BITS 2
#define FIRST_BITS 6 /* blocks of the first level have 64 bytes */
#define LEVELS	   ((64 - FIRST_BITS) / LEVEL_BITS)

/* --- places: levels, blocks and chains --- */

static unsigned int level_bits(unsigned int level)
{
	return FIRST_BITS + level * LEVEL_BITS;
}

static unsigned int level_of(__u64 bytes)
{
	unsigned int level = 0;

	while (level < LEVELS - 1 && bytes > 1ull << level_bits(level))
		level++;
	return level;
}

static __u64 chain_key(__u32 space, unsigned int level, __u64 block, unsigned int lane)
{
	return words_hash((const __u64[]){ (__u64)space << 32 | level << 16 | lane, block }, 2);
}

/* Add a piece to the first chain of a block whose last piece has ended. */
static void add_to_block(struct pieces *p, __u32 i, unsigned int level, __u64 block)
{
	const struct piece *it = &p->piece[i];
	unsigned int lane = 0;
	__u64 key;
	__u32 last;

	do {
		key = chain_key(it->space, level, block, lane++);
		last = chains_last(&p->chains, key);
	} while (last != CHAIN_NONE && p->piece[last].to == PIECE_LIVE);
	chains_add(&p->chains, key, it->from, i);
}

__u32 pieces_find(struct pieces *p, __u32 space, __u64 addr, __u64 time)
{
	if (!p->history) {
		const __u32 i = pieces_below(p, space, addr + 1);

		return i && addr < p->piece[i].end ? i : PIECE_NONE;
	}
	for (unsigned int level = 0; level < LEVELS; level++) {
		const __u64 block = addr >> level_bits(level);
		unsigned int lane = 0;
		__u32 i;

		if (!(p->spaces[space].levels >> level & 1))
			continue;
		while (chains_at(&p->chains, chain_key(space, level, block, lane++), time, &i)) {
			const struct piece *it = &p->piece[i == CHAIN_NONE ? PIECE_NONE : i];

			/* different blocks may have one key */
			if (addr >= it->start && addr < it->end && time < it->to &&
			    it->space == space)
				return i;
		}
	}
	return PIECE_NONE;
}

/* --- live pieces --- */

/* Unpredictable to whoever crafts the input: it decides the depth. */
static __u64 priority(__u32 i)
{
	return u64_hash(i ^ u64_map_seed) | 1;
}

/* Split a treap at an address. */
static void split(struct pieces *p, __u32 root, __u64 at, __u32 *below, __u32 *above)
{
	while (root) {
		struct piece *it = &p->piece[root];

		if (it->start < at) {
			*below = root;
			below = &it->right;
			root = it->right;
		} else {
			*above = root;
			above = &it->left;
			root = it->left;
		}
	}
	*below = *above = PIECE_NONE;
}

/* All of @a is below all of @b. */
static __u32 join(struct pieces *p, __u32 a, __u32 b)
{
	__u32 root = PIECE_NONE, *to = &root;

	while (a && b) {
		if (priority(a) > priority(b)) {
			*to = a;
			to = &p->piece[a].right;
			a = *to;
		} else {
			*to = b;
			to = &p->piece[b].left;
			b = *to;
		}
	}
	*to = a ? a : b;
	return root;
}

static __u32 *link_of(struct pieces *p, __u32 space, __u64 start, __u64 above_priority)
{
	__u32 *to = &p->spaces[space].root;

	while (*to && p->piece[*to].start != start && priority(*to) > above_priority)
		to = start < p->piece[*to].start ? &p->piece[*to].left : &p->piece[*to].right;
	return to;
}

__u32 pieces_below(const struct pieces *p, __u32 space, __u64 addr)
{
	__u32 i = p->spaces[space].root, best = PIECE_NONE;

	while (i) {
		const bool below = p->piece[i].start < addr;

		if (below)
			best = i;
		i = below ? p->piece[i].right : p->piece[i].left;
	}
	return best;
}

static __u32 new_piece(struct pieces *p)
{
	const __u32 i = p->forgotten;

	if (i) {
		p->forgotten = p->piece[i].left;
		return i;
	}
	if (p->n >= CHAIN_NONE - 1)
		out_of_memory();
	array_reserve_zero(p->piece, p->room, p->n + 2); /* the first one is PIECE_NONE */
	return ++p->n;
}

/* Let pieces_find() find it at any time. */
static void add_to_blocks(struct pieces *p, __u32 i)
{
	const struct piece it = p->piece[i];
	const unsigned int level = level_of(it.end - it.start), bits = level_bits(level);

	p->spaces[it.space].levels |= 1u << level;
	for (__u64 b = it.start >> bits; b <= (it.end - 1) >> bits; b++)
		add_to_block(p, i, level, b);
}

void pieces_begin(struct pieces *p, __u32 space, __u64 start, __u64 end, __u64 time, __u32 value)
{
	const __u32 i = new_piece(p);
	__u32 *to;

	p->piece[i] = (struct piece){ .start = start,
				      .end = end,
				      .from = time,
				      .to = PIECE_LIVE,
				      .space = space,
				      .value = value };
	to = link_of(p, space, start, priority(i));
	split(p, *to, start, &p->piece[i].left, &p->piece[i].right);
	*to = i;
	if (p->history)
		add_to_blocks(p, i);
}

void pieces_end(struct pieces *p, __u32 piece, __u64 time)
{
	struct piece *it = &p->piece[piece];
	__u32 *to = link_of(p, it->space, it->start, 0);

	*to = join(p, it->left, it->right);
	it->left = it->right = PIECE_NONE;
	it->to = time;
	if (!p->history) {
		it->left = p->forgotten;
		p->forgotten = piece;
	}
}

__u32 pieces_space(struct pieces *p)
{
	array_reserve(p->spaces, p->spaces_room, p->n_spaces + 1);
	p->spaces[p->n_spaces] = (struct piece_space){ 0 };
	return p->n_spaces++;
}

void pieces_free(struct pieces *p)
{
	free(p->piece);
	free(p->spaces);
	chains_free(&p->chains);
	memset(p, 0, sizeof(*p));
}
