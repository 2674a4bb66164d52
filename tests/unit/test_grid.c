// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A screen as cells: what a text leaves in them, and how they are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top/grid.h"

static struct grid g;

static int close_grid(void **state)
{
	(void)state;
	grid_free(&g);
	assert_null(g.cell);
	return 0;
}

static void open_grid(int width, int height)
{
	grid_free(&g);
	grid_open(&g, width, height);
}

static const struct grid_cell *cell(int y, int x)
{
	return &g.cell[(size_t)y * g.width + x];
}

/* The cells of line @y hold these texts; "": the right half of the wide character before it. */
static void line_is(int y, const char *const *want)
{
	for (int x = 0; x < g.width; x++, want++) {
		assert_string_equal(cell(y, x)->text, *want);
		assert_int_equal(cell(y, x)->width, !**want			   ? 0
						    : x + 1 < g.width && !*want[1] ? 2
										   : 1);
	}
	assert_null(*want);
}

#define line_has(y, ...) line_is(y, (const char *const[]){ __VA_ARGS__, NULL })

/* The styles of line @y. */
static void styles_are(int y, const enum grid_style *want)
{
	for (int x = 0; x < g.width; x++)
		assert_int_equal(cell(y, x)->style, want[x]);
}

#define has_styles(y, ...) styles_are(y, (const enum grid_style[]){ __VA_ARGS__ })

static void test_open(void **state)
{
	(void)state;
	open_grid(3, 2);
	assert_int_equal(g.width, 3);
	assert_int_equal(g.height, 2);
	for (int y = 0; y < 2; y++) {
		line_has(y, " ", " ", " ");
		has_styles(y, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN);
	}
	/* one cell at least */
	open_grid(0, 0);
	assert_int_equal(g.width, 1);
	assert_int_equal(g.height, 1);
	line_has(0, " ");
	open_grid(-1, 1);
	assert_int_equal(g.width, 1);
	open_grid(1, -1);
	assert_int_equal(g.height, 1);
}

static void test_put(void **state)
{
	(void)state;
	open_grid(5, 2);
	assert_int_equal(grid_put(&g, 0, 1, GRID_WARN, "ab"), 3);
	line_has(0, " ", "a", "b", " ", " ");
	has_styles(0, GRID_PLAIN, GRID_WARN, GRID_WARN, GRID_PLAIN, GRID_PLAIN);
	assert_int_equal(grid_put(&g, 1, 0, GRID_DIM, "cdefg"), 5);
	line_has(1, "c", "d", "e", "f", "g");
	assert_int_equal(grid_put(&g, 0, 3, GRID_DIM, "xyz"), 5);
	line_has(0, " ", "a", "b", "x", "y");
	/* the line below is as it was */
	line_has(1, "c", "d", "e", "f", "g");
	assert_int_equal(grid_put(&g, 1, 4, GRID_DIM, ""), 4);
	assert_int_equal(grid_put(&g, 1, 5, GRID_DIM, "h"), 5);
	assert_int_equal(grid_printf(&g, 0, 0, GRID_PLAIN, "%d,%s", 17, "b"), 4);
	line_has(0, "1", "7", ",", "b", "y");
	has_styles(0, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN, GRID_DIM);
}

/* Text outside the grid is ignored. */
static void test_outside(void **state)
{
	(void)state;
	open_grid(2, 2);
	assert_int_equal(grid_put(&g, -1, 1, GRID_WARN, "a"), 1);
	assert_int_equal(grid_put(&g, 2, 0, GRID_WARN, "a"), 0);
	assert_int_equal(grid_put(&g, 1, -1, GRID_WARN, "ab"), -1);
	for (int y = 0; y < 2; y++) {
		line_has(y, " ", " ");
		has_styles(y, GRID_PLAIN, GRID_PLAIN);
	}
}

/* Control characters are escaped. */
static void test_escaped(void **state)
{
	(void)state;
	open_grid(10, 1);
	assert_int_equal(grid_put(&g, 0, 0, GRID_PLAIN, "a\033[\xff"), 10);
	line_has(0, "a", "\\", "x", "1", "b", "[", "\\", "x", "f", "f");
}

