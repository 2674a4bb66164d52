// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What sampling costs as a function of the number of CPUs, on ibs_op: a sample, starting, reading,
 * memory, open files. All CPUs are sampled; one after the other some of them go round in a loop of
 * known length, and what that takes more than without sampling, divided by the samples, is the cost
 * of one. The rig's clock counts instructions (--icount): there a nanosecond is one. (With all CPUs
 * busy at once the emulator leaves some uncounted.)
 *
 *   bench-cores [--brief] [--rounds N] [--instructions MILLIONS]	one JSON object a line
 */
#include "base/clock.h"
#include "counts/counts.h"
#include "event/cpu.h"
#include "base/cpulist.h"
#include "perf/sample_cost.h"
#include "base/num.h"
#include "event/event.h"
#include "quiet.h"
#include "sampler/sampler.h"
#include "machine/machine.h"

#include <dirent.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROUNDS 9
#define READINGS   5
#define PERIOD	   100000
#define AT_MOST	   3	 /* CPUs that are busy, in turn */
#define NOBODY	   32000 /* a pid that no task has, small enough for any kernel.pid_max */
#define HIGH_LAT   65000

static const __u32 nobody = NOBODY;

static const struct variant {
	const char *name;
	struct sampler_opts opts;
	bool brief; /* also where little is measured */
} variants[] = {
	{ "empty program", { .prog = SAMPLER_PROG_EMPTY }, true },
	{ "event, no program", { .prog = SAMPLER_PROG_NONE } },
	{ "rejected: pid",
	  { .by = IBS_BY_CGROUP, .sel.processes = { .pids = &nobody, .n = 1 } },
	  true },
	{ "rejected: latency", { .by = IBS_BY_CGROUP, .sel.min_lat = HIGH_LAT } },
	{ "aggregated: by cgroup", { .by = IBS_BY_CGROUP }, true },
	{ "aggregated: by pid", { .by = IBS_BY_PID } },
	{ "forwarded", { .output = SAMPLER_RECORDS }, true },
};
#define VARIANTS  (sizeof(variants) / sizeof(variants[0]))
#define EMPTY	  0 /* the floor */
#define BY_CGROUP 4

static struct machine {
	struct cpulist online;
	unsigned int *cpu; /* n of them */
	size_t n;
	struct cpu_info info;
	struct pmu *pmu;
} m;

static unsigned int rounds = 3; /* on each CPU that is busy */
static bool brief;
static __u64 instructions = 20000000;

static void __attribute__((noreturn)) die(const char *text)
{
	log_error("%s", text);
	exit(1);
}

static void put(json_t *row)
{
	if (!row || json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(10)))
		die("out of memory");
	putchar('\n');
	fflush(stdout);
	json_decref(row);
}

/* --- the load --- */

