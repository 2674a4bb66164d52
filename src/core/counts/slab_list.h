/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slab caches of a kernel by id: this one, or the one of a recording. */
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
 * The cache of trace_sample.slab, valid until the next one is added. Return: NULL if there is none, it is unknown,
 * or several caches had this id.
 */
const struct ibs_slab *slab_list_find(const struct slab_list *l, __u64 slab);

#endif
