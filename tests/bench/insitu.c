// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a sample costs where it is taken: a calibrated loop is timed without sampling and with each
 * variant of the program on ibs_op, or ibs_fetch, on one CPU; the time that sampling adds, divided by the samples,
 * is the cost of one. On the rig with --icount a nanosecond is an instruction, so the figures are
 * instructions and repeat.
 *
 *   bench-insitu [--json] [--only TEXT,..] [--once LOOPS] [--hook COMMAND] [PERIOD]
 *
 * --only: the variants whose names contain a TEXT, and those that begin with "event" or "empty".
 * --once: a single round, of loops so long. --hook: run by the shell with the number of each variant
 * as its argument while that is loaded, before it samples.
 */
#include "base/clock.h"
#include "event/cpu.h"
#include "filter/filter.h"
#include "perf/sample_cost.h"
#include "event/event.h"
#include "quiet.h"
#include "sampler/sampler.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS	 3
#define LOOPS	 30000000UL
#define NOBODY	 0x3fffff /* a cgroup id that nobody has */
#define HIGH_LAT 65000

static const struct selected_cgroup nobody_cgroup = { .id = NOBODY };
static const __u32 nobody_pid = 32000; /* small enough for any kernel.pid_max */
static const char *const nobody_comm[] = { "nobody" };

/* Of an event without a program: its ring buffer. */
enum buffer {
	SAMPLERS, /* what the sampler has for notices of the kernel; it gets full */
	NONE,
	OVERWRITTEN, /* for ever, as with `perf record --overwrite`; what perf asks for of a sample */
};

#define GIB 0x40000000ull
static const struct memory_range eight_nodes[] = {
	{ 0, 3 * GIB, 0 },	     { 4 * GIB, 65 * GIB, 0 },	  { 65 * GIB, 129 * GIB, 1 },
	{ 129 * GIB, 193 * GIB, 2 }, { 193 * GIB, 257 * GIB, 3 }, { 257 * GIB, 321 * GIB, 4 },
	{ 321 * GIB, 385 * GIB, 5 }, { 385 * GIB, 449 * GIB, 6 }, { 449 * GIB, 513 * GIB, 7 },
};

#define FETCH	 .metric = IBS_METRIC_FETCH_LAT
#define ACCESSES .sel.op_mask = 1u << IBS_OP_KIND_LOAD | 1u << IBS_OP_KIND_STORE
static const struct variant {
	const char *name;
	struct sampler_opts opts;
	const char *filter; /* NULL: none */
	enum buffer buffer;
} variants[] = {
	{ "event, no program", { .prog = SAMPLER_PROG_NONE } },
	{ "empty program", { .prog = SAMPLER_PROG_EMPTY } },
	{ "event, no program, no buffer", .buffer = NONE },
	{ "event, no program, overwritten", .buffer = OVERWRITTEN },
	{ "rejected: pid",
	  { .by = IBS_BY_CGROUP, .sel.processes = { .pids = &nobody_pid, .n = 1 } } },
	{ "rejected: cgroup",
	  { .by = IBS_BY_CGROUP, .sel.cgroups = &nobody_cgroup, .sel.n_cgroups = 1 } },
	{ "rejected: comm",
	  { .by = IBS_BY_CGROUP, .sel.comms = nobody_comm, .sel.n_comms = 1 } },
	{ "rejected: latency", { .by = IBS_BY_CGROUP, .sel.min_lat = HIGH_LAT } },
	{ "rejected: op", { .by = IBS_BY_CGROUP, .sel.op_mask = 1u << 31 } },
	{ "rejected: src", { .by = IBS_BY_CGROUP, .sel.src_mask = 1u << 31 } },
	{ "rejected: user or kernel", { .by = IBS_BY_CGROUP }, "kernel, user" },
	{ "rejected: tlb latency", { .by = IBS_BY_CGROUP }, "tlb_refill_lat > 65000" },
	{ "rejected: addr", { .by = IBS_BY_CGROUP }, "addr >= 0x1 && addr < 0x2" },
	{ "aggregated: by cgroup", { .by = IBS_BY_CGROUP } },
	{ "aggregated: by cgroup, hot lines",
	  { .by = IBS_BY_CGROUP, .line_sets = IBS_LINE_SETS, .line_feed = IBS_LINE_FEED_SHARING } },
	{ "aggregated: in one", { .by = 0 } },
	{ "aggregated: by pid", { .by = IBS_BY_PID } },
	{ "accesses: by node", { .by = IBS_BY_NODE, ACCESSES } },
	{ "accesses: by node, mem_node",
	  { .by = IBS_BY_NODE | IBS_BY_MEM_NODE, ACCESSES, .memory = eight_nodes, .n_memory = 9 } },
	/* no ring gets full: nobody reads them */
	{ "forwarded", { .output = SAMPLER_RECORDS } },
	{ "forwarded: raw", { .output = SAMPLER_RECORDS_RAW } },
	{ "by cgroup, unfolded", { .by = IBS_BY_CGROUP, .unfolded = true } },
	{ "copy: rejected: latency",
	  { .by = IBS_BY_CGROUP, .sel.min_lat = HIGH_LAT, .probe_read = true } },
	{ "copy: aggregated: by cgroup", { .by = IBS_BY_CGROUP, .probe_read = true } },
	{ "copy: by cgroup, hot lines",
	  { .by = IBS_BY_CGROUP,
	    .probe_read = true,
	    .line_sets = IBS_LINE_SETS,
	    .line_feed = IBS_LINE_FEED_SHARING } },
	{ "copy: forwarded", { .output = SAMPLER_RECORDS, .probe_read = true } },
	{ "fetch: empty program", { .prog = SAMPLER_PROG_EMPTY, FETCH } },
	{ "fetch: rejected: cgroup",
	  { .by = IBS_BY_CGROUP, .sel.cgroups = &nobody_cgroup, .sel.n_cgroups = 1, FETCH } },
	{ "fetch: rejected: latency", { .by = IBS_BY_CGROUP, .sel.min_lat = HIGH_LAT, FETCH } },
	{ "fetch: aggregated: by cgroup", { .by = IBS_BY_CGROUP, FETCH } },
	{ "fetch: forwarded", { .output = SAMPLER_RECORDS, FETCH } },
};
#define FETCHES	 5 /* the last of them, the floor first */
#define VARIANTS (sizeof(variants) / sizeof(variants[0]))
#define EMPTY	 1 /* the floor */

