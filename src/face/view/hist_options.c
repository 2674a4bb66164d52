// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of hist, replay and ctl snapshot that change how rows are printed. */
#include "hist.h"

#include "base/choice.h"
#include "base/err.h"
#include "base/num.h"

#include <errno.h>

static int set_top(void *ctx, const char *arg, struct err *err)
{
	const struct num_arg num = { .name = "--top", .unit = "rows", .min = 1, .max = 1 << 30 };
	struct hist_view *v = ctx;
	uint64_t n;
	int ret = num_parse(&num, arg, &n, err);

	if (!ret)
		v->top = n;
	return ret;
}

static int set_sort(void *ctx, const char *arg, struct err *err)
{
	/* the histogram is the last column, and cannot be sorted by */
	const struct choices c = { "--sort", "column", table_column_name, TABLE_HISTOGRAM };
	struct hist_view *v = ctx;
	unsigned int column;
	int ret = choice_parse(&c, arg, &column, err);

	if (ret)
		return ret;
	v->sort = column;
	v->has_sort = true;
	return 0;
}

static int set_columns(void *ctx, const char *arg, struct err *err)
{
	const struct choices c = { "--columns", "column", table_column_name, TABLE_TREND };
	unsigned int list[TABLE_COLUMNS];
	struct hist_view *v = ctx;
	int ret = choice_list_parse(&c, arg, list, &v->n_columns, err);

	for (unsigned int i = 0; !ret && i < v->n_columns; i++)
		v->columns[i] = list[i];
	return ret;
}

static int set_format(void *ctx, unsigned int which, const char *arg, struct err *err)
{
	struct hist_view *v = ctx;

	(void)arg;
	return format_set(&v->format, which, err);
}

/* clang-format off: a row is a row */
const struct option_row hist_options[] = {
	{ "top", 0, "N",
	  "print N rows, and the sum of the others; by default as many as fit the terminal, 20 in "
	  "a pipe",
	  set_top },
	{ "sort", 0, "COLUMN", "largest first; default cycles", set_sort },
	{ "columns", 0, "COLUMN,..",
	  "columns after the names, in this order; by default as many as fit: samples, cycles, "
	  "share, dram, remote, hitm, mlp, walk, p50, p90, p99, histogram; also valid, "
	  "estimated_ops, mean, remote_price; for ibs_fetch also l3_miss, aborted",
	  set_columns },
	{ "histogram", 0, NULL, "also print a full histogram of each row",
	  OPTION_FLAG(struct hist_view, histograms) },
	FORMAT_TABLE(FORMAT_OPTION)
};
/* clang-format on */
const size_t hist_n_options = sizeof(hist_options) / sizeof(hist_options[0]);

int hist_view_check(const struct hist_view *v, struct err *err)
{
	if (v->format == FORMAT_JSON && (v->top || v->has_sort))
		return err_set(
			err, -EINVAL,
			"--json has all series; --top and --sort are for the table and --csv");
	if (!format_is_text(v->format) && (v->n_columns || v->histograms))
		return err_set(err, -EINVAL,
			       "--%s has all columns; --columns and --histogram are for the table",
			       format_name(v->format));
	return 0;
}
