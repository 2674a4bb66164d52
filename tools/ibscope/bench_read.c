// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What reading the counters of many containers costs, and the memory that they take. */
#include "bench.h"

#include "clock.h"
#include "counts.h"
#include "metrics.h"
#include "topology.h"
#include "twin.h"

#include <ibscope/sim.h>

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTAINERS 1000
#define EACH	   512 /* samples of each: of the model, so of all its sources */
#define ROUNDS_MAX 51
#define FIRST_ID   1000

static const char what_counters[] = "1,000 containers, all sources of the model";

/* --- a collector that has seen them --- */

static int fill(const struct bench *b, struct sampler *s, struct err *err)
{
	static struct ibs_twin_sample samples[EACH];
	static struct ibs_twin_who who[EACH];
	int ret = 0;

	for (unsigned int i = 0; i < EACH; i++)
		ibs_sim_op(1, 0, i, b->ibs.caps, samples[i].regs);
	for (unsigned int c = 0; !ret && c < CONTAINERS; c++) {
		for (unsigned int i = 0; i < EACH; i++)
			who[i] = (struct ibs_twin_who){
				.pid_tgid = (1000ULL + c) << 32 | (1000 + c),
				.cgroup_id = FIRST_ID + c,
			};
		ret = bench_check_stop(err) ?: twin_run_replay(s, samples, who, EACH, err);
	}
	return ret;
}

static int open_filled(const struct bench *b, struct sampler **out, struct err *err)
{
	const struct sampler_opts opts = {
		.source = SAMPLER_TWIN, .ibs = b->ibs, .by = IBS_BY_CGROUP, .replay = true
	};
	int ret = sampler_open(&opts, out, err);

	if (ret)
		return ret;
	ret = fill(b, *out, err);
	if (ret)
		sampler_close(*out);
	return ret;
}

/* --- snapshot --- */

static size_t snapshot_series(const struct snapshot *s)
{
	size_t n = 0;

	for (size_t g = 0; g < s->n_groups; g++)
		n += s->groups[g].n_series;
	return n;
}

int bench_snapshot(struct bench *b, struct err *err)
{
	struct bench_row row = { .name = "snapshot",
				 .from = BENCH_FROM_TWIN,
				 .unit = b->unit,
				 .rounds = b->instructions ? 5 : bench_of(b, 9, ROUNDS_MAX) };
	double ns[ROUNDS_MAX];
	struct sampler *s;
	size_t series = 0;
	int ret = open_filled(b, &s, err);

	if (ret)
		return ret;
	for (unsigned int r = 0; !ret && r < row.rounds; r++) {
		__u64 start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		struct snapshot snap;

		ret = sampler_snapshot(s, &snap, err) ?: bench_check_stop(err);
		if (ret)
			break;
		ns[r] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		series = snapshot_series(&snap);
		snapshot_free(&snap);
	}
	if (!ret) {
		snprintf(row.what, sizeof(row.what), "CPU time of a snapshot: %s", what_counters);
		row.value = loop_median(ns, row.rounds, &row.spread);
		bench_more(&row, "series", series);
		bench_more(&row, "shards", sampler_memory_used(s)->shards);
		bench_add(b, &row);
	}
	sampler_close(s);
	return ret;
}

/* --- scrape --- */

static void name_group(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	unsigned long long n = g->key.cgroup_id;

	(void)arg;
	snprintf(out->name_space, sizeof(out->name_space), "production-%llu", n % 7);
	snprintf(out->pod, sizeof(out->pod), "checkout-7d9f8b6c5d-%05llu", n);
	snprintf(out->container, sizeof(out->container), "checkout");
	snprintf(out->cgroup, sizeof(out->cgroup),
		 "/kubepods.slice/kubepods-burstable.slice/"
		 "kubepods-burstable-pod%08llx_1234_5678_9abc_def012345678.slice/"
		 "cri-containerd-%064llx.scope",
		 n, n);
}

/* A line of /proc/self/status in bytes, 0 if it is not told. */
static double status_bytes(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	size_t len = strlen(name);
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			sscanf(line + len + 1, "%lu", &kib);
	fclose(f);
	return kib * 1024.0;
}

/* The peak of resident memory begins anew. */
static void reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	if (!f)
		return;
	fputs("5\n", f);
	fclose(f);
}

static int scrape(const struct metrics_source *src, double *bytes, struct err *err)
{
	const struct metrics_opts opts = {};
	const struct metrics_self self = {};
	static char buf[2 * METRICS_ROOM];
	struct metrics_cursor at = {};
	struct metrics *m;
	size_t n;
	int ret = metrics_read(src, &opts, &self, &m, err);

	if (ret)
		return ret;
	for (*bytes = 0; (n = metrics_text(m, METRICS_TEXT, &at, buf, sizeof(buf)));)
		*bytes += n;
	metrics_free(m);
	return 0;
}

