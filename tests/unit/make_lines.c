// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_lines FILE known [WITH [open|late]]: simulated samples of lines that are shared in known ways, see below.
 * WITH is the event or the selection that the file says it was recorded with; or "zen3", "bare" (no
 * ranges of memory), "virtual" (no physical addresses), "guest" (they are said to be valid, but are 0, as in virtual
 * machines), "nowhere" (no addresses). With "open", loads that missed have
 * four open requests, else no number of them; with "late", those from another complex also wait for older ops.
 * make_lines FILE random SAMPLES SEED: random accesses to few lines, on a processor that SEED chooses.
 * make_lines FILE few SAMPLES: line 0 of `known`, and line 1 shared falsely, with so many samples.
 * make_lines FILE alone SAMPLES MISSES: line 1 as in `few`, beside so many loads of one thread from DRAM.
 * make_lines FILE many SAMPLES: as many lines as there may be.
 * make_lines FILE numa SAMPLES SEED: random accesses to the memory of three nodes, and of none.
 */
#include "recording/recording.h"
#include "recording_gen.h"
#include "self_map.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS	 48
#define PER_CCX	 8
#define PER_NODE 24
#define PERIOD	 1000ull
#define PHYS	 0x100000000ull
#define VIRT	 0x7f0000000000ull
#define PROCESS	 100

