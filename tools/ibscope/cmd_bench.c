// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope bench: what samples and readings cost on this machine, in one report. */
#include "bench.h"
#include "bench_clock.h"
#include "cmd.h"
#include "options.h"

#include "cpulist.h"
#include "num.h"
#include "pmu.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The processor that the simulation models: Zen 4, no errata. */
#define SIM_CAPS 0xbffu

#define NICE -10 /* other processes disturb the loop */

enum need {
	NEED_EVENT = 1 << 0, /* one to sample with */
};

static const struct measurement {
	const char *name;
	unsigned int needs; /* enum need */
	enum bench_from from;
	bench_fn *run;
	const char *help;
} measurements[] = {
	{ "program", 0, BENCH_FROM_TWIN, bench_program,
	  "the program by itself, for each end of a sample, caches hot" },
	{ "cold", 0, BENCH_FROM_TWIN, bench_cold, "the same with caches cold" },
	{ "instructions", 0, BENCH_FROM_TWIN, bench_instructions,
	  "the same in instructions, where the processor counts them" },
	{ "situ", NEED_EVENT, BENCH_FROM_EVENT, bench_situ,
	  "the program where the kernel runs it, by the kernel's clock" },
	{ "sample", NEED_EVENT, BENCH_FROM_EVENT, bench_sample,
	  "the whole of a sample, by what a busy loop loses" },
	{ "peer", NEED_EVENT, BENCH_FROM_EVENT, bench_peers,
	  "perf beside ibscope, by the same loop, with readers" },
	{ "bpftrace", NEED_EVENT, BENCH_FROM_EVENT, bench_bpftrace, "bpftrace, by the same loop" },
	{ "ratio", NEED_EVENT, BENCH_FROM_EVENT, bench_ratios,
	  "of what 'peer' measured, in terms of each other" },
	{ "rings", 0, BENCH_FROM_TWIN, bench_rings, "records: the reader's time and speed" },
	{ "snapshot", 0, BENCH_FROM_TWIN, bench_snapshot, "reading the counters" },
	{ "scrape", 0, BENCH_FROM_TWIN, bench_scrape, "serving them to Prometheus" },
	{ "memory", 0, BENCH_FROM_COMPUTED, bench_memory, "kernel memory, by options" },
};
#define MEASUREMENTS (sizeof(measurements) / sizeof(measurements[0]))

enum source { AUTO, IBS, SIM };

struct options {
	bool json, quick, instructions, has_cpu;
	enum source source;
	unsigned int only; /* 1 << number in the table; 0: all */
	uint64_t cpu;
};

static int set_source(void *ctx, const char *arg, struct err *err)
{
	static const char *const names[] = { [AUTO] = "auto", [IBS] = "ibs", [SIM] = "sim" };
	struct options *o = ctx;

	for (int i = AUTO; i <= SIM; i++) {
		if (!strcmp(arg, names[i])) {
			o->source = i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "--source: '%s' is not one of auto, ibs, sim", arg);
}

static int add_only(struct options *o, const char *name, size_t len, struct err *err)
{
	char known[256] = "";

	for (size_t i = 0; i < MEASUREMENTS; i++) {
		if (strlen(measurements[i].name) == len &&
		    !strncmp(name, measurements[i].name, len)) {
			o->only |= 1u << i;
			return 0;
		}
		strcat(known, i ? ", " : "");
		strcat(known, measurements[i].name);
	}
	return err_set(err, -EINVAL, "--only: '%.*s' is not one of %s", (int)len, name, known);
}

static int set_only(void *ctx, const char *arg, struct err *err)
{
	int ret = 0;

	for (const char *name = arg; !ret && name; name = strchr(name, ',')) {
		name += name != arg;
		ret = add_only(ctx, name, strcspn(name, ","), err);
	}
	return ret;
}

static int set_cpu(void *ctx, const char *arg, struct err *err)
{
	const struct num_arg what = { .name = "-C", .max = CPULIST_MAX - 1 };
	struct options *o = ctx;

	o->has_cpu = true;
	return num_parse(&what, arg, &o->cpu, err);
}

static const struct option_row rows[] = {
	{ "only", 0, "NAME,..", "these measurements only", set_only },
	{ "quick", 0, NULL, "in less than a minute, with wider spreads",
	  OPTION_FLAG(struct options, quick) },
	{ "source", 0, "auto|ibs|sim",
	  "what is sampled; auto: ibs_op, where there is none the software clock", set_source },
	{ "cpu", 'C', "CPU", "that is sampled; default: the last one that we may use", set_cpu },
	{ "instructions", 0, NULL,
	  "fail unless the clock counts instructions, as qemu's does with -icount",
	  OPTION_FLAG(struct options, instructions) },
	{ "json", 0, NULL, "one JSON object at the end", OPTION_FLAG(struct options, json) },
};

static void usage(FILE *f, const struct option_set *set)
{
	fprintf(f, "usage: ibscope bench [options]\n\n"
		   "Measure what samples and readings cost on this machine, with perf and bpftrace "
		   "beside it where\nthey are installed. What cannot be had is listed with the "
		   "reason.\n\nMeasurements:\n");
	for (size_t i = 0; i < MEASUREMENTS; i++)
		fprintf(f, "  %-14s %s\n", measurements[i].name, measurements[i].help);
	options_help(f, set, 1);
	fprintf(f, "\nExit status: 0 done, also if some figures cannot be had; 1 failed or "
		   "interrupted, 2 wrong\nusage.\n");
}

static void interrupt(int sig)
{
	(void)sig;
	bench_stop = 1;
}

/* No SA_RESTART: what waits is to notice. */
static void catch_signals(void)
{
	const struct sigaction act = { .sa_handler = interrupt };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGPIPE, &ignore, NULL); /* perf that ended, or a reader of the report */
}