int bench_scrape(struct bench *b, struct err *err)
{
	struct bench_row row = { .name = "scrape",
				 .from = BENCH_FROM_TWIN,
				 .unit = b->unit,
				 .rounds = b->instructions ? 5 : bench_of(b, 5, 21) };
	static struct ibs_meta meta;
	struct metrics_source src = { .meta = &meta, .name = name_group };
	double ns[ROUNDS_MAX], bytes = 0, before, peak;
	struct sampler *s;
	int ret = open_filled(b, &s, err);

	if (ret)
		return ret;
	meta.layout.max_slots = SAMPLER_MAX_GROUPS + 1;
	meta.layout.caps = b->ibs.caps;
	src.counts = sampler_counts(s);
	malloc_trim(0);
	reset_peak();
	before = status_bytes("VmRSS");
	for (unsigned int r = 0; !ret && r < row.rounds; r++) {
		__u64 start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		ret = scrape(&src, &bytes, err) ?: bench_check_stop(err);
		ns[r] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	}
	peak = status_bytes("VmHWM");
	if (!ret) {
		snprintf(row.what, sizeof(row.what), "CPU time of a scrape, as text: %s",
			 what_counters);
		row.value = loop_median(ns, row.rounds, &row.spread);
		bench_more(&row, "bytes", bytes);
		if (before && peak >= before)
			bench_more(&row, "memory_bytes", peak - before);
		bench_add(b, &row);
	}
	sampler_close(s);
	return ret;
}

/* --- memory --- */

static const struct memory_case {
	const char *name, *what;
	unsigned int complexes; /* 0: of this machine */
	unsigned int cpus;	/* with rings; 0: of this machine */
	struct sampler_opts opts;
} memory_cases[] = {
	{ "memory.default", "options as they are, this machine", .opts.by = IBS_BY_CGROUP },
	{ "memory.groups-4096", "--max-groups 4096, no bound",
	  .opts = { .by = IBS_BY_CGROUP, .max_groups = 4096, .max_memory_bytes = ~0ULL } },
	{ "memory.by-cgroup-pid", "--by cgroup,pid", .opts.by = IBS_BY_CGROUP | IBS_BY_PID },
	{ "memory.tag_to_ret", "--metric tag_to_ret",
	  .opts = { .by = IBS_BY_CGROUP, .metric = IBS_METRIC_TAG_TO_RET } },
	{ "memory.records", "record, this machine", .opts.output = SAMPLER_RECORDS },
	{ "memory.records-stacks", "record -g, this machine",
	  .opts = { .output = SAMPLER_RECORDS, .stacks = true } },
	{ "memory.64-cpus", "8 L3 caches", 8, 64, { .by = IBS_BY_CGROUP } },
	{ "memory.256-cpus", "16 L3 caches", 16, 256, { .by = IBS_BY_CGROUP } },
	{ "memory.768-cpus", "96 L3 caches", 96, 768, { .by = IBS_BY_CGROUP } },
	{ "memory.768-cpus-2000-groups",
	  "96 L3 caches, --max-groups 2000",
	  96,
	  768,
	  { .by = IBS_BY_CGROUP, .max_groups = 2000 } },
	{ "memory.768-cpus-unbounded",
	  "96 L3 caches, --max-groups 2000, no bound",
	  96,
	  768,
	  { .by = IBS_BY_CGROUP, .max_groups = 2000, .max_memory_bytes = ~0ULL } },
	{ "memory.768-cpus-records", "record on 768 CPUs", 96, 768, { .output = SAMPLER_RECORDS } },
};
#define MEMORY_CASES (sizeof(memory_cases) / sizeof(memory_cases[0]))

int bench_memory(struct bench *b, struct err *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct topology *topo;
	unsigned int complexes;
	int ret = topology_open("", cpus, &topo, err);

	if (ret)
		return ret;
	complexes = topology_n_complexes(topo);
	topology_close(topo);
	for (size_t i = 0; i < MEMORY_CASES; i++) {
		const struct memory_case *c = &memory_cases[i];
		struct bench_row row = { .from = BENCH_FROM_COMPUTED, .unit = "bytes" };
		struct sampler_opts opts = c->opts;
		struct sampler_memory m;

		snprintf(row.name, sizeof(row.name), "%s", c->name);
		snprintf(row.what, sizeof(row.what), "%s", c->what);
		opts.ibs = b->ibs;
		opts.n_cpus = c->cpus ? c->cpus : (size_t)cpus;
		if (sampler_memory(&opts, c->complexes ? c->complexes : complexes, &m, err)) {
			bench_missing(b, c->name, c->what, row.from, "%s", err->text);
			continue;
		}
		row.value = m.total;
		bench_more(&row, "shards", m.shards);
		bench_more(&row, "series_bytes", m.series);
		bench_more(&row, "rings_bytes", m.rings);
		bench_more(&row, "cpu_bytes", m.cpu_states);
		bench_more(&row, "hash_bytes", m.cgroups + m.groups + m.slots);
		bench_add(b, &row);
	}
	return 0;
}
