/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slab caches of a recording. */
#ifndef IBSCOPE_SLAB_LIST_H
#define IBSCOPE_SLAB_LIST_H

#include "base/u64_map.h"

#include <ibscope/record.h>

/* The zero value is empty. */
struct slab_list {
	struct ibs_slab *v;
	size_t n, room;
	struct u64_map of; /* by id */
};

void slab_list_add(struct slab_list *l, const struct ibs_slab *slab);
void slab_list_free(struct slab_list *l);

/*
 * The cache of trace_sample.slab; lives until the next one is added. Return: NULL: none, not known, or another one had
 * the same id, too.
 */
const struct ibs_slab *slab_list_find(const struct slab_list *l, __u64 slab);

#endif
