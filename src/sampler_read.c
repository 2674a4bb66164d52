// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Snapshots: what the programs have counted, read from mapped memory while they go on. */
#include "sampler_private.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a sample may take that a reader waits for. */
#define BALANCE_S      5
#define SNAPSHOT_TRIES 3

/* A CPU's counts at a moment when no sample was half way. */
static int read_cpu(const struct ibs_cpu_state *st, struct ledger *l)
{
	time_t give_up = time(NULL) + BALANCE_S;

	for (int tries = 1;; tries++) {
		__u64 outcome[IBS_OUTCOME_N], sum = 0;
		__u64 seen = __atomic_load_n(&st->seen, __ATOMIC_ACQUIRE);

		for (int o = 0; o < IBS_OUTCOME_N; o++) {
			outcome[o] = __atomic_load_n(&st->outcome[o], __ATOMIC_ACQUIRE);
			sum += outcome[o];
		}
		if (sum == seen && seen == __atomic_load_n(&st->seen, __ATOMIC_ACQUIRE)) {
			l->seen += seen;
			for (int o = 0; o < IBS_OUTCOME_N; o++)
				l->outcome[o] += outcome[o];
			return 0;
		}
		/* a virtual CPU can be descheduled in the middle of its NMI */
		if (tries % 1000)
			__builtin_ia32_pause();
		else if (time(NULL) > give_up)
			return -EUCLEAN;
		else
			sched_yield();
	}
}

static int read_cpus(const struct sampler *s, struct ledger *l, struct err *err)
{
	const struct ibs_cpu_state *st = s->cpus;

	memset(l, 0, sizeof(*l));
	for (unsigned int cpu = 0; cpu < s->possible_cpus; cpu++)
		if (read_cpu(&st[cpu], l))
			return err_set(
				err, -EUCLEAN,
				"cpu %u: samples seen and outcomes do not balance; this is a "
				"bug of ibscope, please report it",
				cpu);
	return 0;
}

static int read_series(const struct sampler *s, __u32 slot, unsigned int pair, struct series *out)
{
	__u16 entry = s->layout.entry[pair];
	__u32 word = entry & IBS_LAYOUT_WORD;

	memset(out, 0, sizeof(*out));
	out->op = pair & 7;
	out->src = pair >> 3;
	for (__u32 shard = 0; shard < s->memory.shards; shard++) {
		const volatile __u64 *w = (const __u64 *)s->series.addr +
					  ((size_t)shard * s->max_slots + slot) * s->layout.words +
					  word;

		if (!(entry & IBS_LAYOUT_HIST)) {
			out->samples += w[0];
			continue;
		}
		out->samples += w[IBS_HIST_NO_LAT];
		out->sum += w[IBS_HIST_SUM];
		for (int i = 0; i < IBS_LAT_BUCKETS; i++) {
			__u64 n = w[IBS_HIST_BUCKET + i];

			if (!n)
				continue;
			if (!out->buckets)
				out->buckets = calloc(IBS_LAT_BUCKETS, sizeof(*out->buckets));
			if (!out->buckets)
				return -ENOMEM;
			out->buckets[i] += n;
			out->valid += n;
		}
	}
	out->samples += out->valid;
	return 0;
}

static int read_group(const struct sampler *s, __u32 slot, struct group *g)
{
	struct series *all = calloc(IBS_LAYOUT_ENTRIES, sizeof(*all));

	if (!all)
		return -ENOMEM;
	g->series = all;
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		if (!layout_has(&s->layout, pair))
			continue;
		if (read_series(s, slot, pair, &all[g->n_series]))
			return -ENOMEM;
		if (all[g->n_series].samples)
			g->n_series++;
	}
	/* shrinking cannot fail in a way that matters */
	g->series = realloc(all, (g->n_series ? g->n_series : 1) * sizeof(*all)) ?: all;
	return 0;
}

