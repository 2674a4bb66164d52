// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Snapshots: what the programs counted, and what the PMU did. */
#include "sampler_private.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define SNAPSHOT_TRIES 3

static void read_pmu(struct sampler *s, struct snapshot *out)
{
	struct perf_events_total t;

	out->ledger.pmu_exact = s->period != 0;
	if (!s->events)
		return;
	perf_events_read(s->events, &t);
	out->ledger.pmu_exact &= t.exact;
	out->ledger.pmu_samples = s->period ? t.samples : 0;
	out->pmu.cpus = t.cpus;
	out->pmu.went = t.went;
	out->pmu.came = t.came;
	out->pmu.enabled_ns = t.enabled_ns;
	out->pmu.running_ns = t.running_ns;
	out->pmu.throttled = perf_events_throttled(s->events);
}

/*
 * The driver counts a sample at the start of its NMI, the program at the end: one that is on its way
 * while the counts are read looks unseen. So what is missing must be missing still when each CPU
 * has answered a second read, which it cannot do within an NMI.
 */
static int read_unseen(struct sampler *s, struct snapshot *out, struct err *err)
{
	struct perf_events_total t;
	struct ledger later;
	int ret;

	if (out->ledger.pmu_samples > out->ledger.seen + s->unseen) {
		perf_events_read(s->events, &t);
		ret = counts_ledger(&s->counts, &later, err);
		if (ret)
			return ret;
		if (out->ledger.pmu_samples > later.seen + s->unseen)
			s->unseen = out->ledger.pmu_samples - later.seen;
	}
	out->ledger.unseen = s->unseen;
	return 0;
}

static int try_snapshot(struct sampler *s, struct snapshot *out, struct err *err)
{
	struct timespec now;
	int ret;

	memset(out, 0, sizeof(*out));
	clock_gettime(CLOCK_MONOTONIC, &now);
	out->time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	/* first: what arrives meanwhile is then seen rather than unseen */
	read_pmu(s, out);
	ret = counts_read(&s->counts, out, err);
	if (ret)
		return ret;
	ret = read_unseen(s, out, err);
	if (ret)
		snapshot_free(out);
	return ret;
}

int sampler_snapshot(struct sampler *s, struct snapshot *out, struct err *err)
{
	int ret = -EUCLEAN;

	/* a group that is being made while it is read may be missed once */
	for (int tries = 0; ret == -EUCLEAN && tries < SNAPSHOT_TRIES; tries++)
		ret = try_snapshot(s, out, err);
	return ret;
}
