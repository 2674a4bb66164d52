// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "places.h"
#include "base/std.h"

#include "machine/machine.h"

#include <stdint.h>

#define NOWHERE UINT16_MAX

/* From the last CPU to the first, whose node stays. */
static void set(struct places *p, unsigned int place, unsigned int node)
{
	if (place < p->n)
		p->node[place] = node;
}

static void set_cpu(struct places *p, unsigned int cpu, unsigned int complex, unsigned int node)
{
	p->complex_of[cpu] = complex;
	p->node_of[cpu] = node;
	set(p, topology_shard(complex, p->complexes, p->n), node);
}

static void make_room(struct places *p, unsigned int n, unsigned int complexes, unsigned int cpus)
{
	places_free(p);
	p->complex_of = xcalloc(cpus, sizeof(*p->complex_of));
	p->node_of = xcalloc(cpus, sizeof(*p->node_of));
	p->cpus = cpus;
	p->node = xcalloc(n, sizeof(*p->node));
	p->n = n;
	p->complexes = complexes;
}

void places_read(struct places *p, unsigned int cpus, unsigned int shards)
{
	struct cpulist online;
	struct err none = { "" };
	struct topology *t;
	unsigned int n;
	bool all;

	places_free(p);
	t = topology_open("", cpus);
	n = topology_n_complexes(t);
	make_room(p, shards < n ? shards : n, n, cpus);
	all = cpulist_read("", "online", &online, &none);
	for (unsigned int cpu = cpus; cpu--;) {
		set_cpu(p, cpu, topology_complex(t, cpu), topology_node(t, cpu));
		if (!all && !cpulist_has(&online, cpu)) /* it cannot be selected */
			p->complex_of[cpu] = p->node_of[cpu] = NOWHERE;
	}
	topology_close(t);
}

void places_of_recording(struct places *p, const struct trace_topology *t)
{
	unsigned int n = trace_complexes(t);

	if (!n)
		return;
	make_room(p, n, n, t->n);
	for (unsigned int cpu = t->n; cpu--;)
		set_cpu(p, cpu, t->ccx[cpu], t->node[cpu]);
}

bool places_list(const struct places *p, int complex, int node, const struct cpulist *only,
		 char *out, size_t size)
{
	struct cpulist l = {};

	for (unsigned int cpu = 0; cpu < p->cpus && cpu < CPULIST_MAX; cpu++)
		if ((complex < 0 || p->complex_of[cpu] == complex) &&
		    (node < 0 || p->node_of[cpu] == node) && (!only || cpulist_has(only, cpu)))
			cpulist_add(&l, cpu);
	return cpulist_count(&l) && cpulist_print(&l, out, size) < size;
}

void places_free(struct places *p)
{
	free(p->complex_of);
	free(p->node_of);
	free(p->node);
	memset(p, 0, sizeof(*p));
}
