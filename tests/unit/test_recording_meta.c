// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The description and the ledgers of a recording: all that is written comes back, and what is invalid does not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory_in_use.h"
#include "recording/recording_meta.h"

static struct trace_info out;
static struct trace_pmu pmus[TRACE_EVENTS + 1];
static struct trace_topology topology;
static struct memory_range memory[MEMORY_RANGES + 1];

static const char *decode(const char *text)
{
	memset(&out, 0x55, sizeof(out));
	memset(pmus, 0x55, sizeof(pmus));
	memset(&topology, 0x55, sizeof(topology));
	memset(memory, 0x55, sizeof(memory));
	return recording_meta_decode(text, strlen(text), &out, pmus, &topology, memory);
}

static void round_trip(const struct trace_info *info)
{
	char *text = recording_meta_encode(info);

	assert_null(decode(text));
	free(text);
}

static void test_everything(void **state)
{
	static struct trace_topology t = { .n = 3,
					   .has_sockets = true,
					   .ccx = { 1, 2, 3 },
					   .node = { 4, 5, 6 },
					   .socket = { 7, 8, 9 } };
	static const struct memory_range ranges[] = { { 0, 0x1000, 3 }, { 0x2000, 0x5000, 0 } };
	const struct trace_pmu events[] = {
		{ "ibs_op/l3missonly=1/", true, true, true, 1U << 0 | 1U << 3, true, false, 512,
		  7 },
		{ "ibs_fetch//", false, false, false, 0, false, true, 0, 9 },
	};
	struct trace_info info = { .source = "replay",
				   .simulated = true,
				   .host = "h",
				   .release = "r",
				   .command = "c",
				   .has_cpu = true,
				   .n_cpus = 3,
				   .topology = &t,
				   .memory = ranges,
				   .n_memory = 2,
				   .job_ranks = 5,
				   .job = "77",
				   .pmu = events,
				   .n_pmus = 2,
				   .filter = "f",
				   .full_registers = true,
				   .alloc_bytes = 4096,
				   .alloc_probes = true,
				   .realtime_ns = 1ULL << 60,
				   .monotonic_ns = 12 };

	(void)state;
	t.distance.of[0][0] = 10;
	t.distance.of[0][2] = 255;
	t.distance.of[DISTANCE_NODES - 1][1] = 32;
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	strcpy(info.cpu.name, "a name");
	info.cpu.stepping = 3;
	info.cpu.hypervisor = true;
	strcpy(info.cpu.hypervisor_name, "KVM");
	for (int flag = 0; flag < 2; flag++) {
		info.simulated = info.full_registers = info.alloc_probes = !flag;
		info.cpu.ibs = info.cpu.hypervisor = !flag;
		t.has_sockets = !flag;
		round_trip(&info);
		assert_string_equal(out.source, "replay");
		assert_int_equal(out.simulated, !flag);
		assert_int_equal(out.full_registers, !flag);
		assert_int_equal(out.alloc_probes, !flag);
		assert_int_equal(out.topology->has_sockets, !flag);
		assert_memory_equal(&out.cpu, &info.cpu, sizeof(info.cpu));
	}
	assert_string_equal(out.format, "ibscope 1");
	assert_string_equal(out.host, "h");
	assert_string_equal(out.release, "r");
	assert_string_equal(out.command, "c");
	assert_string_equal(out.filter, "f");
	assert_string_equal(out.job, "77");
	assert_int_equal(out.job_ranks, 5);
	assert_int_equal(out.n_cpus, 3);
	assert_int_equal(out.alloc_bytes, 4096);
	assert_true(out.realtime_ns == 1ULL << 60);
	assert_int_equal(out.monotonic_ns, 12);
	assert_int_equal(out.topology->n, 3);
	assert_memory_equal(out.topology->ccx, t.ccx, 3 * sizeof(*t.ccx));
	assert_memory_equal(out.topology->node, t.node, 3 * sizeof(*t.node));
	assert_memory_equal(&out.topology->distance, &t.distance, sizeof(t.distance));
	assert_ptr_equal(out.memory, memory);
	assert_int_equal(out.n_memory, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(memory[i].start, ranges[i].start);
		assert_int_equal(memory[i].end, ranges[i].end);
		assert_int_equal(memory[i].node, ranges[i].node);
	}
	assert_ptr_equal(out.pmu, pmus);
	assert_int_equal(out.n_pmus, 2);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(pmus[i].name, events[i].name);
		assert_int_equal(pmus[i].op, events[i].op);
		assert_int_equal(pmus[i].freq, events[i].freq);
		assert_int_equal(pmus[i].filtered, events[i].filtered);
		assert_int_equal(pmus[i].reach, events[i].reach);
		assert_int_equal(pmus[i].physical, events[i].physical);
		assert_int_equal(pmus[i].stacks, events[i].stacks);
		assert_int_equal(pmus[i].copy_bytes, events[i].copy_bytes);
		assert_int_equal(pmus[i].period, events[i].period);
		assert_int_equal(pmus[i].config, 0);
	}
}