/* Two instructions a turn, whatever the compiler. */
static void turn(__u64 n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

/* ns */
static double run_load(void)
{
	__u64 start = clock_ns(CLOCK_MONOTONIC);

	turn(instructions / 2);
	return clock_ns(CLOCK_MONOTONIC) - start;
}

/* --- a sample --- */

static struct sampler *open_sampler(const struct variant *v, size_t n_cpus)
{
	struct sampler_opts o = v->opts;
	struct err err = {};
	struct sampler *s;

	o.attr = (struct perf_event_attr){
		.size = sizeof(o.attr),
		.type = m.pmu->type,
		.sample_period = PERIOD,
		.sample_type = PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	o.event = "ibs_op//";
	o.cpus = m.cpu;
	o.n_cpus = n_cpus;
	o.ibs = (struct ibs_cpu){ .caps = m.info.caps, .quirks = m.info.quirks };
	if (sampler_open(&o, &s, &err))
		die(err.text);
	return s;
}

static void start(struct sampler *s)
{
	struct err err = {};

	if (sampler_start(s, &err))
		die(err.text);
}

static struct ledger ledger(struct sampler *s)
{
	struct pmu_state pmu;
	struct err err = {};
	struct ledger l;

	if (sampler_ledger(s, &l, &pmu, &err))
		die(err.text);
	return l;
}

struct result {
	double cost[MAX_ROUNDS * AT_MOST];
	unsigned int n;
	__u64 samples, seen, lost;
};

static void measure_on(struct sampler *s, unsigned int cpu, struct result *r)
{
	struct ledger before, after;
	double plain, sampled;
	struct err err = {};

	if (cpulist_bind(cpu, &err))
		die(err.text);
	run_load(); /* what a CPU does once */
	plain = run_load();
	start(s);
	run_load();
	before = ledger(s);
	sampled = run_load();
	after = ledger(s);
	sampler_stop(s);
	after.pmu_samples -= before.pmu_samples;
	if (!after.pmu_samples)
		die("no samples: the loop is too short");
	r->cost[r->n++] = (sampled - plain) / after.pmu_samples;
	r->samples += after.pmu_samples;
	r->seen += after.seen - before.seen;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		if (outcome_kind(o) == IBS_OUTCOME_KIND_LOST)
			r->lost += after.outcome[o] - before.outcome[o];
}

static void measure(const struct variant *v, double *floor)
{
	unsigned int busy = m.n < AT_MOST ? m.n : AT_MOST;
	struct sampler *s = open_sampler(v, m.n);
	struct result r = {};
	double cost;

	quiet_settle();
	for (unsigned int i = 0; i < rounds * busy; i++)
		measure_on(s, m.cpu[busy == 1 ? 0 : i % busy * (m.n - 1) / (busy - 1)], &r);
	sampler_close(s);
	cost = loop_median(r.cost, r.n, NULL);
	if (v == &variants[EMPTY])
		*floor = cost;
	put(json_pack("{s:s, s:i, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "kind", "sample",
		      "cpus", (int)m.n, "variant", v->name, "per_sample", cost, "above_empty",
		      cost - *floor, "least", r.cost[0], "most", r.cost[r.n - 1], "samples",
		      (json_int_t)r.samples, "seen", (json_int_t)r.seen, "lost",
		      (json_int_t)r.lost));
}

/* --- starting, reading, memory, files --- */

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (!d)
		die("cannot read /proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ".", ".." and the directory */
}

/* What the kernel says that the maps of this process take. */
static __u64 kernel_bytes(void)
{
	DIR *d = opendir("/proc/self/fdinfo");
	struct dirent *e;
	__u64 sum = 0;

	if (!d)
		die("cannot read /proc/self/fdinfo");
	while ((e = readdir(d))) {
		char path[300], line[256];
		bool map = false;
		__u64 bytes = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			map |= !strncmp(line, "map_type:", 9);
			sscanf(line, "memlock: %llu", &bytes);
		}
		fclose(f);
		sum += map ? bytes : 0;
	}
	closedir(d);
	return sum;
}

static double reading(struct sampler *s, int what)
{
	double ns[READINGS];

	for (int i = 0; i < READINGS; i++) {
		__u64 begin = clock_ns(CLOCK_MONOTONIC);
		struct snapshot snap;
		struct err err = {};
		struct ledger l;

		if (what == 0) {
			if (sampler_snapshot(s, &snap, &err))
				die(err.text);
			snapshot_free(&snap);
		} else if (what == 1) {
			ledger(s);
		} else if (counts_ledger(sampler_counts(s), &l, &err)) {
			die(err.text);
		}
		ns[i] = clock_ns(CLOCK_MONOTONIC) - begin;
	}
	return loop_median(ns, READINGS, NULL);
}

static void starting(size_t n_cpus, unsigned int complexes)
{
	const struct sampler_memory *mem;
	unsigned int files = open_files();
	__u64 t0, t1, t2, t3, t4, cpu0, cpu1;
	double snapshot, both, counts;
	struct sampler *s;

	quiet_settle();
	t0 = clock_ns(CLOCK_MONOTONIC);
	cpu0 = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s = open_sampler(&variants[BY_CGROUP], n_cpus);
	t1 = clock_ns(CLOCK_MONOTONIC);
	start(s);
	t2 = clock_ns(CLOCK_MONOTONIC);
	cpu1 = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	usleep(20000);
	files = open_files() - files;
	mem = sampler_memory_used(s);
	snapshot = reading(s, 0);
	both = reading(s, 1);
	counts = reading(s, 2);
	put(json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}",
		      "kind", "start", "cpus", (int)m.n, "sampled", (int)n_cpus, "complexes",
		      (int)complexes, "shards", (int)mem->shards, "files", (int)files, "open_ns",
		      (json_int_t)(t1 - t0), "start_ns", (json_int_t)(t2 - t1), "cpu_ns",
		      (json_int_t)(cpu1 - cpu0), "memory", (json_int_t)mem->total, "series",
		      (json_int_t)mem->series, "kernel_memory", (json_int_t)kernel_bytes(),
		      "snapshot_ns", snapshot, "ledger_ns", both, "counts_ns", counts));
	t3 = clock_ns(CLOCK_MONOTONIC);
	sampler_stop(s);
	sampler_close(s);
	t4 = clock_ns(CLOCK_MONOTONIC);
	put(json_pack("{s:s, s:i, s:i, s:I}", "kind", "end", "cpus", (int)m.n, "sampled",
		      (int)n_cpus, "close_ns", (json_int_t)(t4 - t3)));
}

static void parse(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "brief", no_argument, NULL, 'b' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "instructions", required_argument, NULL, 'i' },
		{},
	};
	struct err err = {};
	uint64_t v;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		const struct num_arg arg = { .name = c == 'r' ? "--rounds" : "--instructions",
					     .min = 1,
					     .max = c == 'r' ? MAX_ROUNDS : 100000 };

		if (c == '?')
			exit(2);
		if (c == 'b') {
			brief = true;
			continue;
		}
		if (num_parse(&arg, optarg, &v, &err)) {
			log_error("%s", err.text);
			exit(2);
		}
		if (c == 'r')
			rounds = v;
		else
			instructions = v * 1000000;
	}
}

int main(int argc, char **argv)
{
	struct err err = {};
	struct topology *topo;
	unsigned int complexes;
	double floor = 0;
	int cpu;

	parse(argc, argv);
	cpu_info_read(&m.info);
	if (pmu_open("", "ibs_op", &m.info, &m.pmu, &err) ||
	    cpulist_read("", "online", &m.online, &err))
		die(err.text);
	m.cpu = calloc(cpulist_count(&m.online), sizeof(*m.cpu));
	if (!m.cpu)
		die("out of memory");
	cpulist_for_each (cpu, &m.online)
		m.cpu[m.n++] = cpu;
	topo = topology_open("", m.cpu[m.n - 1] + 1);
	complexes = topology_n_complexes(topo);
	topology_close(topo);
	starting(1, complexes); /* what the first does for all that follow is not told */
	for (size_t part = brief ? 1 : 4; part; part /= 2)
		if (m.n / part > 1)
			starting(m.n / part, complexes);
	for (size_t v = 0; v < VARIANTS; v++)
		if (!brief || variants[v].brief)
			measure(&variants[v], &floor);
	pmu_close(m.pmu);
	free(m.cpu);
	return 0;
}