/* The CPU that is sampled, and another one for all else. */
static int choose_cpus(struct bench *b, const struct options *o, unsigned int *online_n,
		       struct err *err)
{
	size_t bytes = CPU_ALLOC_SIZE(CPULIST_MAX);
	cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
	struct cpulist online, ours = {};
	int cpu, ret = cpulist_read("", "online", &online, err);

	if (!ret && (!set || sched_getaffinity(0, bytes, set)))
		ret = err_set(err, -errno, "cannot tell the CPUs we may use: %s", strerror(errno));
	if (!ret)
		cpulist_for_each (cpu, &online)
			if (CPU_ISSET_S(cpu, bytes, set))
				cpulist_add(&ours, cpu);
	CPU_FREE(set);
	if (ret)
		return ret;
	if (o->has_cpu && !cpulist_has(&ours, o->cpu))
		return err_set(err, -EINVAL, "-C: cpu %u is not online, or not ours to use",
			       (unsigned int)o->cpu);
	*online_n = cpulist_count(&online);
	cpulist_for_each (cpu, &ours)
		b->cpu = cpu;
	if (o->has_cpu)
		b->cpu = o->cpu;
	b->reader_cpu = b->cpu;
	cpulist_for_each (cpu, &ours)
		if ((unsigned int)cpu != b->cpu)
			b->reader_cpu = cpu;
	return quiet_bind(b->cpu, err);
}

static int use_ibs(struct bench *b, struct err *err)
{
	struct event_spec spec;
	struct pmu *pmu;
	int ret = pmu_open("", "ibs_op", &b->cpu_info, &pmu, err);

	if (ret)
		return ret;
	event_parse(EVENT_DEFAULT, &spec, NULL);
	event_print(&spec, b->event, sizeof(b->event));
	ret = event_attr(&spec, pmu, &b->cpu_info, NULL, &b->attr, err);
	pmu_close(pmu);
	b->source = SAMPLER_IBS;
	b->ibs = (struct ibs_cpu){ .caps = b->cpu_info.caps, .quirks = b->cpu_info.quirks };
	return ret;
}

static void use_clock(struct bench *b)
{
	b->source = SAMPLER_SIM;
	b->ibs = (struct ibs_cpu){ .caps = SIM_CAPS };
	b->attr = (struct perf_event_attr){
		.size = sizeof(b->attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	strcpy(b->event, "cpu-clock");
}

/* An IBS that is there and does not work is an error: figures of the clock are no figures of it. */
static int choose_source(struct bench *b, enum source source, struct err *err)
{
	int ret = source == SIM ? -ENODEV : use_ibs(b, err);

	if (!ret || source == IBS)
		return ret;
	if (ret != -ENODEV && ret != -ENOENT)
		return ret;
	use_clock(b);
	return 0;
}

static int run(struct bench *b, const struct options *o, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; i < MEASUREMENTS && ret != -EINTR; i++) {
		const struct measurement *m = &measurements[i];
		struct err why = { "" };

		if (o->only && !(o->only & 1u << i))
			continue;
		bench_report_section(b, m->name, m->help);
		ret = m->run(b, &why);
		if (ret)
			bench_missing(b, m->name, m->help, m->from, "%s", why.text);
	}
	return bench_report_end(b, ret == -EINTR, err) ?: ret == -EINTR ? -EINTR : 0;
}

int cmd_bench(int argc, char **argv)
{
	struct options o = {};
	const struct option_set set = { "Options", rows, sizeof(rows) / sizeof(rows[0]), &o };
	struct bench b = { .unit = "ns" };
	struct err err = { "" };
	unsigned int cpus = 0;
	int ret = options_parse(argc, argv, &set, 1, &err);

	if (ret == OPTIONS_HELP) {
		usage(stdout, &set);
		return EXIT_DONE;
	}
	if (!ret && optind < argc)
		ret = err_set(&err, -EINVAL, "'%s': no arguments are expected; see --help",
			      argv[optind]);
	if (ret) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	catch_signals();
	setpriority(PRIO_PROCESS, 0, NICE); /* and what it starts: as far as privileges go */
	b.quick = o.quick;
	cpu_info_read(&b.cpu_info);
	ret = choose_cpus(&b, &o, &cpus, &err);
	if (ret == -EINVAL) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	b.instructions = !ret && bench_clock_counts_instructions();
	if (b.instructions)
		b.unit = "instructions";
	if (!ret && o.instructions && !b.instructions)
		ret = err_set(&err, -EOPNOTSUPP,
			      "--instructions: the clock of this machine does not count "
			      "instructions; that of tests/vm/rig/run.sh --icount does");
	ret = ret ?: choose_source(&b, o.source, &err);
	b.report = bench_report_new(o.json);
	if (!ret && !b.report)
		ret = err_set(&err, -ENOMEM, "out of memory");
	if (!ret) {
		bench_report_begin(&b, cpus);
		ret = run(&b, &o, &err);
	}
	if (ret && ret != -EINTR)
		log_error("%s", err.text);
	bench_report_free(b.report);
	return ret ? EXIT_FAILED : EXIT_DONE;
}
