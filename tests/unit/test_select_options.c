// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options that select samples: what they select, what they refuse and why, and that all of it is given back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_in_use.h"
#include "base/err.h"
#include "select/select_options.h"

#include <ibscope/op.h>

static struct select_options o;

static int set(const char *name, const char *value, struct err *err)
{
	const struct option_set sets = { .rows = select_option_rows,
					 .n = select_option_n_rows,
					 .ctx = &o };

	return options_one(name, value, &sets, 1, err);
}

static void accept(const char *name, const char *value)
{
	struct err err = { "" };

	if (set(name, value, &err))
		fail_msg("%s %s: %s", name, value, err.text);
}

/* @why: part of the message */
static void refuse(const char *name, const char *value, int error, const char *why)
{
	struct err err = { "" };

	assert_int_equal(set(name, value, &err), error);
	if (!strstr(err.text, why))
		fail_msg("%s %s: %s", name, value, err.text);
}

static int clear(void **state)
{
	(void)state;
	select_options_free(&o);
	return 0;
}

static void check_pids(const struct selected_pids *set, bool but, const __u32 *want, size_t n)
{
	assert_int_equal(set->but, but);
	assert_int_equal(set->n, n);
	assert_memory_equal(set->pids, want, n * sizeof(*want));
}

static void test_pids(void **state)
{
	const __u32 all[] = { 1, 22, IBS_PID_MAX, 7 };

	(void)state;
	accept("pid", "1,22,4194304");
	accept("pid", "7");
	check_pids(&o.sel.processes, false, all, 4);
	refuse("pid", "!8", -EINVAL, "either list what to keep or, with '!', what to exclude");
	assert_int_equal(o.sel.threads.n, 0);
	accept("tid", "22,4194304");
	check_pids(&o.sel.threads, false, all + 1, 2);
	check_pids(&o.sel.processes, false, all, 4);
	refuse("tid", "!5", -EINVAL, "-t: threads cannot be excluded");
	refuse("tid", "0", -ERANGE, "-t");
	refuse("pid", "4194305", -ERANGE, "-p");
	refuse("pid", "5,,6", -EINVAL, "-p");
	clear(NULL);
	accept("pid", "!1,22");
	check_pids(&o.sel.processes, true, all, 2);
	refuse("pid", "3", -EINVAL, "either list");
	accept("pid", "!4194304");
	check_pids(&o.sel.processes, true, all, 3);
}

static void test_most_pids(void **state)
{
	char text[2 * SELECT_PIDS_MAX + 1];

	(void)state;
	for (int i = 0; i < SELECT_PIDS_MAX; i++)
		memcpy(text + 2 * i, "5,", 3);
	text[sizeof(text) - 2] = 0;
	accept("pid", text);
	assert_int_equal(o.sel.processes.n, SELECT_PIDS_MAX);
	refuse("pid", "6", -E2BIG, "-p: too many; the maximum is 1024");
	assert_int_equal(o.sel.processes.pids[SELECT_PIDS_MAX - 1], 5);
}

static void test_comms(void **state)
{
	struct ibs_config c = {};

	(void)state;
	accept("comm", "a,fifteen_bytes_x");
	accept("comm", "b c");
	assert_int_equal(o.sel.n_comms, 3);
	assert_false(o.sel.comms_but);
	assert_string_equal(o.sel.comms[0], "a");
	assert_string_equal(o.sel.comms[1], "fifteen_bytes_x");
	assert_string_equal(o.sel.comms[2], "b c");
	refuse("comm", "sixteen_bytes_xy", -EINVAL, "a name has 1 to 15 bytes");
	refuse("comm", "", -EINVAL, "invalid name ''");
	refuse("comm", "d,,e", -EINVAL, "invalid name ''");
	refuse("comm", "!e", -EINVAL, "either list");
	c.metric = IBS_METRIC_DC_MISS_LAT;
	config_select(&c, &o.sel);
	assert_int_equal(c.n_comms, o.sel.n_comms);
	assert_string_equal(c.comms[1], "fifteen_bytes_x");
	clear(NULL);
	accept("comm", "!a");
	accept("comm", "!b");
	assert_true(o.sel.comms_but);
	assert_int_equal(o.sel.n_comms, 2);
	refuse("comm", "c", -EINVAL, "either list");
	clear(NULL);
	for (int i = 0; i < IBS_COMMS_MAX; i++)
		accept("comm", "x");
	refuse("comm", "x", -E2BIG, "too many names");
}