/* What is not known is left out, so that files of the same data stay the same. */
static void test_nothing(void **state)
{
	static struct trace_topology t = { .n = 1 };
	const struct trace_pmu event = { .name = "ibs_op//", .op = true, .period = 5 };
	struct trace_info info = { .pmu = &event, .n_pmus = 1 };
	char *text = recording_meta_encode(&info);
	static const char *const absent[] = { "alloc_bytes", "alloc_probes", "\"cpu\"",
					      "topology",    "memory",	     "mpi",
					      "stack_bytes", "reach",	     "freq" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (strstr(text, absent[i]))
			fail_msg("%s: %s", absent[i], text);
	assert_non_null(strstr(text, "\"name\":\"CLOCK_MONOTONIC\""));
	assert_null(decode(text));
	free(text);
	assert_string_equal(out.source, "");
	assert_false(out.has_cpu || out.topology || out.n_memory || out.job_ranks ||
		     out.alloc_bytes || out.alloc_probes);
	info.topology = &t;
	text = recording_meta_encode(&info);
	assert_null(strstr(text, "distance"));
	assert_null(strstr(text, "socket"));
	free(text);
}

static void test_not_an_object(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "5", "{} x" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_string_equal(decode(texts[i]),
				    "the description of the recording is not a JSON object");
	assert_null(decode("{}"));
	assert_int_equal(out.n_pmus, 1); /* there is at least one event */
	assert_string_equal(pmus[0].name, "");
	assert_false(pmus[0].op || pmus[0].freq || pmus[0].period || pmus[0].reach);
	assert_string_equal(out.source, "");
	assert_string_equal(out.host, "");
	assert_false(out.has_cpu || out.topology || out.n_memory);
}

/* A text that is too long is cut; of more events than this program knows, the first are read. */
static void test_too_much(void **state)
{
	char text[400], host[201];

	(void)state;
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = 0;
	snprintf(text, sizeof(text), "{\"host\":\"%s\",\"source\":\"other\"}", host);
	assert_null(decode(text));
	assert_int_equal(strlen(out.host), sizeof(out.host) - 1);
	assert_string_equal(out.source, "");
	assert_null(decode("{\"events\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}"));
	assert_int_equal(out.n_pmus, TRACE_EVENTS);
	assert_string_equal(pmus[0].name, "a");
	assert_string_equal(pmus[1].name, "b");
	assert_int_equal(pmus[TRACE_EVENTS].name[0], 0x55);
	/* of two members with a name the last one counts */
	assert_null(decode("{\"host\":\"a\",\"host\":\"b\"}"));
	assert_string_equal(out.host, "b");
	/* sources of a newer program, and what is none */
	assert_null(decode("{\"events\":[{\"reach\":[5,\"new\",\"dram\",null]}]}"));
	assert_int_equal(pmus[0].reach, 1U << IBS_SRC_DRAM);
}

static char *repeat(const char *begin, const char *element, unsigned int n, const char *end)
{
	const size_t size = strlen(begin) + n * (strlen(element) + 1) + strlen(end) + 1;
	char *text = malloc(size), *to = stpcpy(text, begin);

	for (unsigned int i = 0; i < n; i++)
		to = stpcpy(stpcpy(to, i ? "," : ""), element);
	strcpy(to, end);
	return text;
}

static bool has_topology(unsigned int ccx, unsigned int node)
{
	char *first = repeat("{\"topology\":{\"ccx\":[", "1", ccx, "],\"node\":[");
	char *text = repeat(first, "2", node, "]}}");

	assert_null(decode(text));
	free(first);
	free(text);
	return out.topology;
}

static void test_topology(void **state)
{
	(void)state;
	assert_false(has_topology(0, 0));
	assert_false(has_topology(2, 1));
	assert_false(has_topology(1, 2));
	assert_true(has_topology(1, 1));
	assert_false(topology.has_sockets);
	assert_true(has_topology(TRACE_CPUS, TRACE_CPUS));
	assert_int_equal(topology.ccx[TRACE_CPUS - 1], 1);
	assert_int_equal(topology.node[0], 2);
	assert_int_equal(topology.node[TRACE_CPUS - 1], 2);
	assert_false(has_topology(TRACE_CPUS + 1, TRACE_CPUS + 1));
	assert_null(decode("{\"topology\":{\"ccx\":[1],\"node\":[2],\"distance\":"
			   "[[0,1,255],[1,0,256],[64,0,9],[0,64,9],[63,63,7],[2,2]]}}"));
	assert_int_equal(DISTANCE_NODES, 64);
	assert_int_equal(topology.distance.of[0][1], 255);
	assert_int_equal(topology.distance.of[1][0], 0);
	assert_int_equal(topology.distance.of[63][63], 7);
	assert_int_equal(topology.distance.of[2][2], 0);
}

static size_t memory_of(const char *ranges)
{
	char text[200];

	snprintf(text, sizeof(text), "{\"memory\":[%s]}", ranges);
	assert_null(decode(text));
	return out.n_memory;
}

static void test_memory_ranges(void **state)
{
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(memory_of("[0,0,1]"), 1);
	assert_int_equal(memory_of("[65535,0,1],[1,4,5]"), 2);
	assert_int_equal(memory[0].node, 65535);
	assert_int_equal(memory_of("[65536,0,1],[1,4,5]"), 0);
	assert_int_equal(memory_of("[-1,0,1],[1,4,5]"), 0);
	assert_int_equal(memory_of("[1,4,5],[0,0]"), 0);
	assert_int_equal(memory_of("[1,4,5],[0,0,1,2]"), 0);
	for (unsigned int more = 0; more < 2; more++) {
		text = malloc(20 * (MEMORY_RANGES + 1) + 20);
		n = sprintf(text, "{\"memory\":[");
		for (unsigned int i = 0; i < MEMORY_RANGES + more; i++)
			n += sprintf(text + n, "%s[1,%u,%u]", i ? "," : "", 4 * i, 4 * i + 1);
		strcpy(text + n, "]}");
		assert_null(decode(text));
		assert_int_equal(out.n_memory, more ? 0 : MEMORY_RANGES);
		free(text);
	}
}

static int decode_ledger(const char *text, struct trace_end *end, __u64 *unwritten)
{
	return recording_ledger_decode(text, strlen(text), end, unwritten);
}

static void test_ledgers(void **state)
{
	struct ledger l[2] = { { .seen = 10, .pmu_samples = 11, .unseen = 1, .pmu_exact = true },
			       { .seen = 20, .pmu_samples = 23, .unseen = 3 } };
	__u64 unwritten;

	(void)state;
	for (int i = 0; i < IBS_OUTCOME_N; i++) {
		l[0].outcome[i] = 100 + i;
		l[1].outcome[i] = 200 + i;
	}
	for (unsigned int n = 0; n <= 2; n++) {
		struct trace_end end = {};
		char *text = recording_ledger_encode(n ? l : NULL, n, 5, n ? 7 : 0);

		assert_int_equal(!strstr(text, "lost_allocations"), !n);
		assert_int_equal(!strstr(text, "second_event"), n < 2);
		assert_int_equal(decode_ledger(text, &end, &unwritten), !!n);
		free(text);
		assert_int_equal(unwritten, 5);
		assert_int_equal(end.lost_allocs, n ? 7 : 0);
		assert_int_equal(end.n_ledgers, n);
		assert_memory_equal(end.event_ledger, l, n * sizeof(*l));
		assert_int_equal(end.ledger.seen, 5 * n * (n + 1));
		for (int i = 0; n == 2 && i < IBS_OUTCOME_N; i++)
			assert_int_equal(end.ledger.outcome[i], 300 + 2 * i);
	}
	/* no second ledger of one event */
	free(recording_ledger_encode(NULL, 2, 0, 0));
}

/* What does not balance is not believed; outcomes of a newer program matter only if there are some. */
static void test_ledger_unknown(void **state)
{
	struct trace_end end = {};
	__u64 unwritten = 0;

	(void)state;
	assert_int_equal(decode_ledger("[]", &end, &unwritten), -EINVAL);
	assert_int_equal(decode_ledger("{", &end, &unwritten), -EINVAL);
	assert_int_equal(decode_ledger("{}", &end, &unwritten), 0);
	assert_int_equal(decode_ledger("{\"seen\":\"5\"}", &end, &unwritten), 0);
	assert_int_equal(decode_ledger("{\"seen\":5,\"lost\":{\"new\":1}}", &end, &unwritten), 0);
	/* the right name, of another kind */
	assert_int_equal(
		decode_ledger("{\"seen\":5,\"lost\":{\"aggregated\":1}}", &end, &unwritten), 0);
	assert_int_equal(decode_ledger("{\"seen\":5,\"second_event\":{}}", &end, &unwritten), 0);
	assert_int_equal(end.n_ledgers, 0);
	assert_int_equal(end.ledger.seen, 0);
	assert_int_equal(decode_ledger("{\"seen\":\"x\",\"seen\":5}", &end, &unwritten), 1);
	assert_int_equal(end.ledger.seen, 5);
	assert_int_equal(decode_ledger("{\"seen\":5,\"lost\":{\"new\":0}}", &end, &unwritten), 1);
	assert_int_equal(end.n_ledgers, 1);
	assert_int_equal(end.ledger.seen, 5);
	assert_int_equal(
		decode_ledger("{\"seen\":5,\"second_event\":{\"seen\":6}}", &end, &unwritten), 1);
	assert_int_equal(end.n_ledgers, 2);
	assert_int_equal(end.ledger.seen, 11);
}

static void test_memory(void **state)
{
	struct trace_end end = {};
	size_t before = 0;
	__u64 unwritten;

	(void)state;
	for (int i = 0; i < 301; i++) {
		assert_null(decode("{\"host\":\"h\",\"events\":[{}]}"));
		assert_non_null(decode("[1,2]"));
		assert_int_equal(decode_ledger("{\"seen\":5}", &end, &unwritten), 1);
		assert_int_equal(decode_ledger("[5]", &end, &unwritten), -EINVAL);
		free(recording_ledger_encode(NULL, 0, 0, 0));
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),    cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_not_an_object), cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_topology),      cmocka_unit_test(test_memory_ranges),
		cmocka_unit_test(test_ledgers),	      cmocka_unit_test(test_ledger_unknown),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
