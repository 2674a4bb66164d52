// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of a table made by hand: their rank, what is in the rest, names for options and CSV; advice on fetches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/screen.h"
#include "near.h"
#include "table/table.h"

#include <ibscope/fetch.h>

static struct table t;

/* A row called @name; its latencies are its miss cycles. */
static void put_row(const char *name, __u64 samples, __u64 valid, double cycles)
{
	struct table_row *r = &t.row[t.n++];

	r->name[LABEL_CGROUP] = strdup(name);
	r->all.samples = samples;
	r->all.valid = valid;
	r->all.sum = r->all.cycles = r->cycles = cycles;
	r->known = cycles;
	r->dram = 0.5;
	r->remote = 0.25;
	r->walks = 1;
	r->memory = 2;
	r->aborted = 3;
	r->cached = 4;
	r->waits.sum = cycles;
	t.total.cycles += cycles;
	t.total.all.sum += cycles;
}

static int begin(void **state)
{
	(void)state;
	t = (struct table){ .labels = 1u << LABEL_CGROUP, .sort = TABLE_CYCLES };
	t.row = calloc(16, sizeof(*t.row));
	return t.row ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	table_free(&t);
	return 0;
}

/* The first letters of the names of all rows. */
static void order_is(const char *want)
{
	char names[32] = "";

	for (size_t i = 0; i < t.n; i++)
		names[i] = *t.row[i].name[LABEL_CGROUP];
	assert_string_equal(names, want);
}

/* Rows of fewer than 20 samples with a latency are behind the others, whatever they cost. */
static void test_weak(void **state)
{
	(void)state;
	put_row("a", 100, 19, 900);
	put_row("b", 100, 20, 800);
	put_row("c", 100, 0, 0);
	put_row("d", 100, 100, 100);
	table_rank_weak(&t, 0, false);
	order_is("bdac");
	assert_int_equal(t.n_rest, 0);
	t.sort = TABLE_SAMPLES;
	table_rank_weak(&t, 0, false);
	order_is("bdac");
}

/* A table that is sorted by samples keeps its order. */
static void test_by_samples(void **state)
{
	static const enum table_column sorts[] = { TABLE_SAMPLES, TABLE_VALID, TABLE_OPS };

	(void)state;
	put_row("a", 100, 19, 900);
	put_row("b", 90, 20, 800);
	for (int i = 0; i < 3; i++) {
		t.sort = sorts[i];
		table_rank_weak(&t, 0, true);
		order_is("ab");
	}
	t.sort = TABLE_MEAN;
	table_rank_weak(&t, 0, true);
	order_is("ba");
}

/* The rows beyond the first ones are added up, unless it is one: that takes the line of the rest. */
static void test_top(void **state)
{
	(void)state;
	put_row("a", 100, 50, 900);
	put_row("b", 100, 40, 600);
	put_row("c", 100, 30, 300);
	table_rank_weak(&t, 2, false);
	order_is("abc");
	assert_int_equal(t.n_rest, 0);
	t.row[2].remote = 0.5;
	table_rank_weak(&t, 1, false);
	order_is("a");
	assert_int_equal(t.n_rest, 2);
	assert_int_equal(t.rest.all.samples, 200);
	assert_int_equal(t.rest.all.valid, 70);
	near(t.rest.cycles, 900);
	near(t.rest.waits.sum, 900);
	near(t.rest.known, 900);
	near(t.rest.dram, 0.5);
	near(t.rest.remote, (0.25 * 600 + 0.5 * 300) / 900);
	assert_int_equal(t.rest.walks, 2);
	assert_int_equal(t.rest.memory, 4);
	assert_int_equal(t.rest.aborted, 6);
	assert_int_equal(t.rest.cached, 8);
	/* one more joins those */
	put_row("d", 1, 1, 1);
	t.row[1].known = 0; /* of no known source */
	table_rank_weak(&t, 1, false);
	order_is("a");
	assert_int_equal(t.n_rest, 3);
	near(t.rest.known, 900);
	near(t.rest.dram, 0.5);
	near(t.rest.cycles, 901);
}

/* Rows without miss cycles, and below the first five those of few samples and less than 2 % if the others have half. */
static void test_fold(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		put_row((char[]){ 'a' + i, 0 }, 100, 100, 150);
	put_row("f", 19, 0, 14); /* fewer than 2 % of 999 */
	put_row("g", 100, 19, 14);
	put_row("h", 100, 10, 200);
	put_row("i", 50, 0, 7);
	put_row("j", 500, 0, 0);
	table_rank_weak(&t, 0, true);
	order_is("abcdehi");
	assert_int_equal(t.n_rest, 3);
}

/* Rows of few samples stay if they have most of the miss cycles. */
static void test_no_answer(void **state)
{
	(void)state;
	put_row("a", 100, 100, 499);
	for (int i = 0; i < 5; i++)
		put_row((char[]){ 'b' + i, 0 }, 10, 10, 100);
	put_row("g", 10, 10, 1);
	put_row("h", 10, 10, 0);
	put_row("i", 10, 10, 0);
	table_rank_weak(&t, 0, true);
	order_is("abcdefg");
	assert_int_equal(t.n_rest, 2);
}

