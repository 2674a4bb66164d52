/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which CPUs share an L3 (a core complex), and the NUMA nodes of CPUs, from sysfs. */
#ifndef IBSCOPE_TOPOLOGY_H
#define IBSCOPE_TOPOLOGY_H

#include "base/err.h"

struct topology;

/**
 * topology_open() - read the cache topology
 * @root: prefix of /sys, "" except in tests
 * @cpus: possible CPUs; those without cache information (offline) are in complex 0
 */
struct topology *topology_open(const char *root, unsigned int cpus);

/* At least 1. */
unsigned int topology_n_complexes(const struct topology *t);
/* Below topology_n_complexes(), in the order of their first CPU. */
unsigned int topology_complex(const struct topology *t, unsigned int cpu);
/* Number of the NUMA node; 0 without NUMA. */
unsigned int topology_node(const struct topology *t, unsigned int cpu);
/* Number of the socket; 0 if unknown. */
unsigned int topology_socket(const struct topology *t, unsigned int cpu);
/* The shard of a complex: neighbours share one if there are fewer @shards than complexes. */
static inline unsigned int topology_shard(unsigned int complex, unsigned int complexes,
					  unsigned int shards)
{
	return (unsigned long long)complex * shards / complexes;
}
void topology_close(struct topology *t);

#endif
