// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a recording holds beside samples, as dump prints it: each event, and facts about the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/dump.h"

static char *printed;

static void check_event(const struct trace_event *ev, const char *text, const char *json)
{
	for (int as_json = 0; as_json < 2; as_json++) {
		size_t n;
		FILE *f;

		free(printed);
		f = open_memstream(&printed, &n);
		trace_print_event(f, ev, as_json);
		fclose(f);
		assert_string_equal(printed, as_json ? json : text);
	}
}

static void check_info(const struct trace_info *info, bool json, const char *want)
{
	size_t n;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &n);
	trace_print_info(f, info, json);
	fclose(f);
	assert_string_equal(printed, want);
}

/* Samples have functions of their own. */
static void test_no_samples(void **state)
{
	(void)state;
	check_event(&(struct trace_event){ .kind = TRACE_SAMPLE_OP }, "", "");
	check_event(&(struct trace_event){ .kind = TRACE_SAMPLE_FETCH }, "", "");
}

static void test_tasks(void **state)
{
	struct trace_event ev = { .kind = TRACE_COMM, .time = 12000000345 };

	(void)state;
	ev.comm.tgid = 7;
	ev.comm.tid = 8;
	ev.comm.name = "a\"b";
	check_event(&ev, "comm time 12.000000345 pid 7/8 comm \"a\\\"b\"\n",
		    "{\"type\":\"comm\",\"time_ns\":12000000345,\"pid\":7,\"tid\":8,"
		    "\"exec\":false,\"comm\":\"a\\\"b\"}\n");
	/* an unknown time is absent */
	ev.time = 0;
	ev.comm.exec = true;
	ev.comm.name = NULL;
	check_event(&ev, "comm pid 7/8 exec comm \"\"\n",
		    "{\"type\":\"comm\",\"pid\":7,\"tid\":8,\"exec\":true,\"comm\":\"\"}\n");
	ev = (struct trace_event){ .kind = TRACE_FORK, .time = 1, .fork = { 1, 2, 3, 4 } };
	check_event(&ev, "fork time 0.000000001 pid 1/2 parent_pid 3 parent_tid 4\n",
		    "{\"type\":\"fork\",\"time_ns\":1,\"pid\":1,\"tid\":2,\"parent_pid\":3,"
		    "\"parent_tid\":4}\n");
	ev.kind = TRACE_EXIT;
	check_event(&ev, "exit time 0.000000001 pid 1/2 parent_pid 3 parent_tid 4\n",
		    "{\"type\":\"exit\",\"time_ns\":1,\"pid\":1,\"tid\":2,\"parent_pid\":3,"
		    "\"parent_tid\":4}\n");
}

static void test_mmap(void **state)
{
	struct trace_event ev = { .kind = TRACE_MMAP };

	(void)state;
	ev.mmap = (struct trace_mmap){ .tgid = 5,
				       .tid = 6,
				       .exec = true,
				       .start = 0x7f0000001000,
				       .len = 0x2000,
				       .pgoff = 0x3000,
				       .path = "/bin/a b",
				       .build_id = { 0x0a, 0xbc, 0xff },
				       .build_id_len = 2 };
	check_event(&ev,
		    "mmap pid 5/6 exec start 0x7f0000001000 len 0x2000 pgoff 0x3000 path "
		    "\"/bin/a b\" build_id 0abc\n",
		    "{\"type\":\"mmap\",\"pid\":5,\"tid\":6,\"kernel\":false,\"exec\":true,"
		    "\"start\":\"0x7f0000001000\",\"len\":\"0x2000\",\"pgoff\":\"0x3000\","
		    "\"path\":\"/bin/a b\",\"build_id\":\"0abc\"}\n");
	ev.mmap.build_id_len = 0;
	ev.mmap.kernel = true;
	ev.mmap.exec = false;
	ev.mmap.pgoff = 0;
	check_event(&ev,
		    "mmap pid 5/6 kernel start 0x7f0000001000 len 0x2000 pgoff 0x0 path "
		    "\"/bin/a b\"\n",
		    "{\"type\":\"mmap\",\"pid\":5,\"tid\":6,\"kernel\":true,\"exec\":false,"
		    "\"start\":\"0x7f0000001000\",\"len\":\"0x2000\",\"pgoff\":\"0x0\","
		    "\"path\":\"/bin/a b\"}\n");
	/* one that claims more bytes than there are ends with the last of them */
	memset(ev.mmap.build_id, 0x11, sizeof(ev.mmap.build_id));
	ev.mmap.build_id_len = 200;
	ev.mmap.path = "k";
	check_event(&ev,
		    "mmap pid 5/6 kernel start 0x7f0000001000 len 0x2000 pgoff 0x0 path \"k\" "
		    "build_id 1111111111111111111111111111111111111111\n",
		    "{\"type\":\"mmap\",\"pid\":5,\"tid\":6,\"kernel\":true,\"exec\":false,"
		    "\"start\":\"0x7f0000001000\",\"len\":\"0x2000\",\"pgoff\":\"0x0\","
		    "\"path\":\"k\",\"build_id\":\"1111111111111111111111111111111111111111\"}\n");
}

