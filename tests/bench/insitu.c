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
#include "filter/filter_options.h"
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
#define REJECTED 0.9 /* share of the samples that a rejection must reject: interrupts take some */

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
struct variant {
	char name[40];
	struct sampler_opts opts;
	enum buffer buffer;
	const struct rejection *rejection; /* or NULL */
	enum ibs_outcome outcome;	   /* of its samples */
};

/* The program that does nothing has a row of its own: the floor. */
static const struct variant floors[] = {
	{ "event, no program", { .prog = SAMPLER_PROG_NONE } },
	{ "empty program", { .prog = SAMPLER_PROG_EMPTY } },
	{ "event, no program, no buffer", .buffer = NONE },
	{ "event, no program, overwritten", .buffer = OVERWRITTEN },
};
#define FLOORS (sizeof(floors) / sizeof(floors[0]))

/* What rejects a sample of the loop, for each outcome that a selection can have. */
static const struct rejection {
	struct selection sel;
	enum filter_option option;
	const char *arg; /* of @option; NULL: only `sel` */
} rejections[IBS_OUTCOME_N] = {
	[IBS_OUTCOME_FILTERED_PID] = { .sel.processes = { .pids = &nobody_pid, .n = 1 } },
	[IBS_OUTCOME_FILTERED_TID] = { .sel.threads = { .pids = &nobody_pid, .n = 1 } },
	[IBS_OUTCOME_FILTERED_COMM] = { .sel = { .comms = nobody_comm, .n_comms = 1 } },
	[IBS_OUTCOME_FILTERED_CGROUP] = { .sel = { .cgroups = &nobody_cgroup, .n_cgroups = 1 } },
	[IBS_OUTCOME_FILTERED_LAT] = { .sel.min_lat = HIGH_LAT },
	[IBS_OUTCOME_FILTERED_OP] = { .sel.op_mask = 1u << 31 },
	[IBS_OUTCOME_FILTERED_SRC] = { .sel.src_mask = 1u << 31 },
	[IBS_OUTCOME_FILTERED_MODE] = { .option = FILTER_OPTION_MODE, .arg = "" },
	[IBS_OUTCOME_FILTERED_TLB] = { .option = FILTER_OPTION_TLB, .arg = "walk" },
	[IBS_OUTCOME_FILTERED_TLB_LAT] = { .option = FILTER_OPTION_TLB_LAT, .arg = "" },
	[IBS_OUTCOME_FILTERED_PAGE_SIZE] = { .option = FILTER_OPTION_PAGE_SIZE, .arg = "1g" },
	[IBS_OUTCOME_FILTERED_RMT_NODE] = { .option = FILTER_OPTION_RMT_NODE, .arg = "yes" },
	[IBS_OUTCOME_FILTERED_ADDR] = { .option = FILTER_OPTION_ADDR, .arg = "1-2" },
	[IBS_OUTCOME_FILTERED_IP] = { .option = FILTER_OPTION_IP, .arg = "1-2" },
	[IBS_OUTCOME_FILTERED_EXPR] = { .option = FILTER_OPTION_EXPR,
					.arg = "tag_to_ret > 65000 && st_op" },
};

