// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_shop FILE SAMPLES: a minute of simulated samples of a machine with two sockets, four nodes and
 * eight L3s, on which a dozen containers run. Half way the database moves to another node than its
 * memory. What people look at is looked at with it: pictures, and tests of pages.
 */
#include "recording/recording.h"
#include "self_map.h"

#include <fcntl.h>
#include <ibscope/sim.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPS	 0xbffu /* Zen 4 */
#define CPUS	 96
#define START_NS 1000000000ull
#define LENGTH_S 60
#define TRIES	 64
#define DEPTH	 4

/* Functions to be found in this program's own symbols; never called, and each different. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(main_loop) X(exec_query) X(hash_join) X(scan_bucket) X(index_next) X(log_append) \
	X(serve_request) X(parse_json) X(render_page) X(cache_get) X(dict_find) X(gc_mark) \
	X(train_step) X(gather_rows) X(add_gradients) X(merge_segments) X(compress_block) \
	X(checksum) X(send_batch) X(copy_pages)
/* clang-format on */
#define FUNCTION(name)                                           \
	static __attribute__((noinline)) void name(void)         \
	{                                                        \
		__asm__ volatile("nop; nop; nop; nop # " #name); \
	}
FUNCTIONS(FUNCTION)

typedef void function(void);

/* Weights are of the sources L3, near and remote cache, DRAM, and DRAM of another node. */
static const struct shop {
	const char *pod, *container; /* without a pod: a service */
	unsigned int share, first_cpu, cpus, moves_to;
	unsigned char weight[5];
	function *chain[3][DEPTH]; /* outermost first */
} shops[] = {
	{ "db-0",
	  "postgres",
	  26,
	  0,
	  12,
	  60,
	  { 40, 8, 3, 90, 6 },
	  { { main_loop, exec_query, hash_join, scan_bucket },
	    { main_loop, exec_query, hash_join, index_next },
	    { main_loop, exec_query, log_append } } },
	{ "web-7f9c",
	  "web",
	  20,
	  12,
	  24,
	  0,
	  { 60, 12, 1, 16, 2 },
	  { { main_loop, serve_request, parse_json },
	    { main_loop, serve_request, render_page, cache_get },
	    { main_loop, gc_mark } } },
	{ "cart-0",
	  "redis",
	  10,
	  36,
	  6,
	  0,
	  { 50, 40, 6, 20, 1 },
	  { { main_loop, dict_find },
	    { main_loop, dict_find, cache_get },
	    { main_loop, log_append } } },
	{ "train-0",
	  "trainer",
	  9,
	  72,
	  12,
	  0,
	  { 12, 2, 1, 14, 80 },
	  { { main_loop, train_step, gather_rows },
	    { main_loop, train_step, add_gradients },
	    { main_loop, train_step } } },
	{ "search-1",
	  "elasticsearch",
	  9,
	  48,
	  12,
	  0,
	  { 40, 4, 1, 60, 4 },
	  { { main_loop, serve_request, merge_segments },
	    { main_loop, merge_segments, compress_block },
	    { main_loop, gc_mark } } },
	{ "etl-88",
	  "spark",
	  6,
	  84,
	  12,
	  0,
	  { 30, 4, 1, 60, 10 },
	  { { main_loop, send_batch, compress_block },
	    { main_loop, gc_mark },
	    { main_loop, checksum } } },
	{ "broker-1",
	  "kafka",
	  6,
	  24,
	  12,
	  0,
	  { 30, 4, 1, 40, 4 },
	  { { main_loop, send_batch, checksum },
	    { main_loop, log_append },
	    { main_loop, copy_pages } } },
	{ "web-7f9c",
	  "envoy",
	  4,
	  12,
	  24,
	  0,
	  { 60, 10, 1, 14, 2 },
	  { { main_loop, serve_request }, { main_loop, copy_pages }, { main_loop, parse_json } } },
	{ "agent-x2",
	  "prometheus",
	  3,
	  42,
	  6,
	  0,
	  { 40, 4, 1, 40, 3 },
	  { { main_loop, dict_find }, { main_loop, compress_block }, { main_loop, gc_mark } } },
	{ "agent-x2",
	  "loki",
	  2,
	  42,
	  6,
	  0,
	  { 40, 4, 1, 40, 4 },
	  { { main_loop, log_append }, { main_loop, compress_block }, { main_loop, checksum } } },
	{ NULL,
	  "ssh.service",
	  1,
	  0,
	  96,
	  0,
	  { 60, 2, 1, 10, 1 },
	  { { main_loop }, { main_loop, copy_pages }, { main_loop, checksum } } },
	{ NULL,
	  "containerd.service",
	  4,
	  0,
	  96,
	  0,
	  { 60, 4, 1, 20, 2 },
	  { { main_loop, parse_json }, { main_loop, gc_mark }, { main_loop, copy_pages } } },
};
#define SHOPS (sizeof(shops) / sizeof(shops[0]))

static int failed(const struct err *err)
{
	fprintf(stderr, "make_shop: %s\n", err->text);
	return 1;
}

static int write_names(struct recording *r, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < SHOPS; i++) {
		const struct shop *s = &shops[i];
		char path[256];
		struct trace_event cgroup = { .kind = TRACE_CGROUP,
					      .cgroup = { i + 1, path, s->pod ? s->container : "",
							  s->pod ?: "", s->pod ? "shop" : "" } };
		struct trace_event comm = { .kind = TRACE_COMM,
					    .comm = { 100 + i, 100 + i, true, s->container } };

		if (s->pod)
			snprintf(path, sizeof(path),
				 "/kubepods.slice/pod%08x-0000-4000-8000-000000000000/%064x", i,
				 i + 1);
		else
			snprintf(path, sizeof(path), "/system.slice/%s", s->container);
		ret = recording_event(r, &cgroup, err) ?: recording_event(r, &comm, err);
	}
	return ret;
}

