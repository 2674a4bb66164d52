// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables, JSON and CSV of a comparison, of made-up results. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/err.h"
#include "diff/diff_private.h"

static const struct screen ascii = { .width = 200 }, utf8 = { .width = 95, .utf8 = true };
static const char *const web[] = { "web" }, *const db[] = { "db" }, *const unknown[] = { NULL };

static struct compare_term term[3];
static struct compare_where row[3];
static struct diff diff;
static struct compare_result result;
static char *printed;

/* From 10 to 12 miss cycles per thousand ops; of two causes and one row this is known. */
static int begin(void **state)
{
	(void)state;
	diff = (struct diff){ .per = DIFF_PER_OPS,
			      .by = { LABEL_COMM },
			      .n_by = 1,
			      .about = { { .file = "a" }, { .file = "bb" } } };
	strcpy(diff.about[0].metric, "dc_miss_lat");
	diff.compare = compare_new(false, 10);
	compare_cause(diff.compare, "dram");
	compare_cause(diff.compare, "l3,x");
	term[0] = (struct compare_term){
		0, COMPARE_OFTEN, .004, .006, { .0015, .001, .002, .001, true, false }
	};
	term[1] = (struct compare_term){
		1, COMPARE_COST, 40, 36, { -.0003, -.0006, -.0001, .002, true, false }
	};
	term[2] = (struct compare_term){
		0, COMPARE_COST, NAN, 36, { .0001, -.0006, .0007, NAN, false, false }
	};
	row[0] = (struct compare_where){
		web, .003,	    .0048, 77, { .0018, .001, .0026, .003, true, false },
		0,   COMPARE_OFTEN, -1
	};
	row[1] = (struct compare_where){
		db, .007, .0072, 66, { .0002, -.001, .0014, .5, false, false }, 1, COMPARE_COST, -1
	};
	result = (struct compare_result){
		.side = { { .y = .01,
			    .samples = 5000,
			    .valid = 4500,
			    .seconds = 10,
			    .blocks = 5,
			    .base = 1e6 },
			  { .y = .012, .samples = 4000, .valid = 3500, .base = 2e6 } },
		.change = { .002, .0015, .0025, .0001, true, false },
		.term = term,
		.n_terms = 3,
		.n_findings = 2,
		.other_terms = { .0008, -.0001, .0017, NAN, false, false },
		.row = row,
		.n_rows = 2,
		.n_row_findings = 1,
		.other_rows = { .0002, -.001, .0014, NAN, false, false },
		.detectable = .02,
		.tests = 3,
	};
	return 0;
}

static int end(void **state)
{
	(void)state;
	compare_free(diff.compare);
	return 0;
}

static const char *print(const struct screen *s, enum table_format format, size_t top)
{
	const struct diff_print p = { .screen = s, .format = format, .top = top };
	size_t n;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &n);
	diff_print(f, &p, &diff, &result);
	fclose(f);
	return printed;
}

#define HEAD                                                                \
	"A  a   10 s, 5,000 samples\n"                                      \
	"B  bb  4,000 samples\n"                                            \
	"\n"                                                                \
	"Miss cycles per thousand ops: 10.0 -> 12.0, +20.0 % +- 5.0 %\n"    \
	"    +15 points  dram more often (4.0 -> 6.0 of a thousand ops)\n"  \
	"     -3 points  l3,x answered faster (mean 40.0 -> 36.0 cycles)\n" \
	"     +8 points  ~ everything else\n"                               \
	"1 point is 1 % of the first value. ~: causes that are within noise one by one.\n"
#define CAUSES                                                                         \
	"\n"                                                                           \
	"CAUSE                  A     B  CHANGE            95 %  SHARE\n"              \
	"dram    more often   4.0   6.0    +1.5    +1.0 .. +2.0    75%  ###########\n" \
	"l3,x    faster      40.0  36.0   -0.30  -0.60 .. -0.10   -15%\n"              \
	"others                           +0.80   -0.10 .. +1.7    40%  ~\n"           \
	"sum                 10.0  12.0    +2.0    +1.5 .. +2.5   100%\n"
#define TRUST "\n95% intervals of changes: +-33% (first cause) to +-83%; ~ within noise\n"

