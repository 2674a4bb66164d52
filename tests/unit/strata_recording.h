/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings with strata of a machine of which everything is known: ops by time, how many of them come from DRAM,
 * and the latencies of both kinds. The load changes, and the period of the miss stratum follows it.
 */
#ifndef IBSCOPE_TESTS_STRATA_RECORDING_H
#define IBSCOPE_TESTS_STRATA_RECORDING_H

#include "recording/recording.h"
#include "strata/strata.h"

#include <ibscope/sim.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SR_CAPS	  0xbffu /* Zen 4 */
#define SR_PERIOD 1000000
#define SR_POOL	  256
#define SR_BATCH  1024
#define SR_OPS_S  2e9
#define SR_REACH  (1u << IBS_SRC_DRAM | 1u << IBS_SRC_REMOTE_DRAM)

enum sr_kind { SR_DRAM, SR_OTHER, SR_KINDS };

/* Ops of one kind: the machine has as many of each. */
struct sr_pool {
	__u64 regs[SR_POOL][IBS_OP_REG_FIXED];
	double cycles; /* mean, 0 without a valid latency */
};

/* What the machine did while it was sampled, and the samples of each stratum. */
struct sr_truth {
	double ops[SR_KINDS], cycles[SR_KINDS];
	__u64 samples[STRATUM_N];
};

struct sr {
	__u64 state;
	__u64 time;
	struct sr_pool pool[SR_KINDS];
	struct recording *recording;
	struct ibs_record batch[SR_BATCH];
	__u8 strata[SR_BATCH];
	size_t n;
	bool failed;
};

static inline double sr_random(struct sr *s)
{
	return (ibs_sim_mix(s->state++) >> 11) * 0x1p-53;
}

static inline void sr_pools(struct sr *s)
{
	const struct ibs_cpu cpu = { .caps = SR_CAPS };
	size_t n[SR_KINDS] = { 0 };

	for (__u64 i = 0; n[SR_DRAM] < SR_POOL || n[SR_OTHER] < SR_POOL; i++) {
		__u64 regs[IBS_OP_REG_FIXED];
		enum ibs_src src;
		enum sr_kind kind;

		ibs_sim_op(1, 0, i, SR_CAPS, regs);
		src = ibs_op_src(cpu, regs);
		kind = src == IBS_SRC_DRAM ? SR_DRAM : SR_OTHER;
		if (n[kind] == SR_POOL || (kind == SR_OTHER && SR_REACH >> src & 1))
			continue;
		if (ibs_op_metric_valid(IBS_METRIC_DC_MISS_LAT, SR_CAPS, regs[IBS_OP_DATA3]))
			s->pool[kind].cycles +=
				ibs_op_metric(IBS_METRIC_DC_MISS_LAT, regs, regs[IBS_OP_DATA3]) /
				(double)SR_POOL;
		memcpy(s->pool[kind].regs[n[kind]++], regs, sizeof(regs));
	}
}

static inline void sr_flush(struct sr *s)
{
	struct err err;

	recording_strata(s->recording, s->strata);
	s->failed |= s->n && recording_samples(s->recording, s->batch, NULL, s->n, &err);
	s->n = 0;
}

static inline void sr_sample(struct sr *s, enum sr_kind kind, enum stratum of, __u64 time)
{
	const __u64 *regs = s->pool[kind].regs[(size_t)(sr_random(s) * SR_POOL)];

	if (s->n == SR_BATCH)
		sr_flush(s);
	s->strata[s->n] = of;
	s->batch[s->n++] = (struct ibs_record){
		.time = time,
		.cgroup_id = 1,
		.tgid = 100,
		.tid = 100,
		.ip = 0x400000 + (ibs_sim_mix(s->state++) & 0xfff),
		.addr = 0x7f0000000000 + (ibs_sim_mix(s->state++) & 0x1fff),
		.data3 = regs[IBS_OP_DATA3],
		.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], 0),
	};
}

/* How many more ops come from DRAM than usual. */
static double sr_more = 1;