#define FUNCTION(name)                                           \
	static __attribute__((noinline)) void name(void)         \
	{                                                        \
		__asm__ volatile("nop; nop; nop; nop # " #name); \
	}
FUNCTION(count_requests)
FUNCTION(count_errors)
FUNCTION(take_lock)
FUNCTION(look_up)

static const struct cpu {
	__u32 family, model, caps;
} zen2 = { 0x17, 0x31, 0x3ff }, zen3 = { 0x19, 0x01, 0x3ff }, zen4 = { 0x19, 0x11, 0xbff },
  zen6 = { 0x1a, 0x50, 0x9bbff };

struct access {
	__u64 phys, addr; /* 0: not valid */
	__u32 tgid, tid, cpu, width;
	bool load, store, prefetch;
	enum { L1, CCX, NEAR, REMOTE, DRAM, REMOTE_DRAM, NO_SOURCE, PMEM, CXL } from;
	bool owned, socket, remote;
	__u32 lat;
	void (*fn)(void);
};

static struct recording *out;
static const struct cpu *cpu = &zen4;
static __u64 now = 1000000000ull, written;
static bool no_phys, zero_phys, no_addr, has_open, has_late;

static void add(const struct access *a)
{
	static const __u8 zen[] = { 0, 1, 2, 5, 3, 3, 0, 6, 8 },
			  coarse[] = { 0, 2, 2, 4, 3, 3, 0, 0, 0 };
	__u32 code = (cpu->caps & IBS_CAPS_ZEN4 ? zen : coarse)[a->from], width = 0;
	__u64 data2 = (code & 7) | (__u64)(code >> 3) << 6 |
		      (a->remote || a->from == REMOTE_DRAM) << 4 | a->owned << 5 | (a->socket << 9);
	__u64 data3 = (a->load ? IBS_OP_DATA3_LD_OP : 0) | (a->store ? IBS_OP_DATA3_ST_OP : 0) |
		      (a->prefetch ? IBS_OP_DATA3_SW_PF : 0) |
		      (a->addr && !no_addr ? IBS_OP_DATA3_LIN_VALID : 0) |
		      (a->phys && !no_phys ? IBS_OP_DATA3_PHY_VALID : 0);
	struct ibs_record rec;
	struct err err;

	while (a->width >> width)
		width++;
	data3 |= (__u64)width << 22;
	if (a->from != L1)
		data3 |= IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS;
	if (a->load && a->from != L1)
		data3 |= (__u64)a->lat << 32 | (has_open ? 4ull << 26 : 0);
	rec = (struct ibs_record){
		.time = now,
		.cgroup_id = a->tgid - PROCESS + 1,
		.tgid = a->tgid,
		.tid = a->tid,
		.ip = (uintptr_t)a->fn + 1,
		.addr = a->addr,
		.phys = zero_phys ? 0 : a->phys,
		.data3 = data3,
		/* the test sees RmtSocket of caches in CompToRetCtr */
		.packed = ibs_record_pack(has_late && a->from == NEAR ? 500 : a->socket,
					  a->load ? data2 : 0, a->cpu),
	};
	now += 1000;
	written++;
	if (recording_samples(out, &rec, NULL, 1, &err))
		exit(1);
}

/* --- known truths; a line each, of page PHYS unless said otherwise --- */

static struct access at(unsigned int line, unsigned int offset, __u32 tid, __u32 on_cpu,
			void (*fn)(void))
{
	return (struct access){ .phys = PHYS + 64 * line + offset,
				.addr = VIRT + 64 * line + offset,
				.tgid = PROCESS,
				.tid = tid,
				.cpu = on_cpu,
				.width = 8,
				.lat = 200,
				.fn = fn };
}

/* A counter: a load that misses in the other's cache, and a store. */
static void count(unsigned int line, unsigned int offset, __u32 tid, __u32 on_cpu, int from,
		  void (*fn)(void))
{
	struct access a = at(line, offset, tid, on_cpu, fn);

	a.load = true;
	a.from = from;
	add(&a);
	a.load = false;
	a.store = true;
	a.from = L1;
	add(&a);
}

static void read_it(unsigned int line, unsigned int offset, __u32 tid, __u32 on_cpu, int from)
{
	struct access a = at(line, offset, tid, on_cpu, look_up);

	a.load = true;
	a.from = from;
	add(&a);
}

static void known(void)
{
	for (unsigned int i = 0; i < 50; i++) {
		struct access a;

		/* 0: false sharing, offsets 0 and 8, of two complexes of a node */
		count(0, 0, 100, 0, NEAR, count_requests);
		count(0, 8, 101, 8, NEAR, count_errors);
		/* 1: true sharing of offset 16, of two nodes */
		count(1, 16, 100, 0, REMOTE, take_lock);
		count(1, 16, 102, 24, REMOTE, take_lock);
		/* 2: read by all, written by none */
		read_it(2, i % 8 * 8, 100 + i % 4, i % 4 * 8, i % 3 ? L1 : NEAR);
		/* 3 to 6: per CPU; several threads each, of one CPU */
		count(3 + i % 4, 0, 110 + i, i % 4, L1, count_requests);
		/* 7: a lock, and what it does not protect */
		count(7, 0, 100, 0, NEAR, take_lock);
		count(7, 0, 101, 8, NEAR, take_lock);
		read_it(7, 32, 103, 16, NEAR);
		/* 8: one thread that moves from CPU to CPU */
		count(8, 0, 100, i % 2 * 8, CCX, count_requests);
		/* 9: written and read by two, but never met in the other's cache */
		count(9, 0, 100, 0, L1, count_requests);
		count(9, 8, 101, 8, DRAM, count_requests);
		/* 10: shared memory of two processes, at two addresses */
		count(10, 0, 100, 0, NEAR, count_requests);
		a = at(10, 8, 200, 8, count_errors);
		a.tgid = PROCESS + 1;
		a.addr += 0x100000000;
		a.load = a.store = true;
		a.from = NEAR;
		add(&a);
		/* 64: the page moves half way; offsets 0 and 8 are shared falsely all the time */
		a = at(64, i % 2 * 8, 100 + i % 2, i % 2 * 8, count_errors);
		a.phys += i < 25 ? 0 : 0x10000000;
		a.load = a.store = true;
		a.from = NEAR;
		add(&a);
		/* 128: copied on write: what the child has then is another line */
		a = at(128, 0, i % 2 ? 100 : 200, i % 2 * 8, count_requests);
		a.tgid = PROCESS + !(i % 2);
		a.phys += i > 9 && !(i % 2) ? 0x10000000 : 0;
		a.store = a.phys >= 0x10000000 + PHYS;
		a.load = true;
		a.from = CCX;
		add(&a);
		/* 192: no physical address; 256: no address at all */
		a = at(192, i % 2 * 8, 100 + i % 2, i % 2 * 8, count_errors);
		a.load = a.store = true;
		a.from = NEAR;
		a.phys = 0;
		add(&a);
		if (i < 3) {
			a.addr = 0;
			add(&a);
		}
	}
}

static void share(__u64 n)
{
	for (__u64 i = 0; i < n / 2; i++)
		count(1, i % 2 * 8, 100 + i % 2, i % 2 * 8, NEAR, take_lock);
}

static void few(__u64 n)
{
	for (unsigned int i = 0; i < 50; i++) {
		count(0, 0, 100, 0, NEAR, count_requests);
		count(0, 8, 101, 8, NEAR, count_errors);
	}
	share(n);
}

static void alone(__u64 n, __u64 misses)
{
	for (__u64 i = 0; i < misses; i++)
		read_it(0, 0, 100, 0, DRAM);
	share(n);
}

/* --- random ones --- */

static void random_accesses(__u64 n, __u64 seed)
{
	static void (*const fns[])(void) = { count_requests, count_errors, take_lock, look_up };
	struct gen g = { seed * 1000003 };
	/* where each process sees each page */
	unsigned int page[3][4];

	for (unsigned int p = 0; p < 3; p++)
		for (unsigned int v = 0; v < 4; v++)
			page[p][v] = gen_below(&g, 8);
	for (__u64 i = 0; i < n; i++) {
		unsigned int kind = gen_below(&g, 10), p = gen_below(&g, 3);
		unsigned int v = gen_below(&g, 4);
		unsigned int offset = gen_below(&g, 3) * 64 + gen_below(&g, 64);
		struct access a = {
			.tgid = PROCESS + p,
			.tid = PROCESS + 10 * p + gen_below(&g, 3),
			.width = gen_below(&g, 4) ? 1 << gen_below(&g, 6) : 0,
			.load = kind < 6 || kind > 8,
			.store = kind >= 6 && kind != 8,
			.prefetch = kind == 5,
			.from = gen_below(&g, 7),
			.owned = !gen_below(&g, 4),
			.socket = gen_below(&g, 2),
			.lat = gen_below(&g, 1000),
			.fn = fns[gen_below(&g, 4)],
		};

		/* few lines of few CPUs, so that all verdicts come */
		a.cpu = gen_below(&g, 3) ? a.tid % CPUS : gen_below(&g, CPUS);
		if (!gen_below(&g, 50)) /* to a page that nobody used yet, as a rule */
			page[p][v] = gen_below(&g, 4) ? 8 + gen_below(&g, 100) : gen_below(&g, 8);
		if (gen_below(&g, 20))
			a.addr = VIRT + 4096ull * v + offset;
		if (gen_below(&g, 10))
			a.phys = PHYS + 4096ull * page[p][v] + offset;
		if (!gen_below(&g, 30))
			a.addr |= 0xffff000000000000ull;
		add(&a);
		now -= gen_below(&g, 2) * 1000; /* two at a time */
	}
}

static void many_lines(__u64 n)
{
	struct gen g = { 1 };

	for (__u64 i = 0; i < n; i++) {
		unsigned int hot = gen_below(&g, 4);
		__u64 offset = hot ? gen_below(&g, 1 << 16) * 8ull : gen_below(&g, 1 << 30) * 8ull;
		struct access a = { .phys = PHYS + offset,
				    .addr = VIRT + offset,
				    .tgid = PROCESS + gen_below(&g, 3),
				    .tid = PROCESS + gen_below(&g, 64),
				    .cpu = gen_below(&g, CPUS),
				    .width = 8,
				    .load = gen_below(&g, 3),
				    .from = gen_below(&g, 7),
				    .lat = gen_below(&g, 1000),
				    .fn = look_up };

		a.store = !a.load;
		add(&a);
	}
}

#define GIB (1ull << 30)

static const struct memory_range memory[] = {
	{ PHYS, PHYS + GIB, 0 },
	{ PHYS + GIB, PHYS + 2 * GIB, 1 },
	{ PHYS + 4 * GIB, PHYS + 5 * GIB, 2 }, /* no CPU is of this node */
};

static void numa(__u64 n, __u64 seed)
{
	struct gen g = { seed * 1000003 };

	for (__u64 i = 0; i < n; i++) {
		__u64 offset = gen_u64(&g) % (6 * GIB / 64) * 64;
		struct access a = { .phys = gen_below(&g, 20) ? PHYS + offset : 0,
				    .addr = VIRT + offset,
				    .tgid = PROCESS + gen_below(&g, 3),
				    .tid = PROCESS + gen_below(&g, 64),
				    .cpu = gen_below(&g, seed % 3 ? CPUS : CPUS / 2),
				    .width = 8,
				    .load = gen_below(&g, 4),
				    .from = gen_below(&g, 9),
				    .remote = gen_below(&g, 2),
				    .fn = look_up };

		a.store = !a.load;
		a.lat = 100 + gen_below(&g, 100) + (offset / GIB) * 50;
		add(&a);
	}
}

static int failed(const struct err *err)
{
	fprintf(stderr, "make_lines: %s\n", err->text);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct cpu *const cpus[] = { &zen4, &zen2, &zen3, &zen6 };
	static struct trace_topology topology = {
		.n = CPUS,
		.distance.of = { { 10, 21, 40 }, { 21, 10 } } /* not from node 1 to node 2 */
	};
	struct trace_pmu pmu = {
		.name = "ibs_op/cnt_ctl=1/", .op = true, .physical = true, .period = PERIOD
	};
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = &pmu,
				   .n_pmus = 1,
				   .topology = &topology,
				   .memory = memory,
				   .n_memory = sizeof(memory) / sizeof(memory[0]) };
	struct recording_opts opts = { .info = &info, .compress = true };
	bool random = argc == 5 && !strcmp(argv[2], "random");
	bool nodes = argc == 5 && !strcmp(argv[2], "numa");
	bool lonely = argc == 5 && !strcmp(argv[2], "alone");
	struct ledger ledger = { 0 };
	struct err err = { "" };
	int ret = 0;

	if (argc < 3)
		return 2;
	if (random)
		cpu = cpus[strtoull(argv[4], NULL, 0) % 4];
	/* an event or a selection that the file says it was recorded with; or a processor */
	if (random || nodes || lonely || !strcmp(argv[2], "many") || !strcmp(argv[2], "few"))
		argc = 3;
	has_late = argc > 4 && !strcmp(argv[4], "late");
	has_open = has_late || (argc > 4 && !strcmp(argv[4], "open"));
	if (argc > 3 && !strncmp(argv[3], "ibs_op/", 7))
		snprintf(pmu.name, sizeof(pmu.name), "%s", argv[3]);
	else if (argc > 3 && !strcmp(argv[3], "zen3"))
		cpu = &zen3;
	else if (argc > 3 && !strcmp(argv[3], "virtual"))
		no_phys = true;
	else if (argc > 3 && !strcmp(argv[3], "guest"))
		zero_phys = true;
	else if (argc > 3 && !strcmp(argv[3], "nowhere"))
		no_phys = no_addr = true;
	else if (argc > 3 && !strcmp(argv[3], "bare"))
		info.n_memory = 0;
	else if (argc > 3 && !strcmp(argv[3], "old"))
		topology.distance = (struct node_distances){};
	else if (argc > 3)
		snprintf(info.filter, sizeof(info.filter), "%s", argv[3]);
	for (unsigned int c = 0; c < CPUS; c++) {
		topology.node[c] = c / PER_NODE;
		topology.ccx[c] = c / PER_CCX;
	}
	cpu_info_set(&info.cpu, "AuthenticAMD", cpu->family, cpu->model, cpu->caps);
	strcpy(info.cpu.name, "SIMULATED");
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (opts.fd < 0 || recording_create(&opts, &out, &err))
		return failed(&err);
	for (__u32 p = 0; !ret && p < 3; p++) {
		static const char *const names[] = { "web", "db", "batch" };
		char path[96];
		struct trace_event comm = { .kind = TRACE_COMM,
					    .comm = { PROCESS + p, PROCESS + p, true, names[p] } };
		struct trace_event cgroup = { .kind = TRACE_CGROUP,
					      .cgroup = { p + 1, path, names[p], "", "" } };

		snprintf(path, sizeof(path), "/docker/%064x", p + 1);
		ret = recording_event(out, &comm, &err) ?: recording_event(out, &cgroup, &err);
	}
	ret = ret ?: self_map(out, (uintptr_t)look_up, NULL, PROCESS, 3, &err);
	if (random)
		random_accesses(strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
	else if (nodes)
		numa(strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
	else if (lonely)
		alone(strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
	else if (!strcmp(argv[2], "many"))
		many_lines(strtoull(argv[3], NULL, 0));
	else if (!strcmp(argv[2], "few"))
		few(strtoull(argv[3], NULL, 0));
	else
		known();
	ledger.seen = written;
	ledger.outcome[IBS_OUTCOME_FORWARDED] = written;
	ret = ret ?: recording_finish(out, &ledger, &err);
	recording_close(out);
	return ret || close(opts.fd) ? failed(&err) : 0;
}
