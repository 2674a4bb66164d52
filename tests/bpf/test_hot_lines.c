// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables of hot lines of the program, against those of the same samples in user space: to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bind_to.h"
#include "replay/engine.h"
#include "twin_model.h"

#define SETS	16 /* so few that lines lose their place */
#define SAMPLES (32 * IBS_TWIN_SAMPLES)

static struct ibs_twin_sample sample[SAMPLES];

/* Addresses of a few lines, others after a while, and of many that come once. */
static void make_samples(void)
{
	for (__u64 n = 0; n < SAMPLES; n++) {
		const __u64 r = ibs_sim_mix(n ^ 0x11e5);
		__u64 *regs = sample[n].regs;

		ibs_sim_op(1, 0, n, ZEN4_CAPS, regs);
		sample[n].period = 1000 + (r >> 8 & 15);
		if (r & 1)
			regs[IBS_DC_PHYSADDR] =
				0x200000000 + (n >> 11 << 14) + (r >> 16 & 0xfff & r >> 32);
		if (!(r & 15))
			regs[IBS_DC_PHYSADDR] = 0;
		if (r >> 40 & 1)
			regs[IBS_OP_DATA2] |= IBS_OP_DATA2_OWNED;
	}
}

/* What is known of the task alone is not the same. */
static void forget_ids(struct ibs_lines *t, __u64 *cgroup_id)
{
	for (int i = 0; i < IBS_LINE_DETAILS; i++) {
		*cgroup_id = t->detail[i].writer.cgroup_id ?: *cgroup_id;
		t->detail[i].writer.cgroup_id = t->detail[i].reader.cgroup_id = 0;
	}
}

static void compare(bool weigh, bool probe, __u32 feed, __u32 caps)
{
	const __u32 bytes = IBS_LINES_BYTES(SETS), me = getpid();
	struct ibs_lines *is = malloc(bytes), *want = malloc(bytes);
	const struct selection everything = {};
	const struct task task = { .pid_tgid = (__u64)me << 32 | me, .cgroup_id = 1 };
	struct sampler_opts opts = zen4;
	struct engine_opts eo = { .ibs.caps = caps,
				  .sel = &everything,
				  .count_ops = weigh,
				  .line_sets = SETS,
				  .line_feed = feed };
	__u64 cgroup_id = 0;
	struct engine *e;
	struct sampler *s;
	struct err err = {};

	opts.by = 0;
	opts.ibs.caps = caps;
	opts.count_ops = weigh;
	opts.probe_read = probe;
	opts.line_sets = eo.line_sets;
	opts.line_feed = eo.line_feed;
	bind_to(0);
	s = open_twin(&opts);
	assert_int_equal(engine_open(&eo, &e, &err), 0);
	for (int round = 0; round < 2; round++) {
		const int half = SAMPLES / 2;

		for (int n = round * half; n < (round + 1) * half; n += IBS_TWIN_SAMPLES)
			if (twin_run(s, &sample[n], IBS_TWIN_SAMPLES, NULL, &err))
				fail_msg("%s", err.text);
		for (int n = round * half; n < (round + 1) * half; n++)
			engine_run(e, sample[n].regs, sample[n].period, &task, NULL);
		if (round)
			break;
		/* from here on in the other table, which begins empty */
		sampler_lines_next(s);
		memcpy(is, sampler_lines(s, 0, false), bytes);
		memcpy(want, engine_lines(e), bytes);
		forget_ids(is, &cgroup_id);
		forget_ids(want, &(__u64){ 0 });
		printf("fed %llu replaced %llu lost %llu without an address %llu\n", is->fed,
		       is->replaced, is->lost, is->no_address);
		assert_true(is->fed > SAMPLES / 16 && is->replaced > 100 && is->lost &&
			    is->no_address);
		assert_memory_equal(is, want, bytes);
		assert_true(cgroup_id);
		engine_close(e);
		assert_int_equal(engine_open(&eo, &e, &err), 0);
	}
	memcpy(is, sampler_lines(s, 0, true), bytes);
	memcpy(want, engine_lines(e), bytes);
	forget_ids(is, &cgroup_id);
	forget_ids(want, &(__u64){ 0 });
	assert_memory_equal(is, want, bytes);
	for (int cpu = 1; cpu < 2; cpu++)
		if (sampler_lines(s, cpu, true))
			assert_int_equal(sampler_lines(s, cpu, true)->fed, 0);
	engine_close(e);
	close_twin(s);
	free(is);
	free(want);
}

