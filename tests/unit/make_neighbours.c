// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_neighbours FILE coupled|quiet|short SEED [NAME]: simulated samples of containers on two L3s. On the second one
 * "batch" slows "web" while it is busy (coupled); "report" shares the schedule of web or of batch.
 * NAME: that of web.
 */
#include "recording/recording.h"
#include "neighbour_streams.h"

#include <fcntl.h>
#include <ibscope/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CAPS	 0xbffu /* Zen 4 */
#define CPUS	 16
#define START_NS 1000000000ull

static const char *name[STREAM_CONTAINERS] = { "web",	"batch",  "etl",   "report",
					       "moody", "fickle", "guest", "idle" };

static int write_names(struct recording *r, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < STREAM_CONTAINERS; i++) {
		char path[128];
		struct trace_event cgroup = { .kind = TRACE_CGROUP,
					      .cgroup = { i + 1, path, name[i], "", "" } };

		snprintf(path, sizeof(path), "/system.slice/docker-%064x.scope", i + 1);
		ret = recording_event(r, &cgroup, err);
	}
	return ret;
}

/* Registers of a load that DRAM answered. */
static void load(__u64 regs[])
{
	const struct ibs_cpu cpu = { CAPS, ibs_quirks(0x19, 0x11) };

	for (__u64 i = 0;; i++) {
		ibs_sim_op(1, 0, i, CAPS, regs);
		if (ibs_op_src(cpu, regs) == IBS_SRC_DRAM &&
		    regs[IBS_OP_DATA3] & IBS_OP_DATA3_LD_OP)
			return;
	}
}

static int write_window(struct recording *r, struct stream_complex *s, const __u64 *regs,
			unsigned int window, __u64 *samples, struct err *err)
{
	unsigned int left[STREAM_CONTAINERS], total = 0, done = 0;
	double mean[STREAM_CONTAINERS];

	for (unsigned int i = 0; i < s->n; i++) {
		left[i] = stream_samples(s, i, &mean[i]);
		total += left[i];
	}
	*samples += total;
	for (unsigned int k = 0; done < total; k++) {
		const unsigned int i = k % s->n;
		struct ibs_record rec = { .cgroup_id = i + 1, .tgid = 100 + i, .tid = 100 + i };
		int ret;

		if (!left[i])
			continue;
		left[i]--;
		rec.time = START_NS + window * 1000000000ull + done++ * (999999999ull / total);
		rec.data3 =
			(regs[IBS_OP_DATA3] & ~(0xffffull << 32)) |
			(__u64)fmin(65535, stream_sum(&s->random, 1, mean[i], s->c[i].dispersion))
				<< 32;
		rec.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], CPUS / 2 + i);
		ret = recording_samples(r, &rec, NULL, 1, err);
		if (ret)
			return ret;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/",
					      .op = true,
					      .period = 1000000 };
	static struct trace_topology topology = { .n = CPUS };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = &pmu,
				   .n_pmus = 1,
				   .topology = &topology,
				   .monotonic_ns = START_NS,
				   .realtime_ns = 1766318400000000000ull };
	struct recording_opts opts = { .info = &info, .compress = true };
	struct ledger ledger = { 0 };
	struct stream_complex s;
	__u64 regs[IBS_OP_REG_FIXED];
	struct recording *r;
	struct err err = { "" };
	unsigned int windows;
	int ret;

	if (argc != 4 && argc != 5)
		return 2;
	name[0] = argv[4] ?: name[0];
	windows = *argv[2] == 's' ? 5 : 100;
	for (unsigned int c = 0; c < CPUS; c++)
		topology.ccx[c] = c / (CPUS / 2);
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	if (*argv[2] == 'c')
		stream_coupled(&s, strtoul(argv[3], NULL, 10), 1, 300, 1.5, 30);
	else
		stream_quiet(&s, strtoul(argv[3], NULL, 10));
	load(regs);
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
	ret = opts.fd < 0 ? -1 : recording_create(&opts, &r, &err) ?: write_names(r, &err);
	for (unsigned int w = 0; !ret && w < windows; w++) {
		stream_move(&s);
		ret = write_window(r, &s, regs, w, &ledger.seen, &err);
		s.window++;
	}
	ledger.outcome[IBS_OUTCOME_FORWARDED] = ledger.seen;
	ret = ret ?: recording_finish(r, &ledger, &err);
	if (ret)
		fprintf(stderr, "make_neighbours: %s\n", err.text);
	else
		recording_close(r);
	return ret ? 1 : 0;
}