static volatile unsigned long sink;
static unsigned long loops = LOOPS;
static const char *hook;

/* Tells tests/vm/rig/lines-plugin.c that samples of run @run follow; 0: of none. */
static void mark(unsigned int run)
{
	static const char runs[4096] __attribute__((aligned(4096)));

	asm volatile("testb $0x5a, 0x69627369(%0)" ::"a"((uintptr_t)runs + run - 0x69627369)
		     : "cc", "memory");
}

static int run_hook(int run)
{
	char *command;
	int ret;

	if (!hook)
		return 0;
	if (asprintf(&command, "%s %d", hook, run) < 0)
		return -1;
	fflush(stdout);
	ret = system(command);
	free(command);
	return ret;
}

static double loop_ns(void)
{
	__u64 start = clock_ns(CLOCK_MONOTONIC);

	for (unsigned long i = 0; i < loops; i++)
		sink += 1;
	return clock_ns(CLOCK_MONOTONIC) - start;
}

struct result {
	double cost[ROUNDS];
	unsigned long long samples, aggregated;
	unsigned long long fed; /* to hot lines */
	bool direct;
};

/* One variant once: cost of a sample over the bare loop. */
static int measure(const struct sampler_opts *opts, double base, int round, int run,
		   struct result *r)
{
	struct err err = { "" };
	struct snapshot snap;
	struct sampler *s;
	double t;

	if (sampler_open(opts, &s, &err)) {
		log_error("%s", err.text);
		return -1;
	}
	if (run_hook(run)) {
		sampler_close(s);
		return -1;
	}
	quiet_settle();
	if (sampler_start(s, &err)) {
		log_error("%s", err.text);
		sampler_close(s);
		return -1;
	}
	mark(run);
	t = loop_ns();
	mark(0);
	sampler_stop(s);
	r->direct = sampler_reads_direct(s);
	if (sampler_snapshot(s, &snap, &err)) {
		log_error("%s", err.text);
		sampler_close(s);
		return -1;
	}
	r->cost[round] = (t - base) / (snap.ledger.pmu_samples ? snap.ledger.pmu_samples : 1);
	r->samples += snap.ledger.pmu_samples;
	if (opts->line_sets)
		r->fed += sampler_lines(s, 0, true)->fed;
	r->aggregated += snap.ledger.outcome[IBS_OUTCOME_AGGREGATED];
	if (snap.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL])
		log_warn("%llu records found no room: the figure is of less than it says",
			 snap.ledger.outcome[IBS_OUTCOME_LOST_RING_FULL]);
	snapshot_free(&snap);
	sampler_close(s);
	return 0;
}

#define BUFFER_PAGES 128

static int open_bare(struct perf_event_attr attr, enum buffer buffer)
{
	size_t bytes = (1 + BUFFER_PAGES) * sysconf(_SC_PAGESIZE);
	int fd;

	attr.disabled = 1;
	if (buffer == OVERWRITTEN)
		attr.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	/* one that is not writable is overwritten; the mapping ends with the program */
	if (fd >= 0 && buffer == OVERWRITTEN &&
	    mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) {
		close(fd);
		return -1;
	}
	return fd;
}

