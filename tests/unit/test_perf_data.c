// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* perf.data as perf writes it; what it wrote itself is in test_perf_data_real.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_data_read.h"

static void test_events(void **unused)
{
	struct build o = build_default();
	const struct trace_info *info;

	(void)unused;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	sample(&b, FETCH_ID, 20, 3);
	sample(&b, CLOCK_ID, 30, 1);
	build_end(&b, &o);
	must_open();
	info = trace_info(state);
	assert_string_equal(info->host, "host");
	assert_int_equal(info->n_cpus, 6);
	assert_true(info->has_cpu);
	assert_string_equal(info->cpu.vendor, "AuthenticAMD");
	assert_int_equal(info->cpu.family, 0x19);
	assert_int_equal(info->cpu.model, 0x11);
	assert_int_equal(info->cpu.stepping, 1);
	assert_int_equal(info->cpu.caps, 0xbff);
	assert_int_equal(info->n_pmus, 2);
	assert_true(info->pmu[0].op);
	assert_string_equal(info->pmu[0].name, "ibs_op//");
	assert_int_equal(info->pmu[0].period, 100000);
	assert_false(info->pmu[1].op);
	assert_string_equal(info->pmu[1].name, "ibs_fetch//");

	next(TRACE_SAMPLE_OP, 10);
	assert_int_equal(ev.sample.pmu, 0);
	assert_int_equal(ev.sample.cpu, 0);
	assert_int_equal(ev.sample.tgid, 100);
	assert_int_equal(ev.sample.tid, 101);
	assert_int_equal(ev.sample.ip, 0x401000 + 10);
	assert_int_equal(ev.sample.op.reg[IBS_OP_RIP], 0x401000 + 10);
	assert_true(ev.sample.has_ip && ev.sample.has_cpu && ev.sample.has_task);
	assert_false(ev.sample.kernel);
	assert_int_equal(ev.sample.n_stack, 0);
	next(TRACE_SAMPLE_FETCH, 20);
	assert_int_equal(ev.sample.pmu, 1);
	assert_int_equal(ev.sample.cpu, 3);
	assert_int_equal(ev.sample.fetch.reg[IBS_FETCH_LINADDR], 0x401000 + 20);
	whole();
	assert_int_equal(trace_end(state)->other_samples, 1);
}

/* The numbers of PMUs are the machine's; the header says what they mean. */
static void test_types(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.attr[0].type = FETCH_TYPE;
	o.attr[1].type = OP_TYPE;
	o.id[0] = FETCH_ID;
	o.id[1] = OP_ID;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	assert_int_equal(ev.sample.pmu, 1);
	whole();
}

static void test_order(void **unused)
{
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	sample(&b, OP_ID, 30, 0);
	comm(&b, 7, "before all", 0);
	sample(&b, OP_ID, 50, 0);
	sample(&b, OP_ID, 20, 1);
	sample(&b, OP_ID, 30, 1);
	finished_round(&b);
	sample(&b, OP_ID, 45, 0);
	sample(&b, OP_ID, 60, 0);
	sample(&b, OP_ID, 40, 1);
	finished_round(&b);
	sample(&b, OP_ID, 55, 1);
	sample(&b, OP_ID, 10, 1); /* against the promise of the mark: late, but not lost */
	sample(&b, OP_ID, 70, 1);
	build_end(&b, &o);
	must_open();
	for (int again = 0; again < 2; again++) {
		next(TRACE_COMM, 0);
		assert_string_equal(ev.comm.name, "before all");
		next(TRACE_SAMPLE_OP, 20);
		next(TRACE_SAMPLE_OP, 30);
		assert_int_equal(ev.sample.cpu, 0);
		next(TRACE_SAMPLE_OP, 30);
		assert_int_equal(ev.sample.cpu, 1);
		next(TRACE_SAMPLE_OP, 40);
		next(TRACE_SAMPLE_OP, 45);
		next(TRACE_SAMPLE_OP, 50);
		next(TRACE_SAMPLE_OP, 10);
		next(TRACE_SAMPLE_OP, 55);
		next(TRACE_SAMPLE_OP, 60);
		next(TRACE_SAMPLE_OP, 70);
		whole();
		perf_data_format.rewind(state);
	}
}

/* Of the same time, what is first in the file comes first. */
static void test_same_time(void **unused)
{
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	sample(&b, OP_ID, 30, 0);
	sample(&b, OP_ID, 20, 1);
	sample(&b, OP_ID, 10, 2);
	sample(&b, OP_ID, 20, 3);
	sample(&b, OP_ID, 20, 4);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	for (unsigned int i = 0; i < 3; i++) {
		next(TRACE_SAMPLE_OP, 20);
		assert_int_equal(ev.sample.cpu, i ? i + 2 : 1);
	}
	next(TRACE_SAMPLE_OP, 30);
	whole();
}