static void test_wide(void **state)
{
	(void)state;
	open_grid(5, 1);
	assert_int_equal(grid_put(&g, 0, 0, GRID_WARN, "漢字"), 4);
	line_has(0, "漢", "", "字", "", " ");
	has_styles(0, GRID_WARN, GRID_WARN, GRID_WARN, GRID_WARN, GRID_PLAIN);
	/* half of one does not fit, and what is behind it is not written either */
	assert_int_equal(grid_put(&g, 0, 4, GRID_DIM, "漢a"), 5);
	line_has(0, "漢", "", "字", "", " ");
	open_grid(2, 1);
	assert_int_equal(grid_put(&g, 0, 0, GRID_PLAIN, "漢"), 2);
	line_has(0, "漢", "");
}

/* The other half of a character that is overwritten is blank, in its style. */
static void test_halves(void **state)
{
	(void)state;
	open_grid(5, 1);
	grid_put(&g, 0, 1, GRID_WARN, "漢字");
	grid_put(&g, 0, 1, GRID_DIM, "a");
	line_has(0, " ", "a", " ", "字", "");
	has_styles(0, GRID_PLAIN, GRID_DIM, GRID_WARN, GRID_WARN, GRID_WARN);
	grid_put(&g, 0, 4, GRID_DIM, "b");
	line_has(0, " ", "a", " ", " ", "b");
	has_styles(0, GRID_PLAIN, GRID_DIM, GRID_WARN, GRID_WARN, GRID_DIM);
	/* of two characters */
	open_grid(4, 1);
	grid_put(&g, 0, 0, GRID_WARN, "漢字");
	grid_put(&g, 0, 1, GRID_DIM, "字");
	line_has(0, " ", "字", "", " ");
	has_styles(0, GRID_WARN, GRID_DIM, GRID_DIM, GRID_WARN);
	/* of the first one */
	grid_put(&g, 0, 0, GRID_WARN, "漢字");
	grid_put(&g, 0, 0, GRID_DIM, "a");
	line_has(0, "a", " ", "字", "");
	/* both halves */
	grid_put(&g, 0, 0, GRID_WARN, "漢");
	grid_put(&g, 0, 0, GRID_DIM, "bc");
	line_has(0, "b", "c", "字", "");
}

/* A mark belongs to the character before it. */
static void test_combining(void **state)
{
	char long_one[2 * GRID_CELL + 2] = "e";

	(void)state;
	open_grid(4, 1);
	assert_int_equal(grid_put(&g, 0, 1, GRID_PLAIN, "e\u0301x"), 3);
	line_has(0, " ", "e\u0301", "x", " ");
	assert_int_equal(grid_put(&g, 0, 1, GRID_PLAIN, "漢\u0301"), 3);
	line_has(0, " ", "漢\u0301", "", " ");
	/* there is none before the first column */
	assert_int_equal(grid_put(&g, 0, 0, GRID_PLAIN, "\u0301y"), 1);
	line_has(0, "y", "漢\u0301", "", " ");
	/* as many as have room: six of two bytes */
	for (int i = 0; i < GRID_CELL; i++)
		strcat(long_one, "\u0301");
	assert_int_equal(grid_put(&g, 0, 0, GRID_PLAIN, long_one), 1);
	assert_string_equal(cell(0, 0)->text, "e\u0301\u0301\u0301\u0301\u0301\u0301");
	assert_string_equal(cell(0, 1)->text, "漢\u0301");
}