/* Names that a runtime did not give are absent. */
static void test_cgroup(void **state)
{
	struct trace_event ev = { .kind = TRACE_CGROUP };

	(void)state;
	ev.cgroup.id = 99;
	ev.cgroup.path = "/x";
	ev.cgroup.container = "web";
	ev.cgroup.pod = "";
	check_event(&ev, "cgroup id 99 path \"/x\" container \"web\"\n",
		    "{\"type\":\"cgroup\",\"id\":99,\"path\":\"/x\",\"container\":\"web\"}\n");
	ev.cgroup.container = NULL;
	ev.cgroup.pod = "p";
	ev.cgroup.ns = "n";
	check_event(&ev, "cgroup id 99 path \"/x\" pod \"p\" namespace \"n\"\n",
		    "{\"type\":\"cgroup\",\"id\":99,\"path\":\"/"
		    "x\",\"pod\":\"p\",\"namespace\":\"n\"}\n");
}

static void test_lost(void **state)
{
	struct trace_event ev = { .kind = TRACE_LOST };

	(void)state;
	ev.lost.n = 5000000000;
	ev.lost.samples = true;
	ev.lost.cpu = 3;
	check_event(&ev, "lost n 5000000000 samples cpu 3\n",
		    "{\"type\":\"lost\",\"n\":5000000000,\"samples\":true,\"cpu\":3}\n");
	ev.lost.samples = false;
	check_event(&ev, "lost n 5000000000 cpu 3\n",
		    "{\"type\":\"lost\",\"n\":5000000000,\"samples\":false,\"cpu\":3}\n");
}

static void test_rank_and_region(void **state)
{
	struct trace_event ev = { .kind = TRACE_RANK };

	(void)state;
	ev.rank.tgid = 10;
	ev.rank.rank = 2;
	ev.rank.ended = true;
	ev.rank.status = 256;
	check_event(&ev, "rank pid 10 rank 2 ended status 256\n",
		    "{\"type\":\"rank\",\"pid\":10,\"rank\":2,\"ended\":true,\"status\":256}\n");
	ev = (struct trace_event){ .kind = TRACE_REGION };
	ev.region.tid = 4;
	ev.region.omp = true;
	ev.region.number = 65535;
	ev.region.team = 3;
	ev.region.addr = 20;
	ev.region.name = "";
	check_event(&ev, "region tid 4 omp team 3 number 65535 addr 20 name \"\"\n",
		    "{\"type\":\"region\",\"tid\":4,\"omp\":true,\"end\":false,\"team\":3,"
		    "\"number\":65535,\"addr\":20,\"name\":\"\"}\n");
	ev.region.omp = false;
	ev.region.end = true;
	ev.region.name = "solve";
	check_event(&ev, "region tid 4 end team 3 number 65535 addr 20 name \"solve\"\n",
		    "{\"type\":\"region\",\"tid\":4,\"omp\":false,\"end\":true,\"team\":3,"
		    "\"number\":65535,\"addr\":20,\"name\":\"solve\"}\n");
}