static int write_stacks(struct recording *r, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < 3 * SHOPS; i++) {
		function *const *chain = shops[i / 3].chain[i % 3];
		__u64 addresses[DEPTH];
		unsigned int n = 0;

		for (int k = DEPTH; k--;)
			if (chain[k])
				addresses[n++] = (uintptr_t)chain[k] + 1;
		ret = recording_stack(r, i, addresses, n, err);
	}
	return ret;
}

/* How likely a sample of this source is in a container; of 100. */
static unsigned int weight(const struct shop *s, enum ibs_src src, bool moved)
{
	switch (src) {
	case IBS_SRC_L3:
	case IBS_SRC_LOCAL_CACHE:
		return s->weight[0];
	case IBS_SRC_NEAR_CACHE:
		return s->weight[1];
	case IBS_SRC_REMOTE_CACHE:
		return s->weight[2];
	case IBS_SRC_DRAM:
		return moved ? s->weight[4] : s->weight[3];
	case IBS_SRC_REMOTE_DRAM:
		return moved ? 4 * s->weight[3] : s->weight[4];
	case IBS_SRC_L2:
	case IBS_SRC_L1:
		return 10;
	case IBS_SRC_NONE:
		return 2;
	default:
		return 0;
	}
}

static void make(__u64 i, __u64 n, struct ibs_record *rec, struct ibs_record_extra *chain)
{
	__u64 regs[IBS_OP_REG_FIXED], r = ibs_sim_mix(i), time = i * LENGTH_S * 1000000000ull / n;
	unsigned int at = r % 100, k = 0, cpu_of;
	const struct shop *s;
	bool moved;

	while (k + 1 < SHOPS && at >= shops[k].share)
		at -= shops[k++].share;
	s = &shops[k];
	moved = s->moves_to && i > n / 2;
	cpu_of = (moved ? s->moves_to : s->first_cpu) + (r >> 8 & 0xffff) % s->cpus;
	for (__u64 t = 0; t < TRIES; t++) {
		ibs_sim_op(1, 0, i * TRIES + t, CAPS, regs);
		if (ibs_sim_mix(r + t) % 100 <
		    weight(s, ibs_op_src((struct ibs_cpu){ CAPS, ibs_quirks(0x19, 0x11) }, regs),
			   moved))
			break;
	}
	*chain = (struct ibs_record_extra){ .kernel = -1,
					    .user = 3 * k + (r >> 24 & 7) % 3,
					    .callers = -1 };
	*rec = (struct ibs_record){
		.time = START_NS + time,
		.cgroup_id = k + 1,
		.tgid = 100 + k,
		.tid = 100 + k,
		.ip = (uintptr_t)main_loop,
		.addr = 0x7f0000000000ull + (r >> 32 & 0xffff),
		.phys = 0x100000000ull + (__u64)k * 0x100000 + (r >> 32 & 0xffff),
		.data3 = regs[IBS_OP_DATA3],
		.packed = ibs_record_pack(regs[IBS_OP_DATA], regs[IBS_OP_DATA2], cpu_of),
	};
	for (int d = 0; d < DEPTH && s->chain[chain->user % 3][d]; d++)
		rec->ip = (uintptr_t)s->chain[chain->user % 3][d] + 1;
}

int main(int argc, char **argv)
{
	static const struct trace_pmu pmu = { .name = "ibs_op/cnt_ctl=1/",
					      .op = true,
					      .physical = true,
					      .stacks = true,
					      .period = 1000000 };
	static struct trace_topology topology = { .n = CPUS, .has_sockets = true };
	struct trace_info info = { .source = "sim",
				   .simulated = true,
				   .host = "db-host-07",
				   .release = "6.12.57",
				   .command = "ibscope record -a -g --source sim",
				   .has_cpu = true,
				   .n_cpus = CPUS,
				   .pmu = &pmu,
				   .n_pmus = 1,
				   .topology = &topology,
				   .monotonic_ns = START_NS,
				   .realtime_ns = 1766318400000000000ull };
	struct recording_opts opts = { .info = &info, .compress = true };
	struct ledger ledger = { 0 };
	struct recording *r;
	struct err err = { "" };
	__u64 n;
	int ret;

	if (argc != 3)
		return 2;
	n = strtoull(argv[2], NULL, 0);
	for (unsigned int c = 0; c < CPUS; c++) {
		topology.socket[c] = c / 48;
		topology.node[c] = c / 24;
		topology.ccx[c] = c / 12;
	}
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, CAPS);
	strcpy(info.cpu.name, "AMD EPYC 9454");
	opts.fd = open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (opts.fd < 0 || recording_create(&opts, &r, &err))
		return failed(&err);
	ret = write_names(r, &err) ?: self_map(r, (uintptr_t)main_loop, NULL, 100, SHOPS, &err) ?: write_stacks(r, &err);
	for (__u64 i = 0; !ret && i < n; i++) {
		struct ibs_record_extra chain;
		struct ibs_record rec;

		make(i, n, &rec, &chain);
		ret = recording_samples(r, &rec, &chain, 1, &err);
	}
	ledger.seen = n;
	ledger.outcome[IBS_OUTCOME_FORWARDED] = n;
	ret = ret ?: recording_finish(r, &ledger, &err);
	recording_close(r);
	return ret || close(opts.fd) ? failed(&err) : 0;
}
