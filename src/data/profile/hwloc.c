// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "profile.h"

#include "base/utf8.h"

#define NODES_MAX 1024 /* of the kernel, on x86 */

/* What divides a set of CPUs into smaller ones. */
enum level { LEVEL_SOCKET, LEVEL_NODE, LEVEL_CCX, LEVEL_CPU };

struct hwloc {
	FILE *f;
	const struct trace_info *info;
	const struct report_row **row_of; /* by CPU; NULL: no samples */
	enum level order[4];
	__u64 objects;
	unsigned int depth;
};

static unsigned int number_at(const struct hwloc *h, enum level level, unsigned int cpu)
{
	const struct trace_topology *t = h->info->topology;

	switch (level) {
	case LEVEL_SOCKET:
		return t->has_sockets ? t->socket[cpu] : 0;
	case LEVEL_NODE:
		return t->node[cpu];
	case LEVEL_CCX:
		return t->ccx[cpu];
	default:
		return cpu;
	}
}

/* Words of 32 bits, the highest first. */
static void put_set(const struct hwloc *h, const char *name, const bool *set, unsigned int n)
{
	unsigned int words = n ? (n + 31) / 32 : 1;

	for (unsigned int w = words; w--;) {
		__u32 word = 0;

		for (unsigned int i = 0; i < 32 && w * 32 + i < n; i++)
			word |= (__u32)set[w * 32 + i] << i;
		if (w + 1 == words)
			fprintf(h->f, " %s=\"0x%08x", name, word);
		else
			fprintf(h->f, ",0x%08x", word);
	}
	fputc('"', h->f);
}

static void put_sets(const struct hwloc *h, const bool *cpus)
{
	bool nodes[NODES_MAX] = { false };
	const struct trace_topology *t = h->info->topology;
	unsigned int n = 0;

	for (unsigned int cpu = 0; cpu < t->n; cpu++) {
		nodes[t->node[cpu]] |= cpus[cpu];
		n = t->node[cpu] >= n ? t->node[cpu] + 1U : n;
	}
	put_set(h, "cpuset", cpus, t->n);
	put_set(h, "complete_cpuset", cpus, t->n);
	put_set(h, "nodeset", nodes, n);
	put_set(h, "complete_nodeset", nodes, n);
}

static void begin(struct hwloc *h, const char *type, unsigned int number, const bool *cpus)
{
	fprintf(h->f, "%*s<object type=\"%s\" os_index=\"%u\"", 2 * ++h->depth, "", type, number);
	put_sets(h, cpus);
	fprintf(h->f, " gp_index=\"%llu\"", ++h->objects);
}

static void end(struct hwloc *h)
{
	fprintf(h->f, "%*s</object>\n", 2 * h->depth--, "");
}

static void put_info(const struct hwloc *h, const char *name, const char *value)
{
	fprintf(h->f, "%*s<info name=\"%s\" value=\"", 2 * h->depth + 2, "", name);
	utf8_put_markup(h->f, value);
	fputs("\"/>\n", h->f);
}

static void put_count(const struct hwloc *h, const char *name, __u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	put_info(h, name, text);
}

static void put_node(struct hwloc *h, unsigned int node, const bool *cpus)
{
	__u64 bytes = 0;

	for (size_t i = 0; i < h->info->n_memory; i++)
		if (h->info->memory[i].node == node)
			bytes += h->info->memory[i].end - h->info->memory[i].start;
	begin(h, "NUMANode", node, cpus);
	fprintf(h->f, " local_memory=\"%llu\"/>\n", bytes);
	h->depth--;
}

static void put_cpu(struct hwloc *h, unsigned int cpu, const bool *cpus)
{
	const struct report_row *row = h->row_of[cpu];

	begin(h, "PU", cpu, cpus);
	fputs(">\n", h->f);
	if (row) {
		put_count(h, "ibscope.samples", row->samples);
		put_count(h, "ibscope.miss_cycles", row->cycles);
	}
	end(h);
}

