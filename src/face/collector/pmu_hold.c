// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pmu_hold.h"

#include "perf/perf.h"
#include "base/array.h"
#include "base/cpulist.h"
#include "base/num.h"
#include "base/rlimit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Far more than an event counts in the moments that a PMU is held. */
#define PERIOD (1ULL << 40)

struct pmu_hold {
	int *fd; /* -1: not held */
	size_t n, room;
};

static void hold_cpu(struct pmu_hold *hold, const char *name, __u32 type, unsigned int cpu)
{
	const struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.sample_period = PERIOD,
		.pinned = 1,
	};

	array_reserve(hold->fd, hold->room, hold->n + 1);
	hold->fd[hold->n] = perf_open(&attr, cpu);
	if (hold->fd[hold->n++] < 0)
		log_debug("cpu %u: cannot hold %s: %s", cpu, name, strerror(errno));
}

static void hold_all(struct pmu_hold *hold, const char *const *names, size_t n)
{
	struct cpulist online = {};
	char path[128];
	int64_t type;
	struct err err;
	int cpu;

	if (cpulist_read("", "online", &online, &err))
		log_debug("%s", err.text);
	rlimit_files(n * cpulist_count(&online));
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", names[i]);
		if (!num_read("", path, &type, &err))
			cpulist_for_each (cpu, &online)
				hold_cpu(hold, names[i], type, cpu);
	}
}

struct pmu_hold *pmu_hold(const char *const *names, size_t n)
{
	struct pmu_hold *hold = xcalloc(1, sizeof(*hold));

	hold_all(hold, names, n);
	return hold;
}

void pmu_release(struct pmu_hold *hold)
{
	if (!hold)
		return;
	for (size_t i = 0; i < hold->n; i++)
		if (hold->fd[i] >= 0)
			close(hold->fd[i]);
	free(hold->fd);
	free(hold);
}
