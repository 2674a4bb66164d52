// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ibscope/histogram.h>

/* The bucket of every latency, against a search over the edges: an edge belongs to its bucket. */
static void test_bucket(void **state)
{
	__u32 cycles, b;

	(void)state;
	for (cycles = 0; cycles <= IBS_LAT_MAX; cycles++) {
		for (b = 0; b < IBS_LAT_BUCKETS && ibs_lat_le(b) < cycles; b++)
			;
		assert_in_range(b, 0, IBS_LAT_BUCKETS - 1);
		assert_int_equal(ibs_lat_bucket(cycles), b);
	}
}

static void test_edges(void **state)
{
	__u32 b;

	(void)state;
	assert_int_equal(ibs_lat_le(0), 0);
	assert_int_equal(ibs_lat_le(IBS_LAT_BUCKETS - 1), IBS_LAT_MAX);
	for (b = 1; b < IBS_LAT_BUCKETS; b++) {
		assert_true(ibs_lat_le(b) > ibs_lat_le(b - 1));
		assert_int_equal(ibs_lat_bucket(ibs_lat_le(b)), b);
		assert_int_equal(ibs_lat_bucket(ibs_lat_le(b - 1) + 1), b);
	}
}

/* Up to 8 cycles buckets are exact; then none is wider than 1/8 of its lower edge. */
static void test_width(void **state)
{
	__u32 b;

	(void)state;
	for (b = 1; b <= 8; b++)
		assert_int_equal(ibs_lat_le(b), b);
	for (; b < IBS_LAT_BUCKETS; b++)
		assert_true((ibs_lat_le(b) - ibs_lat_le(b - 1)) * 8 <= ibs_lat_le(b - 1));
}

/* ldlat captures what takes more than a multiple of 128: that must be where a bucket ends. */
static void test_ldlat_edges(void **state)
{
	__u32 cycles;

	(void)state;
	for (cycles = 128; cycles <= 2048; cycles += 128)
		assert_int_equal(ibs_lat_le(ibs_lat_bucket(cycles)), cycles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_ldlat_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
