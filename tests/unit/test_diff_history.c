// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Windows of the history of an exporter, of made-up answers: what is counted, selected and refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "diff/diff_private.h"

#define near(a, b) assert_true(fabs((a) - (double)(b)) < 1e-6 * fabs((double)(b)) + 1e-9)

/*
 * The machine booted 500 s after 1970, and the history is asked for at 2000 s. Intervals take 10 s. The middle of the first one
 * is the beginning of the window, that of the eleventh one is its end: ten are in it.
 */
#define NOW_S 2000.
#define HEAD  "{\"now_s\":1500,\"length_s\":3600,\"intervals\":["
#define ABOUT                                                                              \
	"\"collector\":[{\"event\":\"ibs_fetch//\",\"metric\":\"fetch_lat\"},"             \
	"{\"event\":\"ibs_op/cnt_ctl=1/\",\"metric\":\"dc_miss_lat\",\"simulated\":false," \
	"\"coarse_histograms\":false}],"
#define NAMES                                                                                  \
	"\"names\":[{\"id\":1,\"container\":\"web\",\"namespace\":\"shop\",\"pod\":\"web-5\"," \
	"\"cgroup\":\"\"},{\"id\":2,\"container\":\"db\",\"namespace\":\"\",\"pod\":\"db-1\"," \
	"\"cgroup\":\"/db\"},{\"container\":\"no id\"},{\"id\":0,\"container\":\"0\"},"        \
	"{\"id\":1e15,\"container\":\"large\"}],"
/* 40 samples, of which 20 have a latency: 400 cycles on average, in the bucket of 352 to 384 */
#define DRAM "[40,20,8000,4000,80000,[384,20]]"
#define L3   "[10,0,0,1000,0,[]]"
/* the same without a name, or of an id that none has */
#define GROUPS                                                                  \
	"\"groups\":[{\"id\":1,\"sources\":{\"dram\":" DRAM ",\"l3\":" L3 "}}," \
	"{\"id\":2,\"sources\":{\"dram\":" DRAM "}},"                           \
	"{\"id\":3,\"sources\":{\"dram\":" DRAM "}}]"

static struct diff diff;
static struct diff_window window;
static struct compare_result result;
static struct err err;
static char *text;

static int begin(void **state)
{
	(void)state;
	diff = (struct diff){ .per = DIFF_PER_OPS,
			      .metric = IBS_METRIC_DC_MISS_LAT,
			      .by = { LABEL_CONTAINER, LABEL_POD, LABEL_CGROUP },
			      .n_by = 3,
			      .html = true };
	diff.compare = compare_new(false, 10);
	for (int s = 0; s < COMPARE_SIDES; s++)
		diff.about[s].selection = s ? "after" : "before";
	window = (struct diff_window){
		.url = "http://h:9", .match = "", .from_s = 1000, .seconds = 100
	};
	result = (struct compare_result){};
	err.text[0] = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	compare_result_free(&result);
	diff_reset(&diff);
	free(text);
	text = NULL;
	return 0;
}

static void begin_again(bool per_second)
{
	compare_result_free(&result);
	diff_reset(&diff);
	diff.compare = compare_new(per_second, 10);
}

/* @n intervals; the first one has @first, and the number @odd has @other instead of @each. */
static const char *history(int n, const char *first, const char *each, int odd, const char *other)
{
	size_t size;
	FILE *f;

	free(text);
	f = open_memstream(&text, &size);
	fputs(HEAD, f);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s{%s\"begin_s\":%d,\"end_s\":%d,%s}", i ? "," : "", i ? "" : first,
			495 + 10 * i, 505 + 10 * i, i == odd ? other : each);
	fputs("]}", f);
	fclose(f);
	return text;
}

static int add(enum compare_side side, const char *answer)
{
	return diff_add_history_answer(&diff, side, &window, answer, strlen(answer), NOW_S, &err);
}

static void add_both(const char *first, const char *each)
{
	for (int s = 0; s < COMPARE_SIDES; s++)
		if (add(s, history(12, first, each, -1, "")))
			fail_msg("%s", err.text);
	assert_int_equal(compare_finish(diff.compare, &result, &err), 0);
}

static const struct compare_where *row(const char *container)
{
	for (size_t i = 0; i < result.n_rows; i++)
		if (!strcmp(result.row[i].name[0] ?: "-", container))
			return &result.row[i];
	fail_msg("no row of %s", container);
	return NULL;
}

