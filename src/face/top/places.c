// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "places.h"
#include "base/std.h"

#include "machine/machine.h"

/* From the last CPU to the first, whose node stays. */
static void set(struct places *p, unsigned int place, unsigned int node)
{
	if (place < p->n)
		p->node[place] = node;
}

static void make_room(struct places *p, unsigned int n, unsigned int complexes)
{
	places_free(p);
	p->node = xcalloc(n, sizeof(*p->node));
	p->n = n;
	p->complexes = complexes;
}

void places_read(struct places *p, unsigned int cpus, unsigned int shards)
{
	struct topology *t;
	unsigned int n;

	places_free(p);
	t = topology_open("", cpus);
	n = topology_n_complexes(t);
	make_room(p, shards < n ? shards : n, n);
	for (unsigned int cpu = cpus; cpu--;)
		set(p, topology_shard(topology_complex(t, cpu), n, p->n), topology_node(t, cpu));
	topology_close(t);
}

void places_of_recording(struct places *p, const struct trace_topology *t)
{
	unsigned int n = trace_complexes(t);

	if (!n)
		return;
	make_room(p, n, n);
	for (unsigned int cpu = t->n; cpu--;)
		set(p, t->ccx[cpu], t->node[cpu]);
}

void places_free(struct places *p)
{
	free(p->node);
	memset(p, 0, sizeof(*p));
}