static const struct variant others[] = {
	{ "aggregated: by cgroup", { .by = IBS_BY_CGROUP } },
	/* as hist does it: ops are counted, which may be shared with another user of the PMU */
	{ "aggregated: by cgroup, ops", { .by = IBS_BY_CGROUP, .count_ops = true, .tlb = true } },
	{ "aggregated: by cgroup, exposed",
	  { .by = IBS_BY_CGROUP, .count_ops = true, .tlb = true, .exposed = true } },
	{ "aggregated: by cgroup, hot lines",
	  { .by = IBS_BY_CGROUP, .line_sets = IBS_LINE_SETS, .line_feed = IBS_LINE_FEED_SHARING } },
	{ "aggregated: by cgroup, flight",
	  { .by = IBS_BY_CGROUP, .copies = true, .history_bytes = 16 << 20 } },
	/* of serve --push, without and with --stacks */
	{ "copied: by cgroup", { .by = IBS_BY_CGROUP, .copies = true } },
	{ "copied: by cgroup, chains", { .by = IBS_BY_CGROUP, .copies = true, .stacks = true } },
	{ "copied: rejected: latency",
	  { .by = IBS_BY_CGROUP, .copies = true, .sel.min_lat = HIGH_LAT } },
	{ "copied chains: rejected: latency",
	  { .by = IBS_BY_CGROUP, .copies = true, .stacks = true, .sel.min_lat = HIGH_LAT } },
	{ "aggregated: in one", { .by = 0 } },
	{ "aggregated: by pid", { .by = IBS_BY_PID } },
	{ "accesses: by node", { .by = IBS_BY_NODE, ACCESSES } },
	{ "accesses: by node, mem_node",
	  { .by = IBS_BY_NODE | IBS_BY_MEM_NODE, ACCESSES, .memory = eight_nodes, .n_memory = 9 } },
	/* no ring gets full: nobody reads them */
	{ "forwarded", { .output = SAMPLER_RECORDS } },
	{ "forwarded: raw", { .output = SAMPLER_RECORDS_RAW } },
	{ "forwarded: chains", { .output = SAMPLER_RECORDS, .stacks = true } },
	{ "forwarded: chains by copies, 8 KiB",
	  { .output = SAMPLER_RECORDS, .stacks = true, .copy_bytes = IBS_COPY_DEFAULT } },
	{ "chains by copies: rejected: latency",
	  { .output = SAMPLER_RECORDS,
	    .sel.min_lat = HIGH_LAT,
	    .stacks = true,
	    .copy_bytes = IBS_COPY_DEFAULT } },
	{ "chains by copies: rejected: pid",
	  { .output = SAMPLER_RECORDS,
	    .sel.processes = { .pids = &nobody_pid, .n = 1 },
	    .stacks = true,
	    .copy_bytes = IBS_COPY_DEFAULT } },
	{ "records: rejected: latency", { .output = SAMPLER_RECORDS, .sel.min_lat = HIGH_LAT } },
	{ "chains: rejected: latency",
	  { .output = SAMPLER_RECORDS, .sel.min_lat = HIGH_LAT, .stacks = true } },
	{ "records: rejected: pid",
	  { .output = SAMPLER_RECORDS, .sel.processes = { .pids = &nobody_pid, .n = 1 } } },
	{ "chains: rejected: pid",
	  { .output = SAMPLER_RECORDS,
	    .sel.processes = { .pids = &nobody_pid, .n = 1 },
	    .stacks = true } },
	{ "kernel chains: rejected: pid",
	  { .output = SAMPLER_RECORDS,
	    .sel.processes = { .pids = &nobody_pid, .n = 1 },
	    .stacks = true,
	    .kernel_stacks = true } },
	{ "by cgroup, unfolded", { .by = IBS_BY_CGROUP, .unfolded = true } },
	{ "copy: rejected: latency",
	  { .by = IBS_BY_CGROUP, .sel.min_lat = HIGH_LAT, .probe_read = true } },
	{ "copy: aggregated: by cgroup", { .by = IBS_BY_CGROUP, .probe_read = true } },
	{ "copy: by cgroup, ops",
	  { .by = IBS_BY_CGROUP, .probe_read = true, .count_ops = true, .tlb = true } },
	{ "copy: by cgroup, exposed",
	  { .by = IBS_BY_CGROUP,
	    .probe_read = true,
	    .count_ops = true,
	    .tlb = true,
	    .exposed = true } },
	{ "copy: by cgroup, flight",
	  { .by = IBS_BY_CGROUP, .probe_read = true, .copies = true, .history_bytes = 16 << 20 } },
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
#define FETCHES 5 /* the last of them, the floor first */
#define OTHERS	(sizeof(others) / sizeof(others[0]))
#define EMPTY	1 /* of `floors` */

static struct variant variants[FLOORS + IBS_OUTCOME_N + OTHERS];
static size_t n_variants;

static bool add_rejection(enum ibs_outcome outcome, const char *reason)
{
	const struct rejection *how = &rejections[outcome];
	static const struct rejection none;
	struct variant *v = &variants[n_variants++];

	if (!memcmp(how, &none, sizeof(none))) {
		log_error("no selection that rejects by %s: add it to `rejections`", reason);
		return false;
	}
	*v = (struct variant){ .opts = { .by = IBS_BY_CGROUP, .sel = how->sel },
			       .rejection = how,
			       .outcome = outcome };
	snprintf(v->name, sizeof(v->name), "rejected: %s", reason);
	return true;
}

static bool list_variants(void)
{
	bool ok = true;

	for (size_t i = 0; i < FLOORS; i++)
		variants[n_variants++] = floors[i];
#define ADD_REJECTION(name, kind, reason, meaning)                \
	if (IBS_OUTCOME_KIND_##kind == IBS_OUTCOME_KIND_FILTERED) \
		ok &= add_rejection(IBS_OUTCOME_##name, reason);
	IBS_OUTCOME_TABLE(ADD_REJECTION)
#undef ADD_REJECTION
	for (size_t i = 0; i < OTHERS; i++)
		variants[n_variants++] = others[i];
	return ok;
}

static int add_filter(const struct rejection *how, struct filter *filter, struct err *err)
{
	struct filter_options opts = {};
	int ret = 0;

	if (how->option == FILTER_OPTION_MODE)
		opts.kernel = true; /* the loop is in user space */
	else if (how->option == FILTER_OPTION_TLB_LAT)
		opts.min_tlb_lat = HIGH_LAT;
	else
		ret = filter_options_add(&opts, how->option, how->arg, err);
	ret = ret ?: filter_options_compile(&opts, filter, err);
	filter_options_free(&opts);
	return ret;
}

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
	unsigned long long seen, expected; /* with the variant's outcome */
	unsigned long long fed;		   /* to hot lines */
	bool direct;
};

/* One variant once: cost of a sample over the bare loop. */
static int measure(const struct sampler_opts *opts, enum ibs_outcome outcome, double base,
		   int round, int run, struct result *r)
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
	sampler_copy(s, opts->copies);
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
	r->seen += snap.ledger.seen;
	r->expected += snap.ledger.outcome[outcome];
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
	static struct result results[sizeof(variants) / sizeof(variants[0])];
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
	if (!list_variants())
		return 1;
	if (cpulist_bind(cpu, &err) || pmu_open("", "ibs_op", &info, &pmus[0], &err) ||
	    pmu_open("", "ibs_fetch", &info, &pmus[1], &err)) {
		log_error("%s", err.text);
		return 1;
	}
	loop_ns();
	for (int round = 0; round < rounds; round++) {
		quiet_settle();
		base[round] = loop_ns();
		for (size_t v = 0; v < n_variants; v++) {
			struct sampler_opts o = variants[v].opts;
			struct filter filter = {};
			int ret;

			if (!wanted(&variants[v], only))
				continue;
			if (variants[v].rejection && variants[v].rejection->arg) {
				if (add_filter(variants[v].rejection, &filter, &err)) {
					log_error("%s", err.text);
					return 1;
				}
				o.sel.filter = &filter.prog;
			}
			o.attr.size = sizeof(o.attr);
			pmu = pmus[ibs_metric_of_fetch(o.metric)];
			o.attr.type = pmu->type;
			o.attr.sample_period = strtoull(period, NULL, 0);
			o.attr.sample_type =
				PERF_SAMPLE_RAW | (o.kernel_stacks ? PERF_SAMPLE_CALLCHAIN : 0);
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
				ret = measure(&o, variants[v].outcome, base[round], round, v + 1,
					      &results[v]);
			if (ret)
				return 1;
			filter_free(&filter);
		}
	}
	pmu_close(pmus[0]);
	pmu_close(pmus[1]);
	if (!json)
		printf("%-30s %10s %12s %12s\n", "variant", "samples", "per sample", "above empty");
	for (size_t v = 0; v < n_variants; v++) {
		struct result *r = &results[v];
		double cost = loop_median(r->cost, rounds, NULL);
		double floor = loop_median(
			results[v < n_variants - FETCHES ? EMPTY : n_variants - FETCHES].cost,
			rounds, NULL);

		if (!wanted(&variants[v], only))
			continue;
		if (variants[v].rejection && r->expected < r->seen * REJECTED) {
			log_error("%s: only %llu of %llu samples", variants[v].name, r->expected,
				  r->seen);
			return 1;
		}
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