/* What is in the window is counted, by group and by source. */
static void test_counts(void **state)
{
	const struct compare_side_sum *a = &result.side[COMPARE_A];

	(void)state;
	add_both(ABOUT NAMES, GROUPS);
	assert_string_equal(diff.about[COMPARE_A].event, "ibs_op/cnt_ctl=1/");
	assert_string_equal(diff.about[COMPARE_A].metric, "dc_miss_lat");
	assert_false(diff.about[COMPARE_A].simulated);
	assert_true(diff.about[COMPARE_A].counts);
	assert_int_equal(diff.about[COMPARE_A].units, REPORT_OPS);
	/* ten intervals, with three times DRAM and one L3 */
	assert_int_equal(a->samples, 10 * (3 * 40 + 10));
	assert_int_equal(a->valid, 10 * 3 * 20);
	near(a->base, 10 * (3 * 4000 + 1000));
	near(a->y, 240000. / 13000);
	assert_int_equal(a->blocks, 10);
	assert_int_equal(result.n_rows, 3);
	near(row("web")->a, 80000. / 13000);
	assert_string_equal(row("web")->name[1], "shop/web-5");
	assert_null(row("web")->name[2]); /* the path of what has a name is not told */
	assert_string_equal(row("db")->name[1], "db-1");
	assert_string_equal(row("db")->name[2], "/db");
	assert_null(row("other")->name[1]);
	assert_null(row("other")->name[2]);
	assert_int_equal(result.n_terms, 4);
	assert_string_equal(compare_cause_name(diff.compare, 0), "dram");
	assert_string_equal(compare_cause_name(diff.compare, 1), "l3");
	/* all latencies are in one bucket */
	assert_true(result.has_quantile);
	near(result.quantile[COMPARE_A], 352 + .99 * 32);
	assert_non_null(diff.heat[COMPARE_A]);
}

/* Per second, and per access, of which the sum of latencies counts. */
static void test_per(void **state)
{
	(void)state;
	begin_again(true);
	diff.per = DIFF_PER_SECOND;
	add_both(ABOUT NAMES, GROUPS);
	near(result.side[COMPARE_A].base, 100);
	near(result.side[COMPARE_A].y, 10 * 240000 / 100.);
	begin_again(false);
	diff.per = DIFF_PER_ACCESS;
	/* that ops are unknown does not matter */
	add_both(ABOUT,
		 "\"groups\":[{\"id\":1,\"sources\":{\"dram\":[40,20,8000,0,null,[384,20]]}}]");
	near(result.side[COMPARE_A].y, 400);
}

static void test_coarse(void **state)
{
	(void)state;
	add_both("\"collector\":[{\"event\":\"ibs_op//"
		 "\",\"metric\":\"dc_miss_lat\",\"simulated\":true,"
		 "\"coarse_histograms\":true}],",
		 GROUPS);
	assert_false(result.has_quantile);
	assert_true(diff.about[COMPARE_A].simulated);
	assert_int_equal(diff.about[COMPARE_A].units, REPORT_CYCLES);
}

/* Fetches have members of their own. */
static void test_fetches(void **state)
{
	(void)state;
	diff.metric = IBS_METRIC_FETCH_LAT;
	add_both(ABOUT NAMES,
		 "\"groups\":[{\"id\":1,\"sources\":{\"dram\":[1]},\"fetches\":{\"l2\":" DRAM
		 "}}]");
	assert_string_equal(diff.about[COMPARE_A].event, "ibs_fetch//");
	assert_int_equal(diff.about[COMPARE_A].units, REPORT_FETCHES);
	assert_int_equal(result.side[COMPARE_A].samples, 400);
	assert_string_equal(compare_cause_name(diff.compare, 0), "l2");
	begin_again(false);
	add_both(ABOUT NAMES,
		 GROUPS ",\"fetch\":{\"groups\":[{\"id\":2,\"fetches\":{\"l2\":" DRAM "}}]}");
	assert_int_equal(result.side[COMPARE_A].samples, 400);
	assert_int_equal(result.n_rows, 1);
	assert_string_equal(result.row[0].name[0], "db");
}

