/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* L3 complexes and nodes: what the machine pane has bars for, and their CPUs. */
#ifndef IBSCOPE_PLACES_H
#define IBSCOPE_PLACES_H

#include "base/cpulist.h"
#include "trace/trace.h"

/* L3 complexes, or as many neighbours as share counters. The zero value has none. */
struct places {
	unsigned int n, complexes;
	__u16 *node; /* of each of @n, the one of its first CPU */
	unsigned int cpus;
	__u16 *complex_of, *node_of; /* of each of @cpus */
};

/* Read the places of this machine, with @cpus possible CPUs and counters in @shards. None on errors. */
void places_read(struct places *p, unsigned int cpus, unsigned int shards);

/* Take the places from a recording; each has counters of its own. */
void places_of_recording(struct places *p, const struct trace_topology *t);

/**
 * places_list() - list CPUs as an option takes them
 * @complex, @node: of these only; -1: any
 * @only:	    of these CPUs only; NULL: of all
 *
 * Return: false if there are none, or @out is too small.
 */
bool places_list(const struct places *p, int complex, int node, const struct cpulist *only,
		 char *out, size_t size);

void places_free(struct places *p);

#endif
