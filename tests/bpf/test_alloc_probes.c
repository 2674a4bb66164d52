// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocations that this program reports by USDT probes, as <sys/sdt.h> makes them, through BPF to events of a recording. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../system/usdt_probe.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "capture/allocs.h"
#include "probes/probes.h"

SEMAPHORE(alloc);
SEMAPHORE(free);

static struct probes *probes;
static struct allocs *allocs;
static struct task_choice choice;
static struct err err;

static __attribute__((noinline)) void report(uintptr_t addr, size_t size, size_t weight)
{
	if (otel_memory_alloc_semaphore)
		PROBE(alloc, "8@%0 8@%1 8@%2", "r"(addr), "r"(size), "r"(weight));
}

static __attribute__((noinline)) void report_free(uintptr_t addr)
{
	if (otel_memory_free_semaphore)
		PROBE(free, "8@%0", "r"(addr));
}

static int set_up(void **state)
{
	const __u32 self = getpid();

	(void)state;
	task_choice_init(&choice, &self, 1, false);
	if (probes_open(&probes, &err) || probes_attach_process(probes, self, false, &err) < 1)
		fail_msg("%s", err.text);
	allocs = allocs_new();
	allocs_add_probes(allocs, probes, &choice);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	allocs_free(allocs);
	task_choice_free(&choice);
	return 0;
}

static struct trace_event next(void)
{
	struct trace_event ev = { .kind = TRACE_KIND_N };

	assert_true(allocs_peek(allocs) != UINT64_MAX);
	assert_true(allocs_next(allocs, &ev));
	return ev;
}

/* In order of time, with the stack of the call. */
static void test_events(void **state)
{
	const __u64 began = clock_ns(CLOCK_MONOTONIC);
	struct trace_event ev;

	(void)state;
	assert_int_equal(probes_files(probes), 1);
	assert_true(otel_memory_alloc_semaphore > 0 && otel_memory_free_semaphore > 0);
	assert_int_equal(allocs_peek(allocs), UINT64_MAX);
	report(0x1000, 64, 640);
	report(0x2000, 100, 100);
	report_free(0x1000);
	allocs_refresh(allocs, false);
	ev = next();
	assert_int_equal(ev.kind, TRACE_ALLOC);
	assert_true(ev.time >= began && ev.time <= clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(ev.alloc.tgid, getpid());
	assert_int_equal(ev.alloc.tid, getpid());
	assert_int_equal(ev.alloc.addr, 0x1000);
	assert_int_equal(ev.alloc.size, 64);
	assert_int_equal(ev.alloc.weight, 640);
	assert_false(ev.alloc.mapped);
	assert_true(ev.alloc.n_stack > 0);
	assert_in_range(ev.alloc.stack[0], (uintptr_t)report, (uintptr_t)report + 256);
	ev = next();
	assert_int_equal(ev.alloc.addr, 0x2000);
	assert_int_equal(ev.alloc.weight, 100);
	ev = next();
	assert_int_equal(ev.kind, TRACE_FREE);
	assert_int_equal(ev.free.addr, 0x1000);
	assert_int_equal(ev.free.size, 0);
	assert_int_equal(ev.free.tgid, getpid());
	assert_int_equal(allocs_peek(allocs), UINT64_MAX);
	assert_int_equal(allocs_counts(allocs).events, 3);
	assert_int_equal(allocs_counts(allocs).lost, 0);
	assert_int_equal(allocs_counts(allocs).probes, 1);
	/* what was returned does not come again */
	allocs_refresh(allocs, true);
	assert_int_equal(allocs_peek(allocs), UINT64_MAX);
	report(0x3000, 1, 1);
	allocs_refresh(allocs, false);
	assert_int_equal(next().alloc.addr, 0x3000);
	assert_true(allocs_delay_s(allocs) > 0);
}

/* Of processes that are not chosen there is nothing to record. */
static void test_others(void **state)
{
	struct trace_event ev;

	(void)state;
	task_choice_free(&choice);
	task_choice_init(&choice, (const __u32[]){ 1 }, 1, false);
	report(0x1000, 64, 640);
	allocs_refresh(allocs, false);
	assert_true(allocs_peek(allocs) != UINT64_MAX);
	assert_false(allocs_next(allocs, &ev));
	assert_int_equal(allocs_peek(allocs), UINT64_MAX);
	/* now it is */
	task_choice_add(&choice, getpid());
	report(0x2000, 64, 640);
	allocs_refresh(allocs, false);
	assert_int_equal(next().alloc.addr, 0x2000);
}

/* A child is another process: it is not listened to, unless asked for. */
static void test_children(void **state)
{
	const __u32 self = getpid();
	struct trace_event ev;
	int status;
	pid_t pid;

	(void)state;
	for (int children = 0; children < 2; children++) {
		if (children) {
			tear_down(state);
			task_choice_init(&choice, &self, 1, true);
			if (probes_open(&probes, &err) ||
			    probes_attach_process(probes, self, true, &err) < 1)
				fail_msg("%s", err.text);
			allocs = allocs_new();
			allocs_add_probes(allocs, probes, &choice);
		}
		pid = fork();
		if (!pid) {
			PROBE(alloc, "8@%0 8@%1 8@%2", "r"(0x7000ul), "r"(8ul), "r"(8ul));
			_exit(0);
		}
		if (children)
			task_choice_add(&choice, pid);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		allocs_refresh(allocs, true);
		if (!children) {
			assert_int_equal(allocs_peek(allocs), UINT64_MAX);
			continue;
		}
		assert_true(allocs_next(allocs, &ev));
		assert_int_equal(ev.alloc.tgid, pid);
		assert_int_equal(ev.alloc.addr, 0x7000);
	}
}

/* Many at once: what finds no room is counted. */
static void test_many(void **state)
{
	const __u64 n = 20000;
	struct allocs_counts c;
	struct trace_event ev;
	__u64 before = 0, got = 0;

	(void)state;
	for (__u64 i = 0; i < n; i++)
		report(0x1000 + 16 * i, 16, 16);
	allocs_refresh(allocs, true);
	while (allocs_peek(allocs) != UINT64_MAX) {
		assert_true(allocs_next(allocs, &ev));
		assert_true(ev.time >= before);
		before = ev.time;
		got++;
	}
	c = allocs_counts(allocs);
	assert_int_equal(c.events, got);
	assert_int_equal(c.events + c.lost, n);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_events),
		T(test_others),
		T(test_children),
		T(test_many),
	};
	int ret = probes_open(&probes, &err);

	ret = ret ?: probes_attach_process(probes, getpid(), false, &err);
	probes_close(probes);
	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	if (ret < 1) {
		fprintf(stderr, "%s\n", ret ? err.text : "no probes in this program");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
