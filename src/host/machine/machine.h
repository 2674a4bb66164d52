/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory, nodes and caches of this machine, from sysfs. */
#ifndef IBSCOPE_MACHINE_H
#define IBSCOPE_MACHINE_H

#include "base/err.h"

#include <ibscope/memory_nodes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topology;

/* Maps physical memory to NUMA nodes. */

#define MEMORY_RANGES 256 /* per machine; rarely more than a few per node */

struct memory_range {
	uint64_t start, end; /* @end is exclusive */
	unsigned int node;
};

/**
 * memory_ranges_sort() - sort ranges by address, and join neighbours of one node
 *
 * Return: the number left; 0 if some overlap or are empty.
 */
size_t memory_ranges_sort(struct memory_range *r, size_t n);

/**
 * memory_ranges_read() - read this machine's ranges from the memory blocks in sysfs
 * @root: prefix of /sys, "" except in tests
 * @out:  MEMORY_RANGES of them
 *
 * On a machine with a single node all memory belongs to it, even if the kernel has no memory
 * blocks.
 *
 * Return: their number; 0 if unknown or too many.
 */
size_t memory_ranges_read(const char *root, struct memory_range *out);

/* The node of an address in sorted ranges, or -1. */
int memory_node(const struct memory_range *r, size_t n, uint64_t address);

#define DISTANCE_NODES 64

/*
 * Distances between CPUs and memory from ACPI's SLIT: 10 is the node itself, 20 twice as far. [node
 * of the CPU][node of the memory]; 0: unknown
 */
struct node_distances {
	uint8_t of[DISTANCE_NODES][DISTANCE_NODES];
};

/* Read the distances of this machine. @root: prefix of /sys, "" except in tests */
void node_distances_read(const char *root, struct node_distances *out);

/* Accepts any node numbers, even -1. Return: 0 if unknown. */
unsigned int node_distance(const struct node_distances *d, unsigned int node, unsigned int memory);
/* Move *i to the next known distance, of[*i / DISTANCE_NODES][*i % DISTANCE_NODES]. Return: false if there is none. */
bool node_distance_next(const struct node_distances *d, unsigned int *i);

/**
 * memory_nodes_fill() - convert sorted ranges to the decision core's form
 *
 * Return: 0; or -E2BIG if there are too many ranges and gaps, or for a node above 254.
 */
int memory_nodes_fill(const struct memory_range *r, size_t n, struct ibs_memory_nodes *out);

/* Which CPUs share an L3 (a core complex), and the NUMA nodes of CPUs, from sysfs. */

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
/* Of an L3 by the kernel's cache id, which names resctrl's domains; -1 if unknown. */
int topology_complex_of_l3(const struct topology *t, long id);
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
