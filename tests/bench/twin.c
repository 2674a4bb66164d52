// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the BPF program costs by itself, run through its twin, for each outcome of a sample: with hot
 * caches (a loop over the same samples) and with cold ones (one sample after a walk through more memory
 * than the caches hold, as a sampler that runs once in a million ops finds them). Time is above that of
 * the twin's own entry and loop.
 *
 *   bench-twin [--json] [--rounds N] [--walk MIB] [CASE..]
 */
#include "base/err.h"
#include "base/num.h"
#include "base/rlimit.h"
#include "machine/kernel.h"
#include "perf/sample_cost.h"
#include "quiet.h"
#include "sampler/sampler.h"
#include "../bpf/twin_run.h"

#include <ibscope/sim.h>

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPS	   0xbffu	/* Zen 4 */
#define RING_BYTES (128u << 10) /* one for each CPU of the machine */
#define AT_ONCE	   512		/* records that fit */
#define HOT_REPEAT (20 * IBS_TWIN_SAMPLES)
#define ROUNDS_MAX 512
#define WALK_MIN   8 /* MiB */
#define WALK_MAX   256
#define LINE	   64
#define MANY	   1000 /* selected cgroups */
#define NO_KIND	   (1u << 31)
#define FILES	   32 /* that a sampler has, and one a CPU more */

#define LINE_SETS 16 /* of hot lines: room for fewer than there are samples */
#define FEW	  64

/* What samples access. */
enum data {
	DRAWN,	     /* as the model says */
	SLAB,	     /* kernel data in a slab cache */
	HITS,	     /* loads that hit L1, which feed no hot lines */
	STORES_FEW,  /* to lines that the tables have */
	STORES_MANY, /* each to a line that the tables lack */
};

static const __u32 init_pid = 1;
static struct selected_cgroup cgroups[MANY];

