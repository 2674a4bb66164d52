// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Columns of tables: their options, and values for people and programs; code blocks, histograms and bars. */
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
#include "table/table.h"
#include "view/hist.h"

static const struct column own[] = {
	{ TABLE_SAMPLES, "samples", 0, 0, "number of samples" },
	{ TABLE_HISTOGRAM, "histogram", 0, 0, "distribution" },
	{ TABLE_DRAM, "dram", 6, 0, "from DRAM" },
	{ TABLE_MEAN, "mean", COLUMN_DIGITS, 0, "mean latency" },
};
static const struct columns columns = { own, 4 }, exact = { own, 4, true };

/* --- options --- */

static int one(struct view_opts *v, const char *names, const char *option, const char *value,
	       struct err *err)
{
	struct option_row rows[VIEW_OPTIONS_MAX];
	const struct option_set set = view_options(rows, names, &columns, v);

	err->text[0] = 0;
	return options_one(option, value, &set, 1, err);
}

static void test_options(void **unused)
{
	struct view_opts v = {};
	struct err err;

	(void)unused;
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "top", "7", &err), 0);
	assert_int_equal(v.top, 7);
	assert_false(v.has_sort);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "sort", "dram", &err), 0);
	assert_int_equal(v.sort, TABLE_DRAM);
	assert_true(v.has_sort);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "columns", "mean,histogram,mean", &err), 0);
	assert_int_equal(v.n_columns, 2);
	assert_int_equal(v.columns[0], TABLE_MEAN);
	assert_int_equal(v.columns[1], TABLE_HISTOGRAM);
	assert_ptr_equal(v.of, &columns);
	/* bars have no order, and names only where the view has it */
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "sort", "histogram", &err), -EINVAL);
	assert_string_equal(
		err.text, "--sort: unknown column 'histogram': must be one of samples, dram, mean");
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "sort", "name", &err), -EINVAL);
	v.by_name = true;
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "sort", "name", &err), 0);
	assert_int_equal(v.sort, TABLE_COLUMNS);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "columns", "name", &err), -EINVAL);
	assert_string_equal(err.text, "--columns: unknown column 'name': must "
				      "be one of samples, histogram, dram, mean");
}

static void test_formats(void **unused)
{
	struct view_opts v = {};
	struct err err;

	(void)unused;
	assert_int_equal(v.format, FORMAT_TEXT);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "csv", NULL, &err), 0);
	assert_int_equal(v.format, FORMAT_CSV);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "csv", NULL, &err), 0);
	assert_int_equal(one(&v, VIEW_OPTIONS_ALL, "json", NULL, &err), -EINVAL);
	assert_string_equal(err.text, "--csv and --json exclude each other: give one");
	assert_int_equal(v.format, FORMAT_CSV);
	/* a command has only those that it names */
	v.format = FORMAT_TEXT;
	assert_int_equal(one(&v, "top json", "json", NULL, &err), 0);
	assert_int_equal(one(&v, "top json", "csv", NULL, &err), -EINVAL);
	assert_int_equal(one(&v, "top json", "top", "1", &err), 0);
	assert_int_equal(one(&v, "json", "top", "1", &err), -EINVAL);
	assert_string_equal(format_name(FORMAT_TEXT), "text");
	assert_string_equal(format_name(FORMAT_MARKDOWN), "markdown");
	assert_true(format_is_text(FORMAT_TEXT));
	assert_true(format_is_text(FORMAT_MARKDOWN));
	assert_false(format_is_text(FORMAT_CSV));
	assert_false(format_is_text(FORMAT_JSON));
}

static void check_view(struct view_opts opts, bool histograms, const char *want)
{
	const struct hist_view v = { .opts = opts, .histograms = histograms };
	struct err err = { "" };

	assert_int_equal(hist_view_check(&v, &err), *want ? -EINVAL : 0);
	assert_string_equal(err.text, want);
}