static int read_groups(const struct sampler *s, struct snapshot *out)
{
	const struct ibs_slot_owner *owners = s->slot_owners.addr;
	bool single = s->one_group;

	out->groups = calloc(s->max_slots, sizeof(*out->groups));
	if (!out->groups)
		return -ENOMEM;
	for (__u32 slot = 0; slot < s->max_slots; slot++) {
		bool used = __atomic_load_n(&owners[slot].used, __ATOMIC_ACQUIRE);
		struct group *g = &out->groups[out->n_groups];

		if (!used && slot != IBS_SLOT_OTHER && !(single && slot == 1))
			continue;
		g->slot = slot;
		g->other = slot == IBS_SLOT_OTHER;
		g->key = owners[slot].key;
		out->n_groups++;
		if (read_group(s, slot, g))
			return -ENOMEM;
		if (g->other && !g->n_series) {
			free(g->series);
			memset(g, 0, sizeof(*g));
			out->n_groups--;
		}
	}
	return 0;
}

static void read_pmu(struct sampler *s, struct snapshot *out)
{
	out->ledger.pmu_exact = s->period != 0;
	if (!s->events)
		return;
	for (size_t i = 0; i < perf_events_n(s->events); i++) {
		struct perf_event_count c;

		if (perf_events_read(s->events, i, &c)) {
			out->ledger.pmu_exact = false;
			continue;
		}
		out->pmu.cpus++;
		out->pmu.enabled_ns += c.enabled_ns;
		out->pmu.running_ns += c.running_ns;
		if (s->period)
			out->ledger.pmu_samples += c.count / s->period;
		/* each time the event is taken off the PMU a part of a period is lost to the count */
		if (c.running_ns < c.enabled_ns)
			out->ledger.pmu_exact = false;
	}
	out->pmu.throttled = perf_events_throttled(s->events);
}

/*
 * The driver counts a sample at the start of its NMI, the program at the end: one that is on its way
 * while the counts are read looks unseen. So what is missing must be missing still when each CPU
 * has answered a second read, which it cannot do within an NMI.
 */
static int read_unseen(struct sampler *s, struct snapshot *out, struct err *err)
{
	struct perf_event_count c;
	struct ledger later;
	int ret;

	if (out->ledger.pmu_samples > out->ledger.seen + s->unseen) {
		for (size_t i = 0; i < perf_events_n(s->events); i++)
			perf_events_read(s->events, i, &c);
		ret = read_cpus(s, &later, err);
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
	struct ledger before, after;
	__u64 aggregated = 0;
	struct timespec now;
	int ret;

	memset(out, 0, sizeof(*out));
	clock_gettime(CLOCK_MONOTONIC, &now);
	out->time_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	/* first: what arrives meanwhile is then seen rather than unseen */
	read_pmu(s, out);
	ret = read_cpus(s, &before, err);
	if (ret)
		return ret;
	if (read_groups(s, out)) {
		snapshot_free(out);
		return err_set(err, -ENOMEM, "out of memory for a snapshot");
	}
	ret = read_cpus(s, &after, err);
	if (ret)
		goto fail;
	for (size_t i = 0; i < out->n_groups; i++)
		for (size_t j = 0; j < out->groups[i].n_series; j++)
			aggregated += out->groups[i].series[j].samples;
	if (aggregated < before.outcome[IBS_OUTCOME_AGGREGATED] ||
	    aggregated > after.outcome[IBS_OUTCOME_AGGREGATED]) {
		ret = err_set(err, -EUCLEAN,
			      "%llu samples in the series, but between %llu and %llu counted as "
			      "aggregated; this is a bug of ibscope, please report it",
			      aggregated, before.outcome[IBS_OUTCOME_AGGREGATED],
			      after.outcome[IBS_OUTCOME_AGGREGATED]);
		goto fail;
	}
	out->ledger.seen = before.seen + aggregated - before.outcome[IBS_OUTCOME_AGGREGATED];
	memcpy(out->ledger.outcome, before.outcome, sizeof(before.outcome));
	out->ledger.outcome[IBS_OUTCOME_AGGREGATED] = aggregated;
	ret = read_unseen(s, out, err);
	if (ret)
		goto fail;
	return 0;
fail:
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
