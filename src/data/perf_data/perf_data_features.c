// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_features.h"

#include "base/cpulist.h"

#include <time.h>

#define FETCH_TYPE 10 /* any number; perf reads the mapping from the file */
#define OP_TYPE	   11

#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW |    \
	 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP)

void perf_put(struct perf_writer *w, const void *p, size_t n)
{
	if (n > sizeof(w->buf) - w->n)
		n = sizeof(w->buf) - w->n;
	if (n)
		memcpy(w->buf + w->n, p, n);
	w->n += n;
}

void perf_put32(struct perf_writer *w, __u32 v)
{
	perf_put(w, &v, sizeof(v));
}

void perf_put64(struct perf_writer *w, __u64 v)
{
	perf_put(w, &v, sizeof(v));
}

void perf_put_padded(struct perf_writer *w, const char *text, size_t align)
{
	static const char zeros[64];
	size_t n = strlen(text);

	perf_put(w, text, n);
	perf_put(w, zeros, align - n % align);
}

/* The strings of features. */
static void put_text(struct perf_writer *w, const char *text)
{
	perf_put32(w, strlen(text) / 64 * 64 + 64);
	perf_put_padded(w, text, 64);
}

bool perf_is_op_count(const struct trace_pmu *p)
{
	return p->op && strstr(p->name, "cnt_ctl=1");
}

