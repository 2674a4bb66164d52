// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long reading the counters takes, for machines that are not here: tables as the programs fill
 * them, of so many CPUs, shards and groups, in ordinary memory. What asking the PMU of each CPU
 * costs is not in it (bench-cores has that).
 *
 *   bench-snapshot [--json] [--runs N] [CPUS SHARDS GROUPS]
 */
#include "base/clock.h"
#include "counts/counts.h"
#include "neighbours/neighbours.h"
#include "perf/sample_cost.h"
#include "tables.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_RUNS 99
#define MAX_CPUS 8192

static const struct size {
	unsigned int cpus, shards, groups;
} sizes[] = {
	{ 2, 1, 1024 },	  { 16, 1, 1024 },  { 64, 4, 1024 },   { 255, 4, 1024 },  { 768, 2, 2000 },
	{ 768, 4, 2000 }, { 768, 8, 2000 }, { 768, 24, 2000 }, { 768, 48, 2000 },
};

static const char *const spread_names[] = { "every shard", "one shard", "no sample" };

static struct layout layout;
static unsigned int runs = 9;
static json_t *rows;

static int ignore(void *arg, struct group *g)
{
	(void)arg;
	(void)g;
	return 0;
}

static int ignore_activity(void *arg, __u32 slot, const struct ibs_group_key *key,
			   const struct counts_activity *a)
{
	(void)arg;
	(void)slot;
	(void)key;
	(void)a;
	return 0;
}

/* ms of CPU, the median; 0: whole snapshots, 1: group by group, 2: the ledger alone, 3: what judging neighbours needs. */
static double time_of(const struct counts *c, int what)
{
	double ms[MAX_RUNS] = {};

	for (unsigned int i = 0; i < runs; i++) {
		__u64 start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		struct snapshot snap = {};
		struct err err = {};
		struct ledger l;
		int ret;

		if (what == 0)
			ret = counts_read(c, &snap, &err);
		else if (what == 1)
			ret = counts_each(c, ignore, NULL, &l, &err);
		else if (what == 2)
			ret = counts_ledger(c, &l, &err);
		else
			ret = counts_each_activity(c, neighbours_sources(), ignore_activity, NULL);
		ms[i] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
		if (ret)
			die(err.text);
		snapshot_free(&snap);
	}
	return loop_median(ms, runs, NULL);
}

static void bench(const struct size *size, bool as_json)
{
	size_t bytes = (size_t)size->shards * (size->groups + 1) * layout.words * sizeof(__u64);
	size_t state_bytes = sizeof(struct ibs_state) + size->cpus * sizeof(struct ibs_cpu_state);
	size_t owners_bytes = (size->groups + 1) * sizeof(struct ibs_slot_owner);
	struct ibs_state *state = tables_pages(state_bytes);
	struct ibs_slot_owner *owners = tables_pages(owners_bytes);
	__u64 *series = tables_pages(bytes);
	const struct counts c = {
		.series = series,
		.owners = owners,
		.state = state,
		.n_cpus = size->cpus,
		.outcomes = IBS_OUTCOME_N,
		.shards = size->shards,
		.max_slots = size->groups + 1,
		.layout = &layout,
	};

	for (int s = 0; s < SPREADS; s++) {
		double whole, each, ledger, activity;

		tables_fill(&c, series, s, state->cpu, owners);
		whole = time_of(&c, 0);
		each = time_of(&c, 1);
		ledger = time_of(&c, 2);
		activity = time_of(&c, 3);
		if (!as_json)
			printf("%6u %7u %7u %8.0f  %-12s %10.2f %10.2f %10.3f %10.3f\n", size->cpus,
			       size->shards, size->groups, bytes / 1048576.0, spread_names[s],
			       whole, each, ledger, activity);
		json_array_append_new(
			rows, json_pack("{s:i, s:i, s:i, s:f, s:s, s:f, s:f, s:f, s:f}", "cpus",
					(int)size->cpus, "shards", (int)size->shards, "groups",
					(int)size->groups, "mib", bytes / 1048576.0, "samples_in",
					spread_names[s], "snapshot_ms", whole, "each_ms", each,
					"ledger_ms", ledger, "activity_ms", activity));
		fflush(stdout);
	}
	munmap(series, bytes);
	munmap(owners, owners_bytes);
	munmap(state, state_bytes);
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "runs", required_argument, NULL, 'n' },
		{},
	};
	bool as_json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		if (c == '?')
			return 2;
		if (c == 'j')
			as_json = true;
		else
			runs = tables_number("--runs", optarg, MAX_RUNS);
	}
	if (optind != argc && optind + 3 != argc) {
		fprintf(stderr, "usage: bench-snapshot [--json] [--runs N] [CPUS SHARDS GROUPS]\n");
		return 2;
	}
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, CAPS);
	tables_patterns(&layout);
	rows = json_array();
	if (!as_json)
		printf("Reading the counters, ms of CPU (median of %u)\n\n%6s %7s %7s %8s  %-12s "
		       "%10s "
		       "%10s "
		       "%10s "
		       "%10s\n",
		       runs, "CPUs", "shards", "groups", "MiB", "samples in", "snapshot",
		       "by group", "ledger", "neighbours");
	if (optind < argc) {
		const struct size one = { tables_number("CPUS", argv[optind], MAX_CPUS),
					  tables_number("SHARDS", argv[optind + 1], MAX_CPUS),
					  tables_number("GROUPS", argv[optind + 2], 1000000) };

		bench(&one, as_json);
	} else {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			bench(&sizes[i], as_json);
	}
	if (as_json && json_dumpf(rows, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		die("out of memory");
	json_decref(rows);
	return 0;
}