static void test_folds(void **state)
{
	(void)state;
	assert_true(table_folds(5, 19, 0, 0.019));
	assert_false(table_folds(4, 19, 0, 0.019));
	assert_false(table_folds(5, 20, 0, 0.019));
	assert_false(table_folds(5, 100, 20, 0.019));
	assert_true(table_folds(5, 100, 19, 0.019));
	assert_false(table_folds(5, 19, 0, 0.02));
	assert_true(table_folds(5, 19, 0, NAN));
	assert_true(table_folds_idle(1, TABLE_CYCLES, 0));
	assert_true(table_folds_idle(1, TABLE_SHARE, 0));
	assert_true(table_folds_idle(1, TABLE_EXPOSED, 0));
	assert_false(table_folds_idle(1, TABLE_MEAN, 0));
	assert_false(table_folds_idle(0, TABLE_CYCLES, 0));
	assert_false(table_folds_idle(1, TABLE_CYCLES, 1e-9));
	assert_false(table_folds_idle(1, TABLE_CYCLES, NAN));
}

/* A part of the rows, and all others as the rest. */
static void test_window(void **state)
{
	struct table w;

	(void)state;
	for (int i = 0; i < 5; i++)
		put_row((char[]){ 'a' + i, 0 }, 100 + i, 50, 10 << i);
	table_window(&t, 1, 2, &w);
	assert_int_equal(w.n, 2);
	assert_string_equal(w.row[0].name[LABEL_CGROUP], "b");
	assert_int_equal(w.n_rest, 3);
	near(w.rest.cycles, 10 + 80 + 160);
	assert_int_equal(w.rest.all.samples, 307);
	near(w.total.cycles, 310);
	table_window_free(&w);
	table_window(&t, 3, 9, &w);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.n_rest, 3);
	near(w.rest.cycles, 70);
	table_window_free(&w);
	table_window(&t, 3, 2, &w); /* up to the last one */
	assert_int_equal(w.n, 2);
	table_window_free(&w);
	t.total.cycles = 0;
	w = (struct table){ 0 };
	table_window(&(struct table){ .n = 0 }, 0, 4, &w);
	assert_int_equal(w.n, 0);
	assert_null(w.row);
	table_window_free(&w);
}

static void test_names(void **state)
{
	static const char *const no_names[] = {
		"", "[none]", "#5", "other", "unknown", "-", "host, no container"
	};

	(void)state;
	assert_string_equal(table_none(LABEL_POD), "no pod");
	assert_string_equal(table_none(LABEL_COMM), "[unknown]");
	assert_string_equal(table_none(LABEL_PID), "[none]");
	assert_string_equal(table_none(LABEL_CGROUP), table_none(LABEL_CONTAINER));
	assert_true(table_is_none("", LABEL_PID));
	assert_true(table_is_none("/", LABEL_CGROUP));
	assert_false(table_is_none("/", LABEL_CONTAINER));
	assert_string_equal(table_csv_name(table_none(LABEL_CGROUP), LABEL_CGROUP), "/");
	assert_string_equal(table_csv_name(table_none(LABEL_POD), LABEL_POD), "");
	assert_string_equal(table_csv_name("x", LABEL_POD), "x");
	assert_true(table_is_selectable("web"));
	assert_false(table_is_selectable(NULL));
	for (size_t i = 0; i < sizeof(no_names) / sizeof(*no_names); i++)
		assert_false(table_is_selectable(no_names[i]));
}

/* Names are cut, the widest first, but headings and those of `whole` only when nothing else is left. */
static void test_widths(void **state)
{
	static const struct {
		unsigned int screen, whole;
		size_t width[2];
	} cases[] = {
		{ 71, 0, { 30, 30 } }, { 60, 0, { 24, 25 } }, { 60, 2, { 20, 29 } },
		{ 60, 1, { 30, 19 } }, { 40, 0, { 20, 9 } },  { 40, 1, { 21, 8 } },
		{ 36, 0, { 17, 8 } },
	};
	static const char *const keys[] = { "a_heading_of_20_cols", "pid" };
	static const enum table_column column = TABLE_SAMPLES;
	char *of[] = { (char *)"/the/first/name/of/30/columns/",
		       (char *)"/a/second/name/30/columns/wide" };
	struct table_row row = { .name = { of[0], of[1] } };
	struct table k = { .key = keys, .n_keys = 2, .n = 1, .row = &row };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct screen screen = { .width = cases[i].screen };
		struct table_text text;

		k.whole = cases[i].whole;
		table_text_build(&screen, &k, &column, 1, &text);
		assert_int_equal(text.width[0], cases[i].width[0]);
		assert_int_equal(text.width[1], cases[i].width[1]);
		assert_int_equal(text.width[2], 7);
		assert_in_range(screen_columns(table_text_cell(&text, 1, 0)), 1, text.width[0]);
		table_text_free(&text);
	}
}

