// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The slowest samples of each group of a recording, and a written recording in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "flight/flight_file.h"
#include "flight/flight_slow.h"

#define L1   IBS_OP_DATA3_LD_OP
#define L2   (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS)
#define MAB  (L2 | IBS_OP_DATA3_L2_MISS | IBS_OP_DATA3_NO_MAB)
#define NONE 0ull

static struct session_event event;
static struct flight_slowest all;
static struct flight_slow *slow;

/* By process, with latencies from tag to retirement, which every op has. */
static int begin(void **state)
{
	(void)state;
	memset(&event, 0, sizeof(event));
	event.opts.by = IBS_BY_PID;
	event.opts.metric = IBS_METRIC_TAG_TO_RET;
	event.opts.ibs.caps = 0xbff;
	slow = flight_slow_new(&event);
	return 0;
}

static int end(void **state)
{
	(void)state;
	flight_slow_free(slow);
	return 0;
}

static struct ibs_record record(__u32 tgid, __u64 time, __u64 latency, __u64 data3, __u32 cpu)
{
	return (struct ibs_record){ .tgid = tgid,
				    .tid = tgid + 1,
				    .cgroup_id = tgid + 2,
				    .time = time,
				    .data3 = data3,
				    .packed = ibs_record_pack(latency << 16, 0, cpu) };
}

static void add(__u32 tgid, __u64 time, __u64 latency, __u64 data3)
{
	const struct ibs_record r = record(tgid, time, latency, data3, 3);

	flight_slow_add(slow, &(struct record_batch){ .records = &r, .n = 1 });
}

static const struct ibs_exemplar *of(__u32 tgid)
{
	const struct ibs_group_key key = { .tgid = tgid };

	return flight_slowest_of(&all, &key);
}

static void check(const struct ibs_exemplar *e, __u32 latency, __u8 src)
{
	assert_non_null(e);
	assert_int_equal(e->latency, latency);
	assert_int_equal(e->src, src);
	assert_int_equal(!!e->time_ns, !!latency);
}

/* Of each source the slowest, and these in order. */
static void test_keep(void **state)
{
	(void)state;
	add(7, 1, 100, L1);
	add(7, 2, 300, L2);
	add(7, 3, 200, L1);
	add(7, 4, 150, L1); /* there is a slower one of L1 */
	flight_slow_get(slow, 5, &all);
	assert_int_equal(all.n, 1);
	check(of(7), 300, IBS_SRC_L2);
	check(of(7) + 1, 200, IBS_SRC_L1);
	check(of(7) + 2, 0, 0);
	assert_int_equal(of(7)[0].cpu, 3);
	assert_null(of(8));
}

/* A fourth source takes the place of the fastest, if it is slower. */
static void test_sources(void **state)
{
	(void)state;
	add(7, 1, 100, L1);
	add(7, 2, 200, L2);
	add(7, 3, 300, NONE);
	add(7, 4, 100, MAB); /* not slower */
	flight_slow_get(slow, 0, &all);
	check(of(7), 300, IBS_SRC_NONE);
	check(of(7) + 1, 200, IBS_SRC_L2);
	check(of(7) + 2, 100, IBS_SRC_L1);
	add(7, 5, 250, MAB);
	flight_slow_get(slow, 0, &all);
	check(of(7), 300, IBS_SRC_NONE);
	check(of(7) + 1, 250, IBS_SRC_MAB);
	check(of(7) + 2, 200, IBS_SRC_L2);
	add(7, 6, 400, L2); /* from the last place to the first */
	flight_slow_get(slow, 0, &all);
	check(of(7), 400, IBS_SRC_L2);
	check(of(7) + 1, 300, IBS_SRC_NONE);
	check(of(7) + 2, 250, IBS_SRC_MAB);
}

/* Of equally slow ones, the first stays. */
static void test_equal(void **state)
{
	__u64 first;

	(void)state;
	add(7, 1000000000, 100, L1);
	flight_slow_get(slow, 0, &all);
	first = of(7)->time_ns;
	add(7, 900000000000, 100, L1);
	flight_slow_get(slow, 0, &all);
	assert_true(of(7)->time_ns < first + 100000000000);
}

/* Times are of the wall clock; what is no sample has none. */
static void test_times(void **state)
{
	const __u64 now = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME);
	__s64 off;

	(void)state;
	add(7, now, 100, L1);
	flight_slow_get(slow, 77, &all);
	off = of(7)->time_ns - wall;
	assert_in_range(off + 1000000000, 0, 2000000000);
	assert_int_equal(of(7)[0].recording_ns, 77);
	assert_int_equal(of(7)[1].recording_ns, 0);
	assert_int_equal(of(7)[1].time_ns, 0);
}

