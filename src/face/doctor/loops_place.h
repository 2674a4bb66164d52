/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where loops run, and in which memory. */
#ifndef IBSCOPE_LOOPS_PLACE_H
#define IBSCOPE_LOOPS_PLACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct loops_place {
	unsigned int cpu;
	int other_cpu;	      /* another core, of the same L3 if there is one; -1: none */
	int node, other_node; /* with memory; other_node -1: none */
	size_t l1, l2, l3;    /* bytes of the caches of @cpu, data or unified; 0: unknown */
};

/* Read what sysfs says of @cpu. */
void loops_place_read(unsigned int cpu, struct loops_place *out);

struct loops_memory {
	char *at;
	size_t bytes;
	bool huge; /* in pages of 2 MiB */
	void *map;
	size_t mapped;
};

/**
 * loops_memory_get() - memory that is there, and written
 * @huge: try to get pages of 2 MiB; else it has none
 * @node: its node; -1: wherever the kernel puts it
 *
 * Return: 0, or a negative errno with @err.
 */
int loops_memory_get(size_t bytes, bool huge, int node, struct loops_memory *out, struct err *err);
void loops_memory_free(struct loops_memory *m);

#endif