static void test_same(void **state)
{
	(void)state;
	compare(false, false, IBS_LINE_FEED_SHARING | IBS_LINE_FEED_WALKS, ZEN4_CAPS);
	compare(true, false, IBS_LINE_FEED_SHARING | IBS_SRC_MEMORY, ZEN4_CAPS);
	compare(true, true, IBS_LINE_FEED_SHARING | IBS_SRC_MEMORY | IBS_LINE_FEED_WALKS,
		ZEN4_CAPS);
	/* before Zen 4, a modified line is one of the node */
	compare(false, false, IBS_LINE_FEED_SHARING | IBS_LINE_FEED_WALKS, IBS_CAPS_DEFAULT);
}

/* Without hot lines there are no tables, and no instruction is left of them. */
static void test_off(void **state)
{
	static const unsigned int cpus[] = { 0 };
	struct sampler_opts opts = { .source = SAMPLER_LOAD,
				     .ibs.caps = ZEN4_CAPS,
				     .cpus = cpus,
				     .n_cpus = 1,
				     .max_groups = 64 };
	struct sampler_prog_size size[2];
	struct err err = {};

	(void)state;
	for (int on = 0; on < 2; on++) {
		struct sampler *s;

		opts.line_sets = on ? SETS : 0;
		opts.line_feed = IBS_LINE_FEED_SHARING;
		s = open_twin(&opts);
		assert_int_equal(sampler_prog_size(s, &size[on], &err), 0);
		assert_int_equal(!!sampler_lines(s, 0, true), on);
		assert_null(sampler_lines(s, 1, true));
		sampler_close(s);
	}
	printf("%u instructions, with hot lines %u\n", size[0].insns, size[1].insns);
	assert_true(size[0].insns + 300 < size[1].insns);
}

#define EXCHANGE_NS 600000000

/* Nobody writes to a table that was exchanged: a program on another CPU that found it has ended. */
static void test_exchange(void **state)
{
	const unsigned int cpus[] = { 0, sysconf(_SC_NPROCESSORS_ONLN) - 1 };
	const size_t bytes = IBS_LINES_BYTES(SETS);
	struct ibs_lines *read = malloc(2 * bytes);
	struct sampler_opts opts = { .source = SAMPLER_SIM,
				     .event = "sim",
				     .ibs.caps = ZEN4_CAPS,
				     .cpus = cpus,
				     .n_cpus = cpus[1] ? 2 : 1,
				     .max_groups = 64,
				     .sim_ops =
					     SAMPLER_SIM_RANDOM, /* as many loads on an idle CPU */
				     .line_sets = SETS,
				     .line_feed = IBS_LINE_FEED_SHARING };
	struct perf_event_attr *attr = &opts.attr;
	struct snapshot snap;
	struct err err = {};
	struct sampler *s;
	__u64 fed = 0, start;

	(void)state;
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr->sample_period = 100000; /* an interrupt costs up to 50 us, on some virtual machines */
	if (sampler_open(&opts, &s, &err) || sampler_start(s, &err))
		fail_msg("%s", err.text);
	start = clock_ns(CLOCK_MONOTONIC);
	while (clock_ns(CLOCK_MONOTONIC) - start < EXCHANGE_NS) {
		sampler_lines_next(s);
		for (__u32 n = 0; n < opts.n_cpus; n++)
			memcpy((char *)read + n * bytes, sampler_lines(s, n, false), bytes);
		usleep(100);
		for (__u32 n = 0; n < opts.n_cpus; n++) {
			assert_memory_equal((char *)read + n * bytes, sampler_lines(s, n, false),
					    bytes);
			fed += sampler_lines(s, n, false)->fed;
		}
	}
	sampler_stop(s);
	sampler_snapshot(s, &snap, &err);
	printf("%llu of %llu samples fed before the last exchange\n", fed, snap.ledger.seen);
	assert_true(fed > snap.ledger.seen / 16);
	snapshot_free(&snap);
	sampler_close(s);
	free(read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_exchange),
	};

	if (!can_run())
		return 77;
	make_samples();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
