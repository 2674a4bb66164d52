// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct topology {
	unsigned int cpus, n_complexes;
	unsigned int complex[];
};

/* The number that the kernel gave the L3 of @cpu, or -1. */
static long l3_id(const char *root, unsigned int cpu)
{
	char path[512];
	long id;
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/cache/index3/id", root, cpu);
	f = fopen(path, "re");
	if (!f)
		return -1;
	n = fscanf(f, "%ld", &id);
	fclose(f);
	return n == 1 ? id : -1;
}

int topology_open(const char *root, unsigned int cpus, struct topology **out, struct err *err)
{
	struct topology *t = calloc(1, sizeof(*t) + cpus * sizeof(t->complex[0]));
	long *ids = calloc(cpus ? cpus : 1, sizeof(*ids));

	if (!t || !ids) {
		free(t);
		free(ids);
		return err_set(err, -ENOMEM, "out of memory");
	}
	t->cpus = cpus;
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		long id = l3_id(root, cpu);
		unsigned int i = 0;

		if (id < 0)
			continue;
		while (i < t->n_complexes && ids[i] != id)
			i++;
		if (i == t->n_complexes)
			ids[t->n_complexes++] = id;
		t->complex[cpu] = i;
	}
	if (!t->n_complexes)
		t->n_complexes = 1;
	free(ids);
	*out = t;
	return 0;
}

unsigned int topology_n_complexes(const struct topology *t)
{
	return t->n_complexes;
}

unsigned int topology_complex(const struct topology *t, unsigned int cpu)
{
	return cpu < t->cpus ? t->complex[cpu] : 0;
}

void topology_close(struct topology *t)
{
	free(t);
}
