// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_topology.h"

#include "base/cpulist.h"

#define PHYSICAL_BITS 52

/* Set @of for the CPUs of a list. Nodes without CPUs have an empty one. */
static bool place(struct perf_topology *p, const char *list, __u16 *of, __u16 value)
{
	struct cpulist cpus;
	struct err ignored;
	int cpu;

	_Static_assert(CPULIST_MAX <= TRACE_CPUS, "a list may have more CPUs than a topology");
	if (!*list)
		return true;
	if (cpulist_parse("cpus", list, &cpus, &ignored))
		return false;
	cpulist_for_each (cpu, &cpus) {
		of[cpu] = value;
		if ((unsigned int)cpu >= p->t.n)
			p->t.n = cpu + 1;
	}
	return true;
}

static void found(const struct perf_topology *p, struct trace_info *info)
{
	if (p->has_nodes && p->has_ccx && p->t.n)
		info->topology = &p->t;
}

bool perf_topology_nodes(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info)
{
	__u64 total, free_memory;
	char list[4096];
	__u32 n, node;

	if (!perf_take32(b, &n))
		return false;
	while (n--) {
		if (!perf_take32(b, &node) || !perf_take64(b, &total) ||
		    !perf_take64(b, &free_memory) || !perf_take_string(b, list, sizeof(list)) ||
		    node > UINT16_MAX || !place(p, list, p->t.node, node))
			return false;
	}
	p->has_nodes = true;
	found(p, info);
	return true;
}

bool perf_topology_caches(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info)
{
	__u32 version, n, head[4]; /* level, line size, sets, ways */
	char text[64], list[4096];
	__u16 ccx = 0;

	if (!perf_take32(b, &version) || !perf_take32(b, &n))
		return false;
	while (n--) {
		for (int i = 0; i < 4; i++)
			if (!perf_take32(b, &head[i]))
				return false;
		/* type and size; then the CPUs that share it */
		if (!perf_take_string(b, text, sizeof(text)) ||
		    !perf_take_string(b, text, sizeof(text)) ||
		    !perf_take_string(b, list, sizeof(list)))
			return false;
		if (head[0] == 3 && !place(p, list, p->t.ccx, ccx++))
			return false;
	}
	p->has_ccx = ccx;
	found(p, info);
	return true;
}

/* Bits @from to @to of a bitmap of blocks: one range for each run. */
static bool add_blocks(struct perf_bytes *b, __u64 bits, __u64 size, unsigned int node,
		       struct memory_range *out, size_t *n)
{
	const __u64 most = (1ull << PHYSICAL_BITS) / size;
	__u64 word = 0;
	bool in = false;

	for (__u64 i = 0; i < (bits + 63) / 64 * 64; i++) {
		bool is;

		if (i % 64 == 0 && !perf_take64(b, &word))
			return false;
		is = word >> i % 64 & 1;
		if (is && i >= most)
			return false;
		if (is && !in) {
			if (*n == MEMORY_RANGES)
				return false;
			out[(*n)++] = (struct memory_range){ i * size, 0, node };
		}
		if (is)
			out[*n - 1].end = (i + 1) * size;
		in = is;
	}
	return true;
}

bool perf_topology_memory(struct perf_bytes *b, struct perf_topology *p, struct trace_info *info)
{
	__u64 version, size, nodes, node, bits, same;
	size_t n = 0;

	info->n_memory = 0;
	if (!perf_take64(b, &version) || !perf_take64(b, &size) || !perf_take64(b, &nodes) ||
	    !size || size >> PHYSICAL_BITS)
		return false;
	while (nodes--) {
		if (!perf_take64(b, &node) || !perf_take64(b, &bits) || !perf_take64(b, &same) ||
		    node > UINT16_MAX || bits != same || bits / 8 > b->n ||
		    !add_blocks(b, bits, size, node, p->memory, &n))
			return false;
	}
	info->memory = p->memory;
	info->n_memory = memory_ranges_sort(p->memory, n);
	return true;
}
