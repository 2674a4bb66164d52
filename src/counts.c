// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counts.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a sample may take that a reader waits for. */
#define BALANCE_S 5

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

int counts_ledger(const struct counts *c, struct ledger *l, struct err *err)
{
	memset(l, 0, sizeof(*l));
	for (unsigned int cpu = 0; cpu < c->n_cpus; cpu++)
		if (read_cpu(&c->cpus[cpu], l))
			return err_set(
				err, -EUCLEAN,
				"cpu %u: samples seen and outcomes do not balance; this is a "
				"bug of ibscope, please report it",
				cpu);
	return 0;
}

static int read_series(const struct counts *c, __u32 slot, unsigned int pair, struct series *out)
{
	__u16 entry = c->layout->entry[pair];
	__u32 word = entry & IBS_LAYOUT_WORD;

	memset(out, 0, sizeof(*out));
	out->op = pair & 7;
	out->src = pair >> 3;
	for (__u32 shard = 0; shard < c->shards; shard++) {
		const volatile __u64 *w =
			c->series + ((size_t)shard * c->max_slots + slot) * c->layout->words + word;

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

static int read_group(const struct counts *c, __u32 slot, struct group *g)
{
	struct series *all = calloc(IBS_LAYOUT_ENTRIES, sizeof(*all));

	if (!all)
		return -ENOMEM;
	g->series = all;
	for (unsigned int pair = 0; pair < IBS_LAYOUT_ENTRIES; pair++) {
		if (!layout_has(c->layout, pair))
			continue;
		if (read_series(c, slot, pair, &all[g->n_series]))
			return -ENOMEM;
		if (all[g->n_series].samples)
			g->n_series++;
	}
	/* shrinking cannot fail in a way that matters */
	g->series = realloc(all, (g->n_series ? g->n_series : 1) * sizeof(*all)) ?: all;
	return 0;
}

static int read_groups(const struct counts *c, struct snapshot *out)
{
	const struct ibs_slot_owner *owners = c->owners;

	out->groups = calloc(c->max_slots, sizeof(*out->groups));
	if (!out->groups)
		return -ENOMEM;
	for (__u32 slot = 0; slot < c->max_slots; slot++) {
		bool used = __atomic_load_n(&owners[slot].used, __ATOMIC_ACQUIRE);
		struct group *g = &out->groups[out->n_groups];

		if (!used && slot != IBS_SLOT_OTHER && !(c->one_group && slot == 1))
			continue;
		g->slot = slot;
		g->other = slot == IBS_SLOT_OTHER;
		g->key = owners[slot].key;
		out->n_groups++;
		if (read_group(c, slot, g))
			return -ENOMEM;
		if (g->other && !g->n_series) {
			free(g->series);
			memset(g, 0, sizeof(*g));
			out->n_groups--;
		}
	}
	return 0;
}

int counts_read(const struct counts *c, struct snapshot *out, struct err *err)
{
	struct ledger before, after;
	__u64 aggregated = 0;
	int ret = counts_ledger(c, &before, err);

	if (ret)
		return ret;
	if (read_groups(c, out)) {
		snapshot_free(out);
		return err_set(err, -ENOMEM, "out of memory for a snapshot");
	}
	ret = counts_ledger(c, &after, err);
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
	return 0;
fail:
	snapshot_free(out);
	return ret;
}
