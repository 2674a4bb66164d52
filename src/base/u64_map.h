/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash map: 64-bit keys to 32-bit values, usually array indexes. For longer keys use their
 * hash: it can have several values, and the caller compares what u64_map_for_each() finds.
 */
#ifndef IBSCOPE_U64_MAP_H
#define IBSCOPE_U64_MAP_H

#include "std.h"

#define U64_MAP_NONE 0xffffffffu

/* Key and value together, so that a lookup costs one cache line. */
struct u64_map_slot {
	__u64 key;
	__u32 value; /* U64_MAP_NONE: free */
} __attribute__((packed, aligned(4)));

/* The zero value is empty. */
struct u64_map {
	struct u64_map_slot *slots;
	size_t size, n; /* size is 0 or a power of two */
};

/* Return: the value of @key, or U64_MAP_NONE. */
__u32 u64_map_get(const struct u64_map *m, __u64 key);

/* Set the value of @key. Return: 0. */
int u64_map_put(struct u64_map *m, __u64 key, __u32 value);

/* Add another value for @key. */
int u64_map_add(struct u64_map *m, __u64 key, __u32 value);

/* Remove one value of @key, if present. */
void u64_map_remove(struct u64_map *m, __u64 key, __u32 value);

void u64_map_free(struct u64_map *m);

/* Differs in each run, so that no file can choose keys that collide. */
extern __u64 u64_map_seed;

/* Spread a key over all bits. */
static inline __u64 u64_hash(__u64 x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 32;
}

static inline __u64 words_hash(const __u64 *words, size_t n)
{
	__u64 h = 0;

	for (size_t i = 0; i < n; i++)
		h = u64_hash(h ^ words[i]);
	return h;
}

__u64 bytes_hash(const void *data, size_t n);
__u64 text_hash(const char *text);

/* Begin to load what a lookup of @key reads first. */
static inline void u64_map_prefetch(const struct u64_map *m, __u64 key)
{
	if (m->size)
		__builtin_prefetch(&m->slots[u64_hash(key ^ u64_map_seed) & (m->size - 1)]);
}

/* A walk over the values of one key. */
struct u64_map_walk {
	__u64 key;
	size_t at;
};

static inline size_t u64_map_home(const struct u64_map *m, __u64 key)
{
	return u64_hash(key ^ u64_map_seed) & (m->size - 1);
}

static inline struct u64_map_walk u64_map_walk(const struct u64_map *m, __u64 key)
{
	return (struct u64_map_walk){ key, u64_map_home(m, key) };
}

/* The next value, or U64_MAP_NONE. */
static inline __u32 u64_map_next(const struct u64_map *m, struct u64_map_walk *w)
{
	while (m->size && m->slots[w->at].value != U64_MAP_NONE) {
		const struct u64_map_slot *slot = &m->slots[w->at];

		w->at = (w->at + 1) & (m->size - 1);
		if (slot->key == w->key)
			return slot->value;
	}
	return U64_MAP_NONE;
}

/* Set @value to each value of @key in turn; it is U64_MAP_NONE after the last one. */
#define u64_map_for_each(value, m, key)                        \
	for (struct u64_map_walk walk_ = u64_map_walk(m, key); \
	     ((value) = u64_map_next(m, &walk_)) != U64_MAP_NONE;)

#endif