/* Programs get all columns, and with JSON all series. */
static void test_view(void **unused)
{
	static const char series[] =
		"--json has all series; --top and --sort are for the table and --csv";
	struct hist_view v = {};
	const struct option_set set = hist_options("Title", &v);
	struct err err;

	(void)unused;
	check_view((struct view_opts){ .top = 3, .has_sort = true, .n_columns = 2 }, true, "");
	check_view((struct view_opts){ .format = FORMAT_MARKDOWN, .n_columns = 2 }, true, "");
	check_view((struct view_opts){ .format = FORMAT_CSV, .top = 3, .has_sort = true }, false,
		   "");
	check_view((struct view_opts){ .format = FORMAT_JSON }, false, "");
	check_view((struct view_opts){ .format = FORMAT_JSON, .top = 3 }, false, series);
	check_view((struct view_opts){ .format = FORMAT_JSON, .has_sort = true }, false, series);
	check_view((struct view_opts){ .format = FORMAT_CSV, .n_columns = 1 }, false,
		   "--csv has all columns; --columns and --histogram are for the table");
	check_view((struct view_opts){ .format = FORMAT_JSON }, true,
		   "--json has all columns; --columns and --histogram are for the table");
	assert_string_equal(set.title, "Title");
	assert_int_equal(options_one("histogram", NULL, &set, 1, &err), 0);
	assert_true(v.histograms);
}

/* --- values --- */

static void shows(enum table_column id, double v, char unit, const char *want)
{
	const struct screen s = { .utf8 = true };
	char text[32] = "?";

	column_text(&s, id, v, unit, text, sizeof(text));
	assert_string_equal(text, want);
}

static void test_text(void **unused)
{
	(void)unused;
	shows(TABLE_SAMPLES, 12345, ' ', "12,345");
	shows(TABLE_DRAM, .41, ' ', "41.0%");
	shows(TABLE_CYCLES, 1.92e9, 'G', "1.92 G");
	shows(TABLE_MLP, 3.14, ' ', "3.1");
	shows(TABLE_IMBALANCE, 1.254, ' ', "1.25");
	shows(TABLE_LAST, 1.5, ' ', "1.500");
	shows(TABLE_LAST, NAN, ' ', "");
	shows(TABLE_P99, NAN, ' ', "–");
	assert_string_equal(column_heading(TABLE_DRAM), "DRAM");
	assert_string_equal(column_heading(TABLE_MAX), "MAX");
	assert_true(column_rank(TABLE_CYCLES) > column_rank(TABLE_SHARE));
	assert_int_equal(column_rank(TABLE_VALID), 0);
	assert_ptr_equal(column_find(&columns, TABLE_MEAN), &own[3]);
	assert_null(column_find(&columns, TABLE_P50));
	/* exposed cycles rank rows where there are any */
	assert_int_equal(table_currency(1), TABLE_EXPOSED);
	assert_int_equal(table_currency(0), TABLE_CYCLES);
	assert_int_equal(table_currency(NAN), TABLE_CYCLES);
}

static void check_programs(const struct columns *of, unsigned int column, double v, const char *csv,
			   const char *json)
{
	char *text;
	size_t n;
	struct json_writer w = {};

	w.f = open_memstream(&text, &n);
	column_csv(w.f, &own[column], v);
	fclose(w.f);
	assert_string_equal(text, csv);
	free(text);
	w = (struct json_writer){ .f = open_memstream(&text, &n) };
	json_begin_object(&w, NULL);
	column_json(&w, of, &own[column], v);
	json_end(&w);
	fclose(w.f);
	text[strcspn(text, "\n")] = 0;
	assert_string_equal(text, json);
	free(text);
}

/* Digits behind the point, or nine that are significant; unknown ones are empty or null. */
static void test_programs(void **unused)
{
	(void)unused;
	check_programs(&columns, 0, 12345, ",12345", "{\"samples\":12345}");
	check_programs(&columns, 2, 1 / 3., ",0.333333", "{\"dram\":0.333333}");
	check_programs(&columns, 3, 1234.56789012, ",1234.56789", "{\"mean\":1234.56789}");
	check_programs(&columns, 3, NAN, ",", "{\"mean\":null}");
	check_programs(&exact, 2, 1 / 1024., ",0.000977", "{\"dram\":0.0009765625}");
}