/* --- advice on fetches --- */

static const char *names[] = { "", "/one", "/two" };

static const char *namer(void *arg, __u64 id, enum label l)
{
	(void)arg;
	return l == LABEL_CGROUP ? names[id] : "";
}

static struct group groups[2];
static struct snapshot snapshot;

static const char *advice(enum ibs_metric metric)
{
	static const struct screen screen = { .width = 100 };
	static char text[1024];
	FILE *f;

	*text = 0;
	f = fmemopen(text, sizeof(text), "w");
	fetch_verdict(f, &screen, &snapshot, metric, namer, NULL);
	fclose(f);
	return text;
}

/* @of: a group; samples with a latency of 10 */
static void put_series(struct group *of, enum ibs_fetch_class class, enum ibs_fetch_itlb itlb,
		       unsigned int samples)
{
	of->series[of->n_series++] = (struct series){ .src = (enum ibs_src) class,
						      .op = (enum ibs_op_kind)itlb,
						      .samples = samples,
						      .valid = samples,
						      .sum = 10 * samples,
						      .ops = samples,
						      .cycles = 10 * samples };
}

static int begin_fetches(void **state)
{
	(void)state;
	for (int g = 0; g < 2; g++) {
		groups[g] = (struct group){ .slot = g + 1, .key.cgroup_id = g + 1 };
		groups[g].series = calloc(4, sizeof(*groups[g].series));
	}
	snapshot = (struct snapshot){ .n_groups = 2, .groups = groups, .by = IBS_BY_CGROUP };
	return 0;
}

static int end_fetches(void **state)
{
	(void)state;
	for (int g = 0; g < 2; g++)
		free(groups[g].series);
	return 0;
}

#define WALKS(all, of, where)                                                                      \
	all " of the fetch latency is that of fetches that walked page tables of 4 KiB pages, " of \
	    " of that in " where ": huge pages for its code may help (transparent ones of "        \
	    "files, or BOLT --hugify)\n"
#define MISSES(all, of, where)                                                       \
	all " of the fetch latency is that of fetches that missed the L3 cache, " of \
	    " of that in " where ": a denser layout of its code may help (BOLT, Propeller)\n"

static void test_fetches(void **state)
{
	(void)state;
	put_series(&groups[0], IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_L1, 500);
	put_series(&groups[0], IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_WALK_4K, 25);
	put_series(&groups[1], IBS_FETCH_CLASS_L2, IBS_FETCH_ITLB_WALK_4K, 74);
	assert_string_equal(advice(IBS_METRIC_FETCH_LAT), ""); /* 99 */
	put_series(&groups[1], IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_WALK_4K, 1);
	assert_string_equal(advice(IBS_METRIC_FETCH_LAT), WALKS("16.7%", "75.0%", "/two"));
	assert_string_equal(advice(IBS_METRIC_ITLB_REFILL_LAT), "");
	assert_string_equal(advice(IBS_METRIC_DC_MISS_LAT), "");
	put_series(&groups[0], IBS_FETCH_CLASS_L3_MISS, IBS_FETCH_ITLB_L1, 400);
	assert_string_equal(advice(IBS_METRIC_FETCH_LAT),
			    WALKS("10.0%", "75.0%", "/two") MISSES("40.0%", "100.0%", "/one"));
	/* less than a tenth */
	groups[0].series[0].sum += 10;
	assert_string_equal(advice(IBS_METRIC_FETCH_LAT), MISSES("40.0%", "100.0%", "/one"));
}

/* Names of the same group have one hash, whatever else its rows are of. */
static void test_hashes(void **state)
{
	const unsigned int labels = 1u << LABEL_CGROUP | 1u << LABEL_SRC;
	struct table built;

	(void)state;
	put_series(&groups[0], IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_L1, 5);
	put_series(&groups[1], IBS_FETCH_CLASS_L1, IBS_FETCH_ITLB_L1, 4);
	table_build(&snapshot, IBS_METRIC_DC_MISS_LAT, labels, TABLE_SAMPLES, 0, namer, NULL,
		    &built);
	assert_int_equal(built.n, 2);
	for (int g = 0; g < 2; g++)
		assert_true(table_row_hash(&built.row[g]) ==
			    table_group_hash(&groups[g], labels, namer, NULL));
	assert_true(table_row_hash(&built.row[0]) != table_row_hash(&built.row[1]));
	table_free(&built);
}

#define T(f)	   cmocka_unit_test_setup_teardown(f, begin, end)
#define FETCHES(f) cmocka_unit_test_setup_teardown(f, begin_fetches, end_fetches)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_weak),
		T(test_by_samples),
		T(test_top),
		T(test_fold),
		T(test_no_answer),
		cmocka_unit_test(test_folds),
		T(test_window),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_widths),
		FETCHES(test_fetches),
		FETCHES(test_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
