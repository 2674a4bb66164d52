/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the machine pane has bars for. */
#ifndef IBSCOPE_PLACES_H
#define IBSCOPE_PLACES_H

#include "trace/trace.h"

/* L3 complexes, or as many neighbours as share counters. The zero value has none. */
struct places {
	unsigned int n, complexes;
	__u16 *node; /* of each of @n, the one of its first CPU */
};

/* Read the places of this machine, with @cpus possible CPUs and counters in @shards. None on errors. */
void places_read(struct places *p, unsigned int cpus, unsigned int shards);

/* Take the places from a recording; each has counters of its own. */
void places_of_recording(struct places *p, const struct trace_topology *t);

void places_free(struct places *p);

#endif
