/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which CPUs share an L3 (a core complex), and which NUMA node they are of, from sysfs. */
#ifndef IBSCOPE_TOPOLOGY_H
#define IBSCOPE_TOPOLOGY_H

#include "base/err.h"

struct topology;

/**
 * topology_open() - read the cache topology
 * @root: prefix of /sys, "" except in tests
 * @cpus: possible CPUs; those without cache information (offline) count as of complex 0
 */
struct topology *topology_open(const char *root, unsigned int cpus);

/* At least 1. */
unsigned int topology_n_complexes(const struct topology *t);
/* Below topology_n_complexes(), in the order of their first CPU. */
unsigned int topology_complex(const struct topology *t, unsigned int cpu);
/* Number of the NUMA node; 0 where there are none. */
unsigned int topology_node(const struct topology *t, unsigned int cpu);
/* Number of the socket; 0 where the kernel does not say. */
unsigned int topology_socket(const struct topology *t, unsigned int cpu);
/*
 * The counters of a complex: neighbours share them where there are fewer @shards than complexes.
 */
static inline unsigned int topology_shard(unsigned int complex, unsigned int complexes,
					  unsigned int shards)
{
	return (unsigned long long)complex * shards / complexes;
}
void topology_close(struct topology *t);

#endif
