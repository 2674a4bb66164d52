// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Performance events, without any: ring buffers, what failures mean, and the arithmetic of costs. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "perf/perf.h"
#include "perf/sample_cost.h"

#define RING 256

static union {
	struct perf_event_mmap_page page;
	char bytes[sizeof(struct perf_event_mmap_page) + RING];
} ring;

static void empty_ring(__u64 at)
{
	memset(&ring, 0, sizeof(ring));
	ring.page.data_offset = sizeof(ring.page);
	ring.page.data_size = RING;
	ring.page.data_head = ring.page.data_tail = at;
}

static void put_bytes(const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ring.bytes[sizeof(ring.page) + ring.page.data_head++ % RING] =
			((const char *)from)[i];
}

/* A record of @bytes; @lost is the second word behind its header. */
static void put(__u32 type, __u16 bytes, __u64 lost)
{
	const struct perf_event_header h = { .type = type, .size = bytes };
	__u64 rest[8] = { 99, lost };

	put_bytes(&h, sizeof(h));
	put_bytes(rest, bytes - sizeof(h));
}

static void test_ring(void **state)
{
	char got[8] = "";

	(void)state;
	empty_ring(RING - 3);
	put_bytes("abcdefgh", 8);
	assert_int_equal(perf_ring_bytes(&ring.page), sizeof(ring));
	assert_int_equal(perf_ring_head(&ring.page), RING + 5);
	perf_ring_copy(&ring.page, RING - 3, got, 7);
	assert_string_equal(got, "abcdefg");
	perf_ring_copy(&ring.page, RING - 3, got, 3); /* up to the end */
	assert_string_equal(got, "abcdefg");
	perf_ring_copy(&ring.page, RING, got, 2);
	assert_string_equal(got, "decdefg");
	perf_ring_done(&ring.page, RING + 1);
	assert_int_equal(ring.page.data_tail, RING + 1);
}

/* Records of throttling come in pairs, and so do those that were lost: of five, three may be of throttling. */
static void test_throttled(void **state)
{
	(void)state;
	assert_int_equal(perf_ring_throttled(NULL), 0);
	for (__u64 at = 0; at < 2 * RING; at += 8) { /* wherever the buffer ends */
		empty_ring(at);
		assert_int_equal(perf_ring_throttled(&ring.page), 0);
		put(PERF_RECORD_THROTTLE, 32, 0);
		put(PERF_RECORD_UNTHROTTLE, 32, 0);
		put(PERF_RECORD_LOST, 24, 5);
		assert_int_equal(perf_ring_throttled(&ring.page), 4);
		assert_int_equal(ring.page.data_tail, at + 88);
		assert_int_equal(perf_ring_throttled(&ring.page), 0);
		put(PERF_RECORD_LOST, 32, 4);
		put(PERF_RECORD_THROTTLE, 32, 0);
		assert_int_equal(perf_ring_throttled(&ring.page), 3);
	}
	/* too short to say how many */
	empty_ring(0);
	put(PERF_RECORD_LOST, 16, 0);
	put(PERF_RECORD_THROTTLE, 8, 0);
	assert_int_equal(perf_ring_throttled(&ring.page), 1);
	/* a record that is damaged ends this call, and is not read again */
	empty_ring(0);
	put(PERF_RECORD_THROTTLE, 32, 0);
	put(PERF_RECORD_THROTTLE, 32, 0);
	((struct perf_event_header *)(ring.bytes + sizeof(ring.page) + 32))->size = 7;
	assert_int_equal(perf_ring_throttled(&ring.page), 1);
	assert_int_equal(ring.page.data_tail, 64);
}

static void explains(int error, const char *want)
{
	struct err err = { "" };

	assert_int_equal(perf_open_explain(&err, error, 3, "ibs_op//"), -error);
	assert_string_equal(err.text, want);
}

#define PRIVILEGES                                                  \
	"sampling a whole CPU requires CAP_PERFMON (or root; with " \
	"kernel.perf_event_paranoid above 2 CAP_SYS_ADMIN), or "    \
	"kernel.perf_event_paranoid <= 0"
#define FILES "each CPU needs a file: raise the open files limit (ulimit -n)"

