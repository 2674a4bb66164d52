/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What remote memory costs above local memory: of each remote access its latency, less the mean of the
 * local ones from the same node to the same kind of memory (DRAM, long-latency DIMMs, extension memory);
 * if that node has none, of those of all nodes. Caches are not memory.
 *
 * Where the nodes of CPU and memory are known they decide what is remote, else the source does.
 */
#ifndef IBSCOPE_REMOTE_PRICE_H
#define IBSCOPE_REMOTE_PRICE_H

#include "snapshot.h"

#define PRICE_NODE_UNKNOWN 0xffffu
#define PRICE_PLACES	   ((PRICE_NODE_UNKNOWN + 1) * 4)

/**
 * price_place() - node of the CPU and kind of memory, in one number below PRICE_PLACES
 * @node:   PRICE_NODE_UNKNOWN if unknown
 * @memory: node of the memory, or -1
 * @remote: set if it is memory
 *
 * Return: -1 if the data did not come from memory.
 */
int price_place(enum ibs_src src, __u32 node, int memory, bool *remote);

/* Local accesses by place; the caller frees it. */
struct price_local {
	double cycles, ops; /* miss cycles, and of how many ops */
};
struct price_local *price_local_new(void);
void price_local_add(struct price_local *l, int place, double cycles, double ops);
/* Mean miss cycles of an op; NAN if there was none. */
double price_local_mean(const struct price_local *l, int place);

/* Set the price of each series of an interval; of ibs_fetch there is none. @metric: that was counted */
void snapshot_prices(struct snapshot *s, enum ibs_metric metric);

#endif