/* Causes, rows, and how sure they are; a narrower screen has no bars. */
static void test_text(void **state)
{
	(void)state;
	assert_string_equal(print(&ascii, FORMAT_TEXT, 0),
			    HEAD CAUSES "\n"
					"COMM    CHANGE          95 %  MOST OF IT\n"
					"web       +1.8  +1.0 .. +2.6  dram more often\n"
					"others   +0.20  -1.0 .. +1.4  ~\n" TRUST);
	assert_non_null(
		strstr(print(&utf8, FORMAT_TEXT, 0),
		       "\nCAUSE                  A     B  CHANGE           95 %  SHARE\n"
		       "dram    more often   4.0   6.0    +1.5    +1.0 … +2.0    75%\n"
		       "l3,x    faster      40.0  36.0   −0.30  −0.60 … −0.10   −15%\n"
		       "others                           +0.80   −0.10 … +1.7    40%  ~\n"));
	assert_non_null(
		strstr(printed, "\n95% intervals of changes: ±33% (first cause) to ±83%; "));
	/* others that are more than noise have a bar: 7.5 of 15 */
	result.other_terms.change = .001;
	result.other_terms.low = .0001;
	result.other_rows.low = .0001;
	print(&ascii, FORMAT_TEXT, 0);
	assert_non_null(strstr(printed, "+0.10 .. +1.7    50%  ########\n"));
	assert_non_null(strstr(printed, "\nothers   +0.20  +0.10 .. +1.4\n"));
}

/* Nothing of a table that is empty. */
static void test_less(void **state)
{
	(void)state;
	result.n_row_findings = 0;
	assert_string_equal(print(&ascii, FORMAT_TEXT, 0),
			    HEAD CAUSES TRUST "\nNo row by itself differs by more than noise.\n");
	result.n_rows = 1; /* of one row that says nothing */
	assert_string_equal(print(&ascii, FORMAT_TEXT, 0), HEAD CAUSES TRUST);
	result.n_findings = 0;
	assert_string_equal(print(&ascii, FORMAT_TEXT, 0),
			    "A  a   10 s, 5,000 samples\nB  bb  4,000 samples\n\n"
			    "Miss cycles per thousand ops: 10.0 -> 12.0, +20.0 % +- 5.0 %\n");
	/* one cause is as sure as itself */
	result.n_findings = 1;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\n95% intervals of changes: +-33%; ~ within noise\n"));
	/* what a longer run would find, if nothing was found */
	result.change.finding = false;
	result.n_findings = 0;
	result.change.low = -.001;
	assert_non_null(
		strstr(print(&ascii, FORMAT_TEXT, 0), "(A change of 2.0 % would have been seen"));
}

/* The rest of the findings is one line, whose interval is not known. */
static void test_top(void **state)
{
	(void)state;
	row[1].change = (struct compare_change){ -.0005, -.0008, -.0002, .01, true, false };
	result.n_row_findings = 2;
	result.other_rows.change = .0007;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 1),
			       "\nCOMM    CHANGE          95 %  MOST OF IT\n"
			       "web       +1.8  +1.0 .. +2.6  dram more often\n"
			       "others   +0.20\n"));
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 2),
			       "\ndb       -0.50  -0.80 .. -0.20  l3,x faster\n"
			       "others   +0.70    -1.0 .. +1.4  ~\n"));
}

/* A key that no finding has is left out, but the last one; a name may be unknown. */
static void test_keys(void **state)
{
	static const char *const nobody[] = { NULL, NULL }, *const pod[] = { "shop", "web" };

	(void)state;
	diff.by[0] = LABEL_POD;
	diff.by[1] = LABEL_COMM;
	diff.n_by = 2;
	row[0].name = row[1].name = nobody;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nCOMM       CHANGE          95 %  MOST OF IT\n"
			       "[unknown]    +1.8  +1.0 .. +2.6  dram more often\n"));
	row[0].name = pod;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nPOD     COMM  CHANGE          95 %  MOST OF IT\n"
			       "shop    web     +1.8  +1.0 .. +2.6  dram more often\n"
			       "others         +0.20  -1.0 .. +1.4  ~\n"));
}