static void test_other_records(void **unused)
{
	struct build o = build_default();
	static const unsigned char id[20] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
	};

	(void)unused;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	put32(&b, ~0U);
	put32(&b, 0);
	put64(&b, 0xffffffff81000000);
	put64(&b, 0x1000000);
	put64(&b, 0xffffffff81000000);
	put(&b, "[kernel.kallsyms]_text", 23);
	trailer(&b, 0, 0);
	begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	put32(&b, 100);
	put32(&b, 101);
	put64(&b, 0x400000);
	put64(&b, 0x1000);
	put64(&b, 0x2000);
	put32(&b, 16);
	put(&b, id, sizeof(id));
	put32(&b, 5);
	put32(&b, 2);
	put(&b, "/bin/x y", 9);
	trailer(&b, 11, 2);
	begin(&b, PERF_RECORD_FORK, 0);
	put32(&b, 200);
	put32(&b, 100);
	put32(&b, 201);
	put32(&b, 101);
	put64(&b, 12);
	trailer(&b, 12, 2);
	begin(&b, PERF_RECORD_EXIT, 0);
	put32(&b, 200);
	put32(&b, 100);
	put32(&b, 201);
	put32(&b, 101);
	put64(&b, 13);
	trailer(&b, 13, 2);
	begin(&b, PERF_RECORD_CGROUP, 0);
	put64(&b, 4711);
	put(&b, "/a/b", 5);
	trailer(&b, 14, 2);
	begin(&b, PERF_RECORD_LOST, 0);
	put64(&b, OP_ID);
	put64(&b, 5);
	trailer(&b, 15, 3);
	begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
	put64(&b, 6);
	trailer(&b, 16, 3);
	begin(&b, PERF_RECORD_LOST_SAMPLES, PERF_MISC_LOST_SAMPLES_BPF);
	put64(&b, 7);
	trailer(&b, 17, 3);
	begin(&b, PERF_RECORD_THROTTLE, 0);
	put_words(&b, 1, 3);
	trailer(&b, 17, 3);
	begin(&b, 4000, 0); /* of a perf to come */
	finish(&b);
	sample(&b, OP_ID, 20, 0);
	build_end(&b, &o);
	must_open();
	next(TRACE_MMAP, 0);
	assert_true(ev.mmap.kernel && ev.mmap.exec);
	assert_int_equal(ev.mmap.start, 0xffffffff81000000);
	assert_string_equal(ev.mmap.path, "[kernel.kallsyms]_text");
	assert_int_equal(ev.mmap.build_id_len, 0);
	next(TRACE_MMAP, 11);
	assert_false(ev.mmap.kernel);
	assert_int_equal(ev.mmap.tgid, 100);
	assert_int_equal(ev.mmap.tid, 101);
	assert_int_equal(ev.mmap.len, 0x1000);
	assert_int_equal(ev.mmap.pgoff, 0x2000);
	assert_string_equal(ev.mmap.path, "/bin/x y");
	assert_int_equal(ev.mmap.build_id_len, 16);
	assert_memory_equal(ev.mmap.build_id, id, 16);
	next(TRACE_FORK, 12);
	assert_int_equal(ev.fork.tgid, 200);
	assert_int_equal(ev.fork.tid, 201);
	assert_int_equal(ev.fork.parent_tgid, 100);
	assert_int_equal(ev.fork.parent_tid, 101);
	next(TRACE_EXIT, 13);
	memset(&ev, 0x5a, sizeof(ev)); /* a reader need not clear it */
	next(TRACE_CGROUP, 14);
	assert_int_equal(ev.cgroup.id, 4711);
	assert_string_equal(ev.cgroup.path, "/a/b");
	assert_null(ev.cgroup.container);
	assert_null(ev.cgroup.pod);
	assert_null(ev.cgroup.ns);
	next(TRACE_LOST, 15);
	assert_int_equal(ev.lost.n, 5);
	assert_int_equal(ev.lost.cpu, 3);
	assert_false(ev.lost.samples);
	next(TRACE_LOST, 16);
	assert_int_equal(ev.lost.n, 6);
	assert_true(ev.lost.samples);
	next(TRACE_SAMPLE_OP, 20);
	whole();
}

static void lost_of(__u32 type, __u64 id, __u64 n)
{
	__u64 time = type == PERF_RECORD_LOST ? 12 : 0;

	begin(&b, type, 0);
	if (type == PERF_RECORD_LOST)
		put64(&b, id);
	put64(&b, n);
	put32(&b, 100);
	put32(&b, 101);
	put64(&b, time);
	put64(&b, !!time); /* CPU */
	put64(&b, id);
	finish(&b);
}

