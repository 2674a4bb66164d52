// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "machine.h"

#include "base/cpulist.h"
#include "base/num.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct topology {
	unsigned int cpus, n_complexes;
	long *l3; /* cache ids by complex */
	struct {
		unsigned int complex, node, socket;
	} cpu[];
};

/* Read a number from a file in the directory of @cpu, or -1. */
static long read_id(const char *root, unsigned int cpu, const char *file)
{
	char path[512];
	long id;
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	n = fscanf(f, "%ld", &id);
	fclose(f);
	return n == 1 ? id : -1;
}

/* Kernels without NUMA have no such directory: all CPUs are then on node 0. */
static void read_nodes(const char *root, struct topology *t)
{
	struct cpulist nodes, cpus;
	char text[4096], path[64];
	int node, cpu;

	if (num_read_line(root, "/sys/devices/system/node/online", text, sizeof(text), NULL) ||
	    cpulist_parse("nodes", text, &nodes, NULL))
		return;
	cpulist_for_each (node, &nodes) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
		if (num_read_line(root, path, text, sizeof(text), NULL) ||
		    cpulist_parse("cpus", text, &cpus, NULL))
			continue;
		cpulist_for_each (cpu, &cpus)
			if ((unsigned int)cpu < t->cpus)
				t->cpu[cpu].node = node;
	}
}

struct topology *topology_open(const char *root, unsigned int cpus)
{
	struct topology *t = xcalloc(1, sizeof(*t) + cpus * sizeof(t->cpu[0]));
	long *ids = xcalloc(cpus, sizeof(*ids));

	t->cpus = cpus;
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		long id = read_id(root, cpu, "cache/index3/id");
		long socket = read_id(root, cpu, "topology/physical_package_id");
		unsigned int i = 0;

		t->cpu[cpu].socket = socket > 0 ? socket : 0;
		if (id < 0)
			continue;
		while (i < t->n_complexes && ids[i] != id)
			i++;
		if (i == t->n_complexes)
			ids[t->n_complexes++] = id;
		t->cpu[cpu].complex = i;
	}
	if (!t->n_complexes)
		t->n_complexes = 1;
	else
		t->l3 = xmemdup(ids, t->n_complexes * sizeof(*ids));
	read_nodes(root, t);
	free(ids);
	return t;
}

int topology_complex_of_l3(const struct topology *t, long id)
{
	for (unsigned int i = 0; t->l3 && i < t->n_complexes; i++)
		if (t->l3[i] == id)
			return (int)i;
	return -1;
}

unsigned int topology_n_complexes(const struct topology *t)
{
	return t->n_complexes;
}

unsigned int topology_complex(const struct topology *t, unsigned int cpu)
{
	return cpu < t->cpus ? t->cpu[cpu].complex : 0;
}

unsigned int topology_node(const struct topology *t, unsigned int cpu)
{
	return cpu < t->cpus ? t->cpu[cpu].node : 0;
}

unsigned int topology_socket(const struct topology *t, unsigned int cpu)
{
	return cpu < t->cpus ? t->cpu[cpu].socket : 0;
}

void topology_close(struct topology *t)
{
	if (t)
		free(t->l3);
	free(t);
}