/* The same under another name counts once, with all rows that moved alike; what went away is named. */
static void test_moved(void **state)
{
	(void)state;
	result.n_rows = 3;
	row[1].change.change = -.0018;
	row[1].moved = 0;
	row[2] = row[1];
	row[2].change.change = -.0002;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nmoved, not counted: 2.0 from comm db to web (2 rows)\n"));
	assert_null(strstr(strstr(printed, "moved,") + 1, "moved,"));
	row[2].moved = -1;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nmoved, not counted: 1.8 from comm db to web\n"));
	row[2].change.gone = true;
	row[2].change.change = .0007;
	assert_non_null(
		strstr(print(&ascii, FORMAT_TEXT, 0), "\nwent away again, not counted: db 0.70\n"));
	result.change.gone = true;
	assert_null(strstr(print(&ascii, FORMAT_TEXT, 0), "went away again, not counted"));
	/* of the two, the one that lost */
	row[1].change.change = .0018;
	assert_null(strstr(print(&ascii, FORMAT_TEXT, 0), "moved,"));
}

/* Long names are shortened to the width of the screen. */
static void test_narrow(void **state)
{
	static const char *const names[] = {
		"a-name-that-is-longer-than-others-and-does-not-fit-at-all"
	};
	const struct screen narrow = { .width = 60 };

	(void)state;
	row[0].name = names;
	print(&narrow, FORMAT_TEXT, 0);
	for (char *line = strtok(strstr(printed, "\nCOMM") + 1, "\n"); line;
	     line = strtok(NULL, "\n"))
		if (strncmp(line, "95%", 3))
			assert_in_range(strlen(line), 1, 60);
}

/* On a terminal, headings are bold, and rows are as many as its lines leave room for: five at least. */
static void test_terminal(void **state)
{
	const struct screen terminal = { .width = 200, .height = 10, .color = true };
	static struct compare_where rows[7];

	(void)state;
	for (int i = 0; i < 7; i++)
		rows[i] = row[0];
	result.row = rows;
	result.n_rows = result.n_row_findings = 7;
	print(&terminal, FORMAT_TEXT, 0);
	assert_non_null(strstr(printed, "\n\033[1mCAUSE "));
	assert_non_null(strstr(printed, "SHARE\033[0m\ndram "));
	/* the last two are 2 x 1.8, beside 0.2 of others */
	assert_non_null(strstr(printed, "dram more often\nothers    +3.8\n"));
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0), "dram more often\nothers   +0.20 "));
}

/* Of two keys, the one that differs is named. */
static void test_moved_key(void **state)
{
	static const char *const a[] = { "shop", "web" }, *const b[] = { "shop", "db" },
				 *const c[] = { "bank", "web" };

	(void)state;
	diff.by[0] = LABEL_POD;
	diff.by[1] = LABEL_COMM;
	diff.n_by = 2;
	row[0].name = a;
	row[1].name = b;
	row[1].change.change = -.0018;
	row[1].moved = 0;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nmoved, not counted: 1.8 from comm db to web\n"));
	row[1].name = c;
	assert_non_null(strstr(print(&ascii, FORMAT_TEXT, 0),
			       "\nmoved, not counted: 1.8 from pod bank to shop\n"));
}

/* --- JSON --- */

static json_t *json(void)
{
	json_t *o = json_loads(print(&ascii, FORMAT_JSON, 0), 0, NULL);

	if (!o)
		fail_msg("not JSON: %s", printed);
	return o;
}

/* @want: JSON, with ' for " */
static void same(json_t *o, const char *key, const char *want)
{
	char text[1024];
	json_t *wanted;

	snprintf(text, sizeof(text), "%s", want);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	wanted = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(wanted);
	if (!json_equal(json_object_get(o, key), wanted))
		fail_msg("%s: not %s in %s", key, want, printed);
	json_decref(wanted);
}

