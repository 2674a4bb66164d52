/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Small numbers for strings, and a map from 64-bit keys to such numbers. */
#ifndef IBSCOPE_INTERN_H
#define IBSCOPE_INTERN_H

#include <linux/types.h>
#include <stddef.h>

#define INTERN_NONE 0xffffffffu

/* Zero is an empty map. */
struct u64_map {
	__u64 *keys;
	__u32 *values;	/* INTERN_NONE: a free place */
	size_t size, n; /* size is 0 or a power of two */
};

/* Return: INTERN_NONE if it is not there. */
__u32 u64_map_get(const struct u64_map *m, __u64 key);

/* Set a key to a value other than INTERN_NONE. Return: 0 or -ENOMEM. */
int u64_map_put(struct u64_map *m, __u64 key, __u32 value);
void u64_map_free(struct u64_map *m);

/* Spreads a key over all bits. */
static inline __u64 u64_hash(__u64 x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 32;
}

/* Zero is an empty set. */
struct intern {
	char **text;
	__u32 *slots; /* INTERN_NONE: free */
	size_t size, n;
};

/* The number of a string, the same for the same bytes. Return: INTERN_NONE when out of memory. */
__u32 intern_get(struct intern *in, const char *text);

/* Lives as long as @in; @id must be of intern_get(). */
const char *intern_text(const struct intern *in, __u32 id);
void intern_free(struct intern *in);

#endif