/* The same loss told twice is counted once, and that of other events not at all. */
static void test_lost_by_event(void **unused)
{
	struct build o = build_default();

	(void)unused;
	for (int killed = 0; killed < 2; killed++) {
		for (unsigned int i = 0; i < o.n; i++)
			o.attr[i].read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
		o.killed = killed;
		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		sample(&b, FETCH_ID, 11, 0);
		lost_of(PERF_RECORD_LOST, OP_ID, 1023);
		if (!killed) {
			lost_of(PERF_RECORD_LOST_SAMPLES, OP_ID, 236);
			lost_of(PERF_RECORD_LOST_SAMPLES, FETCH_ID, 7);
			lost_of(PERF_RECORD_LOST_SAMPLES, CLOCK_ID, 780);
		}
		build_end(&b, &o);
		must_open();
		if (!killed) {
			next(TRACE_LOST, 0);
			assert_int_equal(ev.lost.n, 236);
			assert_true(ev.lost.samples);
			assert_int_equal(ev.lost.cpu, ~0U);
			next(TRACE_LOST, 0);
			assert_int_equal(ev.lost.n, 7);
		}
		next(TRACE_SAMPLE_OP, 10);
		next(TRACE_SAMPLE_FETCH, 11);
		if (killed) {
			next(TRACE_LOST, 12);
			assert_int_equal(ev.lost.n, 1023);
			assert_false(ev.lost.samples);
			assert_int_equal(ev.lost.cpu, 1);
		}
		assert_int_equal(perf_data_format.next(state, &ev, &e), 0);
		perf_data_format.close(state);
		state = NULL;
	}
}

/* Everything that perf can put in front of the raw record, and between it and the cgroup. */
static void test_all_fields(void **unused)
{
	struct build o = build_default();
	const __u64 rest = PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID;
	__u64 type = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
		     PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
		     PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
		     PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX;

	(void)unused;
	o.n = 1;
	o.attr[0].sample_type = TYPE_PLAIN | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | rest | type;
	o.attr[0].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
				PERF_FORMAT_TOTAL_TIME_ENABLED;
	o.attr[0].branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | PERF_BRANCH_COUNTERS;
	o.attr[0].sample_regs_user = 0x7;
	o.attr[0].sample_regs_intr = 0xf0000;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	put64(&b, OP_ID);
	put64(&b, 0xffffffff81000010);
	put32(&b, 100);
	put32(&b, 101);
	put64(&b, 10);	     /* time */
	put_words(&b, 1, 3); /* addr, id, stream */
	put64(&b, 2);	     /* cpu */
	put64(&b, 1000);     /* period */
	put64(&b, 2);	     /* a group of two, */
	put64(&b, 77);	     /* enabled */
	put_words(&b, 1, 2 * 3);
	put64(&b, 3); /* call chain */
	put64(&b, PERF_CONTEXT_KERNEL);
	put64(&b, 0xffffffff81000010);
	put64(&b, 0xffffffff81000020);
	put_raw(&b, true, 0xffffffff81000000);
	put64(&b, 2); /* branches, hw_idx, counters */
	put_words(&b, 1, 1 + 2 * 3 + 2);
	put64(&b, 2); /* abi */
	put_words(&b, 1, 3);
	put64(&b, 16); /* stack, and how much is used */
	put_words(&b, 1, 3);
	put_words(&b, 1, 3); /* weight, data_src, transaction */
	put64(&b, 2);
	put_words(&b, 1, 4);
	put64(&b, 0x1234); /* physical address */
	put64(&b, 4711);
	put_words(&b, 4096, 2);
	put64(&b, 0);
	finish(&b);
	build_end(&b, &o);
	must_open();
	assert_true(trace_info(state)->pmu[0].stacks);
	next(TRACE_SAMPLE_OP, 10);
	assert_int_equal(ev.sample.op.reg[IBS_OP_RIP], 0xffffffff81000000);
	assert_int_equal(ev.sample.ip, 0xffffffff81000010);
	assert_true(ev.sample.kernel);
	assert_int_equal(ev.sample.cpu, 2);
	assert_int_equal(ev.sample.cgroup_id, 4711);
	assert_int_equal(ev.sample.n_stack, 3);
	assert_int_equal(ev.sample.stack[0], PERF_CONTEXT_KERNEL);
	assert_int_equal(ev.sample.stack[2], 0xffffffff81000020);
	whole();
}

/* As few fields as can be: what is absent is not zero. */
static void test_few_fields(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.n = 1;
	o.attr[0].sample_type = PERF_SAMPLE_RAW;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	put_raw(&b, true, 0xffffffff81000000);
	finish(&b);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 0);
	assert_false(ev.sample.has_time || ev.sample.has_task || ev.sample.has_cpu);
	assert_true(ev.sample.has_ip && ev.sample.kernel);
	assert_int_equal(ev.sample.ip, 0xffffffff81000000);
	whole();
}

