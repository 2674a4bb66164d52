// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loops of known behaviour: their code, their memory, and the judgement of what samples say of them. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/cpulist.h"
#include "base/json_writer.h"
#include "base/std.h"
#include "doctor/loop_code.h"
#include "doctor/loops.h"
#include "doctor/loops_place.h"

static char out[8192];

static struct loops unknown(void)
{
	struct loops l = {};

	for (int i = 0; i < LOOPS_N; i++)
		loops_unknown(&l, i, "no %s", "reason");
	return l;
}

static const char *text(const struct loops *l)
{
	FILE *f = fmemopen(out, sizeof(out), "w");

	loops_print(l, f);
	fclose(f);
	return out;
}

static void test_unknown(void **state)
{
	struct loops l = unknown();

	(void)state;
	assert_false(loops_compared(&l));
	assert_false(loops_agree(&l));
	assert_non_null(strstr(text(&l), "No loop could be sampled."));
	loops_set(&l, LOOPS_L1, 1, 1, LOOPS_SAMPLES_MIN - 1);
	assert_false(loops_compared(&l));
	assert_non_null(strstr(text(&l), "only 29 samples of the loop"));
}

static void test_limits(void **state)
{
	static const struct {
		enum loop_figure figure;
		double expected, measured;
		unsigned long long samples;
		bool agrees;
	} rows[] = {
		/* 6 % and 3 / sqrt(10,000) */
		{ LOOPS_BRANCHES, 1e6, 1.089e6, 10000, true },
		{ LOOPS_BRANCHES, 1e6, 1.091e6, 10000, false },
		{ LOOPS_BRANCHES, 1e6, 0.911e6, 10000, true },
		{ LOOPS_BRANCHES, 1e6, 0.909e6, 10000, false },
		{ LOOPS_BRANCHES, 1e6, 1.2e6, 400, true },
		/* a share: the difference, whatever it is of */
		{ LOOPS_L3, 1, 0.81, 100, true },
		{ LOOPS_L3, 1, 0.79, 100, false },
		{ LOOPS_PAGES_2M, 0, 0.19, 100, true },
		{ LOOPS_PAGES_2M, 0, 0.21, 100, false },
		/* 30 %, or 8 clocks */
		{ LOOPS_LAT_DRAM, 400, 519, 100, true },
		{ LOOPS_LAT_DRAM, 400, 521, 100, false },
		{ LOOPS_LAT_L2, 10, 17.9, 100, true },
		{ LOOPS_LAT_L2, 10, 18.1, 100, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct loops l = unknown();

		loops_set(&l, rows[i].figure, rows[i].expected, rows[i].measured, rows[i].samples);
		assert_true(loops_compared(&l));
		assert_int_equal(loops_agree(&l), rows[i].agrees);
		assert_non_null(strstr(text(&l), rows[i].agrees ? "Loops look as they must."
								: "Loops look WRONG."));
	}
}

/* One line for each figure, in its unit. */
static void test_lines(void **state)
{
	static const struct {
		enum loop_figure figure;
		double expected, measured;
		const char *line;
	} rows[] = {
		{ LOOPS_STORES, 1e6, 1.05e6,
		  "\nstores                                                   1,000,000       "
		  "1,050,000 "
		  "    +5.0 %  ok\n" },
		{ LOOPS_STORES, 1000, 500,
		  "\nstores                                                       1,000            "
		  " 500 "
		  "   -50.0 %  WRONG: more than 36 %\n" },
		{ LOOPS_LAT_L2, 100, 110.4,
		  "\nclocks of an L2 hit                                            100            "
		  " 110 "
		  "   +10.4 %  ok\n" },
		{ LOOPS_L1, 1, .85,
		  "\nloads of half the L1, from L1                              100.0 %          "
		  "85.0 % "
		  "   -15.0 %  WRONG: more than 10 %\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct loops l = unknown();

		loops_set(&l, rows[i].figure, rows[i].expected, rows[i].measured, 100);
		if (!strstr(text(&l), rows[i].line))
			fail_msg("no%sin:\n%s", rows[i].line, out);
		assert_memory_equal(out, "LOOP   ", 7);
		assert_non_null(strstr(out, "  EXPECTED        MEASURED      ERROR\n"));
		assert_non_null(strstr(out, " unknown\n    no reason\n"));
	}
}

static void test_json(void **state)
{
	struct loops l = unknown();
	FILE *f = fmemopen(out, sizeof(out), "w");
	struct json_writer w = { .f = f, .precision = 12 };
	json_t *o, *rows, *row;

	(void)state;
	loops_set(&l, LOOPS_STORES, 1000, 1500, 100);
	json_begin_object(&w, NULL);
	loops_print_json(&l, &w);
	json_finish(&w);
	fclose(f);
	o = json_loads(out, JSON_REJECT_DUPLICATES, NULL);
	rows = json_object_get(o, "loops");
	assert_int_equal(json_array_size(rows), LOOPS_N);
	row = json_array_get(rows, LOOPS_STORES);
	assert_string_equal(json_string_value(json_object_get(row, "id")), "stores");
	assert_true(json_number_value(json_object_get(row, "expected")) == 1000);
	assert_true(json_number_value(json_object_get(row, "measured")) == 1500);
	assert_true(json_real_value(json_object_get(row, "error")) == 0.5);
	/* 6 %, and 3 of the root of 100 */
	assert_true(fabs(json_real_value(json_object_get(row, "limit")) - 0.36) < 1e-9);
	assert_int_equal(json_integer_value(json_object_get(row, "samples")), 100);
	assert_true(json_is_false(json_object_get(row, "agrees")));
	assert_true(json_is_null(json_object_get(row, "why")));
	row = json_array_get(rows, LOOPS_SHARING);
	assert_true(json_is_null(json_object_get(row, "measured")));
	assert_true(json_is_null(json_object_get(row, "agrees")));
	assert_string_equal(json_string_value(json_object_get(row, "why")), "no reason");
	json_decref(o);
}

/* A chain visits each node once, in an order that is not that of memory, and returns. */
static void test_circle(void **state)
{
	static _Alignas(64) char nodes[512 * LOOP_LINE];
	unsigned int forward = 0;
	void **at = (void **)nodes;
	int n = 0;

	(void)state;
	loop_circle(nodes, 512, LOOP_LINE);
	do {
		forward += (char *)*at == (char *)at + LOOP_LINE;
		at = *at;
		n++;
	} while (at != (void **)nodes && n <= 512);
	assert_int_equal(n, 512);
	assert_in_range(forward, 0, 20);
	assert_ptr_equal(loop_chase.run(nodes, 512 / LOOP_UNROLLED), nodes);
	assert_ptr_not_equal(loop_chase.run(nodes, 1), nodes);
}

/* The bytes of a marked access, as tests/vm/rig/timed.patch expects them. */
static void check_code(const struct loop_code *c, const char *access, size_t n, bool before,
		       unsigned int marker)
{
	const unsigned char nop[] = { 0x0f, 0x1f, 0x87, marker, 0xc0, 0xb5, 0x01 };

	for (size_t i = 0; i < c->accesses; i++) {
		const char *at = c->begin + i * c->unit + c->offset;

		assert_memory_equal(at, access, n);
		assert_memory_equal(before ? at - sizeof(nop) : at + n, nop, sizeof(nop));
		assert_true(loop_code_has(c, (uintptr_t)at));
		assert_false(loop_code_has(c, (uintptr_t)at + 1));
	}
	assert_false(loop_code_has(c, (uintptr_t)c->begin + c->accesses * c->unit + c->offset));
	assert_false(loop_code_has(c, (uintptr_t)c->begin - c->unit + c->offset));
}

static void test_code(void **state)
{
	static _Alignas(64) uint64_t line[8];
	void *code;

	(void)state;
	check_code(&loop_chase, "\x48\x8b\x07", 3, false, 0xdf);
	check_code(&loop_stores, "\x48\x89\x07", 3, false, 0xdf);
	check_code(&loop_sharing, "\x48\x8b\x07", 3, false, 0xdf);
	check_code(&loop_branches, "\x75\0", 2, true, 0xdb);
	assert_ptr_equal(loop_stores.run(line, 10), line);
	assert_ptr_equal(loop_branches.run(line, 10), line);
	assert_ptr_equal(loop_sharing.run(line + 1, 10), line + 1);
	assert_int_equal(line[1], 10);
	loop_clocks(1000);
	for (size_t lines = 1; lines <= 4096; lines *= 8) {
		code = loop_jumps_make(lines);
		assert_non_null(code);
		((void *(*)(void *, size_t))code)(NULL, 3);
		loop_jumps_free(code, lines);
	}
}

static void test_memory(void **state)
{
	struct loops_place p;
	struct loops_memory m;
	struct err e;

	(void)state;
	loops_place_read(0, &p);
	assert_true(p.other_cpu != 0);
	assert_int_equal(loops_memory_get(3 << 20, false, -1, &m, &e), 0);
	assert_int_equal(m.bytes, 4 << 20);
	assert_int_equal((uintptr_t)m.at % (2 << 20), 0);
	m.at[m.bytes - 1] = 1;
	assert_false(m.huge);
	loops_memory_free(&m);
	assert_true(loops_memory_get(1, false, 1000, &m, &e) < 0);
	assert_non_null(strstr(e.text, "node 1000"));
	loops_memory_free(&m);
	assert_true(cpulist_bind(CPULIST_MAX - 1, &e) < 0);
}

/* Pages of this process, mapped and in memory. */
static void read_pages(long *mapped, long *resident)
{
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", mapped, resident), 2);
	fclose(f);
}

/* All of the memory is there, and no more than that; what fails, or is freed, takes no addresses. */
static void test_memory_is_there(void **state)
{
	long mapped, resident, mapped_then, resident_then;
	unsigned char in[3 * 512] = { 0 };
	struct loops_memory m;
	struct err e;

	(void)state;
	assert_int_equal(loops_memory_get(2 << 20, false, -1, &m, &e), 0);
	assert_int_equal(m.bytes, 2 << 20);
	assert_int_equal(mincore(m.at, m.bytes, in), 0);
	for (size_t i = 0; i < 512; i++)
		assert_int_equal(in[i] & 1, 1);
	for (size_t i = 0; i < m.bytes; i += 4096)
		assert_int_equal(m.at[i], 1);
	/* the page behind */
	if ((char *)m.map + m.mapped > m.at + m.bytes) {
		assert_int_equal(mincore(m.at + m.bytes, 4096, in), 0);
		assert_int_equal(in[0] & 1, 0);
	}
	loops_memory_free(&m);
	assert_null(m.map);
	read_pages(&mapped, &resident);
	for (int i = 0; i < 16; i++) {
		assert_true(loops_memory_get(64 << 20, false, 1023, &m, &e) < 0);
		assert_true(loops_memory_get(64 << 20, false, 1024, &m, &e) == -EINVAL);
		assert_null(m.map);
		assert_int_equal(loops_memory_get(2 << 20, false, 0, &m, &e), 0);
		loops_memory_free(&m);
		loops_memory_free(&m);
	}
	read_pages(&mapped_then, &resident_then);
	/* 64 MiB are 16,384 pages */
	assert_true(mapped_then < mapped + 16384);
	assert_true(resident_then < resident + 4096);
}

static bool sysfs(const char *file, char *text, size_t size)
{
	char path[128];
	FILE *f;
	bool found;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/%s", file);
	f = fopen(path, "r");
	found = f && fgets(text, size, f);
	if (f)
		fclose(f);
	return found;
}

/* The caches of a CPU are those that sysfs has; instructions have one of their own. */
static void test_place(void **state)
{
	size_t want[4] = { 0 };
	struct loops_place p;

	(void)state;
	for (int i = 0; i < 8; i++) {
		char name[64], level[16], type[32], size[32];

		snprintf(name, sizeof(name), "cache/index%d/level", i);
		if (!sysfs(name, level, sizeof(level)))
			continue;
		snprintf(name, sizeof(name), "cache/index%d/type", i);
		assert_true(sysfs(name, type, sizeof(type)));
		snprintf(name, sizeof(name), "cache/index%d/size", i);
		if (*type != 'I' && sysfs(name, size, sizeof(size)) && atoi(level) <= 3)
			want[atoi(level)] = (size_t)atoi(size) << 10;
	}
	loops_place_read(0, &p);
	assert_int_equal(p.cpu, 0);
	assert_int_equal(p.l1, want[1]);
	assert_int_equal(p.l2, want[2]);
	assert_int_equal(p.l3, want[3]);
	assert_true(p.node >= 0);
	assert_int_not_equal(p.other_node, p.node);
	assert_true(p.other_cpu < (int)sysconf(_SC_NPROCESSORS_CONF));
}

/* Instructions from one stop of a child to the next, with a chain of @n additions between; -1: it cannot be traced. */
static long steps_of(size_t n)
{
	long steps = 0;
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		loop_clocks(n);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return -1;
	do {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		steps++;
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return steps;
}

/* The chain has as many additions as asked for, 64 a round, and one round at least. */
static void test_clocks(void **state)
{
	const long one = steps_of(64);

	(void)state;
	if (one < 0) {
		print_message("no process may be traced here\n");
		skip();
	}
	/* with the end of the loop, a round has 66 instructions */
	assert_int_equal(steps_of(101 * 64) - one, 100 * 66);
	assert_int_equal(steps_of(2 * 64 - 1), one);
	assert_true(labs(steps_of(1) - one) < 33);
	assert_true(labs(steps_of(0) - one) < 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_lines),	cmocka_unit_test(test_json),
		cmocka_unit_test(test_circle),	cmocka_unit_test(test_code),
		cmocka_unit_test(test_memory),	cmocka_unit_test(test_memory_is_there),
		cmocka_unit_test(test_place),	cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
