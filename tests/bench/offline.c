// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes a recording for benchmarks of commands that read one: SIMULATED samples with the locality
 * of programs, in functions of this program, so that all names can be resolved on this machine.
 *
 *   bench-offline SAMPLES FILE
 */
#include "base/num.h"
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <ibscope/sim.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CAPS	  0xbffu /* Zen 4 */
#define CPUS	  16
#define BATCH	  65536
#define PROCESSES 40
#define THREADS	  5	/* of a process */
#define SITES	  20000 /* instructions with samples */
#define SHARED	  64	/* lines that all threads of a process write */

static __u64 state;

static __u64 draw(void)
{
	return ibs_sim_mix(state++);
}

/* A number from 0 to n - 1; small ones are likely, as 1 / x. */
static unsigned int skewed(unsigned int n)
{
	return pow(n, (draw() >> 11) * 0x1p-53) - 1;
}

static struct trace_mmap text; /* the map with the code of this program */
static char program[1024];

static int find_text(struct err *err)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[2048];
	bool found = false;

	while (!found && f && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		found = sscanf(line, "%llx-%llx %*s %llx %*s %*s %1023s", &start, &end, &pgoff,
			       program) == 4 &&
			(uintptr_t)find_text >= start && (uintptr_t)find_text < end;
		if (found)
			text = (struct trace_mmap){ .exec = true,
						    .start = start,
						    .len = end - start,
						    .pgoff = pgoff,
						    .path = program };
	}
	if (f)
		fclose(f);
	return found ? 0 : err_set(err, -ENOENT, "cannot find the map of this program");
}

static __u64 heap_of(unsigned int process)
{
	return 0x7e0000000000 + ((__u64)process << 32);
}

static __u64 data_address(unsigned int process, __u64 site)
{
	__u64 heap = heap_of(process), kind = draw() % 10;

	if (kind == 0)
		return heap + site % SHARED * 64 + draw() % 8 * 8;
	if (kind < 8)
		return heap + (1 << 20) + skewed(4000) * 4096ull +
		       (ibs_sim_mix(skewed(3000)) & 0xff8);
	return heap + (1ull << 30) + draw() % (1u << 15) * 4096 + (draw() & 0xff8);
}

static void make(__u64 n, struct ibs_record *to)
{
	static unsigned int thread[CPUS];
	const unsigned int cpu = n % CPUS;
	__u64 regs[IBS_OP_REG_FIXED], site = ibs_sim_mix(skewed(SITES));
	unsigned int process;

	if (draw() % 20 == 0)
		thread[cpu] = skewed(PROCESSES * THREADS);
	process = thread[cpu] / THREADS;
	ibs_sim_op(1, cpu, n / CPUS, CAPS, regs);
	*to = (struct ibs_record){
		.time = 1000000 + 1000 * n,
		.cgroup_id = 1 + process % 8,
		.tgid = 1000 + process * 10,
		.tid = 1000 + process * 10 + thread[cpu] % THREADS,
		.ip = text.start + site % text.len,
		.data3 = regs[IBS_OP_DATA3],
		.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], cpu),
	};
	if (regs[IBS_OP_DATA3] & IBS_OP_DATA3_MEM) {
		to->addr = data_address(process, site);
		to->phys = (to->addr & 0xffffffff) + ((__u64)process << 33);
	}
}

static int write_tasks(struct recording *r, struct err *err)
{
	int ret = 0;

	for (__u32 t = 0; !ret && t < PROCESSES * THREADS; t++) {
		const __u32 pid = 1000 + t / THREADS * 10, tid = pid + t % THREADS;
		struct trace_event comm = { .kind = TRACE_COMM,
					    .comm = { pid, tid, tid == pid, "program" } };
		struct trace_event map = { .kind = TRACE_MMAP, .mmap = text };
		struct trace_event heap = { .kind = TRACE_MMAP,
					    .mmap = { .start = heap_of(t / THREADS),
						      .len = 1ull << 32,
						      .path = "//anon" } };

		map.mmap.tgid = map.mmap.tid = heap.mmap.tgid = heap.mmap.tid = pid;
		ret = recording_event(r, &comm, err);
		if (tid == pid)
			ret = ret ?: recording_event(r, &map, err) ?: recording_event(r, &heap, err);
	}
	return ret;
}

static int write_file(int fd, __u64 n, struct err *err)
{
	static struct ibs_record records[BATCH];
	static const struct trace_pmu pmu = {
		.name = "ibs_op/cnt_ctl=1/", .op = true, .physical = true, .period = 100000
	};
	static const struct trace_topology topology = { .n = CPUS, .distance.of[0][0] = 10 };
	static const struct memory_range memory = { 0, 1ull << 40, 0 };
	struct trace_info info = { .source = "sim",
				   .topology = &topology,
				   .memory = &memory,
				   .n_memory = 1,
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = &pmu,
				   .n_pmus = 1 };
	struct recording_opts opts = { .fd = fd, .info = &info, .compress = true };
	struct ledger ledger = { .seen = n, .outcome[IBS_OUTCOME_FORWARDED] = n };
	struct recording *r;
	int ret;

	gethostname(info.host, sizeof(info.host) - 1); /* its files have the names */
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	ret = recording_create(&opts, &r, err);
	if (ret)
		return ret;
	ret = write_tasks(r, err);
	for (__u64 done = 0, k; !ret && done < n; done += k) {
		for (k = 0; k < BATCH && done + k < n; k++)
			make(done + k, &records[k]);
		ret = recording_samples(r, records, NULL, k, err) ?: recording_flush(r, NULL, err);
	}
	ret = ret ?: recording_finish(r, &ledger, err);
	recording_close(r);
	return ret;
}

int main(int argc, char **argv)
{
	struct err err = { "" };
	int fd, ret;

	if (argc != 3) {
		fprintf(stderr, "usage: bench-offline SAMPLES FILE\n");
		return 2;
	}
	fd = open(argv[2], O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	ret = find_text(&err) ?: write_file(fd, strtoull(argv[1], NULL, 0), &err);
	if (ret)
		fprintf(stderr, "bench-offline: %s\n", err.text);
	close(fd);
	return ret != 0;
}
