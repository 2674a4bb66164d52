// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "machine.h"

#include "base/array.h"
#include "base/cpulist.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PHYSICAL_BITS 52

static int compare(const void *pa, const void *pb)
{
	const struct memory_range *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

size_t memory_ranges_sort(struct memory_range *r, size_t n)
{
	size_t k = 0;

	if (n)
		qsort(r, n, sizeof(*r), compare);
	for (size_t i = 0; i < n; i++) {
		if (r[i].start >= r[i].end || (k && r[i].start < r[k - 1].end))
			return 0;
		if (k && r[i].start == r[k - 1].end && r[i].node == r[k - 1].node)
			r[k - 1].end = r[i].end;
		else
			r[k++] = r[i];
	}
	return k;
}

int memory_node(const struct memory_range *r, size_t n, uint64_t address)
{
	size_t lo = 0;

	while (n > lo) {
		size_t mid = lo + (n - lo) / 2;

		if (address >= r[mid].end)
			lo = mid + 1;
		else if (address < r[mid].start)
			n = mid;
		else
			return r[mid].node;
	}
	return -1;
}

int memory_nodes_fill(const struct memory_range *r, size_t n, struct ibs_memory_nodes *out)
{
	uint64_t end = 0;
	size_t k = 0;

	*out = (struct ibs_memory_nodes){ 0 };
	for (size_t i = 0; i < n; i++) {
		/* a gap, and the part after it */
		if (k + 2 >= IBS_MEMORY_PARTS || r[i].node >= UINT8_MAX)
			return -E2BIG;
		if (r[i].start > end)
			out->before[k++] = end - 1;
		out->before[k] = r[i].start - 1;
		out->node[k++] = r[i].node + 1;
		end = r[i].end;
	}
	out->before[k++] = end - 1;
	for (out->n = 1; out->n < k;)
		out->n *= 2;
	while (k < IBS_MEMORY_PARTS)
		out->before[k++] = IBS_MEMORY_END;
	return 0;
}

struct blocks {
	struct memory_range *r;
	size_t n, room;
};

/* Read the memory blocks of a node: "memory12" is block 12. */
static void read_node(const char *root, unsigned int node, uint64_t size, struct blocks *out)
{
	char path[512];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u", root, node);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		unsigned long long block;
		int end = 0;

		if (sscanf(e->d_name, "memory%llu%n", &block, &end) != 1 || e->d_name[end] ||
		    block >= (1ull << PHYSICAL_BITS) / size)
			continue;
		array_reserve(out->r, out->room, out->n + 1);
		out->r[out->n++] = (struct memory_range){ block * size, (block + 1) * size, node };
	}
	if (dir)
		closedir(dir);
}

size_t memory_ranges_read(const char *root, struct memory_range *out)
{
	struct blocks blocks = { 0 };
	struct cpulist nodes;
	uint64_t size = 0;
	char text[4096];
	int node;

	if (num_read_line(root, "/sys/devices/system/node/online", text, sizeof(text), NULL) ||
	    cpulist_parse("nodes", text, &nodes, NULL))
		return 0;
	if (!num_read_line(root, "/sys/devices/system/memory/block_size_bytes", text, sizeof(text),
			   NULL))
		size = strtoull(text, NULL, 16);
	cpulist_for_each (node, &nodes)
		if (size)
			read_node(root, node, size, &blocks);
	if (!blocks.n) {
		free(blocks.r);
		if (cpulist_count(&nodes) != 1)
			return 0;
		out[0] = (struct memory_range){ 0, 1ull << PHYSICAL_BITS, cpulist_next(&nodes, 0) };
		return 1;
	}
	blocks.n = memory_ranges_sort(blocks.r, blocks.n);
	if (blocks.n > MEMORY_RANGES)
		blocks.n = 0;
	for (size_t i = 0; i < blocks.n; i++)
		out[i] = blocks.r[i];
	free(blocks.r);
	return blocks.n;
}

void node_distances_read(const char *root, struct node_distances *out)
{
	struct cpulist nodes;
	char text[4096], path[64];
	int node, memory;

	*out = (struct node_distances){};
	if (num_read_line(root, "/sys/devices/system/node/online", text, sizeof(text), NULL) ||
	    cpulist_parse("nodes", text, &nodes, NULL))
		return;
	cpulist_for_each (node, &nodes) {
		char *at = text, *end;

		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/distance", node);
		if (node >= DISTANCE_NODES || num_read_line(root, path, text, sizeof(text), NULL))
			continue;
		/* one number per online node */
		cpulist_for_each (memory, &nodes) {
			unsigned long d = strtoul(at, &end, 10);

			if (at == end)
				break;
			at = end;
			if (memory < DISTANCE_NODES && d <= UINT8_MAX)
				out->of[node][memory] = d;
		}
	}
}

unsigned int node_distance(const struct node_distances *d, unsigned int node, unsigned int memory)
{
	return node < DISTANCE_NODES && memory < DISTANCE_NODES ? d->of[node][memory] : 0;
}

bool node_distance_next(const struct node_distances *d, unsigned int *i)
{
	while (*i < DISTANCE_NODES * DISTANCE_NODES &&
	       !d->of[*i / DISTANCE_NODES][*i % DISTANCE_NODES])
		++*i;
	return *i < DISTANCE_NODES * DISTANCE_NODES;
}