static void test_names(void **state)
{
	(void)state;
	accept("src", "dram,l3");
	assert_int_equal(o.sel.src_mask, 1u << IBS_SRC_DRAM | 1u << IBS_SRC_L3);
	accept("src", "!dram");
	assert_int_equal(o.sel.src_mask, ((1u << IBS_SRC_N) - 1) & ~(1u << IBS_SRC_DRAM));
	accept("src", "l1"); /* the last one counts */
	assert_int_equal(o.sel.src_mask, 1u << IBS_SRC_L1);
	accept("op", "load,locked");
	assert_int_equal(o.sel.op_mask, 1u << IBS_OP_KIND_LOAD | 1u << IBS_OP_KIND_LOCKED);
	assert_int_equal(o.sel.src_mask, 1u << IBS_SRC_L1);
	refuse("src", "nowhere", -EINVAL, "--src: unknown source 'nowhere'");
	refuse("op", "nothing", -EINVAL, "--op: unknown op 'nothing'");
	refuse("op", "!load,store,locked,prefetch,branch,other", -EINVAL, "excludes everything");
}

static void test_texts(void **state)
{
	(void)state;
	accept("cgroup", "/a,/b:300");
	accept("cgroup", "!/c");
	accept("container", "web");
	assert_int_equal(o.n_cgroups, 2);
	assert_string_equal(o.cgroups[0], "/a,/b:300");
	assert_string_equal(o.cgroups[1], "!/c");
	assert_int_equal(o.n_containers, 1);
	assert_string_equal(o.containers[0], "web");
	assert_false(o.explain);
	accept("explain", "zen5:6.12");
	assert_true(o.explain);
	assert_string_equal(o.machine, "zen5:6.12");
}

/* What depends on several options. */
static void test_check(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_int_equal(select_options_check(&o, false, &err), 0);
	accept("min-lat", "300");
	assert_int_equal(select_options_check(&o, false, &err), 0);
	accept("max-lat", "300");
	assert_int_equal(select_options_check(&o, false, &err), 0);
	accept("max-lat", "299");
	assert_int_equal(select_options_check(&o, false, &err), -EINVAL);
	assert_string_equal(err.text, "--min-lat 300 is above --max-lat 299");
	accept("min-lat", "299");
	accept("filter", "brn_ret");
	assert_int_equal(select_options_check(&o, false, &err), 0);
	assert_true(o.filter[0].prog.n && !o.filter[1].prog.n);
	/* ibs_fetch has other fields */
	assert_int_equal(select_options_check(&o, true, &err), -EINVAL);
	clear(NULL);
	accept("filter", "fetch_lat > 3");
	assert_int_equal(select_options_check(&o, true, &err), 0);
	assert_true(o.filter[1].prog.n && !o.filter[0].prog.n);
	assert_int_equal(select_options_check(&o, false, &err), -EINVAL);
}

static void test_given_back(void **state)
{
	static const struct select_options none;
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct err err = { "" };

		if (i == 10)
			before = memory_in_use();
		accept("pid", "1");
		accept("tid", "2");
		accept("comm", "a,b");
		accept("cgroup", "/a");
		accept("container", "b");
		accept("filter", "cgroup == '/a/b'");
		assert_int_equal(select_options_check(&o, false, &err), 0);
		assert_int_equal(select_options_check(&o, true, &err), 0);
		select_options_free(&o);
		assert_memory_equal(&o, &none, sizeof(o));
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, clear)
	const struct CMUnitTest tests[] = {
		TEST(test_pids),  TEST(test_most_pids), TEST(test_comms),      TEST(test_names),
		TEST(test_texts), TEST(test_check),	TEST(test_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
