// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the comparison of rows needs; qsort_r() hands it on. */
struct ordering {
	enum report_column sort;
	unsigned int n_by;
};

static int compare_cells(const void *pa, const void *pb)
{
	const struct cell *a = pa, *b = pb;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Cells of buckets, ordered by row. Return: how many, or -ENOMEM. */
static ssize_t buckets_by_row(const struct report *r, struct cell **out)
{
	struct cell *list = malloc((r->n_cells ? r->n_cells : 1) * sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_cells; i++)
		if ((r->cells[i].key >> 32 & 3) == CELL_BUCKET)
			list[n++] = r->cells[i];
	qsort(list, n, sizeof(*list), compare_cells);
	*out = list;
	return n;
}

/* The upper edge of a bucket may lie above the largest latency in it. */
static long percentile(const struct report_row *row, const __u64 *buckets, double fraction)
{
	const struct series s = { .valid = row->valid, .buckets = (__u64 *)buckets };
	long p = series_percentile(&s, fraction);

	return p > (long)row->max ? (long)row->max : p;
}

/* row->max must be set. */
static void set_percentiles(struct report_row *row, const __u64 *buckets)
{
	row->p50 = percentile(row, buckets, 0.5);
	row->p90 = percentile(row, buckets, 0.9);
	row->p99 = percentile(row, buckets, 0.99);
}

static bool one_unit(unsigned int units)
{
	return !(units & (units - 1));
}

static void set_sums(const struct sums *s, struct report_row *row)
{
	row->samples = s->samples;
	row->valid = s->valid;
	row->sum = s->sum;
	row->estimated = s->estimated;
	row->units = s->units;
	row->has_estimated = !s->no_estimate && one_unit(s->units);
	row->max = s->max;
	row->loads = s->loads;
	row->stores = s->stores;
	row->offsets = __builtin_popcountll(s->offsets);
	row->cpus = s->cpus;
	row->threads = s->threads;
}

static void add_row(struct report_row *to, const struct report_row *row)
{
	to->samples += row->samples;
	to->valid += row->valid;
	to->sum += row->sum;
	to->estimated += row->estimated;
	to->units |= row->units;
	to->has_estimated &= row->has_estimated && one_unit(to->units);
	to->max = row->max > to->max ? row->max : to->max;
	to->loads += row->loads;
	to->stores += row->stores;
}

static int set_labels(struct report *r, size_t row, const char **label)
{
	char buf[32];

	for (unsigned int k = 0; k < r->opts.n_by; k++) {
		const char *text = report_label(r, &r->keys[row * r->words], k, buf, sizeof(buf));

		label[k] = text;
		if (text == buf) {
			__u32 id = intern_get(&r->texts, buf);

			if (id == INTERN_NONE)
				return -ENOMEM;
			label[k] = intern_text(&r->texts, id);
		}
	}
	return 0;
}

/* By what a column holds; a row in which it is absent comes behind all that have it. */
static double sort_value(const struct report_row *row, enum report_column c)
{
	switch (c) {
	case REPORT_COLUMN_SAMPLES:
	case REPORT_COLUMN_SHARE:
		return row->samples;
	case REPORT_COLUMN_ESTIMATED:
		return row->has_estimated ? row->estimated : -1.0;
	case REPORT_COLUMN_VALID:
		return row->valid;
	case REPORT_COLUMN_MEAN:
		return row->valid ? (double)row->sum / row->valid : -1;
	case REPORT_COLUMN_P50:
		return row->p50;
	case REPORT_COLUMN_P90:
		return row->p90;
	case REPORT_COLUMN_P99:
		return row->p99;
	case REPORT_COLUMN_MAX:
		return row->valid ? row->max : -1.0;
	case REPORT_COLUMN_LOADS:
		return row->loads;
	case REPORT_COLUMN_STORES:
		return row->stores;
	case REPORT_COLUMN_OFFSETS:
		return row->offsets;
	case REPORT_COLUMN_CPUS:
		return row->cpus;
	case REPORT_COLUMN_THREADS:
		return row->threads;
	default:
		return row->valid ? row->sum : -1.0;
	}
}

static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct report_row *a = pa, *b = pb;
	const struct ordering *o = arg;
	double x = sort_value(a, o->sort), y = sort_value(b, o->sort);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	for (unsigned int k = 0; k < o->n_by; k++) {
		int c = !a->label[k] - !b->label[k];

		if (!c && a->label[k])
			c = strcmp(a->label[k], b->label[k]);
		if (c)
			return c;
	}
	return 0;
}

/* Leave out what the order says, which is at the end but for rows of few samples. */
static void cut(struct report_table *t, const struct report_order *order)
{
	size_t kept = 0;

	t->rest.has_estimated = true;
	for (size_t i = 0; i < t->n; i++) {
		if ((order->top && kept == order->top) || t->rows[i].samples < order->min_samples) {
			add_row(&t->rest, &t->rows[i]);
			t->n_rest++;
			continue;
		}
		t->rows[kept++] = t->rows[i];
	}
	t->n = kept;
}

const char *report_unit_name(unsigned int units)
{
	switch (units) {
	case REPORT_OPS:
		return "ops";
	case REPORT_CYCLES:
		return "cycles";
	case REPORT_FETCHES:
		return "fetches";
	default:
		return NULL;
	}
}

int report_table(struct report *r, const struct report_order *order, struct report_table *out)
{
	struct ordering o = { order->sort, r->opts.n_by };
	__u64 all[IBS_LAT_BUCKETS] = { 0 };
	const char **labels = NULL;
	struct cell *cells = NULL;
	ssize_t n_cells, c = 0;

	memset(out, 0, sizeof(*out));
	out->opts = &r->opts;
	out->rows = calloc(r->n + 1, sizeof(*out->rows));
	labels = calloc(r->n * r->opts.n_by + 1, sizeof(*labels));
	out->labels = labels;
	n_cells = buckets_by_row(r, &cells);
	if (!out->rows || !labels || n_cells < 0)
		goto fail;
	out->total.has_estimated = true;
	for (size_t i = 0; i < r->n; i++) {
		struct report_row *row = &out->rows[i];
		__u64 buckets[IBS_LAT_BUCKETS] = { 0 };

		row->label = &labels[i * r->opts.n_by];
		if (set_labels(r, i, &labels[i * r->opts.n_by]))
			goto fail;
		set_sums(&r->sums[i], row);
		for (; c < n_cells && cells[c].key >> 34 == i; c++) {
			buckets[(__u32)cells[c].key] += cells[c].count;
			all[(__u32)cells[c].key] += cells[c].count;
		}
		set_percentiles(row, buckets);
		add_row(&out->total, row);
	}
	free(cells);
	set_percentiles(&out->total, all);
	out->estimated_unit = report_unit_name(out->total.units);
	out->rest.p50 = out->rest.p90 = out->rest.p99 = -1;
	out->n = r->n;
	qsort_r(out->rows, out->n, sizeof(*out->rows), compare_rows, &o);
	cut(out, order);
	return 0;
fail:
	free(cells);
	report_table_free(out);
	return -ENOMEM;
}

void report_table_free(struct report_table *t)
{
	free(t->rows);
	free(t->labels);
	memset(t, 0, sizeof(*t));
}
