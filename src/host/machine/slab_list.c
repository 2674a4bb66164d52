// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kernel.h"

#include "base/array.h"

/* The kernel may reuse the address of a destroyed cache: samples of the two then look the same. */
void slab_list_add(struct slab_list *l, const struct ibs_slab *slab)
{
	__u32 i = u64_map_get(&l->of, slab->id);

	if (i == U64_MAP_NONE) {
		array_reserve(l->v, l->room, l->n + 1);
		u64_map_put(&l->of, slab->id, l->n);
		l->v[l->n++] = *slab;
		return;
	}
	if (strcmp(l->v[i].name, slab->name) || l->v[i].size != slab->size)
		*l->v[i].name = 0;
	l->v[i].merged |= slab->merged;
}

void slab_list_free(struct slab_list *l)
{
	free(l->v);
	u64_map_free(&l->of);
}

const struct ibs_slab *slab_list_find(const struct slab_list *l, __u64 slab)
{
	__u32 i = slab ? u64_map_get(&l->of, IBS_SLAB_ID(slab)) : U64_MAP_NONE;

	return i == U64_MAP_NONE || !*l->v[i].name ? NULL : &l->v[i];
}