/* Groups with the slowest samples come first, and there are 256 at most. */
static void test_groups(void **state)
{
	(void)state;
	add(1, 1, 10, L1);
	add(2, 1, 30, L1);
	add(3, 1, 20, L1);
	flight_slow_get(slow, 0, &all);
	assert_int_equal(all.n, 3);
	assert_int_equal(all.group[0].key.tgid, 2);
	assert_int_equal(all.group[1].key.tgid, 3);
	assert_int_equal(all.group[2].key.tgid, 1);
	for (__u32 pid = 1000; pid < 1254; pid++)
		add(pid, 1, 50, L1);
	flight_slow_get(slow, 0, &all);
	assert_int_equal(all.n, FLIGHT_SLOW_GROUPS);
	check(of(1000), 50, IBS_SRC_L1);
	check(of(1253), 50, IBS_SRC_L1);
	check(of(2), 30, IBS_SRC_L1);
	check(of(3), 20, IBS_SRC_L1);
	assert_null(of(1));
}

static void test_none(void **state)
{
	(void)state;
	flight_slow_get(slow, 0, &all);
	assert_int_equal(all.n, 0);
	assert_null(of(0));
}

/* A group is as --by says, of what a record says; by anything else there are none. */
static void test_keys(void **state)
{
	static const struct {
		__u32 by;
		struct ibs_group_key key;
	} rows[] = {
		{ IBS_BY_PID, { .tgid = 7 } },
		{ IBS_BY_TID, { .tid = 8 } },
		{ IBS_BY_CGROUP, { .cgroup_id = 9 } },
		{ IBS_BY_CPU, { .cpu = 5 } },
		{ 0, { .tgid = 0 } },
	};
	const struct ibs_record r = record(7, 1, 100, L1, 5);
	const struct record_batch batch = { .records = &r, .n = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct flight_slow *s;

		event.opts.by = rows[i].by;
		s = flight_slow_new(&event);
		flight_slow_add(s, &batch);
		flight_slow_get(s, 0, &all);
		assert_int_equal(all.n, 1);
		check(flight_slowest_of(&all, &rows[i].key), 100, IBS_SRC_L1);
		flight_slow_free(s);
	}
	event.opts.by = IBS_BY_PID | IBS_BY_COMM;
	flight_slow_add(slow, &batch);
	flight_slow_get(slow, 0, &all);
	assert_int_equal(all.n, 0);
}

/* Samples without the latency do not count, nor do those of ibs_fetch, or registers as they came. */
static void test_ignored(void **state)
{
	struct ibs_record r = record(7, 1, 100, L1, 5);
	struct record_batch batch = { .records = &r, .n = 1 };

	(void)state;
	r.packed |= IBS_RECORD_FETCH;
	flight_slow_add(slow, &batch);
	batch.records = NULL;
	flight_slow_add(slow, &batch);
	event.opts.metric = IBS_METRIC_DC_MISS_LAT;
	add(7, 1, 0, L1);
	flight_slow_get(slow, 0, &all);
	assert_int_equal(all.n, 0);
	add(7, 1, 0, L2 | 500ull << 32);
	flight_slow_get(slow, 0, &all);
	check(of(7), 500, IBS_SRC_L2);
}

static void test_batch(void **state)
{
	const struct ibs_record r[] = { record(7, 1, 100, L1, 0), record(8, 1, 200, L1, 0),
					record(9, 1, 300, L1, 0) };

	(void)state;
	flight_slow_add(slow, &(struct record_batch){ .records = r, .n = 2 });
	flight_slow_get(slow, 0, &all);
	check(of(7), 100, IBS_SRC_L1);
	check(of(8), 200, IBS_SRC_L1);
	assert_null(of(9));
}

static void test_text(void **state)
{
	struct flight_result r = { .samples = 1234,
				   .overwritten = 5678,
				   .bytes = 3 << 19,
				   .window_s = 9.96,
				   .took_s = .256,
				   .cpu_s = 1.5 };
	char text[FLIGHT_TEXT_MAX];

	(void)state;
	flight_result_text(&r, text);
	assert_string_equal(text, "1,234 samples of the last 10.0 s, 5,678 overwritten; "
				  "1.5 MiB written in 0.26 s, 1.50 s of CPU time");
	r.samples = 1;
	r.took_s = .25;
	flight_result_text(&r, text);
	assert_string_equal(text, "1 sample of the last 10.0 s, 5,678 overwritten; "
				  "1.5 MiB written in 0.25 s, 1.50 s of CPU time");
}

#define R(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_keep),	R(test_sources),
		R(test_equal),	R(test_times),
		R(test_groups), R(test_none),
		R(test_keys),	R(test_ignored),
		R(test_batch),	cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
