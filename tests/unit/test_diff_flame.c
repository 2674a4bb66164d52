// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call chains of two sides in one drawing; folded_print() is implemented here, and prints what a test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "diff/diff_private.h"

/* A chain of samples is a text here. */
struct folded {
	const char *text;
};

void folded_print(FILE *out, struct folded *f)
{
	fputs(f->text, out);
}

static char *drawn;

static int tear_down(void **state)
{
	(void)state;
	free(drawn);
	drawn = NULL;
	return 0;
}

/* @y of each side is divided among its chains, by their numbers. */
static bool draw(const char *a, const char *b, double y_a, double y_b)
{
	struct folded side[] = { { a }, { b } };
	const struct diff d = { .folded = { a ? &side[0] : NULL, b ? &side[1] : NULL } };
	const struct compare_result r = { .side = { { .y = y_a }, { .y = y_b } } };
	size_t n;
	FILE *f;
	bool any;

	free(drawn);
	f = open_memstream(&drawn, &n);
	any = diff_put_flame(f, &d, &r, 1000);
	fclose(f);
	return any;
}

static void draws(const char *text)
{
	if (!strstr(drawn, text))
		fail_msg("no '%s' in:\n%s", text, drawn);
}

static unsigned int count(const char *text)
{
	unsigned int n = 0;

	for (const char *at = drawn; (at = strstr(at, text)); at++)
		n++;
	return n;
}

#define SVG(height)                                                                             \
	"<svg viewBox=\"0 0 1200 " #height "\" role=\"img\" aria-label=\"call chains, and how " \
	"their miss cycles changed\">\n"
#define FRAME(name, a, b, change, class, x, y, width)                              \
	"<g><title>" name "\nA " a "  B " b "  change " change                     \
	"</title><rect class=\"" class "\" x=\"" x "\" y=\"" y "\" width=\"" width \
				       "\" height=\"16\"/>"
#define TEXT(class, x, y, name) "<text class=\"" class "\" x=\"" x "\" y=\"" y "\">" name "</text>"

/*
 * A: a has 1 and b has 3; B: a has 4, c 4. A frame is as wide as its larger side, or as all children together: main has
 * 4 + 4 + 3 = 11, which are 1,200 pixels. The largest change, of web, main and c, is 4: that of a and b is 3 of 4 steps.
 */
static void test_tree(void **state)
{
	(void)state;
	assert_true(draw("web;main;a 100\nweb;main;b 300\n", "web;main;a 200\nweb;main;c;d 200\n",
			 4, 8));
	assert_string_equal(
		drawn,
		SVG(68) FRAME("web", "4000", "8000", "+4000", "up4", "0.0", "0",
			      "1199.5") TEXT("on-high", "3.0", "12",
					     "web") "</g>\n" FRAME("main", "4000", "8000", "+4000",
								   "up4", "0.0", "17", "1199.5")
			TEXT("on-high", "3.0", "29", "main") "</g>\n" FRAME(
				"a", "1000", "4000", "+3000", "up3", "0.0", "34",
				"435.9") TEXT("on-high", "3.0", "46",
					      "a") "</g>\n" FRAME("c", "0", "4000", "+4000", "up4",
								  "436.4", "34", "435.9")
				TEXT("on-high", "439.4", "46", "c") "</g>\n" FRAME(
					"d", "0", "4000", "+4000", "up4", "436.4", "51", "435.9")
					TEXT("on-high", "439.4", "63",
					     "d") "</g>\n" FRAME("b", "3000", "0", "-3000", "down3",
								 "872.7", "34", "326.8")
						TEXT("on-high", "875.7", "46", "b") "</g>\n"
										    "</svg>\n");
}

/* A frame that did not change has no colour, and one that changed little has dark letters. */
static void test_colors(void **state)
{
	(void)state;
	assert_true(draw("a 10\nb 10\n", "a 20\nb 20\n", 2, 2));
	draws(FRAME("a", "1000", "1000", "+0", "ghost", "0.0", "0", "599.5")
		      TEXT("ink", "3.0", "12", "a"));
	draws(FRAME("b", "1000", "1000", "+0", "ghost", "600.0", "0", "599.5"));
	/* the changes are 8, -4 and -0.5: four steps, two, and none */
	assert_true(draw("a 20\nb 80\nc 100\n", "a 100\nb 40\nc 95\n", 20, 23.5));
	assert_int_equal(count("class=\"up4\""), 1);
	assert_int_equal(count("class=\"down2\""), 1);
	assert_int_equal(count("class=\"ghost\""), 1);
	assert_int_equal(count("class=\"on-high\""), 1);
	assert_int_equal(count("class=\"ink\""), 2);
}

