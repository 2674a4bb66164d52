/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Group keys, numbered in the order of arrival. */
#ifndef IBSCOPE_KEY_MAP_H
#define IBSCOPE_KEY_MAP_H

#include "u64_map.h"

#include <ibscope/maps.h>

/* The zero value is empty. */
struct key_map {
	struct u64_map numbers;	    /* by hash */
	struct ibs_group_key *keys; /* n of them, by number */
	size_t n, room;
};

/* The number of a key, or -1. */
long key_map_find(const struct key_map *m, const struct ibs_group_key *key);

/* Add a key that is not in the map. */
long key_map_add(struct key_map *m, const struct ibs_group_key *key);

void key_map_free(struct key_map *m);

static inline long key_map_find_id(const struct key_map *m, __u64 id)
{
	const struct ibs_group_key key = { .cgroup_id = id };

	return key_map_find(m, &key);
}

static inline long key_map_add_id(struct key_map *m, __u64 id)
{
	const struct ibs_group_key key = { .cgroup_id = id };

	return key_map_add(m, &key);
}

#endif
