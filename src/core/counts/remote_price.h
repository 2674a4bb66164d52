/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extra cost of remote memory: the latency of each remote access minus the mean of local ones
 * from the same node to the same kind of memory (DRAM, long-latency DIMMs, extension memory), or if
 * that node has none, of those of all nodes. Caches are not memory.
 *
 * If the nodes of CPU and memory are known, they decide what is remote, else the source does.
 */
#ifndef IBSCOPE_REMOTE_PRICE_H
#define IBSCOPE_REMOTE_PRICE_H

#include "snapshot.h"

#define PRICE_NODE_UNKNOWN 0xffffu
#define PRICE_PLACES	   ((PRICE_NODE_UNKNOWN + 1) * 4)

/**
 * price_place() - encode CPU node and kind of memory as a number below PRICE_PLACES
 * @node:   PRICE_NODE_UNKNOWN if unknown
 * @memory: node of the memory, or -1
 * @remote: set if the data came from memory
 *
 * Return: -1 if the data did not come from memory.
 */
int price_place(enum ibs_src src, __u32 node, int memory, bool *remote);

/* Local accesses by place; the caller frees it. */
struct price_local {
	double cycles, ops; /* miss cycles, and the number of ops */
};
struct price_local *price_local_new(void);
void price_local_add(struct price_local *l, int place, double cycles, double ops);
/* Mean miss cycles per op; NAN if there were none. */
double price_local_mean(const struct price_local *l, int place);

/* Set the price of each series of an interval; ibs_fetch has none. @metric: the counted metric */
void snapshot_prices(struct snapshot *s, enum ibs_metric metric);

#endif
