// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Keys and columns by name, and what they imply. */
#include "report.h"

#include "base/choice.h"

int report_keys_parse(const char *text, enum label *keys, unsigned int *n, struct err *err)
{
	const struct choices c = { "--by", "key", label_name, LABEL_ALL };

	return choice_list_parse(&c, text, (unsigned int *)keys, n, err);
}

void report_terms(FILE *f)
{
	fprintf(f, "\nKeys of --by:\n");
	for (size_t i = 0; i < LABEL_ALL; i++)
		fprintf(f, "  %-13s %s\n", label_info[i].name, label_info[i].meaning);
	columns_help(f, &report_columns);
}

int report_keys_check(const enum label *keys, unsigned int n, bool fetch, struct err *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++)
		ret = label_check_event(keys[i], fetch, err);
	return ret;
}

int report_check_recorded(const enum label *keys, unsigned int n, const struct trace_info *info,
			  const char *file, struct err *err)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct label_info *key = &label_info[keys[i]];

		if (key->flags & KEY_CHAINS && !trace_has_chains(info))
			return err_set(err, -ENODATA,
				       "--by %s: %s has no call chains; record with -g", key->name,
				       file);
		if (key->flags & KEY_HEAP && !info->alloc_bytes)
			return err_set(err, -ENODATA,
				       "--by %s: %s has no allocations; record with --allocs",
				       key->name, file);
	}
	return 0;
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
				    enum table_column *columns)
{
	const bool data = report_keys_flags(opts->by, opts->n_by) & KEY_ADDRESS;
	const bool fetch = ibs_metric_of_fetch(opts->metric);
	const unsigned int unwanted =
		(fetch ? COLUMN_OF_OP : COLUMN_OF_FETCH) | (data ? 0 : COLUMN_OF_DATA) |
		(several ? 0 : COLUMN_OF_RANKS) | (opts->price ? 0 : COLUMN_OF_PRICE) |
		(opts->pages ? 0 : COLUMN_OF_PAGES);
	unsigned int n = 0;

	for (unsigned int i = 0; i < report_columns.n; i++)
		if (!(report_columns.column[i].flags & unwanted))
			columns[n++] = report_columns.column[i].id;
	return n;
}

void report_count_column(struct report_opts *opts, enum table_column column)
{
	opts->cpus |= column == TABLE_CPUS;
	opts->threads |= column == TABLE_THREADS;
	opts->price |= column == TABLE_PRICE;
	opts->pages |= column == TABLE_PAGES || column == TABLE_MISPLACED;
}
