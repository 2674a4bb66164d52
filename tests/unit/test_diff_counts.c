// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Comparisons of the output of `hist --json`: which keys it has, what it adds, and snapshots of the same counters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "diff_result.h"
#include "near.h"

static char text[1 << 16];

static const char *path_of(const char *name)
{
	static char path[2][256];
	static unsigned int n;
	char *to = path[n++ % 2];

	snprintf(to, sizeof(path[0]), "%s/%s", root, name);
	return to;
}

static void start(void)
{
	compare_result_free(&result);
	result = (struct compare_result){};
	compare_free(d.compare);
	d.compare = compare_new(d.per == DIFF_PER_SECOND, 20);
	memset(d.about, 0, sizeof(d.about));
}

static int set_up(void **state)
{
	d = (struct diff){
		.by = { LABEL_CONTAINER }, .n_by = 1, .causes = { LABEL_SRC }, .n_causes = 1
	};
	*text = 0;
	start();
	return new_root(state);
}

#define EVENT "ibs_op/cnt_ctl=1/"

/* @n loads of a container from a source, each of a million ops and of about @latency cycles. */
static void series(const char *container, const char *src, unsigned int n, unsigned int latency)
{
	const unsigned int le = ibs_lat_le(ibs_lat_bucket(latency));

	sprintf(text + strlen(text),
		"{\"labels\":{\"container\":\"%s\",\"src\":\"%s\",\"op\":\"load\"},\"samples\":%u,"
		"\"valid\":%u,\"sum\":%u,\"estimated_ops\":%u000000,\"miss_cycles\":%u000000,"
		"\"buckets\":[[%u,%u],[%u,1]]}",
		container, src, n, n, n * latency, n, n * latency, le, n - 1, ibs_lat_le(0));
}

static void begin(const char *event, const char *metric, unsigned int seen)
{
	sprintf(text + strlen(text),
		"{\"source\":\"ibs\",\"event\":\"%s\",\"metric\":\"%s\",\"interval_s\":2,"
		"\"counted_since\":\"now\",\"ledger\":{\"seen\":%u},\"series\":[",
		event, metric, seen);
}

static void end(void)
{
	strcat(text, "]}\n");
}

static const char *write_to(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/%s", name);
	put_file(path, text);
	*text = 0;
	return name;
}

/* Ten intervals: of web 10 from DRAM, of db 30 from the L2; between them those of the other event. */
static const char *intervals(const char *name, unsigned int dram)
{
	for (int i = 0; i < 10; i++) {
		begin(EVENT, "dc_miss_lat", 40);
		series("web", "dram", 10, dram);
		strcat(text, ",");
		series("db", "l2", 30, 20);
		end();
		begin("ibs_fetch//", "fetch_lat", 40);
		series("web", "dram", 1000, 500);
		end();
	}
	return write_to(name);
}

static void add(enum compare_side side, const char *name)
{
	if (diff_add_counts(&d, side, path_of(name), &err))
		fail_msg("%s", err.text);
}

static void compare(void)
{
	if (compare_finish(d.compare, &result, &err))
		fail_msg("%s", err.text);
}

static void side_is(enum compare_side side, __u64 samples, double base, double y)
{
	assert_int_equal(result.side[side].samples, samples);
	assert_int_equal(result.side[side].valid, samples);
	near(result.side[side].base, base);
	near(result.side[side].y, y);
}

static void test_intervals(void **state)
{
	const struct diff_about *a = &d.about[COMPARE_A];

	(void)state;
	intervals("a", 400);
	intervals("b", 600);
	assert_true(diff_is_counts(path_of("a")));
	add(COMPARE_A, "a");
	add(COMPARE_B, "b");
	compare();
	side_is(COMPARE_A, 400, 400e6, (10 * 400 + 30 * 20) / 40.);
	side_is(COMPARE_B, 400, 400e6, (10 * 600 + 30 * 20) / 40.);
	near(result.side[COMPARE_A].seconds, 20);
	assert_int_equal(result.side[COMPARE_A].blocks, 10);
	assert_int_equal(result.n_rows, 2);
	near(row("web")->b, 150);
	assert_true(a->counts);
	assert_string_equal(a->source, "ibs");
	assert_string_equal(a->event, EVENT);
	assert_string_equal(a->metric, "dc_miss_lat");
	assert_int_equal(a->units, REPORT_OPS);
	/* the other event */
	d.event = "ibs_fetch";
	start();
	add(COMPARE_A, "a");
	add(COMPARE_B, "b");
	compare();
	side_is(COMPARE_A, 10000, 1e10, 500);
	assert_int_equal(a->units, REPORT_FETCHES);
}