static void test_json(void **state)
{
	json_t *o = json(), *a = json_object_get(o, "a"), *b = json_object_get(o, "b");

	(void)state;
	same(o, "per", "'ops'");
	same(o, "unit", "'ops'");
	same(o, "metric", "'dc_miss_lat'");
	same(a, "file", "'a'");
	same(a, "selection", "null");
	same(a, "host", "null");
	same(a, "simulated", "false");
	same(a, "samples", "5000");
	same(a, "valid", "4500");
	same(a, "seconds", "10.0");
	same(a, "blocks", "5");
	same(a, "base", "1000000.0");
	same(a, "value", "0.01");
	same(b, "file", "'bb'");
	same(b, "seconds", "null");
	same(b, "base", "2000000.0");
	same(o, "change",
	     "{'change':0.002,'low':0.0015,'high':0.0025,'p':0.0001,'finding':true,'gone':false}");
	same(o, "detectable", "0.02");
	assert_int_equal(json_array_size(json_object_get(o, "causes")), 3);
	same(json_array_get(json_object_get(o, "causes"), 1), "cause", "'l3,x'");
	same(json_array_get(json_object_get(o, "causes"), 1), "kind", "'faster'");
	same(json_array_get(json_object_get(o, "causes"), 1), "a", "40.0");
	same(json_array_get(json_object_get(o, "causes"), 1), "b", "36.0");
	same(json_array_get(json_object_get(o, "causes"), 1), "change",
	     "{'change':-0.0003,'low':-0.0006,'high':-0.0001,'p':0.002,'finding':true,'gone':"
	     "false}");
	same(json_array_get(json_object_get(o, "causes"), 2), "a", "null");
	same(o, "other_causes",
	     "{'change':0.0008,'low':-0.0001,'high':0.0017,'p':null,'finding':false,'gone':false}");
	assert_int_equal(json_array_size(json_object_get(o, "where")), 2);
	b = json_array_get(json_object_get(o, "where"), 0);
	same(b, "labels", "{'comm':'web'}");
	same(b, "valid", "77");
	same(b, "a", "0.003");
	same(b, "b", "0.0048");
	same(b, "cause", "'dram'");
	same(b, "kind", "'more often'");
	same(b, "moved", "false");
	same(b, "change",
	     "{'change':0.0018,'low':0.001,'high':0.0026,'p':0.003,'finding':true,'gone':false}");
	same(o, "other_where",
	     "{'change':0.0002,'low':-0.001,'high':0.0014,'p':null,'finding':false,'gone':false}");
	same(o, "p99", "null");
	json_decref(o);
	row[0].moved = 0;
	diff.per = DIFF_PER_SECOND;
	strcpy(diff.about[0].host, "h");
	strcpy(diff.about[0].release, "6.12");
	strcpy(diff.about[0].cpu, "EPYC");
	strcpy(diff.about[0].source, "sim");
	strcpy(diff.about[0].event, "ibs_op//");
	strcpy(diff.about[0].filter, "--src dram");
	diff.about[0].simulated = true;
	diff.about[0].selection = "--comm x";
	o = json();
	same(o, "per", "'second'");
	same(o, "unit", "null");
	a = json_object_get(o, "a");
	same(a, "host", "'h'");
	same(a, "release", "'6.12'");
	same(a, "cpu", "'EPYC'");
	same(a, "source", "'sim'");
	same(a, "event", "'ibs_op//'");
	same(a, "filter", "'--src dram'");
	same(a, "simulated", "true");
	same(a, "selection", "'--comm x'");
	same(json_array_get(json_object_get(o, "where"), 0), "moved", "true");
	json_decref(o);
}

static void test_json_percentile(void **state)
{
	json_t *o, *p;

	(void)state;
	result.has_quantile = true;
	result.quantile[COMPARE_A] = 500;
	result.quantile[COMPARE_B] = 600;
	result.quantile_change = (struct compare_change){ 100, 50, 150, .01, true, false };
	result.n_factors = 2;
	result.factor[0] =
		(struct compare_factor){ COMPARE_FACTOR_MIX, { 40, 10, 70, .02, true, false } };
	result.factor[1] = (struct compare_factor){ 0, { 60, 10, 90, .02, true, true } };
	o = json();
	p = json_object_get(o, "p99");
	same(p, "a", "500.0");
	same(p, "b", "600.0");
	assert_null(json_object_get(p, "a_edges"));
	same(p, "change",
	     "{'change':100.0,'low':50.0,'high':150.0,'p':0.01,'finding':true,'gone':false}");
	same(p, "factors",
	     "[{'factor':'mix','cause':null,'change':{'change':40.0,'low':10.0,'high':70.0,'p':0."
	     "02,"
	     "'finding':true,'gone':false}},"
	     "{'factor':'latency','cause':'dram','change':{'change':60.0,'low':10.0,'high':90.0,"
	     "'p':0.02,'finding':true,'gone':true}}]");
	json_decref(o);
	result.quantile_wide = true;
	result.quantile_low[COMPARE_A] = 256;
	result.quantile_high[COMPARE_A] = result.quantile_low[COMPARE_B] = 512;
	result.quantile_high[COMPARE_B] = 1024;
	o = json();
	p = json_object_get(o, "p99");
	same(p, "a_edges", "[256.0,512.0]");
	same(p, "b_edges", "[512.0,1024.0]");
	json_decref(o);
}