static void test_memory(void **state)
{
	static const __u64 stack[] = { 0x401000, 0x402abc };
	struct trace_event ev = { .kind = TRACE_SLAB };

	(void)state;
	ev.slab = (struct ibs_slab){ .id = 0xffff888000001000,
				     .object_size = 100,
				     .size = 128,
				     .pad = 64,
				     .order = 3,
				     .min_order = 1,
				     .merged = 1,
				     .name = "dentry" };
	check_event(
		&ev,
		"slab id 0xffff888000001000 object_size 100 size 128 pad 64 order 3 min_order 1 "
		"merged name \"dentry\"\n",
		"{\"type\":\"slab\",\"id\":\"0xffff888000001000\",\"object_size\":100,"
		"\"size\":128,\"pad\":64,\"order\":3,\"min_order\":1,\"merged\":true,"
		"\"name\":\"dentry\"}\n");
	ev = (struct trace_event){ .kind = TRACE_ALLOC };
	ev.alloc = (struct trace_alloc){ .tgid = 1,
					 .tid = 2,
					 .addr = 0x1000,
					 .size = 48,
					 .weight = 4096,
					 .stack = stack,
					 .n_stack = 2 };
	check_event(&ev, "alloc pid 1/2 addr 0x1000 size 48 weight 4096 stack 0x401000 0x402abc\n",
		    "{\"type\":\"alloc\",\"pid\":1,\"tid\":2,\"addr\":\"0x1000\",\"size\":48,"
		    "\"weight\":4096,\"mapped\":false,\"stack\":[\"0x401000\",\"0x402abc\"]}\n");
	ev.alloc.n_stack = 0;
	ev.alloc.mapped = true;
	check_event(&ev, "alloc pid 1/2 addr 0x1000 size 48 weight 4096 mapped\n",
		    "{\"type\":\"alloc\",\"pid\":1,\"tid\":2,\"addr\":\"0x1000\",\"size\":48,"
		    "\"weight\":4096,\"mapped\":true,\"stack\":[]}\n");
	ev = (struct trace_event){ .kind = TRACE_FREE, .free = { 1, 2, 0x1000, 48 } };
	check_event(&ev, "free pid 1/2 addr 0x1000 size 48\n",
		    "{\"type\":\"free\",\"pid\":1,\"tid\":2,\"addr\":\"0x1000\",\"size\":48}\n");
}

static void test_slice(void **state)
{
	struct trace_event ev = { .kind = TRACE_SLICE,
				  .slice = { STRATUM_MISS, 10, 20, 3000, 40, 500 } };

	(void)state;
	check_event(&ev,
		    "slice stratum \"miss\" start_ns 10 end_ns 20 ops 3000 tagged 40 period 500\n",
		    "{\"type\":\"slice\",\"stratum\":\"miss\",\"start_ns\":10,\"end_ns\":20,"
		    "\"ops\":3000,\"tagged\":40,\"period\":500}\n");
	ev.slice.of = STRATUM_FULL;
	check_event(&ev,
		    "slice stratum \"full\" start_ns 10 end_ns 20 ops 3000 tagged 40 period 500\n",
		    "{\"type\":\"slice\",\"stratum\":\"full\",\"start_ns\":10,\"end_ns\":20,"
		    "\"ops\":3000,\"tagged\":40,\"period\":500}\n");
}

/* --- what the recording is --- */

/* What is unknown is absent. */
static void test_info_unknown(void **state)
{
	const struct trace_info info = {};

	(void)state;
	check_info(&info, false, "# registers: all but IBS_OP_CTL\n");
	check_info(&info, true,
		   "{\"type\":\"recording\",\"simulated\":false,\"full_registers\":false,"
		   "\"events\":[]}\n");
}

