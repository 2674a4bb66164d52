// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "key_map.h"

#define KEY_WORDS (sizeof(struct ibs_group_key) / sizeof(__u64))
_Static_assert(sizeof(struct ibs_group_key) % sizeof(__u64) == 0, "keys must be whole words");

static __u64 hash(const struct ibs_group_key *key)
{
	__u64 words[KEY_WORDS];

	memcpy(words, key, sizeof(words));
	return words_hash(words, KEY_WORDS);
}

long key_map_find(const struct key_map *m, const struct ibs_group_key *key)
{
	__u32 n;

	u64_map_for_each(n, &m->numbers,
			 hash(key)) if (!memcmp(&m->keys[n], key, sizeof(*key))) return n;
	return -1;
}

long key_map_add(struct key_map *m, const struct ibs_group_key *key)
{
	array_reserve(m->keys, m->room, m->n + 1);
	u64_map_add(&m->numbers, hash(key), m->n);
	m->keys[m->n] = *key;
	return m->n++;
}

void key_map_free(struct key_map *m)
{
	u64_map_free(&m->numbers);
	free(m->keys);
	memset(m, 0, sizeof(*m));
}
