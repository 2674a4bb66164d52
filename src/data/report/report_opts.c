// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys and columns by name, and what they imply. */
#include "report.h"

#include "base/choice.h"

#define NAME(id, name, ...) name,
static const char *const column_names[] = { REPORT_COLUMN_TABLE(NAME) };

const char *report_column_name(enum report_column c)
{
	return column_names[c];
}

static const char *key_name_at(unsigned int i)
{
	return label_name(i);
}

static const char *column_name_at(unsigned int i)
{
	return column_names[i];
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
#define COLUMN_LINE(id, name, column, meaning) { name, meaning },
	static const char *const columns[][2] = { REPORT_COLUMN_TABLE(COLUMN_LINE) };

	fprintf(f, "\nKeys of --by:\n");
	for (size_t i = 0; i < LABEL_ALL; i++)
		fprintf(f, "  %-11s %s\n", label_info[i].name, label_info[i].meaning);
	fprintf(f, "\nColumns:\n");
	for (size_t i = 0; i < REPORT_COLUMN_N; i++)
		fprintf(f, "  %-11s %s\n", columns[i][0], columns[i][1]);
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
	const bool data = report_keys_flags(opts->by, opts->n_by) & KEY_ADDRESS;
	unsigned int n = 0;

	for (unsigned int c = 0; c < REPORT_COLUMN_N; c++) {
		bool wanted = c == REPORT_COLUMN_IMBALANCE ? several
			      : c == REPORT_COLUMN_PRICE   ? opts->price
			      : c == REPORT_COLUMN_PAGES || c == REPORT_COLUMN_MISPLACED
				      ? opts->pages
			      : c >= REPORT_COLUMN_OFFSETS && c < REPORT_COLUMN_IMBALANCE
				      ? data /* they are costly */
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
