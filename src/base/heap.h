/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A min-heap of items with 64-bit keys, for merging sorted streams. */
#ifndef IBSCOPE_HEAP_H
#define IBSCOPE_HEAP_H

#include "std.h"

struct heap_item {
	__u64 key, tie; /* of equal keys, the smaller tie comes first */
	void *item;
};

/* The zero value is empty. */
struct heap {
	struct heap_item *item; /* item[0] is the first; its children are item[1] and item[2] */
	size_t n, room;
};

static inline bool heap_before(const struct heap_item *a, const struct heap_item *b)
{
	return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static inline void heap_push(struct heap *h, struct heap_item item)
{
	size_t i = h->n;

	array_reserve(h->item, h->room, h->n + 1);
	for (h->n++; i && heap_before(&item, &h->item[(i - 1) / 2]); i = (i - 1) / 2)
		h->item[i] = h->item[(i - 1) / 2];
	h->item[i] = item;
}

/* Replace the first item by @item. */
static inline void heap_replace_first(struct heap *h, struct heap_item item)
{
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < h->n; i = child) {
		child += child + 1 < h->n && heap_before(&h->item[child + 1], &h->item[child]);
		if (!heap_before(&h->item[child], &item))
			break;
		h->item[i] = h->item[child];
	}
	h->item[i] = item;
}

static inline void heap_pop(struct heap *h)
{
	if (--h->n)
		heap_replace_first(h, h->item[h->n]);
}

static inline void heap_free(struct heap *h)
{
	free(h->item);
	*h = (struct heap){};
}

#endif
