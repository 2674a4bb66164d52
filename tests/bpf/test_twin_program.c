// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The program that runs on samples made here, as a whole: the loop of benchmarks, and what it leaves behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/open_files.h"
#include "base/clock.h"
#include "sampler/sampler.h"
#include "twin_run.h"
#include "twin_model.h"

static void test_loop(void **state)
{
	enum { N = 16, REPEAT = 1000 };
	struct sampler *s = open_twin(&zen4);
	struct snapshot snap;
	struct err err = {};
	regs_t regs[N];
	__u64 ns = 0, before;

	(void)state;
	random_regs(41, ZEN4_CAPS, regs, N);
	assert_int_equal(twin_load(s, regs, N, &err), 0);
	before = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(twin_loop(s, IBS_TWIN_REGS, N, REPEAT, &ns, &err), 0);
	assert_in_range(ns, 1, clock_ns(CLOCK_MONOTONIC) - before);
	check_size(s, 60);
	assert_int_equal(twin_loop(s, IBS_TWIN_RAW, N, REPEAT, &ns, &err), 0);
	assert_int_equal(twin_loop(s, IBS_TWIN_FLOOR, N, REPEAT, &ns, &err), 0);
	assert_int_equal(twin_loop(s, IBS_TWIN_FLOOR, N, TWIN_REPEAT_MAX, &ns, &err), 0);
	snapshot(s, &snap);
	assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_AGGREGATED], 2 * REPEAT + 1);
	snapshot_free(&snap);
	sampler_close(s);
}

/* The empty loop fills in outcomes as the others do. */
static void test_floor(void **state)
{
	struct sampler *s = open_twin(&zen4);
	struct ibs_twin_area *area = sampler_twin_area(s);
	struct ibs_twin_ctx ctx = twin_still;
	struct err err = {};

	(void)state;
	memset(area->outcome, IBS_OUTCOME_N, sizeof(area->outcome));
	ctx.mode = IBS_TWIN_FLOOR;
	ctx.repeat = 4;
	ctx.tell = 1;
	assert_int_equal(twin_run_prog(s, &ctx, &err), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(area->outcome[i], i < 4 ? IBS_OUTCOME_AGGREGATED : IBS_OUTCOME_N);
	close_twin(s);
}

static int count_bpf_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "bpf") && strstr(line, "anon_inode");
	fclose(f);
	return n;
}

static void test_no_leak(void **state)
{
	int fds = open_files(), mappings = count_bpf_mappings();
	struct sampler_opts opts = zen4;
	struct sampler *s = open_twin(&opts);
	enum ibs_outcome out;
	struct err err = {};

	(void)state;
	assert_true(open_files() > fds && count_bpf_mappings() > mappings);
	close_twin(s);
	assert_int_equal(open_files(), fds);
	assert_int_equal(count_bpf_mappings(), mappings);
	opts.max_memory_bytes = 1;
	assert_int_equal(sampler_open(&opts, &s, &err), -ENOSPC);
	assert_int_equal(open_files(), fds);
	/* a sampler of events takes no samples from here */
	opts = zen4;
	opts.source = SAMPLER_SIM;
	opts.attr.type = PERF_TYPE_SOFTWARE;
	opts.attr.size = sizeof(opts.attr);
	opts.attr.config = PERF_COUNT_SW_CPU_CLOCK;
	opts.attr.sample_period = 1000000000;
	opts.cpus = &(unsigned int){ 0 };
	opts.n_cpus = 1;
	s = open_twin(&opts);
	assert_int_equal(twin_run_raw(s, &(struct twin_raw){}, &out, &err), -EINVAL);
	sampler_close(s);
	assert_int_equal(open_files(), fds);
	assert_int_equal(count_bpf_mappings(), mappings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_no_leak),
	};

	if (!can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