/* Only groups that have all labels; those without a name have none. */
static void test_match(void **state)
{
	const struct diff_label labels[] = { { "container", "db" }, { "pod", "db-1" } },
				none[] = { { "runtime", "" } };

	(void)state;
	window.match = "container=\"web\" , pod = \"web-5\"";
	add_both(ABOUT NAMES, GROUPS);
	assert_int_equal(result.n_rows, 1);
	assert_string_equal(result.row[0].name[0], "web");
	begin_again(false);
	window.match = "";
	window.labels = labels;
	window.n_labels = 2;
	add_both(ABOUT NAMES, GROUPS);
	assert_int_equal(result.n_rows, 1);
	assert_string_equal(result.row[0].name[0], "db");
	begin_again(false);
	window.labels = none; /* what no group says is empty */
	window.n_labels = 1;
	add_both(ABOUT NAMES, GROUPS);
	assert_int_equal(result.n_rows, 2);
	row("web");
	row("db");
}

static void test_match_text(void **state)
{
	static const char *const bad[] = {
		"x",	    "pod=web", "pod=\"a\" pod=\"b\"", "pod!=\"\"", "pod=\"a\"; x=\"b\"",
		"Pod=\"a\""
	};

	(void)state;
	assert_int_equal(diff_history_match("", &err), 0);
	assert_int_equal(diff_history_match("a=\"b\",c = \"d\",", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		err.text[0] = 0;
		assert_int_equal(diff_history_match(bad[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "--match: invalid '"));
		assert_non_null(strstr(err.text, bad[i]));
	}
	window.match = "x";
	assert_int_equal(add(COMPARE_A, history(12, ABOUT, GROUPS, -1, "")), -EINVAL);
}

static void refused(const char *answer, int want, const char *why)
{
	err.text[0] = 0;
	assert_int_equal(add(COMPARE_A, answer), want);
	if (!strstr(err.text, why))
		fail_msg("'%s' is not in '%s'", why, err.text);
}

static void test_no_history(void **state)
{
	(void)state;
	refused("", -EBADMSG, "http://h:9: the answer is not the history of an ibscope-exporter: ");
	refused("{", -EBADMSG, "is not the history");
	refused("{\"intervals\":[]}", -EBADMSG, "it has no intervals");
	refused("{\"now_s\":1}", -EBADMSG, "it has no intervals");
	refused("{\"now_s\":\"1\",\"intervals\":[]}", -EBADMSG, "it has no intervals");
	refused("{\"now_s\":1,\"intervals\":{}}", -EBADMSG, "it has no intervals");
	refused("{\"now_s\":1,\"intervals\":[{}]}", -EBADMSG, "an interval has no times");
	refused("{\"now_s\":1,\"intervals\":[{\"begin_s\":1}]}", -EBADMSG,
		"an interval has no times");
	refused("{\"now_s\":1,\"intervals\":[{\"end_s\":1}]}", -EBADMSG,
		"an interval has no times");
	refused("{\"now_s\":1,\"intervals\":[{\"begin_s\":2,\"end_s\":1}]}", -EBADMSG,
		"an interval has no times");
	refused(history(12, ABOUT, "\"number\":1", -1, ""), -EBADMSG, "an interval has no groups");
	refused(history(12, ABOUT, "\"groups\":{}", -1, ""), -EBADMSG, "an interval has no groups");
	refused("{\"now_s\":1,\"length_s\":3600,\"intervals\":[]}", -ENODATA,
		"http://h:9: the history is still empty; ");
	refused("{\"now_s\":1,\"length_s\":0,\"intervals\":[]}", -ENODATA,
		"http://h:9: the exporter keeps no history: ");
}

/* Eight intervals are needed; where they are is said. */
static void test_too_few(void **state)
{
	(void)state;
	assert_int_equal(add(COMPARE_A, history(8, ABOUT, GROUPS, -1, "")), 0);
	refused(history(7, ABOUT, GROUPS, -1, ""), -ENODATA,
		"http://h:9: 7 intervals before, at least 8 are needed: choose a longer --window, "
		"or "
		"another time; there are intervals from 1970-01-01T00:16:35Z to "
		"1970-01-01T00:17:45Z, ");
	/* gaps do not count as intervals, whatever they contain */
	refused(history(8, ABOUT, GROUPS, 5, "\"gap\":true"), -ENODATA, ": 7 intervals before");
	window.option = "--a";
	window.from_s = 5000;
	refused(history(12, ABOUT, GROUPS, -1, ""), -ENODATA,
		": 0 intervals before, at least 8 are needed: choose a longer --a, or ");
}

/* What an event is must not change within a window; before it, it may. */
static void test_event(void **state)
{
	(void)state;
	refused(history(12, "", GROUPS, -1, ""), -ENODATA,
		"http://h:9: the collector did not sample ibs_op before");
	diff.metric = IBS_METRIC_FETCH_LAT;
	refused(history(12, "\"collector\":[{\"event\":\"ibs_op//\"},{}],", GROUPS, -1, ""),
		-ENODATA, "did not sample ibs_fetch before");
	diff.metric = IBS_METRIC_DC_MISS_LAT;
	refused(history(12, ABOUT, GROUPS, 3,
			"\"collector\":[{\"event\":\"ibs_op//"
			"\",\"metric\":\"dc_miss_lat\"}]," GROUPS),
		-EINVAL,
		"http://h:9: dc_miss_lat of ibs_op/cnt_ctl=1/ was sampled in one part of the time "
		"before, and dc_miss_lat of ibs_op// in another: choose a shorter --window");
	*diff.about[COMPARE_A].event = 0;
	refused(history(12, ABOUT, GROUPS, 3,
			"\"collector\":[{\"event\":\"ibs_op/cnt_ctl=1/"
			"\",\"metric\":\"tag_to_ret\"}]," GROUPS),
		-EINVAL, ", and tag_to_ret of ibs_op/cnt_ctl=1/ in another");
	*diff.about[COMPARE_A].event = 0;
	window.from_s = 1010; /* the first interval is before it */
	window.seconds = 90;
	assert_int_equal(add(COMPARE_A, history(11, ABOUT, GROUPS, 1,
						"\"collector\":[{\"event\":\"ibs_op//"
						"\",\"metric\":\"tag_to_ret\"}]," GROUPS)),
			 0);
	assert_string_equal(diff.about[COMPARE_A].metric, "tag_to_ret");
}

static const char *with_source(const char *source)
{
	static char groups[512];

	snprintf(groups, sizeof(groups), "\"groups\":[{\"id\":1,\"sources\":{\"dram\":%s}}]",
		 source);
	return history(12, ABOUT, groups, -1, "");
}

/* Counts are whole, not negative, and add up. */
static void test_bad_counts(void **state)
{
	static const char *const bad[] = {
		"[40,20,8000,4000,80000]",		  /* a member is missing */
		"[40,20,8000,4000,80000,[384,20],0]",	  /* or there are too many */
		"{}",					  /* another type */
		"[40,20,8000,\"4000\",80000,[384,20]]",	  /* a text */
		"[40,20,null,4000,80000,[384,20]]",	  /* only cycles may be unknown */
		"[-1,0,0,0,0,[]]",			  /* negative */
		"[40.5,20,8000,4000,80000,[384,20]]",	  /* a fractional number of samples */
		"[10,20,8000,4000,80000,[384,20]]",	  /* more latencies than samples */
		"[40,20,8000,4000.5,80000,[384,20]]",	  /* a fractional number of ops */
		"[40,20,8000,4000,80000,[384,19]]",	  /* fewer in buckets */
		"[40,20,8000,4000,80000,[384,21]]",	  /* or more */
		"[40,20,8000,4000,80000,[384,20,384]]",	  /* an edge alone */
		"[40,20,8000,4000,80000,[384,20,385,0]]", /* no edge of a bucket */
		"[40,20,8000,4000,80000,[384,19.5,352,0.5]]",
		"[40,20,8000,4000,80000,[384,21,352,-1]]",
		"[40,20,8000,4000,80000,[\"384\",20]]",
		"[40,20,8000,4000,80000,[384,null]]",
	};

	(void)state;
	assert_int_equal(add(COMPARE_A, with_source(DRAM)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refused(with_source(bad[i]), -EBADMSG,
			"http://h:9: the answer is not the history of an ibscope-exporter: counts "
			"must be whole, not negative, and add up");
}

/* Without ops, or with unknown cycles, there is only the mean of accesses. */
static void test_no_ops(void **state)
{
	(void)state;
	assert_int_equal(add(COMPARE_A, with_source("[40,20,8000,0,80000,[384,20]]")), -EAGAIN);
	assert_int_equal(add(COMPARE_A, with_source("[40,20,8000,4000,null,[384,20]]")), -EAGAIN);
	/* nothing was sampled: nothing is unknown */
	assert_int_equal(add(COMPARE_A, with_source("[0,0,0,0,0,[]]")), 0);
	diff.per = DIFF_PER_ACCESS;
	assert_int_equal(add(COMPARE_A, with_source("[40,20,8000,0,80000,[384,20]]")), 0);
}

#define H(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		H(test_counts), H(test_per),	    H(test_coarse),	H(test_fetches),
		H(test_match),	H(test_match_text), H(test_no_history), H(test_too_few),
		H(test_event),	H(test_bad_counts), H(test_no_ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
