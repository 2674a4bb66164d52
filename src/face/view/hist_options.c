// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of hist, replay and ctl snapshot that change how rows are printed. */
#include "hist.h"

#include "base/err.h"

#include <errno.h>

struct option_set hist_options(const char *title, struct hist_view *v)
{
	static const struct option_row row = { "histogram", 0, NULL,
					       "also print a full histogram of each row",
					       OPTION_FLAG(struct hist_view, histograms) };

	return (struct option_set){ title, &row, 1, v };
}

int hist_view_check(const struct hist_view *v, struct err *err)
{
	if (v->opts.format == FORMAT_JSON && (v->opts.top || v->opts.has_sort))
		return err_set(
			err, -EINVAL,
			"--json has all series; --top and --sort are for the table and --csv");
	if (!format_is_text(v->opts.format) && (v->opts.n_columns || v->histograms))
		return err_set(err, -EINVAL,
			       "--%s has all columns; --columns and --histogram are for the table",
			       format_name(v->opts.format));
	return 0;
}