/* Lines with the same callers are one frame, in any order; the same name with other callers is another frame. */
static void test_names(void **state)
{
	(void)state;
	assert_true(draw("a;b 1\nc;b 1\na;b 1\nab;b 1\n", "a;b 1\n", 4, 1));
	assert_int_equal(count("<g>"), 6);
	draws("<title>a\nA 2000  B 1000 ");
	draws("<title>ab\nA 1000  B 0 ");
	assert_int_equal(count("<title>b\n"), 3);
	/* blanks and markup in names */
	assert_true(draw("operator <\"x\"> 2\n", "b & c;d 1\n", 1, 1));
	draws("<title>operator &lt;&quot;x&quot;>\nA 1000  B 0 ");
	draws("<title>b &amp; c\nA 0  B 1000 ");
	assert_null(strstr(drawn, "<x"));
}

/* Names are cut to the letters that fit, of 6.6 pixels, one of which stays free. */
static void test_cut(void **state)
{
	(void)state;
	/* 60 of 1,200 pixels: 9.09 letters */
	assert_true(
		draw("a 95\nabcdefghijklm 5\n",
		     "a 95\n\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6 0\n",
		     1, .95));
	draws(">abcdefgh</text>");
	draws("<title>abcdefghijklm\n");
	assert_true(
		draw("a 95\n",
		     "a 90\n\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6 5\n",
		     .95, .95));
	draws(">\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6</text>");
	/* 24 and 30 pixels: less than four letters have no room for text */
	assert_true(draw("a 98\nb 2\n", "a 98\n", 1, .98));
	assert_int_equal(count("<text"), 1);
	assert_true(draw("a 975\nb 25\n", "a 975\n", 1, .975));
	assert_int_equal(count("<text"), 2);
	draws(">b</text>");
}

/* What is narrower than a pixel is not drawn, nor what is deeper than 40 frames. */
static void test_limits(void **state)
{
	char deep[2 * 60 + 8] = "", *at = deep;

	(void)state;
	assert_true(draw("a 1198\nb 1\n", "a 1198\n", 1199, 1198));
	assert_int_equal(count("<g>"), 2);
	assert_true(draw("a 12100\nb 10\n", "a 12100\n", 1211, 1210));
	assert_int_equal(count("<g>"), 1);
	draws(SVG(17));
	for (int i = 0; i < 60; i++)
		at += sprintf(at, "%sx", i ? ";" : "");
	strcpy(at, " 1\n");
	assert_true(draw(deep, deep, 1, 1));
	assert_int_equal(count("<g>"), 40);
	draws(SVG(680));
	draws("y=\"663\"");
}

/* 4,000 frames are drawn at most. */
static void test_many(void **state)
{
	char *many = NULL;
	size_t n;
	FILE *f = open_memstream(&many, &n);

	(void)state;
	/* 900 chains of five frames, each 1.33 pixels wide */
	for (int i = 0; i < 900; i++)
		fprintf(f, "a%d;b;c;d;e 1\n", i);
	fclose(f);
	assert_true(draw(many, many, 1, 1));
	assert_int_equal(count("<g>"), 4000);
	free(many);
}

static void test_nothing(void **state)
{
	(void)state;
	assert_false(draw(NULL, "a 1\n", 1, 1));
	assert_false(draw("a 1\n", NULL, 1, 1));
	assert_string_equal(drawn, "");
	/* no chain, or none with a number: an empty drawing */
	assert_true(draw("", "", 1, 1));
	assert_string_equal(drawn, SVG(0) "</svg>\n");
	assert_true(draw("a\n", "a 0\n", 1, 1));
	assert_int_equal(count("<g>"), 0);
	/* one side only */
	assert_true(draw("a 1\n", "", 2, 1));
	draws("<title>a\nA 2000  B 0  change -2000</title><rect class=\"down4\"");
}

#define T(f) cmocka_unit_test_teardown(f, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_tree),	T(test_colors), T(test_names),	 T(test_cut),
		T(test_limits), T(test_many),	T(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