static void test_style(void **state)
{
	(void)state;
	open_grid(4, 2);
	grid_put(&g, 0, 0, GRID_WARN, "abcd");
	grid_style(&g, 0, 1, 2, GRID_SELECTED);
	has_styles(0, GRID_WARN, GRID_SELECTED, GRID_SELECTED, GRID_WARN);
	line_has(0, "a", "b", "c", "d");
	has_styles(1, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN);
	/* the part within the grid */
	grid_style(&g, 1, -1, 2, GRID_DIM);
	has_styles(1, GRID_DIM, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN);
	grid_style(&g, 0, 3, 3, GRID_DIM);
	has_styles(0, GRID_WARN, GRID_SELECTED, GRID_SELECTED, GRID_DIM);
	has_styles(1, GRID_DIM, GRID_PLAIN, GRID_PLAIN, GRID_PLAIN);
	grid_style(&g, 1, 2, 9, GRID_DIM);
	grid_style(&g, 2, 0, 4, GRID_WARN);
	grid_style(&g, -1, 0, 4, GRID_WARN);
	has_styles(0, GRID_WARN, GRID_SELECTED, GRID_SELECTED, GRID_DIM);
	has_styles(1, GRID_DIM, GRID_PLAIN, GRID_DIM, GRID_DIM);
}

/* --- printing --- */

static void prints(bool color, const char *want)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	grid_print(f, &g, color);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

/* Neither trailing blanks nor trailing empty lines. */
static void test_print(void **state)
{
	(void)state;
	open_grid(6, 5);
	prints(false, "");
	grid_put(&g, 0, 1, GRID_WARN, "ab");
	grid_put(&g, 2, 0, GRID_DIM, "漢 c");
	grid_put(&g, 3, 5, GRID_PLAIN, "d");
	prints(false, " ab\n\n漢 c\n     d\n");
	/* a selected blank can be seen in colour only */
	grid_style(&g, 0, 0, 6, GRID_SELECTED);
	grid_style(&g, 4, 0, 6, GRID_SELECTED);
	prints(false, " ab\n\n漢 c\n     d\n");
}

/* Attributes begin with a reset, and each line ends plain. */
static void test_color(void **state)
{
	(void)state;
	open_grid(6, 2);
	grid_put(&g, 0, 0, GRID_PLAIN, "a");
	grid_put(&g, 0, 1, GRID_STRONG, "bc");
	grid_put(&g, 0, 3, GRID_CACHE, "d");
	grid_put(&g, 0, 4, GRID_PLAIN, "e");
	grid_put(&g, 1, 0, GRID_WARN, "f");
	prints(true, "a\033[0;1mbc\033[0;38;5;68md\033[0me\n"
		     "\033[0;1;38;5;208mf\033[0m\n");
	grid_put(&g, 0, 0, GRID_PLAIN, "     ");
	grid_style(&g, 1, 0, 3, GRID_SELECTED);
	prints(true, "\n\033[0;7mf  \033[0m\n");
}

static void test_html(void **state)
{
	static const char body[] =
		"<main><h1>a &lt;b></h1>\n<pre tabindex=\"0\">"
		"x<span class=\"s1\">&lt;&amp;</span><span class=\"s2\">y</span>z\n"
		"\n"
		"<span class=\"s3\">w  </span>\n"
		"</pre></main></html>\n";
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	open_grid(5, 4);
	grid_put(&g, 0, 0, GRID_PLAIN, "x");
	grid_put(&g, 0, 1, GRID_STRONG, "<&");
	grid_put(&g, 0, 3, GRID_DIM, "y");
	grid_put(&g, 0, 4, GRID_PLAIN, "z");
	grid_put(&g, 2, 0, GRID_PLAIN, "w");
	grid_style(&g, 2, 0, 3, GRID_SELECTED);
	grid_print_html(f, &g, "a <b>");
	fclose(f);
	assert_memory_equal(text, "<!DOCTYPE html>\n", 16);
	assert_non_null(strstr(text, "<title>a &lt;b></title>"));
	assert_non_null(strstr(text, body));
	assert_int_equal(strlen(strstr(text, body)), sizeof(body) - 1);
	/* one rule for each style that looks unlike the text around it */
	assert_null(strstr(text, ".s0{"));
	assert_non_null(strstr(text, ".s1{font-weight:600}.s2{"));
	assert_non_null(strstr(text, ".s10{color:#02468b}</style>"));
	free(text);
}

#define T(f) cmocka_unit_test_teardown(f, close_grid)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_open),  T(test_put),    T(test_outside),	  T(test_escaped),
		T(test_wide),  T(test_halves), T(test_combining), T(test_style),
		T(test_print), T(test_color),  T(test_html),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
