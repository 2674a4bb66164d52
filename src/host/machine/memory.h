/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps physical memory to NUMA nodes. */
#ifndef IBSCOPE_MEMORY_H
#define IBSCOPE_MEMORY_H

#include <ibscope/memory_nodes.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/**
 * memory_nodes_fill() - convert sorted ranges to the decision core's form
 *
 * Return: 0; or -E2BIG if there are too many ranges and gaps, or for a node above 254.
 */
int memory_nodes_fill(const struct memory_range *r, size_t n, struct ibs_memory_nodes *out);

#endif