static void test_per(void **state)
{
	(void)state;
	intervals("a", 400);
	d.per = DIFF_PER_ACCESS;
	start();
	add(COMPARE_A, "a");
	add(COMPARE_B, "a");
	compare();
	side_is(COMPARE_A, 400, 400, 115);
	d.per = DIFF_PER_SECOND;
	start();
	add(COMPARE_A, "a");
	add(COMPARE_B, "a");
	compare();
	side_is(COMPARE_B, 400, 20, 115 * 400e6 / 20);
}

static void test_keys(void **state)
{
	(void)state;
	intervals("a", 400);
	d.by_default = d.causes_by_default = true;
	d.n_by = 0;
	assert_int_equal(diff_keys_of_counts(&d, path_of("a"), &err), 0);
	assert_int_equal(d.n_by, 1);
	assert_int_equal(d.by[0], LABEL_CONTAINER);
	assert_int_equal(d.causes[0], LABEL_SRC);
	d.event = "ibs_fetch";
	assert_int_equal(diff_keys_of_counts(&d, path_of("a"), &err), 0);
	assert_int_equal(d.causes[0], LABEL_FETCH);
	assert_int_equal(d.n_by, 2); /* the source is not the cause now */
	/* keys that somebody asked for stay */
	d.by_default = d.causes_by_default = false;
	d.n_by = 0;
	assert_int_equal(diff_keys_of_counts(&d, path_of("a"), &err), 0);
	assert_int_equal(d.n_by, 0);
	assert_int_equal(d.causes[0], LABEL_FETCH);
}

static void snapshot(const char *name, unsigned int seen, unsigned int dram)
{
	begin(EVENT, "dc_miss_lat", seen);
	series("web", "dram", dram, 400);
	end();
	write_to(name);
}

/* Of two snapshots of the same counters, the later one counts without what the other has. */
static void test_overlap(void **state)
{
	(void)state;
	snapshot("a", 300, 300);
	snapshot("b", 800, 800);
	assert_int_equal(diff_find_overlap(&d, path_of("a"), path_of("b"), &err), 0);
	assert_null(d.earlier[COMPARE_A]);
	assert_non_null(strstr(d.earlier[COMPARE_B], "/a"));
	d.earlier[COMPARE_B] = strdup(d.earlier[COMPARE_B]);
	add(COMPARE_A, "a");
	add(COMPARE_B, "b");
	compare();
	side_is(COMPARE_A, 300, 300e6, 400);
	side_is(COMPARE_B, 500, 500e6, 400);
	assert_string_equal(d.about[COMPARE_B].selection, "since A");
	free((char *)d.earlier[COMPARE_B]);
	/* the other way round, and of several intervals */
	assert_int_equal(diff_find_overlap(&d, path_of("b"), path_of("a"), &err), 0);
	assert_non_null(strstr(d.earlier[COMPARE_A], "/a"));
	assert_null(d.earlier[COMPARE_B]);
	intervals("c", 400);
	assert_int_equal(diff_find_overlap(&d, path_of("c"), path_of("a"), &err), 0);
	assert_null(d.earlier[COMPARE_A]);
	assert_null(d.earlier[COMPARE_B]);
	assert_int_equal(diff_find_overlap(&d, path_of("a"), path_of("none"), &err), -ENOENT);
}

static void refused(int code, const char *why)
{
	write_to("bad");
	start();
	assert_int_equal(diff_add_counts(&d, COMPARE_A, path_of("bad"), &err), code);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void test_bad(void **state)
{
	(void)state;
	refused(-ENODATA, "bad has no intervals of any event");
	strcpy(text, "{\"series\":1}");
	refused(-EBADMSG, "object 1 is not output of `hist --json`");
	begin(EVENT, "dc_miss_lat", 1);
	strcat(text, "{\"labels\":{},\"samples\":-1}");
	end();
	refused(-EBADMSG, "object 1 has a series that hist does not print");
	begin(EVENT, "dc_miss_lat", 1);
	series("web", "dram", 10, 400);
	end();
	begin(EVENT, "tag_to_ret", 1);
	end();
	refused(-EINVAL, "object 2 has the metric 'tag_to_ret', those before it 'dc_miss_lat'");
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_intervals), T(test_per), T(test_keys), T(test_overlap), T(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