static void test_explain(void **state)
{
	(void)state;
	explains(EACCES, "cpu 3: cannot open ibs_op//: Permission denied; " PRIVILEGES);
	explains(EPERM, "cpu 3: cannot open ibs_op//: Operation not permitted; " PRIVILEGES);
	explains(EMFILE, "cpu 3: cannot open ibs_op//: Too many open files; " FILES);
	explains(ENFILE, "cpu 3: cannot open ibs_op//: Too many open files in system; " FILES);
	explains(EINVAL, "cpu 3: the kernel rejects ibs_op//: Invalid argument; try without filter "
			 "terms, or see `ibscope doctor` for what this kernel and CPU support");
	explains(ENOENT, "cpu 3: the PMU does not support ibs_op//: No such file or directory; see "
			 "`ibscope doctor`");
	explains(ENODEV, "cpu 3: the PMU does not support ibs_op//: No such device; see "
			 "`ibscope doctor`");
	explains(EBUSY, "cpu 3: cannot share ibs_op//: Device or resource busy; stop the other "
			"profiler");
	explains(EIO, "cpu 3: cannot open ibs_op//: Input/output error; see `ibscope doctor`");
}

static void median(double want, double want_spread, double *v, size_t n)
{
	double spread = -1;

	assert_float_equal(loop_median(v, n, &spread), want, 1e-9);
	assert_float_equal(spread, want_spread, 1e-3);
	assert_float_equal(loop_median(v, n, NULL), want, 1e-9);
	for (size_t i = 1; i < n; i++)
		assert_true(v[i - 1] <= v[i]);
}

/* The standard error is 0.929 of the distance of the quartiles, by the root of the number. */
static void test_median(void **state)
{
	(void)state;
	median(7, 0, (double[]){ 7 }, 1);
	median(3, 0.929 * 4 / sqrt(3), (double[]){ 5, 1, 3 }, 3);
	median(2.5, 0.929 * 1 / 2, (double[]){ 4, 1, 3, 2 }, 4);
	median(4.5, 0.929 * 3 / sqrt(8), (double[]){ 8, 1, 7, 2, 6, 3, 5, 4 }, 8);
	median(-1, 0, (double[]){ -1, -1 }, 2);
}

/* The same PMU and counting mode; filters are dropped. */
static void test_cost_event(void **state)
{
	const struct perf_event_attr like = { .type = 10,
					      .config = 1ull << 19 | 1ull << 16 | 5,
					      .config1 = 3,
					      .config2 = 4,
					      .freq = 1,
					      .sample_freq = 1000,
					      .exclude_user = 1,
					      .exclude_kernel = 1,
					      .exclude_hv = 1 };
	const struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_PAGE_FAULTS,
					       .freq = 1,
					       .sample_freq = 1000 };
	struct perf_event_attr attr = sample_cost_event(&like);

	(void)state;
	assert_int_equal(attr.type, 10);
	assert_int_equal(attr.config, 1 << 19);
	assert_int_equal(attr.config1, 0);
	assert_int_equal(attr.config2, 0);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.exclude_user, 0);
	assert_int_equal(attr.exclude_kernel, 0);
	assert_int_equal(attr.exclude_hv, 1);
	assert_int_equal(attr.sample_period, 100000);
	attr = sample_cost_event(&clock);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.freq, 0);
	assert_int_equal(attr.sample_period, 50000); /* ns */
}

/* The cost is that of a sample, so it must be known how many there were. */
static void test_fixed_period(void **state)
{
	const struct perf_event_attr freq = { .freq = 1, .sample_freq = 1000 }, none = {};
	struct sample_cost cost;
	struct err err = { "" };

	(void)state;
	assert_int_equal(sample_cost_measure(&freq, -1, 0, 1, &cost, &err), -EINVAL);
	assert_string_equal(err.text,
			    "the cost of a sample can only be measured with a fixed period");
	assert_int_equal(sample_cost_measure(&none, -1, 0, 1, &cost, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),	   cmocka_unit_test(test_throttled),
		cmocka_unit_test(test_explain),	   cmocka_unit_test(test_median),
		cmocka_unit_test(test_cost_event), cmocka_unit_test(test_fixed_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