static const struct bench_case {
	const char *name;
	struct sampler_opts opts;
	enum ibs_outcome outcome; /* that nearly all samples must have */
	bool copy;		  /* registers copied, as before Linux 6.2 */
	enum data data;
} cases[] = {
	{ "floor" }, /* the loop without a sample */
	{ "rejected-pid",
	  { .by = IBS_BY_CGROUP, .sel.processes = { .pids = &init_pid, .n = 1 } },
	  IBS_OUTCOME_FILTERED_PID },
	{ "rejected-cgroup",
	  { .by = IBS_BY_CGROUP, .sel = { .cgroups = cgroups, .n_cgroups = 1 } },
	  IBS_OUTCOME_FILTERED_CGROUP },
	{ "rejected-cgroup-1000",
	  { .by = IBS_BY_CGROUP, .sel = { .cgroups = cgroups, .n_cgroups = MANY } },
	  IBS_OUTCOME_FILTERED_CGROUP },
	{ "rejected-latency",
	  { .by = IBS_BY_CGROUP, .sel.min_lat = IBS_LAT_MAX },
	  IBS_OUTCOME_FILTERED_LAT },
	{ "rejected-op", { .by = IBS_BY_CGROUP, .sel.op_mask = NO_KIND }, IBS_OUTCOME_FILTERED_OP },
	{ "rejected-src",
	  { .by = IBS_BY_CGROUP, .sel.src_mask = NO_KIND },
	  IBS_OUTCOME_FILTERED_SRC },
	{ "aggregated-one", { .by = 0 }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-cgroup", { .by = IBS_BY_CGROUP }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-pid", { .by = IBS_BY_PID }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-cgroup-comm", { .by = IBS_BY_CGROUP | IBS_BY_COMM }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-mode", { .by = IBS_BY_MODE }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-slab-user", { .by = IBS_BY_SLAB, .slabs = true }, IBS_OUTCOME_AGGREGATED },
	{ "aggregated-slab",
	  { .by = IBS_BY_SLAB, .slabs = true },
	  IBS_OUTCOME_AGGREGATED,
	  .data = SLAB },
	{ "hits", { .by = IBS_BY_CGROUP }, IBS_OUTCOME_AGGREGATED, .data = HITS },
	{ "hits-lines",
	  { .by = IBS_BY_CGROUP, .line_sets = LINE_SETS },
	  IBS_OUTCOME_AGGREGATED,
	  .data = HITS },
	{ "stores", { .by = IBS_BY_CGROUP }, IBS_OUTCOME_AGGREGATED, .data = STORES_FEW },
	{ "stores-lines",
	  { .by = IBS_BY_CGROUP, .line_sets = LINE_SETS },
	  IBS_OUTCOME_AGGREGATED,
	  .data = STORES_FEW },
	{ "stores-new-lines",
	  { .by = IBS_BY_CGROUP, .line_sets = LINE_SETS },
	  IBS_OUTCOME_AGGREGATED,
	  .data = STORES_MANY },
	{ "forwarded", { .output = SAMPLER_RECORDS }, IBS_OUTCOME_FORWARDED },
	{ "forwarded-raw", { .output = SAMPLER_RECORDS_RAW }, IBS_OUTCOME_FORWARDED },
	{ "copy-rejected-latency",
	  { .by = IBS_BY_CGROUP, .sel.min_lat = IBS_LAT_MAX, .probe_read = true },
	  IBS_OUTCOME_FILTERED_LAT,
	  true },
	{ "copy-aggregated-cgroup",
	  { .by = IBS_BY_CGROUP, .probe_read = true },
	  IBS_OUTCOME_AGGREGATED,
	  true },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static struct sampler *samplers[CASES]; /* NULL: not wanted */
static double hot[CASES][ROUNDS_MAX], cold[CASES][ROUNDS_MAX];
static struct err err;

static void check(int ret)
{
	if (!ret)
		return;
	log_error("%s", err.text);
	exit(1);
}

static int ignore(const struct record_batch *batch, void *arg, struct err *e)
{
	(void)batch;
	(void)arg;
	(void)e;
	return 0;
}

static void drain(struct sampler *s)
{
	struct rings *rings = sampler_rings(s);

	if (rings)
		check(rings_drain(rings, UINT64_MAX, ignore, NULL, &err));
}

/* A load from memory that took 300 cycles, as the kernel hands it over. */
static void load_raw(struct sampler *s)
{
	__u32 raw[(IBS_OP_RAW_MIN + 3) / 4] = { CAPS };
	struct twin_raw one = { .raw = raw, .bytes = IBS_OP_RAW_MIN };
	__u64 regs[IBS_OP_REG_FIXED];
	enum ibs_outcome out;

	ibs_sim_op(1, 0, 0, CAPS, regs);
	regs[IBS_OP_DATA2] = 3;
	regs[IBS_OP_DATA3] =
		IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS | 300ULL << 32;
	memcpy(raw + 1, regs, sizeof(regs));
	check(twin_run_raw(s, &one, &out, &err));
}

/* What describes a slab cache is in one itself. */
static int keep_id(const struct ibs_slab *slab, void *arg, struct err *e)
{
	__u64 *id = arg;

	(void)e;
	*id = *id ?: slab->id;
	return 0;
}

static void access_line(__u64 *regs, unsigned int line, bool store)
{
	regs[IBS_OP_DATA3] = (store ? IBS_OP_DATA3_ST_OP : IBS_OP_DATA3_LD_OP) |
			     IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID;
	regs[IBS_DC_LINADDR] = regs[IBS_DC_PHYSADDR] = 0x100000 + line * LINE;
}

static void load(size_t c, unsigned int from, size_t n)
{
	static __u64 regs[IBS_TWIN_SAMPLES][IBS_OP_REG_FIXED];
	const enum data data = cases[c].data;
	__u64 id = 0;

	if (data == SLAB)
		check(sampler_slabs(samplers[c], keep_id, &id, &err));
	for (size_t i = 0; i < n; i++) {
		unsigned int number = from + i;

		ibs_sim_op(1, 0, number, CAPS, regs[i]);
		if (cases[c].opts.slabs)
			regs[i][IBS_OP_DATA3] |= IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID;
		if (id)
			regs[i][IBS_DC_LINADDR] = id;
		if (data >= HITS)
			access_line(regs[i], data == STORES_MANY ? number : number % FEW,
				    data != HITS);
	}
	check(twin_load(samplers[c], (const __u64(*)[IBS_OP_REG_FIXED])regs, n, &err));
}

static void open_case(size_t i)
{
	struct sampler_opts opts = cases[i].opts;

	opts.source = SAMPLER_TWIN;
	opts.ibs.caps = CAPS;
	if (opts.output != SAMPLER_SERIES)
		opts.ring_bytes = RING_BYTES;
	check(sampler_open(&opts, &samplers[i], &err));
	load(i, 0, IBS_TWIN_SAMPLES);
	if (cases[i].copy)
		load_raw(samplers[i]);
}

static enum ibs_twin_mode mode_of(size_t i)
{
	if (!i)
		return IBS_TWIN_FLOOR;
	return cases[i].copy ? IBS_TWIN_RAW : IBS_TWIN_REGS;
}

/* ns a sample */
static double run_hot(size_t i)
{
	__u32 at_once = sampler_rings(samplers[i]) ? AT_ONCE : HOT_REPEAT, done = 0;
	__u64 ns, sum = 0;

	for (; done < HOT_REPEAT; done += at_once) {
		check(twin_loop(samplers[i], mode_of(i), IBS_TWIN_SAMPLES, at_once, &ns, &err));
		sum += ns;
		drain(samplers[i]);
	}
	return (double)sum / done;
}

static double run_cold(size_t i, unsigned int round, volatile char *walk, size_t bytes)
{
	__u64 ns;

	load(i, round, 1);
	for (size_t at = 0; at < bytes; at += LINE)
		walk[at]++;
	check(twin_loop(samplers[i], mode_of(i), 1, 1, &ns, &err));
	drain(samplers[i]);
	return ns;
}

/* A figure of samples that took another path would be a figure of nothing. */
static void check_outcome(size_t i)
{
	struct pmu_state pmu;
	struct ledger l;
	__u64 others;

	check(sampler_ledger(samplers[i], &l, &pmu, &err));
	others = l.seen - l.outcome[cases[i].outcome];
	if (!l.seen || others > l.seen / 100) {
		log_error("%s: %llu of %llu samples had another outcome than '%s'", cases[i].name,
			  others, l.seen, outcome_name(cases[i].outcome));
		exit(1);
	}
}

static double above_floor(double (*v)[ROUNDS_MAX], size_t i, unsigned int rounds, double *spread)
{
	for (unsigned int r = 0; r < rounds; r++)
		v[i][r] -= v[0][r];
	return loop_median(v[i], rounds, spread);
}

static void print_case(size_t i, unsigned int rounds, bool json)
{
	double spread, cold_spread, ns = above_floor(hot, i, rounds, &spread),
				    cold_ns = above_floor(cold, i, rounds, &cold_spread);

	printf(json ? "{\"case\":\"%s\",\"hot_ns\":%.1f,\"hot_spread_ns\":%.1f,\"cold_ns\":%.0f,"
		      "\"cold_spread_ns\":%.0f}\n"
		    : "%-26s %8.1f %8.1f %10.0f %8.0f\n",
	       cases[i].name, ns, spread, cold_ns, cold_spread);
}

/* Twice the caches, as far as they are known; hypervisors report more than one machine has. */
static __u64 default_walk(void)
{
	long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	__u64 mib = (2ULL * ((l2 > 0 ? l2 : 0) + (l3 > 0 ? l3 : 0))) >> 20;

	return mib < WALK_MIN ? WALK_MIN : mib > WALK_MAX ? WALK_MAX : mib;
}

static bool wanted(size_t i, char **names)
{
	if (!i || !*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, cases[i].name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "walk", required_argument, NULL, 'w' },
						 {} };
	const struct num_arg rounds_arg = { .name = "--rounds", .min = 5, .max = ROUNDS_MAX };
	const struct num_arg walk_arg = { .name = "--walk", .unit = "MiB", .min = 1, .max = 4096 };
	uint64_t rounds = 31, mib = default_walk();
	volatile char *walk;
	bool json = false;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (c == '?')
			return 2;
		json |= c == 'j';
		if (c == 'r' && num_parse(&rounds_arg, optarg, &rounds, &err))
			check(-1);
		if (c == 'w' && num_parse(&walk_arg, optarg, &mib, &err))
			check(-1);
	}
	for (unsigned int i = 0; i < MANY; i++)
		cgroups[i].id = 1ULL << 40 | i; /* nobody's */
	rlimit_files((FILES + sysconf(_SC_NPROCESSORS_CONF)) * CASES);
	check(cpulist_bind(sched_getcpu(), &err));
	walk = calloc(1, mib << 20);
	if (!walk)
		check(err_set(&err, -1, "out of memory for a walk of %lu MiB", mib));
	for (size_t i = 0; i < CASES; i++)
		if (wanted(i, argv + optind) && (!cases[i].opts.slabs || kernel_finds_slabs()))
			open_case(i);
	quiet_settle();
	/* the first round warms up */
	for (unsigned int r = 0; r <= rounds; r++)
		for (size_t i = 0; i < CASES; i++)
			if (samplers[i])
				hot[i][r ? r - 1 : 0] = run_hot(i);
	for (unsigned int r = 0; r < rounds; r++)
		for (size_t i = 0; i < CASES; i++)
			if (samplers[i])
				cold[i][r] = run_cold(i, r, walk, mib << 20);
	if (!json)
		printf("ns above an empty loop; cold: after a walk through %lu MiB\n"
		       "%-26s %8s %8s %10s %8s\n",
		       mib, "case", "hot", "+-", "cold", "+-");
	for (size_t i = 1; i < CASES; i++) {
		if (!samplers[i])
			continue;
		check_outcome(i);
		print_case(i, rounds, json);
	}
	for (size_t i = 0; i < CASES; i++)
		sampler_close(samplers[i]);
	free((void *)walk);
	return 0;
}