struct perf_event_attr perf_attr_of(const struct trace_pmu *p)
{
	return (struct perf_event_attr){
		.type = p->op ? OP_TYPE : FETCH_TYPE,
		.size = sizeof(struct perf_event_attr),
		.config = perf_is_op_count(p) ? PERF_CNT_CTL : 0,
		/* 0 would be an event that only counts: each sample of a miss stratum has its own */
		.sample_period = p->period ?: !!p->reach,
		.freq = p->freq,
		.sample_type = SAMPLE_TYPE | (p->stacks ? PERF_SAMPLE_CALLCHAIN : 0),
		.sample_id_all = 1,
		.comm = 1,
		.comm_exec = 1,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.task = 1,
		.cgroup = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static void put_events(struct perf_writer *w)
{
	perf_put32(w, w->info->n_pmus);
	perf_put32(w, sizeof(struct perf_event_attr));
	for (unsigned int i = 0; i < w->info->n_pmus; i++) {
		const struct perf_event_attr attr = perf_attr_of(&w->info->pmu[i]);

		perf_put(w, &attr, sizeof(attr));
		perf_put32(w, 1);
		put_text(w, w->info->pmu[i].name);
		perf_put64(w, PERF_ID_OF(i));
	}
}

/* The mapping by which perf decodes raw samples. */
static void put_pmu_caps(struct perf_writer *w)
{
	bool zen4 = w->info->cpu.caps & IBS_CAPS_ZEN4;

	perf_put32(w, 1);
	perf_put32(w, zen4);
	if (zen4) {
		put_text(w, "zen4_ibs_extensions");
		put_text(w, "1");
	}
	put_text(w, "ibs_op");
}

/* Memory of nodes, as bitmaps of blocks; `perf c2c report` rejects a file without this and the next feature. */
static bool put_memory(struct perf_writer *w)
{
	const struct memory_range *range = w->info->memory;
	const size_t n = w->info->n_memory, at = w->n + 2 * sizeof(__u64);
	__u64 edges = 0, end = 0, block, nodes = 0;
	unsigned int most = 0;

	for (size_t i = 0; i < n; i++) {
		edges |= range[i].start | range[i].end;
		end = range[i].end > end ? range[i].end : end;
		most = range[i].node > most ? range[i].node : most;
	}
	if (!end)
		return false;
	block = edges & -edges;
	perf_put64(w, 1);
	perf_put64(w, block);
	perf_put64(w, 0);
	for (unsigned int node = 0; node <= most && w->n < sizeof(w->buf); node++) {
		const __u64 bits = end / block;
		bool has = false;

		for (size_t i = 0; i < n; i++)
			has |= range[i].node == node;
		if (!has)
			continue;
		nodes++;
		perf_put64(w, node);
		perf_put64(w, bits);
		perf_put64(w, bits);
		for (__u64 b = 0; b < bits && w->n < sizeof(w->buf); b += 64) {
			__u64 word = 0;

			for (size_t i = 0; i < n; i++)
				for (__u64 k = b; k < b + 64 && range[i].node == node; k++)
					if (k * block >= range[i].start && k * block < range[i].end)
						word |= 1ull << (k - b);
			perf_put64(w, word);
		}
	}
	memcpy(w->buf + at, &nodes, sizeof(nodes));
	return w->n < sizeof(w->buf);
}

/* Nodes with CPUs. */
static bool put_nodes(struct perf_writer *w)
{
	const struct trace_topology *t = w->info->topology;
	struct cpulist done = { 0 };
	const size_t at = w->n;
	char list[4096];
	__u32 n = 0;

	perf_put32(w, 0);
	for (__u32 first = 0; t && first < t->n; first++) {
		struct cpulist cpus = { 0 };
		__u64 bytes = 0;

		for (__u32 cpu = first; cpu < t->n && !cpulist_has(&done, first); cpu++)
			if (t->node[cpu] == t->node[first])
				cpulist_add(&cpus, cpu);
		if (!cpulist_count(&cpus))
			continue;
		for (size_t i = 0; i < sizeof(done.bits) / sizeof(*done.bits); i++)
			done.bits[i] |= cpus.bits[i];
		for (size_t i = 0; i < w->info->n_memory; i++)
			if (w->info->memory[i].node == t->node[first])
				bytes += w->info->memory[i].end - w->info->memory[i].start;
		perf_put32(w, t->node[first]);
		perf_put64(w, bytes / 1024);
		perf_put64(w, 0); /* free memory: not recorded */
		cpulist_print(&cpus, list, sizeof(list));
		put_text(w, list);
		n++;
	}
	memcpy(w->buf + at, &n, sizeof(n));
	return n && w->n < sizeof(w->buf);
}

bool perf_put_feature(struct perf_writer *w, enum perf_feature nr)
{
	const struct trace_info *info = w->info;
	char text[64];

	switch (nr) {
	case PERF_FEATURE_HOSTNAME:
		put_text(w, info->host);
		return *info->host;
	case PERF_FEATURE_OSRELEASE:
		put_text(w, info->release);
		return *info->release;
	case PERF_FEATURE_ARCH:
		put_text(w, "x86_64");
		return true;
	case PERF_FEATURE_NRCPUS:
		perf_put32(w, info->n_cpus);
		perf_put32(w, info->n_cpus);
		return info->n_cpus;
	case PERF_FEATURE_CPUDESC:
		put_text(w, info->cpu.name);
		return *info->cpu.name;
	case PERF_FEATURE_CPUID:
		snprintf(text, sizeof(text), "%s,%u,%u,%u", info->cpu.vendor, info->cpu.family,
			 info->cpu.model, info->cpu.stepping);
		put_text(w, text);
		return info->has_cpu;
	case PERF_FEATURE_CMDLINE:
		perf_put32(w, info->simulated + 1);
		if (info->simulated)
			put_text(w, PERF_SIMULATED);
		put_text(w, info->command);
		return info->simulated || *info->command;
	case PERF_FEATURE_EVENT_DESC:
		put_events(w);
		return true;
	case PERF_FEATURE_NUMA_TOPOLOGY:
		return put_nodes(w);
	case PERF_FEATURE_MEM_TOPOLOGY:
		return put_memory(w);
	case PERF_FEATURE_PMU_MAPPINGS:
		perf_put32(w, 2);
		perf_put32(w, OP_TYPE);
		put_text(w, "ibs_op");
		perf_put32(w, FETCH_TYPE);
		put_text(w, "ibs_fetch");
		return true;
	case PERF_FEATURE_CLOCK_DATA:
		perf_put32(w, 1);
		perf_put32(w, CLOCK_MONOTONIC);
		perf_put64(w, info->realtime_ns);
		perf_put64(w, info->monotonic_ns);
		return info->realtime_ns;
	default:
		put_pmu_caps(w);
		return true;
	}
}

const enum perf_feature perf_features[PERF_FEATURES] = {
	PERF_FEATURE_HOSTNAME,	   PERF_FEATURE_OSRELEASE,    PERF_FEATURE_ARCH,
	PERF_FEATURE_NRCPUS,	   PERF_FEATURE_CPUDESC,      PERF_FEATURE_CPUID,
	PERF_FEATURE_CMDLINE,	   PERF_FEATURE_EVENT_DESC,   PERF_FEATURE_NUMA_TOPOLOGY,
	PERF_FEATURE_PMU_MAPPINGS, PERF_FEATURE_MEM_TOPOLOGY, PERF_FEATURE_CLOCK_DATA,
	PERF_FEATURE_PMU_CAPS,
};
