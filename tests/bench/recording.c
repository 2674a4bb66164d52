// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a recording costs: bytes a sample, and samples a second, written and read. The samples are
 * of a model with the locality of programs: 16 CPUs that switch among 200 threads of 40 processes,
 * few hot and many cold instructions, hot and random data on pages of 4 KiB and 2 MiB.
 */
#include <ibscope/sim.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/recording.h"

#define CPUS	16
#define SAMPLES (1u << 20)
#define FLUSH	10000 /* samples a flush */
#define CAPS	0x1bffu

static __u64 state;

static __u64 draw(void)
{
	return ibs_sim_mix(state++);
}

/* 0 .. n - 1, of which small ones are likely as of 1/x */
static unsigned int often(unsigned int n)
{
	return pow(n, (draw() >> 11) * 0x1p-53) - 1;
}

static __u64 data_address(__u64 base, bool hot)
{
	if (hot)
		return base + often(4000) * 4096ull + (ibs_sim_mix(often(3000)) & 0xff8);
	return base + draw() % (1u << 18) * 4096 + (draw() & 0xff8);
}

static __u64 frame(__u64 address, unsigned int shift)
{
	__u64 in_page = address & (IBS_BIT(shift) - 1);

	return ibs_sim_mix(address >> shift) % IBS_BIT(37 - shift) << shift | in_page;
}

static void make_regs(unsigned int cpu, __u64 n, unsigned int process, __u64 *regs)
{
	__u64 site = ibs_sim_mix(often(20000) * 1000 + process % 10);
	bool kernel = site % 100 < 20;
	__u64 heap = kernel ? 0xffff888000000000 : 0x7f0000000000 + ((__u64)process << 32);
	__u64 text = 0x555555554000 + ((__u64)process << 28);

	ibs_sim_op(7, cpu, n, CAPS, regs);
	regs[IBS_OP_RIP] = (kernel ? 0xffffffff81000000 : text) + (site >> 20) % 0x300000;
	regs[IBS_OP_CTL] = 0x6186a | draw() % 3000 << 32;
	regs[IBS_OP_DATA] =
		(regs[IBS_OP_DATA] & ~0xffffull) | (draw() % 3 ? 1 + draw() % 4 : 1 + often(1000));
	if (!(regs[IBS_OP_DATA3] & IBS_OP_DATA3_MEM))
		return;
	regs[IBS_OP_DATA3] |= ((site >> 50) % 4 + 2) << 22;
	if (regs[IBS_OP_DATA3] & IBS_OP_DATA3_DC_MISS)
		regs[IBS_OP_DATA3] |= draw() % 20 << 26;
	regs[IBS_DC_LINADDR] = data_address(heap, !(regs[IBS_OP_DATA3] & IBS_OP_DATA3_L2_MISS));
	regs[IBS_DC_PHYSADDR] = kernel ? regs[IBS_DC_LINADDR] - heap + 0x100000000
				       : frame(regs[IBS_DC_LINADDR], process % 2 ? 12 : 21);
}

static void make_samples(struct ibs_record *records, struct ibs_record_raw *raws)
{
	__u64 next[CPUS], n[CPUS] = {};
	unsigned int thread[CPUS] = {};

	for (unsigned int c = 0; c < CPUS; c++)
		next[c] = 3600000000000 + draw() % 300000;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct ibs_record *r = &records[i];
		struct ibs_record_raw *raw = &raws[i];
		unsigned int c = 0, process;

		for (unsigned int k = 1; k < CPUS; k++)
			c = next[k] < next[c] ? k : c;
		if (draw() % 20 == 0)
			thread[c] = often(200);
		process = thread[c] / 5;
		*raw = (struct ibs_record_raw){ .time = next[c],
						.cgroup_id = 5000 + process % 8 * 21,
						.tgid = 10000 + process * 37,
						.tid = 10000 + process * 37 + thread[c] % 5,
						.cpu = c,
						.bytes = IBS_OP_RAW_MIN + 8,
						.caps = CAPS };
		make_regs(c, n[c]++, process, raw->regs);
		if (raw->regs[IBS_OP_DATA] & IBS_OP_DATA_BRN_RET)
			raw->regs[IBS_BRTARGET] = raw->regs[IBS_OP_RIP] + draw() % 4096 - 2048;
		next[c] += 200000 + draw() % 100000;
		*r = (struct ibs_record){ .time = raw->time,
					  .cgroup_id = raw->cgroup_id,
					  .tgid = raw->tgid,
					  .tid = raw->tid,
					  .ip = raw->regs[IBS_OP_RIP],
					  .addr = raw->regs[IBS_DC_LINADDR],
					  .phys = raw->regs[IBS_DC_PHYSADDR],
					  .data3 = raw->regs[IBS_OP_DATA3],
					  .packed = ibs_record_pack(raw->regs[IBS_OP_DATA],
								    raw->regs[IBS_OP_DATA2], c) };
	}
}

static void need(int ret, const struct err *err)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench-recording: %s\n", err->text);
	exit(1);
}

static double cpu_s(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static void bench(const struct ibs_record *records, const struct ibs_record_raw *raws,
		  bool compress)
{
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true };
	const struct trace_info info = {
		.source = "sim", .simulated = true, .pmu = &pmu, .n_pmus = 1
	};
	struct recording_opts opts = { .fd = memfd_create("bench", 0),
				       .info = &info,
				       .compress = compress };
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;
	double start, written, read;
	size_t i, n, got = 0;
	char path[64];
	__u64 bytes;

	start = cpu_s();
	need(recording_create(&opts, &r, &err), &err);
	for (i = 0; i < SAMPLES; i += n) {
		n = SAMPLES - i < FLUSH ? SAMPLES - i : FLUSH;
		if (raws)
			need(recording_samples_raw(r, raws + i, NULL, n, &err), &err);
		else
			need(recording_samples(r, records + i, NULL, n, &err), &err);
		need(recording_flush(r, NULL, &err), &err);
	}
	need(recording_finish(r, NULL, &err), &err);
	bytes = recording_bytes(r);
	recording_close(r);
	written = cpu_s() - start;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", opts.fd);
	start = cpu_s();
	need(trace_open(path, &t, &err), &err);
	while (trace_next(t, &ev, &err) > 0)
		got++;
	read = cpu_s() - start;
	if (got != SAMPLES)
		need(err_set(&err, -1, "%zu samples came back of %u", got, SAMPLES), &err);
	trace_close(t);
	close(opts.fd);
	printf("%-8s %-5s %6.1f bytes/sample %6.1f M/s written %6.1f M/s read\n",
	       raws ? "--raw" : "compact", compress ? "zstd" : "plain", (double)bytes / SAMPLES,
	       SAMPLES / written / 1e6, SAMPLES / read / 1e6);
}

int main(void)
{
	struct ibs_record *records = calloc(SAMPLES, sizeof(*records));
	struct ibs_record_raw *raws = calloc(SAMPLES, sizeof(*raws));

	if (!records || !raws)
		return 1;
	make_samples(records, raws);
	printf("%u samples of a model, CPU time\n", SAMPLES);
	for (int raw = 0; raw < 2; raw++)
		for (int compress = 0; compress < 2; compress++)
			bench(records, raw ? raws : NULL, compress);
	free(records);
	free(raws);
	return 0;
}
