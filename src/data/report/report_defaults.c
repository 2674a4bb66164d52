// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Columns and counters implied by the keys. */
#include "report.h"

static bool has_any(const struct report_opts *opts, const enum report_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (report_by(opts, keys[i]))
			return true;
	return false;
}

bool report_by_data(const struct report_opts *opts)
{
	static const enum report_key keys[] = { REPORT_KEY_PAGE, REPORT_KEY_LINE };

	return has_any(opts, keys, ARRAY_SIZE(keys));
}

bool report_by_numbers_of_host(const struct report_opts *opts)
{
	static const enum report_key keys[] = { REPORT_KEY_PID,	  REPORT_KEY_TID,
						REPORT_KEY_CPU,	  REPORT_KEY_CCX,
						REPORT_KEY_NODE,  REPORT_KEY_MEM_NODE,
						REPORT_KEY_PAGE,  REPORT_KEY_LINE,
						REPORT_KEY_RANGE, REPORT_KEY_SPACE };

	return has_any(opts, keys, ARRAY_SIZE(keys));
}

static bool of_other_event(enum report_column c, bool fetch)
{
	return fetch ? c == REPORT_COLUMN_DRAM || c == REPORT_COLUMN_REMOTE ||
			       c == REPORT_COLUMN_HITM || c == REPORT_COLUMN_LOADS ||
			       c == REPORT_COLUMN_STORES || c == REPORT_COLUMN_PAGES ||
			       c == REPORT_COLUMN_MISPLACED
		     : c >= REPORT_COLUMN_L3_MISS;
}

unsigned int report_columns_default(const struct report_opts *opts, bool several,
				    enum report_column *columns)
{
	unsigned int n = 0;

	for (unsigned int c = 0; c < REPORT_COLUMN_N; c++) {
		bool wanted = c == REPORT_COLUMN_IMBALANCE ? several
			      : c == REPORT_COLUMN_PRICE   ? opts->price
			      : c == REPORT_COLUMN_PAGES || c == REPORT_COLUMN_MISPLACED
				      ? opts->pages
			      : c >= REPORT_COLUMN_OFFSETS && c < REPORT_COLUMN_IMBALANCE
				      ? report_by_data(opts) /* they are costly */
				      : true;

		if (wanted && !of_other_event(c, ibs_metric_of_fetch(opts->metric)))
			columns[n++] = c;
	}
	return n;
}

void report_count_column(struct report_opts *opts, enum report_column column)
{
	opts->cpus |= column == REPORT_COLUMN_CPUS;
	opts->threads |= column == REPORT_COLUMN_THREADS;
	opts->price |= column == REPORT_COLUMN_PRICE;
	opts->pages |= column == REPORT_COLUMN_PAGES || column == REPORT_COLUMN_MISPLACED;
}
