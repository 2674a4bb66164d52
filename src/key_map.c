// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "key_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_WORDS (sizeof(struct ibs_group_key) / sizeof(__u64))
_Static_assert(sizeof(struct ibs_group_key) % sizeof(__u64) == 0, "keys must be whole words");

/* splitmix64's mixer (Steele, Lea, Flood 2014) over the words. */
static __u64 hash(const struct ibs_group_key *key)
{
	__u64 words[KEY_WORDS], h = 0;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < KEY_WORDS; i++) {
		h = (h ^ words[i]) + 0x9e3779b97f4a7c15ULL;
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
		h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
		h ^= h >> 31;
	}
	return h;
}

/* Where a key is, or the empty place where it would be. */
static size_t place(const struct key_map *m, const struct ibs_group_key *key)
{
	size_t at = hash(key) & (m->n_buckets - 1);

	while (m->buckets[at] && memcmp(&m->keys[m->buckets[at] - 1], key, sizeof(*key)))
		at = (at + 1) & (m->n_buckets - 1);
	return at;
}

long key_map_find(const struct key_map *m, const struct ibs_group_key *key)
{
	return m->n_buckets ? (long)m->buckets[place(m, key)] - 1 : -1;
}

static int grow(struct key_map *m)
{
	size_t room = m->room ? 2 * m->room : 64;
	struct ibs_group_key *keys = reallocarray(m->keys, room, sizeof(*keys));
	__u32 *buckets;

	if (!keys)
		return -ENOMEM;
	m->keys = keys;
	buckets = calloc(2 * room, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(m->buckets);
	m->buckets = buckets;
	m->n_buckets = 2 * room;
	m->room = room;
	for (size_t i = 0; i < m->n; i++)
		m->buckets[place(m, &m->keys[i])] = i + 1;
	return 0;
}

long key_map_add(struct key_map *m, const struct ibs_group_key *key)
{
	if (m->n == m->room && grow(m))
		return -ENOMEM;
	m->keys[m->n] = *key;
	m->buckets[place(m, key)] = m->n + 1;
	return m->n++;
}

void key_map_free(struct key_map *m)
{
	free(m->keys);
	free(m->buckets);
	memset(m, 0, sizeof(*m));
}