static void test_compressed(void **unused)
{
	static const size_t most[] = { 1, 7, 100, 50000 };
	static const __u32 types[] = { PERF_RECORD_COMPRESSED, PERF_RECORD_COMPRESSED2 };
	struct build o = build_default();

	(void)unused;
	for (unsigned int i = 0; i < 8; i++) {
		build_begin(&b, &o);
		for (unsigned int n = 1; n <= 20; n++)
			sample(&b, n % 3 ? OP_ID : FETCH_ID, n, 0);
		compress_from(&b, b.data, most[i / 2], types[i % 2]);
		finished_round(&b);
		build_end(&b, &o);
		must_open();
		for (unsigned int n = 1; n <= 20; n++)
			next(n % 3 ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH, n);
		whole();
		perf_data_format.close(state);
		state = NULL;
	}
}

static void build_pipe(bool attrs_first)
{
	static const unsigned char head[] = "PERFILE2\x10\0\0\0\0\0\0";
	struct build o = build_default();

	put(&b, head, 16);
	if (!attrs_first)
		sample(&b, OP_ID, 10, 0);
	begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
	put64(&b, PERF_FEATURE_CPUID);
	put_text(&b, "AuthenticAMD,25,1,0");
	finish(&b);
	begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
	put64(&b, PERF_FEATURE_PMU_MAPPINGS);
	put_pmus(&b);
	finish(&b);
	for (unsigned int i = 0; i < 2; i++) {
		begin(&b, PERF_RECORD_HEADER_ATTR, 0);
		put(&b, &o.attr[i], sizeof(o.attr[i]));
		put64(&b, o.id[i]);
		finish(&b);
	}
	begin(&b, PERF_RECORD_EVENT_UPDATE, 0);
	put64(&b, PERF_EVENT_UPDATE_NAME);
	put64(&b, FETCH_ID);
	put(&b, "my\tname", 8);
	finish(&b);
	begin(&b, PERF_RECORD_HEADER_TRACING_DATA, 0);
	put32(&b, 13);
	put32(&b, 0);
	finish(&b);
	put_words(&b, ~0ULL, 2);
	begin(&b, PERF_RECORD_AUXTRACE, 0);
	put64(&b, 24);
	put_words(&b, 0, 4);
	finish(&b);
	put_words(&b, ~0ULL, 3);
	sample(&b, FETCH_ID, 20, 0);
	sample(&b, OP_ID, 30, 0);
}

static void test_pipe(void **unused)
{
	const struct trace_info *info;

	(void)unused;
	build_pipe(true);
	must_open();
	info = trace_info(state);
	assert_int_equal(info->cpu.model, 1);
	assert_true(info->cpu.quirks);
	assert_int_equal(info->n_pmus, 2);
	assert_string_equal(info->pmu[0].name, "ibs_op");
	assert_string_equal(info->pmu[1].name, "my?name");
	next(TRACE_SAMPLE_FETCH, 20);
	assert_int_equal(ev.sample.fetch.cpu.quirks, info->cpu.quirks);
	next(TRACE_SAMPLE_OP, 30);
	whole();
}

static void test_pipe_without_events(void **unused)
{
	(void)unused;
	build_pipe(false);
	refused("no events");
}

/* A build id of the header goes to maps without one, of code only. */
static void test_build_ids(void **unused)
{
	static const unsigned char id[24] = { 9, 8, 7, 6, 5, 4, 3, 2, [20] = 8 };
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_HEADER_BUILD_ID, PERF_MISC_BUILD_ID_SIZE);
	put32(&b, 100);
	put(&b, id, sizeof(id));
	put(&b, "/bin/x", 7);
	pad8(&b);
	finish(&b);
	for (int data = 0; data < 2; data++) {
		begin(&b, PERF_RECORD_MMAP, data ? PERF_RECORD_MISC_MMAP_DATA : 0);
		put_words(&b, 100, 4);
		put(&b, "/bin/x", 7);
		trailer(&b, 0, 0);
	}
	sample(&b, OP_ID, 10, 0);
	build_end(&b, &o);
	must_open();
	for (int data = 0; data < 2; data++) {
		next(TRACE_MMAP, 0);
		assert_int_equal(ev.mmap.exec, !data);
		assert_int_equal(ev.mmap.build_id_len, 8);
		assert_memory_equal(ev.mmap.build_id, id, 8);
	}
	next(TRACE_SAMPLE_OP, 10);
	whole();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, clean)
	const struct CMUnitTest tests[] = {
		TEST(test_events),
		TEST(test_types),
		TEST(test_order),
		TEST(test_same_time),
		TEST(test_other_records),
		TEST(test_lost_by_event),
		TEST(test_all_fields),
		TEST(test_few_fields),
		TEST(test_compressed),
		TEST(test_pipe),
		TEST(test_pipe_without_events),
		TEST(test_build_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