/* The load at a time, which changes within slices of neither stratum. */
static inline double sr_dram_part(__u64 time)
{
	return sr_more * 0.02 * (1 + 0.8 * sin(time / 0.37e9));
}

static inline double sr_ops_s(__u64 time)
{
	return SR_OPS_S * (1 + 0.5 * sin(time / 0.61e9));
}

/* One slice, and what the counters counted in it. */
static inline void sr_slice(struct sr *s, enum stratum of, double seconds, __u64 period,
			    struct sr_truth *truth)
{
	const double ops = sr_ops_s(s->time) * seconds, part = sr_dram_part(s->time);
	const __u64 tags = ops / period + sr_random(s), length = seconds * 1e9;
	struct trace_event ev = { .kind = TRACE_SLICE,
				  .time = s->time,
				  .slice = { .of = of,
					     .start = s->time,
					     .end = s->time + length,
					     .ops = ops,
					     .tags = tags,
					     .period = period } };
	struct err err;

	for (__u64 i = 0; i < tags; i++) {
		const enum sr_kind kind = sr_random(s) < part ? SR_DRAM : SR_OTHER;

		if (of == STRATUM_MISS && kind != SR_DRAM)
			continue;
		sr_sample(s, kind, of, s->time + 1 + i * (length - 1) / tags);
		truth->samples[of]++;
	}
	for (enum sr_kind kind = 0; kind < SR_KINDS; kind++) {
		const double n = ops * (kind == SR_DRAM ? part : 1 - part);

		truth->ops[kind] += n;
		truth->cycles[kind] += n * s->pool[kind].cycles;
	}
	s->failed |= recording_event(s->recording, &ev, &err) != 0;
	s->time += length;
}

/**
 * sr_write() - write a recording
 * @first: stratum of the first slice
 * @ended: with its end, else as if the writer had been killed after the last slice
 *
 * Return: 0, or -1 on failure.
 */
static inline int sr_write(int fd, __u64 seed, unsigned int slices, enum stratum first, bool ended,
			   struct sr_truth *truth)
{
	const struct trace_pmu pmus[STRATUM_N] = {
		{ .name = "ibs_op/cnt_ctl=1/",
		  .op = true,
		  .physical = true,
		  .period = SR_PERIOD,
		  .reach = SR_REACH },
		{ .name = "ibs_op/cnt_ctl=1,l3missonly=1/",
		  .op = true,
		  .physical = true,
		  .filtered = true,
		  .reach = SR_REACH },
	};
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .n_cpus = 1,
				   .realtime_ns = 1700000000000000000,
				   .monotonic_ns = 1,
				   .pmu = pmus,
				   .n_pmus = STRATUM_N,
				   .has_cpu = true };
	struct recording_opts opts = { .fd = fd, .info = &info };
	struct sr *s = calloc(1, sizeof(*s));
	struct ledger ledgers[STRATUM_N] = {};
	enum stratum of = first;
	struct err err;
	bool failed;

	if (!s)
		abort();
	info.realtime_ns += seed; /* not the same recording as another one */
	s->state = seed << 32;
	s->time = 1000;
	sr_pools(s);
	memset(truth, 0, sizeof(*truth));
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, SR_CAPS);
	if (recording_create(&opts, &s->recording, &err))
		return -1;
	for (unsigned int i = 0; i < slices; i++, of = !of) {
		const __u64 period = of == STRATUM_FULL
					     ? SR_PERIOD
					     : strata_period(SR_PERIOD, sr_dram_part(s->time));

		sr_slice(s, of, strata_next_s(of, 0.05, sr_random(s)), period, truth);
		sr_flush(s);
		if (i % 8 == 7)
			s->failed |= recording_flush(s->recording, NULL, &err) != 0;
	}
	for (int i = 0; i < STRATUM_N; i++)
		ledgers[i].seen = ledgers[i].outcome[IBS_OUTCOME_FORWARDED] = truth->samples[i];
	s->failed |= ended ? recording_finish(s->recording, ledgers, &err)
			   : recording_flush(s->recording, NULL, &err);
	recording_close(s->recording);
	failed = s->failed;
	free(s);
	return failed ? -1 : 0;
}

#endif