static void test_csv(void **state)
{
	(void)state;
	assert_string_equal(print(&ascii, FORMAT_CSV, 0),
			    "table,comm,cause,kind,a,b,change,low,high,p,finding\n"
			    "cause,,dram,more often,0.004,0.006,0.0015,0.001,0.002,0.001,1\n"
			    "cause,,\"l3,x\",faster,40,36,-0.0003,-0.0006,-0.0001,0.002,1\n"
			    "cause,,dram,slower,,36,0.0001,-0.0006,0.0007,,0\n"
			    "where,web,dram,more often,0.003,0.0048,0.0018,0.001,0.0026,0.003,1\n"
			    "where,db,\"l3,x\",slower,0.007,0.0072,0.0002,-0.001,0.0014,0.5,0\n");
	/* an unknown name is an empty cell */
	row[1].name = unknown;
	assert_non_null(strstr(print(&ascii, FORMAT_CSV, 0), "\nwhere,\"\",\"l3,x\",slower,"));
}

/* --- HTML --- */

static const char *page(void)
{
	size_t n;
	FILE *f;

	free(printed);
	f = open_memstream(&printed, &n);
	diff_put_html(f, &diff, &result);
	fclose(f);
	return printed;
}

static void has(const char *what)
{
	const char *body = strstr(printed, "</style>") ?: printed;

	if (!strstr(body, what))
		fail_msg("'%s' is not in '%.3000s'", what, body);
}

static unsigned int count(const char *what)
{
	unsigned int n = 0;

	for (const char *at = strstr(printed, "</style>"); (at = strstr(at, what)); at++)
		n++;
	return n;
}

#define INTERVAL(class, x, width, dot)                                                            \
	"<td class=\"left\"><svg width=\"160\" height=\"12\" aria-hidden=\"true\">"               \
	"<path class=\"axis\" d=\"M80.0 0V12\"/><rect class=\"" class "\" x=\"" x                 \
								      "\" y=\"4\" width=\"" width \
								      "\" height=\"4\"/><circle " \
								      "class=\"dot\" cx=\"" dot   \
								      "\" cy=\"6\" "              \
								      "r=\"3\"/></svg></td>"

/* Intervals on one scale, whose edge is the farthest end: 78 pixels for 0.0025, and for 0.0026. */
static void test_page(void **state)
{
	(void)state;
	page();
	has("<h1>Miss cycles per thousand ops: 10.0 → 12.0, +20.0 % ± 5.0 %</h1></div>\n<ul>\n"
	    "<li>    +15 points  dram more often (4.0 → 6.0 of a thousand ops)</li>\n");
	has("</ul>\n<p class=\"facts\">A  a  10 s, 5,000 samples</p>\n"
	    "<p class=\"facts\">B  bb  4,000 samples</p>\n</header>");
	has("in miss cycles per thousand ops. 3 changes were tested at once");
	has("<tr><td>dram</td><td class=\"left\">more often</td><td>4.0</td><td>6.0</td>"
	    "<td>+1.5</td><td>+1.0 … +2.0</td>" INTERVAL("up3", "111.2", "31.2",
							 "126.8") "<td>75%</td></tr>\n");
	has("<tr><td>l3,x</td><td class=\"left\">faster</td><td>40.0</td><td>36.0</td>"
	    "<td>−0.30</td><td>−0.60 … −0.10</td>" INTERVAL("down3", "61.3", "15.6",
							    "70.6") "<td>-15%</td></tr>\n");
	has("<tr class=\"dim\"><td>dram</td><td class=\"left\">slower</td><td>–</td><td>36.0</td>"
	    "<td>+0.10</td><td>−0.60 … +0.70</td>" INTERVAL("a3", "61.3", "40.6",
							    "83.1") "<td>~</td></tr>\n");
	has("<tr class=\"total\"><td>sum</td><td></td><td>10.0</td><td>12.0</td><td>+2.0</td>"
	    "<td>+1.5 … +2.5</td>" INTERVAL("up3", "126.8", "31.2",
					    "142.4") "<td>100%</td></tr>\n");
	has("<p>2 of 2 rows. ");
	has("<th class=\"left\">comm</th><th>change</th>");
	has("<tr><td class=\"left\">web</td><td>+1.8</td><td>+1.0 … +2.6</td>" INTERVAL(
		"up3", "110.0", "48.0", "134.0") "<td class=\"left\">dram more often</td></tr>\n");
	has("<tr class=\"dim\"><td class=\"left\">db</td><td>+0.20</td><td>−1.0 … "
	    "+1.4</td>" INTERVAL("a3", "50.0", "72.0",
				 "86.0") "<td class=\"left\">l3,x slower</td></tr>\n");
	has("<p>95% intervals of changes: ±33% (first cause) to ±83%; ~ within noise</p>\n");
	assert_int_equal(count("Latency over time"), 0);
	assert_int_equal(count("Callers"), 0);
	assert_int_equal(count("SIMULATED"), 0);
	/* one row says nothing; a term without a change is not there; the least width is a pixel */
	result.n_rows = 1;
	term[1].change.change = 0;
	term[0].change.low = term[0].change.high = .0015;
	diff.about[COMPARE_B].simulated = true;
	page();
	has("SIMULATED samples, not measurements.");
	assert_int_equal(count("<h2>Where</h2>"), 0);
	assert_int_equal(count("<td>l3,x</td>"), 0);
	has(INTERVAL("up3", "126.8", "1.0", "126.8"));
}