static void test_info(void **state)
{
	static const struct memory_range memory[] = {
		{ .start = 0, .end = 0x1000, .node = 0 },
		{ .start = 0x1000, .end = 0x2000, .node = 1 }
	};
	static const struct trace_pmu pmu[] = {
		{ .name = "ibs_op//", .period = 1000, .physical = true },
		{ .name = "f", .period = 99, .freq = true, .stacks = true }
	};
	static struct trace_topology topology = { .n = 3,
						  .has_sockets = true,
						  .ccx = { 0, 4, 2 },
						  .node = { 0, 1, 1 },
						  .socket = { 1, 0, 1 } };
	struct trace_info info = {
		.format = "ibscope 1",
		.source = "sim",
		.simulated = true,
		.host = "h",
		.release = "6.12",
		.command = "a \"b\"",
		.cpu = { .family = 0x19, .model = 0x11, .amd = true, .caps = 0xbff },
		.has_cpu = true,
		.n_cpus = 3,
		.topology = &topology,
		.memory = memory,
		.n_memory = 2,
		.pmu = pmu,
		.n_pmus = 2,
		.filter = "--src dram",
		.full_registers = true,
		.alloc_bytes = 4096,
		.realtime_ns = 1767225600000000005,
		.monotonic_ns = 2000000007
	};

	(void)state;
	topology.distance.of[0][0] = 10;
	topology.distance.of[1][0] = 32;
	check_info(&info, false,
		   "# SIMULATED samples, not measurements\n"
		   "# format: \"ibscope 1\"\n"
		   "# source: \"sim\"\n"
		   "# host: \"h\"\n"
		   "# kernel: \"6.12\"\n"
		   "# command: \"a \\\"b\\\"\"\n"
		   "# processor: family 0x19, model 0x11 (Zen 4), IBS capabilities 0xbff\n"
		   "# cpus: 3\n"
		   "# topology: 5 L3 complexes, 2 NUMA nodes\n"
		   "# memory: 0x0 to 0x1000 is of node 0\n"
		   "# memory: 0x1000 to 0x2000 is of node 1\n"
		   "# event: \"ibs_op//\", period 1000, physical addresses\n"
		   "# event: \"f\", Hz 99, call chains\n"
		   "# selection: \"--src dram\"\n"
		   "# allocations: of 4096 bytes or more, and a sample of smaller ones\n"
		   "# registers: all\n"
		   "# clock: time 2.000000007 is 2026-01-01T00:00:00.000000005Z\n");
	check_info(
		&info, true,
		"{\"type\":\"recording\",\"format\":\"ibscope 1\",\"source\":\"sim\","
		"\"simulated\":true,\"host\":\"h\",\"kernel\":\"6.12\",\"command\":\"a \\\"b\\\"\","
		"\"family\":25,\"model\":17,\"caps\":3071,\"cpus\":3,"
		"\"ccx\":[0,4,2],\"node\":[0,1,1],\"socket\":[1,0,1],"
		"\"distance\":[{\"node\":0,\"mem_node\":0,\"distance\":10},"
		"{\"node\":1,\"mem_node\":0,\"distance\":32}],"
		"\"memory\":[{\"node\":0,\"start\":0,\"end\":4096},"
		"{\"node\":1,\"start\":4096,\"end\":8192}],"
		"\"selection\":\"--src dram\",\"full_registers\":true,\"alloc_bytes\":4096,"
		"\"realtime_ns\":1767225600000000005,\"monotonic_ns\":2000000007,"
		"\"events\":[{\"name\":\"ibs_op//\",\"period\":1000},"
		"{\"name\":\"f\",\"freq\":99}]}\n");
}

/* Stacks that were copied are not shown, nor is it said that there are call chains, which nobody unwinds here. */
static void test_info_more(void **state)
{
	static const struct trace_pmu pmu[] = {
		{ .name = "e", .stacks = true, .copy_bytes = 1024 }
	};
	static struct trace_topology topology = { .n = 1 };
	const struct trace_info info = { .topology = &topology,
					 .pmu = pmu,
					 .n_pmus = 1,
					 .alloc_bytes = 1,
					 .alloc_probes = true };

	(void)state;
	check_info(&info, false,
		   "# topology: 1 L3 complexes, 1 NUMA nodes\n"
		   "# event: \"e\", copies of user stacks up to 1024 bytes (not shown)\n"
		   "# allocations: those that programs report by probes\n"
		   "# registers: all but IBS_OP_CTL\n");
	check_info(&info, true,
		   "{\"type\":\"recording\",\"simulated\":false,\"ccx\":[0],\"node\":[0],"
		   "\"full_registers\":false,\"alloc_bytes\":1,\"alloc_probes\":true,"
		   "\"events\":[{\"name\":\"e\"}]}\n");
	topology.n = 0;
	check_info(&info, false,
		   "# topology: 0 L3 complexes, 0 NUMA nodes\n"
		   "# event: \"e\", copies of user stacks up to 1024 bytes (not shown)\n"
		   "# allocations: those that programs report by probes\n"
		   "# registers: all but IBS_OP_CTL\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_samples),   cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_mmap),	     cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_lost),	     cmocka_unit_test(test_rank_and_region),
		cmocka_unit_test(test_memory),	     cmocka_unit_test(test_slice),
		cmocka_unit_test(test_info_unknown), cmocka_unit_test(test_info),
		cmocka_unit_test(test_info_more),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return ret;
}
