// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys and columns by name, and what they imply. */
#include "report.h"

#include "base/choice.h"

#define INFO(id, name, column, digits, flags, meaning) { name, digits, flags, meaning },
const struct report_column_info report_column_info[] = { REPORT_COLUMN_TABLE(INFO) };

const char *report_column_name(enum report_column c)
{
	return report_column_info[c].name;
}

static const char *key_name_at(unsigned int i)
{
	return label_name(i);
}

static const char *column_name_at(unsigned int i)
{
	return report_column_info[i].name;
}

int report_keys_parse(const char *text, enum label *keys, unsigned int *n, struct err *err)
{
	const struct choices c = { "--by", "key", key_name_at, LABEL_ALL };

	return choice_list_parse(&c, text, (unsigned int *)keys, n, err);
}

int report_columns_parse(const char *option, const char *text, enum report_column *columns,
			 unsigned int *n, struct err *err)
{
	const struct choices c = { option, "column", column_name_at, REPORT_COLUMN_N };

	return choice_list_parse(&c, text, (unsigned int *)columns, n, err);
}

void report_terms(FILE *f)
{
	fprintf(f, "\nKeys of --by:\n");
	for (size_t i = 0; i < LABEL_ALL; i++)
		fprintf(f, "  %-11s %s\n", label_info[i].name, label_info[i].meaning);
	fprintf(f, "\nColumns:\n");
	for (size_t i = 0; i < REPORT_COLUMN_N; i++)
		fprintf(f, "  %-11s %s\n", report_column_info[i].name,
			report_column_info[i].meaning);
}

int report_keys_check(const enum label *keys, unsigned int n, bool fetch, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++)
		ret = label_check_event(keys[i], fetch, err);
	return ret;
}

unsigned int report_keys_flags(const enum label *keys, unsigned int n)
{
	unsigned int flags = 0;

	for (unsigned int i = 0; i < n; i++)
		flags |= label_info[keys[i]].flags;
	return flags;
}

bool report_by(const struct report_opts *opts, enum label key)
{
	for (unsigned int k = 0; k < opts->n_by; k++)
		if (opts->by[k] == key)
			return true;
	return false;
}

unsigned int report_columns_default(const struct report_opts *opts, bool several,
				    enum report_column *columns)
{
	const bool data = report_keys_flags(opts->by, opts->n_by) & KEY_ADDRESS;
	const bool fetch = ibs_metric_of_fetch(opts->metric);
	const unsigned int unwanted =
		(fetch ? COLUMN_OF_OP : COLUMN_OF_FETCH) | (data ? 0 : COLUMN_OF_DATA) |
		(several ? 0 : COLUMN_OF_RANKS) | (opts->price ? 0 : COLUMN_OF_PRICE) |
		(opts->pages ? 0 : COLUMN_OF_PAGES);
	unsigned int n = 0;

	for (unsigned int c = 0; c < REPORT_COLUMN_N; c++)
		if (!(report_column_info[c].flags & unwanted))
			columns[n++] = c;
	return n;
}

void report_count_column(struct report_opts *opts, enum report_column column)
{
	opts->cpus |= column == REPORT_COLUMN_CPUS;
	opts->threads |= column == REPORT_COLUMN_THREADS;
	opts->price |= column == REPORT_COLUMN_PRICE;
	opts->pages |= column == REPORT_COLUMN_PAGES || column == REPORT_COLUMN_MISPLACED;
}
