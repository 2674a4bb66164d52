/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which physical memory is of which NUMA node. */
#ifndef IBSCOPE_MEMORY_H
#define IBSCOPE_MEMORY_H

#include <ibscope/memory_nodes.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_RANGES 256 /* of a machine; seldom more than a few for each node */

struct memory_range {
	uint64_t start, end; /* @end is the first address behind */
	unsigned int node;
};

/**
 * memory_ranges_sort() - sort ranges by address, and join neighbours of one node
 *
 * Return: how many are left; 0 if some overlap or are empty.
 */
size_t memory_ranges_sort(struct memory_range *r, size_t n);

/**
 * memory_ranges_read() - those of this machine, from the memory blocks in sysfs
 * @root: prefix of /sys, "" except in tests
 * @out:  of MEMORY_RANGES
 *
 * With a single node all memory is of that node, also where the kernel has no memory blocks.
 *
 * Return: how many; 0 if they are not known, or too many.
 */
size_t memory_ranges_read(const char *root, struct memory_range *out);

/* The node of an address among sorted ranges, or -1. */
int memory_node(const struct memory_range *r, size_t n, uint64_t address);

#define DISTANCE_NODES 64

/*
 * How far memory of one node is from CPUs of another, as the kernel has it from ACPI's SLIT: 10 is the node itself, and
 * 20 is meant to be twice as long a way. [node of the CPU][node of the memory]; 0: unknown
 */
struct node_distances {
	uint8_t of[DISTANCE_NODES][DISTANCE_NODES];
};

/* Read the distances of this machine. @root: prefix of /sys, "" except in tests */
void node_distances_read(const char *root, struct node_distances *out);

/* Any numbers of nodes, -1 too. Return: 0 if it is unknown. */
unsigned int node_distance(const struct node_distances *d, unsigned int node, unsigned int memory);

/**
 * memory_nodes_fill() - sorted ranges as the decision core looks them up
 *
 * Return: 0; or -E2BIG for more ranges and gaps than it has room for, or a node above 254.
 */
int memory_nodes_fill(const struct memory_range *r, size_t n, struct ibs_memory_nodes *out);

#endif
