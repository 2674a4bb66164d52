// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What can become of a sample, and samplers in which it becomes just that. */
#include "bench.h"

#include <errno.h>
#include <string.h>

#define P BENCH_IN_PROGRAM
#define S BENCH_IN_SITU
#define W BENCH_IN_SAMPLE

/* The first is what the others are compared with. */
const struct bench_case bench_cases[] = {
	{ .name = "empty",
	  .what = "program that does nothing",
	  .in = W | S,
	  .outcome = IBS_OUTCOME_N,
	  .prog = SAMPLER_PROG_EMPTY },
	{ .name = "event",
	  .what = "event alone, no program",
	  .in = W,
	  .outcome = IBS_OUTCOME_N,
	  .prog = SAMPLER_PROG_NONE },
	{ .name = "rejected-pid",
	  .what = "rejected: another process",
	  .in = P | S | W,
	  .outcome = IBS_OUTCOME_FILTERED_PID,
	  .by = IBS_BY_CGROUP,
	  .other_pid = true },
	{ .name = "rejected-cgroup",
	  .what = "rejected: another cgroup",
	  .in = P | S | W,
	  .outcome = IBS_OUTCOME_FILTERED_CGROUP,
	  .by = IBS_BY_CGROUP,
	  .n_cgroups = 1 },
	{ .name = "rejected-cgroup-1000",
	  .what = "rejected: none of 1,000 cgroups",
	  .in = P,
	  .outcome = IBS_OUTCOME_FILTERED_CGROUP,
	  .by = IBS_BY_CGROUP,
	  .n_cgroups = 1000 },
	{ .name = "rejected-latency",
	  .what = "rejected: latency too low",
	  .in = P | S | W,
	  .outcome = IBS_OUTCOME_FILTERED_LAT,
	  .by = IBS_BY_CGROUP,
	  .high_lat = true },
	{ .name = "rejected-op",
	  .what = "rejected: kind of op",
	  .in = P | S,
	  .outcome = IBS_OUTCOME_FILTERED_OP,
	  .by = IBS_BY_CGROUP,
	  .no_op = true },
	{ .name = "rejected-src",
	  .what = "rejected: data source",
	  .in = P | S,
	  .outcome = IBS_OUTCOME_FILTERED_SRC,
	  .by = IBS_BY_CGROUP,
	  .no_src = true },
	{ .name = "aggregated-one",
	  .what = "aggregated: all in one group",
	  .in = P | S,
	  .outcome = IBS_OUTCOME_AGGREGATED },
	{ .name = "aggregated",
	  .what = "aggregated: by cgroup",
	  .in = P | S | W,
	  .outcome = IBS_OUTCOME_AGGREGATED,
	  .by = IBS_BY_CGROUP },
	{ .name = "aggregated-pid",
	  .what = "aggregated: by process",
	  .in = P | S,
	  .outcome = IBS_OUTCOME_AGGREGATED,
	  .by = IBS_BY_PID },
	{ .name = "aggregated-cgroup-comm",
	  .what = "aggregated: by cgroup and name",
	  .in = P,
	  .outcome = IBS_OUTCOME_AGGREGATED,
	  .by = IBS_BY_CGROUP | IBS_BY_COMM },
	{ .name = "forwarded",
	  .what = "forwarded: packed record",
	  .in = P | S | W,
	  .outcome = IBS_OUTCOME_FORWARDED,
	  .output = SAMPLER_RECORDS },
	{ .name = "forwarded-raw",
	  .what = "forwarded: record with all registers",
	  .in = P | S,
	  .outcome = IBS_OUTCOME_FORWARDED,
	  .output = SAMPLER_RECORDS_RAW },
	{ .name = "copy-rejected-latency",
	  .what = "rejected: latency too low; registers copied, as before Linux 6.2",
	  .in = P,
	  .outcome = IBS_OUTCOME_FILTERED_LAT,
	  .by = IBS_BY_CGROUP,
	  .high_lat = true,
	  .copy = true },
	{ .name = "copy-aggregated",
	  .what = "aggregated: by cgroup; registers copied, as before Linux 6.2",
	  .in = P,
	  .outcome = IBS_OUTCOME_AGGREGATED,
	  .by = IBS_BY_CGROUP,
	  .copy = true },
};
const size_t bench_n_cases = sizeof(bench_cases) / sizeof(bench_cases[0]);

#define NO_KIND	     (1u << 31)
#define CGROUPS	     1000
#define GROUPS	     128	 /* many samplers are open at once */
#define RING_BYTES   (16u << 20) /* for all that the longest measurement forwards */
#define SHARE_OTHERS 100	 /* one sample in so many may come to something else */

void bench_case_opts(const struct bench *b, const struct bench_case *c, struct sampler_opts *out)
{
	static struct selected_cgroup cgroups[CGROUPS];
	static const __u32 init = 1;

	for (unsigned int i = 0; i < CGROUPS; i++)
		cgroups[i].id = 1ULL << 40 | i; /* nobody's */
	*out = (struct sampler_opts){
		.prog = c->prog,
		.output = c->output,
		.by = c->by,
		.ibs = b->ibs,
		.event = b->event,
		.sim_seed = 1,
		.probe_read = c->copy,
		.max_groups = GROUPS,
		.sel = { .processes = { .pids = &init, .n = c->other_pid },
			 .op_mask = c->no_op ? NO_KIND : 0,
			 .src_mask = c->no_src ? NO_KIND : 0,
			 .min_lat = c->high_lat ? IBS_LAT_MAX : 0,
			 .cgroups = cgroups,
			 .n_cgroups = c->n_cgroups },
	};
	if (c->output != SAMPLER_SERIES)
		out->ring_bytes = RING_BYTES;
}

int bench_case_open(const struct bench *b, const struct bench_case *c, __u64 period,
		    struct sampler **out, struct err *err)
{
	struct sampler_opts opts;

	bench_case_opts(b, c, &opts);
	opts.source = b->source;
	opts.attr = b->attr;
	opts.attr.sample_period = period;
	opts.cpus = &b->cpu;
	opts.n_cpus = 1;
	return sampler_open(&opts, out, err);
}

int bench_case_check(const struct bench_case *c, struct sampler *s, struct err *err)
{
	struct ledger ledger;
	struct pmu_state pmu;
	__u64 others;
	int ret;

	if (c->outcome == IBS_OUTCOME_N)
		return 0;
	ret = sampler_ledger(s, &ledger, &pmu, err);
	if (ret)
		return ret;
	if (!ledger.seen)
		return err_set(err, -ENODATA, "there was no sample");
	if (ledger.outcome[IBS_OUTCOME_LOST_RING_FULL])
		return err_set(err, -ENOSPC, "%llu of %llu records found no room",
			       ledger.outcome[IBS_OUTCOME_LOST_RING_FULL], ledger.seen);
	others = ledger.seen - ledger.outcome[c->outcome];
	if (others > ledger.seen / SHARE_OTHERS)
		return err_set(err, -ENODATA, "%llu of %llu samples did not come to '%s'", others,
			       ledger.seen, outcome_name(c->outcome));
	return 0;
}
