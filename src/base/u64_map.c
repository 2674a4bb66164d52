// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "u64_map.h"

#include <sys/auxv.h>

#define FIRST_SIZE 64

__u64 u64_map_seed;

__attribute__((constructor)) static void set_seed(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&u64_map_seed, random, sizeof(u64_map_seed));
	u64_map_seed = u64_hash(~u64_map_seed);
}

__u64 bytes_hash(const void *data, size_t n)
{
	const unsigned char *p = data;
	__u64 h = 0xcbf29ce484222325ull ^ u64_map_seed; /* FNV-1a */

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

__u64 text_hash(const char *text)
{
	return bytes_hash(text, strlen(text));
}

static void insert(struct u64_map *m, __u64 key, __u32 value)
{
	size_t i = u64_map_home(m, key);

	while (m->slots[i].value != U64_MAP_NONE)
		i = (i + 1) & (m->size - 1);
	m->slots[i] = (struct u64_map_slot){ key, value };
	m->n++;
}

static void grow(struct u64_map *m)
{
	struct u64_map more = { .size = m->size ? 2 * m->size : FIRST_SIZE };

	more.slots = xrealloc(NULL, more.size * sizeof(*more.slots));
	array_huge_pages(more.slots, more.size * sizeof(*more.slots));
	memset(more.slots, 0xff, more.size * sizeof(*more.slots));
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].value != U64_MAP_NONE)
			insert(&more, m->slots[i].key, m->slots[i].value);
	u64_map_free(m);
	*m = more;
}

__u32 u64_map_get(const struct u64_map *m, __u64 key)
{
	struct u64_map_walk w = u64_map_walk(m, key);

	return u64_map_next(m, &w);
}

int u64_map_add(struct u64_map *m, __u64 key, __u32 value)
{
	if (10 * (m->n + 1) > 7 * m->size)
		grow(m);
	insert(m, key, value);
	return 0;
}

int u64_map_put(struct u64_map *m, __u64 key, __u32 value)
{
	for (size_t i = u64_map_home(m, key); m->size && m->slots[i].value != U64_MAP_NONE;
	     i = (i + 1) & (m->size - 1)) {
		if (m->slots[i].key == key) {
			m->slots[i].value = value;
			return 0;
		}
	}
	return u64_map_add(m, key, value);
}

void u64_map_remove(struct u64_map *m, __u64 key, __u32 value)
{
	size_t mask = m->size - 1, hole = u64_map_home(m, key), i;

	while (m->size && m->slots[hole].value != U64_MAP_NONE &&
	       (m->slots[hole].key != key || m->slots[hole].value != value))
		hole = (hole + 1) & mask;
	if (!m->size || m->slots[hole].value == U64_MAP_NONE)
		return;
	/* fill the hole with entries that could no longer be found past it */
	for (i = (hole + 1) & mask; m->slots[i].value != U64_MAP_NONE; i = (i + 1) & mask) {
		size_t home = u64_map_home(m, m->slots[i].key);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].value = U64_MAP_NONE;
	m->n--;
}

void u64_map_free(struct u64_map *m)
{
	free(m->slots);
	memset(m, 0, sizeof(*m));
}