static int measure_bare(const struct perf_event_attr *attr, enum buffer buffer, double base,
			int round, int run, struct result *r)
{
	int fd = open_bare(*attr, buffer);
	__u64 values[3]; /* count, times */
	double t;

	quiet_settle();
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		goto fail;
	mark(run);
	t = loop_ns();
	mark(0);
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) || read(fd, values, sizeof(values)) < 8)
		goto fail;
	close(fd);
	values[0] /= attr->sample_period;
	r->cost[round] = (t - base) / (values[0] ? values[0] : 1);
	r->samples += values[0];
	return 0;
fail:
	perror("bench-insitu: the event");
	return -1;
}

static bool wanted(const struct variant *v, const char *only)
{
	char text[64];
	int n;

	if (!only || v->name[0] == 'e' || v->opts.prog == SAMPLER_PROG_EMPTY)
		return true;
	for (; sscanf(only, "%63[^,]%n", text, &n) == 1; only += n + (only[n] == ',')) {
		if (strstr(v->name, text))
			return true;
	}
	return false;
}

static const char *fed_text(const struct result *r)
{
	static char text[64];

	snprintf(text, sizeof(text), "  %llu of them fed hot lines", r->fed);
	return text;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "only", required_argument, NULL, 'o' },
						 { "once", required_argument, NULL, '1' },
						 { "hook", required_argument, NULL, 'h' },
						 {} };
	const char *period = "100000", *only = NULL;
	bool json = false;
	int rounds = ROUNDS;
	static struct result results[VARIANTS];
	unsigned int cpu = 0;
	struct cpu_info info;
	struct err err = { "" };
	double base[ROUNDS];
	struct pmu *pmu, *pmus[2]; /* ibs_op, ibs_fetch */

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (c == '?')
			return 2;
		json |= c == 'j';
		only = c == 'o' ? optarg : only;
		hook = c == 'h' ? optarg : hook;
		if (c == '1') {
			rounds = 1;
			loops = strtoul(optarg, NULL, 0);
		}
	}
	if (optind < argc)
		period = argv[optind];
	cpu_info_read(&info);
	if (quiet_bind(cpu, &err) || pmu_open("", "ibs_op", &info, &pmus[0], &err) ||
	    pmu_open("", "ibs_fetch", &info, &pmus[1], &err)) {
		log_error("%s", err.text);
		return 1;
	}
	loop_ns();
	for (int round = 0; round < rounds; round++) {
		quiet_settle();
		base[round] = loop_ns();
		for (size_t v = 0; v < VARIANTS; v++) {
			struct sampler_opts o = variants[v].opts;
			struct filter filter = {};
			int ret;

			if (!wanted(&variants[v], only))
				continue;
			if (variants[v].filter && filter_parse(variants[v].filter, &filter, &err)) {
				log_error("%s", err.text);
				return 1;
			}
			if (filter.text)
				o.sel.filter = &filter.prog;
			o.attr.size = sizeof(o.attr);
			pmu = pmus[ibs_metric_of_fetch(o.metric)];
			o.attr.type = pmu->type;
			o.attr.sample_period = strtoull(period, NULL, 0);
			o.attr.sample_type = PERF_SAMPLE_RAW;
			o.attr.read_format =
				PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
			o.event = "ibs_op//";
			o.cpus = &cpu;
			o.n_cpus = 1;
			o.ibs = (struct ibs_cpu){ .caps = info.caps, .quirks = info.quirks };
			if (variants[v].buffer)
				ret = measure_bare(&o.attr, variants[v].buffer, base[round], round,
						   v + 1, &results[v]);
			else
				ret = measure(&o, base[round], round, v + 1, &results[v]);
			if (ret)
				return 1;
			filter_free(&filter);
		}
	}
	pmu_close(pmus[0]);
	pmu_close(pmus[1]);
	if (!json)
		printf("%-30s %10s %12s %12s\n", "variant", "samples", "per sample", "above empty");
	for (size_t v = 0; v < VARIANTS; v++) {
		struct result *r = &results[v];
		double cost = loop_median(r->cost, rounds, NULL);
		double floor = loop_median(
			results[v < VARIANTS - FETCHES ? EMPTY : VARIANTS - FETCHES].cost, rounds,
			NULL);

		if (!wanted(&variants[v], only))
			continue;
		if (json)
			printf("{\"variant\":\"%s\",\"run\":%zu,\"samples\":%llu,\"aggregated\":%"
			       "llu,"
			       "\"fed\":%llu,\"direct\":%s,"
			       "\"per_sample\":%.1f,\"above_empty\":%.1f}\n",
			       variants[v].name, v + 1, r->samples, r->aggregated, r->fed,
			       r->direct ? "true" : "false", cost, cost - floor);
		else
			printf("%-30s %10llu %12.1f %12.1f%s\n", variants[v].name, r->samples, cost,
			       cost - floor, r->fed ? fed_text(r) : "");
	}
	return 0;
}