static void put_level(struct hwloc *h, unsigned int depth, const bool *cpus);

static void put_part(struct hwloc *h, unsigned int depth, unsigned int number, const bool *cpus)
{
	switch (h->order[depth]) {
	case LEVEL_SOCKET:
		begin(h, "Package", number, cpus);
		fputs(">\n", h->f);
		break;
	case LEVEL_NODE:
		begin(h, "Group", number, cpus);
		fputs(" kind=\"0\" subkind=\"0\">\n", h->f);
		put_node(h, number, cpus);
		break;
	case LEVEL_CCX:
		begin(h, "L3Cache", number, cpus);
		fputs(" cache_size=\"0\" depth=\"3\" cache_linesize=\"64\" "
		      "cache_associativity=\"0\" "
		      "cache_type=\"0\">\n",
		      h->f);
		break;
	default:
		put_cpu(h, number, cpus);
		return;
	}
	put_level(h, depth + 1, cpus);
	end(h);
}

/* The parts of a set of CPUs, in the order of their first CPU. */
static void put_level(struct hwloc *h, unsigned int depth, const bool *cpus)
{
	unsigned int n = h->info->topology->n;
	bool *left = xmemdup(cpus, n), *part = xcalloc(n, 1);

	for (unsigned int first = 0; first < n; first++) {
		unsigned int number = number_at(h, h->order[depth], first);

		if (!left[first])
			continue;
		for (unsigned int cpu = 0; cpu < n; cpu++) {
			part[cpu] = left[cpu] && number_at(h, h->order[depth], cpu) == number;
			left[cpu] &= !part[cpu];
		}
		put_part(h, depth, number, part);
	}
	free(left);
	free(part);
}

/* A node can have several sockets, where the firmware hides them; else a socket has one or more nodes. */
static bool node_has_sockets(const struct hwloc *h)
{
	unsigned int n = h->info->topology->n;

	for (unsigned int a = 0; a < n; a++)
		for (unsigned int b = 0; b < a; b++)
			if (number_at(h, LEVEL_NODE, a) == number_at(h, LEVEL_NODE, b) &&
			    number_at(h, LEVEL_SOCKET, a) != number_at(h, LEVEL_SOCKET, b))
				return true;
	return false;
}

bool report_hwloc_can(const struct trace_info *info)
{
	for (unsigned int cpu = 0; info->topology && cpu < info->topology->n; cpu++)
		if (info->topology->node[cpu] >= NODES_MAX)
			return false;
	return info->topology;
}

void report_hwloc(FILE *f, const struct trace_info *info, const struct report_table *cpus)
{
	struct hwloc h = { .f = f,
			   .info = info,
			   .order = { LEVEL_SOCKET, LEVEL_NODE, LEVEL_CCX, LEVEL_CPU } };
	unsigned int n = info->topology->n;
	bool *all = xcalloc(n, 1);

	memset(all, true, n);
	h.row_of = xcalloc(n, sizeof(*h.row_of));
	for (size_t i = 0; i < cpus->n; i++) {
		const char *label = cpus->rows[i].label[0];

		if (label && strtoul(label, NULL, 10) < n)
			h.row_of[strtoul(label, NULL, 10)] = &cpus->rows[i];
	}
	if (node_has_sockets(&h)) {
		h.order[0] = LEVEL_NODE;
		h.order[1] = LEVEL_SOCKET;
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	      "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n",
	      f);
	begin(&h, "Machine", 0, all);
	fputs(">\n", f);
	put_info(&h, "HostName", info->host);
	put_info(&h, "OSName", "Linux");
	put_info(&h, "OSRelease", info->release);
	if (info->has_cpu)
		put_info(&h, "CPUModel", info->cpu.name);
	put_info(&h, "ibscope.source", info->simulated ? "SIMULATED" : info->source);
	put_level(&h, 0, all);
	end(&h);
	fputs("</topology>\n", f);
	free(h.row_of);
	free(all);
}
