/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pieces of memory: ranges of addresses in a space from one time to another, of which no two have the same address at
 * the same time. They begin and end in the order of time; any of them can be found later.
 *
 * Those that have not ended are a treap by address for each space. All of them are in chains by place: a piece is at
 * most as long as a block of its level, which is four times as long as that of the level before, and thus in one or
 * two blocks of it. Since it is longer than a quarter of a block, few can be in one at the same time, and each of
 * those is in a chain of its own, of pieces one after the other.
 *
 * A version of a tree for each change, as map_tree.h has it for mappings, would take 1 KB per allocation.
 *
 * Without `history` there are no chains, and a piece that has ended is forgotten: who asks in the order of time needs
 * those that are live alone, which stay in the cache.
 */
#ifndef IBSCOPE_PIECES_H
#define IBSCOPE_PIECES_H

#include "chains.h"

#define PIECE_NONE 0 /* a piece and its value begin at 1 */
#define PIECE_LIVE (~0ull)

struct piece {
	__u64 start, end; /* addresses, end excluded */
	__u64 from, to;	  /* times, `to` excluded; PIECE_LIVE: it has not ended */
	__u32 space, value;
	__u32 left, right; /* in the treap of its space */
};

/* Addresses of their own. */
struct piece_space {
	__u32 root;
	__u32 levels; /* bit n: there are or were pieces of this level */
};

/* The zero value is empty. */
struct pieces {
	struct piece *piece;
	size_t n, room;
	struct piece_space *spaces;
	size_t n_spaces, spaces_room;
	struct chains chains;
	bool history;	 /* set it before the first piece */
	__u32 forgotten; /* without history: a list of pieces to use again, by `left` */
};

/* Return: number of a new space. */
__u32 pieces_space(struct pieces *p);

/* Begin a piece; none may be live there. @time: not before that of any call before */
void pieces_begin(struct pieces *p, __u32 space, __u64 start, __u64 end, __u64 time, __u32 value);

/* End one that is live. */
void pieces_end(struct pieces *p, __u32 piece, __u64 time);

/* The last live piece that begins below an address, or PIECE_NONE. */
__u32 pieces_below(const struct pieces *p, __u32 space, __u64 addr);

/* The piece that had an address at a time, or PIECE_NONE. Without history, @time is that of the last change or later. */
__u32 pieces_find(struct pieces *p, __u32 space, __u64 addr, __u64 time);

void pieces_free(struct pieces *p);

#endif