/* A cell is of 1/48 of the time, and half an octave of latencies. Each step of colour is half of the next one. */
static void test_page_heat(void **state)
{
	const struct compare_amount a = { .base = 10, .valid = 1, .cycles = 100 },
				    b = { .base = 10, .valid = 1, .cycles = 400 },
				    c = { .valid = 1, .cycles = 10 };

	(void)state;
	diff.html = true;
	diff_heat_add(&diff, COMPARE_A, 5, ibs_lat_bucket(24), &a);
	diff_heat_add(&diff, COMPARE_B, 5, ibs_lat_bucket(24), &b);
	diff_heat_add(&diff, COMPARE_B, 5, ibs_lat_bucket(48), &c);
	page();
	has("<figcaption>A</figcaption><svg viewBox=\"0 0 436 218\" ");
	has("<rect class=\"plot\" x=\"52\" width=\"384\" height=\"200\"/>\n"
	    "<rect class=\"a6\" x=\"52\" y=\"184\" width=\"8\" height=\"8\"><title>up to 24 "
	    "cycles: "
	    "1e+04</title></rect>\n");
	has("<rect class=\"a6\" x=\"428\" y=\"184\" ");
	has("<rect class=\"a8\" x=\"52\" y=\"184\" width=\"8\" height=\"8\"><title>up to 24 "
	    "cycles: "
	    "4e+04</title></rect>\n"
	    "<rect class=\"a3\" x=\"52\" y=\"168\" width=\"8\" height=\"8\"><title>up to 48 "
	    "cycles: "
	    "1e+03</title></rect>\n");
	has("<figcaption>B − A</figcaption>");
	has("<rect class=\"up4\" x=\"52\" y=\"184\" width=\"8\" height=\"8\"><title>up to 24 "
	    "cycles: "
	    "3e+04</title></rect>\n");
	assert_int_equal(count("<rect class=\"a6\""), 48);
	assert_int_equal(count("<rect class=\"up4\""), 48);
	assert_int_equal(count("<rect class=\"up1\""), 0);
	has("<text x=\"48\" y=\"188\" text-anchor=\"end\">32</text>"
	    "<text x=\"48\" y=\"156\" text-anchor=\"end\">128</text>");
	has("<text x=\"52\" y=\"214\">0</text><text x=\"436\" y=\"214\" text-anchor=\"end\">10 "
	    "s</text>");
	assert_int_equal(count(" s</text>"), 1);
	/* less than before, and what only one side has */
	free(diff.heat[COMPARE_A]);
	diff.heat[COMPARE_A] = NULL;
	diff_heat_add(&diff, COMPARE_A, 5, ibs_lat_bucket(48), &b);
	page();
	has("<rect class=\"down4\" x=\"52\" y=\"168\" ");
	has("<rect class=\"up4\" x=\"52\" y=\"184\" ");
	free(diff.heat[COMPARE_A]);
	diff.heat[COMPARE_A] = NULL;
	page();
	assert_int_equal(count("<rect class=\"up"), 3); /* intervals */
	free(diff.heat[COMPARE_B]);
	diff.heat[COMPARE_B] = NULL;
	diff.html = false;
}

#define R(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { R(test_text),     R(test_less),
					    R(test_top),      R(test_keys),
					    R(test_moved),    R(test_narrow),
					    R(test_terminal), R(test_moved_key),
					    R(test_json),     R(test_json_percentile),
					    R(test_csv),      R(test_page),
					    R(test_page_heat) };
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return ret;
}