static void test_help(void **unused)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)unused;
	columns_help(f, &columns);
	fclose(f);
	assert_string_equal(text, "\nColumns:\n"
				  "  samples       number of samples\n"
				  "  histogram     distribution\n"
				  "  dram          from DRAM\n"
				  "  mean          mean latency\n");
	free(text);
}

/* --- lines --- */

static void lines(enum table_format format, const char *in, const char *want)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	format_lines(f, format, in);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

/* In Markdown, a block of code whose fence is longer than what is in it. */
static void test_lines(void **unused)
{
	(void)unused;
	lines(FORMAT_TEXT, "\na\n\n", "\na\n\n");
	lines(FORMAT_MARKDOWN, "\n\na\nb\n\n", "```\na\nb\n```\n");
	lines(FORMAT_MARKDOWN, "a", "```\na\n```\n");
	lines(FORMAT_MARKDOWN, "a`` b`\n", "```\na`` b`\n```\n");
	lines(FORMAT_MARKDOWN, "```a", "````\n```a\n````\n");
	lines(FORMAT_MARKDOWN, "``a````b", "`````\n``a````b\n`````\n");
	lines(FORMAT_MARKDOWN, "\n\n", "");
	lines(FORMAT_MARKDOWN, "", "");
}

/* Two bins an octave, from 16 to 4096 cycles: up to 16, 24, 32, 48 and so on; one is above. */
static void test_bins(void **unused)
{
	static const struct {
		unsigned int latency, bin;
	} rows[] = { { 0, 0 },	   { 16, 0 },	 { 17, 1 },    { 24, 1 },    { 25, 2 },
		     { 32, 2 },	   { 33, 3 },	 { 48, 3 },    { 49, 4 },    { 64, 4 },
		     { 90, 5 },	   { 128, 6 },	 { 2048, 14 }, { 2100, 15 }, { 3072, 15 },
		     { 3100, 16 }, { 4096, 16 }, { 4100, 17 }, { 30000, 17 } };
	__u64 buckets[IBS_LAT_BUCKETS];
	struct series s = { .buckets = buckets };
	double bin[TABLE_BINS];

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		memset(buckets, 0, sizeof(buckets));
		buckets[ibs_lat_bucket(rows[i].latency)] = 5;
		s.samples = s.valid = 5;
		bin[0] = bin[TABLE_BINS - 1] = 9;
		table_bins(&s, bin);
		for (unsigned int b = 0; b < TABLE_BINS; b++)
			if ((bin[b] > 0) != (b == rows[i].bin))
				fail_msg("%u cycles: bin %u", rows[i].latency, b);
	}
}

static void sparks(bool utf8, bool zero, const double *v, size_t n, const char *want)
{
	const struct screen s = { .utf8 = utf8 };
	char text[64] = "?";

	table_spark(&s, v, n, zero, text, sizeof(text));
	assert_string_equal(text, want);
}

/* Eight steps from 1 to the largest. */
static void test_spark(void **unused)
{
	const double all[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, some[] = { NAN, 0, 1, 15 },
		     equal[] = { 1, 1 }, big[] = { 100, 43.5, 43.4, 1 };

	(void)unused;
	sparks(true, false, all, 8, "▁▂▃▄▅▆▇█");
	sparks(false, false, all, 8, ".:-=+*#@");
	sparks(true, false, some, 4, "  ▁█");
	sparks(true, true, some, 4, " ▁▁█");
	sparks(true, false, equal, 2, "▁▁");
	sparks(false, false, big, 4, "@=-.");
	sparks(true, false, all, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options),	 cmocka_unit_test(test_formats),
		cmocka_unit_test(test_view),	 cmocka_unit_test(test_text),
		cmocka_unit_test(test_programs), cmocka_unit_test(test_help),
		cmocka_unit_test(test_lines),	 cmocka_unit_test(test_bins),
		cmocka_unit_test(test_spark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
