// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_private.h"
#include "table/table.h"

#include <math.h>

/* What the comparison of rows needs; qsort_r() hands it on. */
struct ordering {
	const struct report_table *table;
	enum table_column sort;
	bool by_key, weak_last;
};

static int compare_cells(const void *pa, const void *pb)
{
	const struct cell *a = pa, *b = pb;

	return a->key < b->key ? -1 : a->key > b->key;
}

/* Cells of buckets, ordered by row. Return: how many. */
static size_t buckets_by_row(const struct report *r, struct cell **out)
{
	struct cell *list = xcalloc(r->n_cells, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < r->n_cells; i++)
		if (cell_kind(&r->cells[i]) == CELL_BUCKET)
			list[n++] = r->cells[i];
	qsort(list, n, sizeof(*list), compare_cells);
	*out = list;
	return n;
}

/* The upper edge of a bucket may lie above the largest latency in it. @weighted: buckets of ops */
static long percentile(const struct report_row *row, const __u64 *buckets, bool weighted,
		       double fraction)
{
	struct series_strata ops;
	struct series s = { .valid = row->valid, .buckets = (__u64 *)buckets };
	long p;

	if (weighted) {
		memcpy(ops.buckets, buckets, sizeof(ops.buckets));
		s.strata = &ops;
	}
	p = series_percentile(&s, fraction);

	return p > (long)row->max ? (long)row->max : p;
}

void report_buckets(const struct report_row *row, __u64 *buckets)
{
	for (size_t i = 0; i < row->n_cells; i++)
		buckets[(__u32)row->cells[i].key] += row->cells[i].count;
}

/* row->max must be set. */
static void set_percentiles(struct report_row *row, const __u64 *buckets, bool weighted)
{
	row->p50 = percentile(row, buckets, weighted, 0.5);
	row->p90 = percentile(row, buckets, weighted, 0.9);
	row->p99 = percentile(row, buckets, weighted, 0.99);
}

static bool one_unit(unsigned int units)
{
	return !(units & (units - 1));
}

static void set_sums(const struct sums *s, struct report_row *row)
{
	*row = (struct report_row){
		.label = row->label,
		.mangled = row->mangled,
		.inlined = row->inlined,
		.price = row->price,
		.imbalance = NAN,
		.samples = s->samples,
		.valid = s->valid,
		.sum = s->sum,
		.estimated = s->estimated,
		.valid_ops = s->valid_ops,
		.units = s->units,
		.has_estimated = !s->no_estimate && one_unit(s->units),
		.max = s->max,
		.last = s->last,
		.loads = s->loads,
		.stores = s->stores,
		.translated = s->translated,
		.walks = s->walks,
		.aborted = s->aborted,
		.offsets = __builtin_popcountll(s->offsets),
		.cpus = s->cpus,
		.threads = s->threads,
		.cycles = s->cycles,
		.waits = s->waits,
		.known = s->known,
		.dram = s->dram,
		.remote = s->remote,
		.hitm = s->hitm,
		.missed = s->missed,
		.blocking = s->blocking,
		.exposed = s->exposed,
		.unexposed = s->unexposed,
		.stateful = s->stateful,
		.cached = s->cached,
	};
}

static void add_row(struct report_row *to, const struct report_row *row)
{
	to->samples += row->samples;
	to->valid += row->valid;
	to->sum += row->sum;
	to->estimated += row->estimated;
	to->valid_ops += row->valid_ops;
	to->units |= row->units;
	to->has_estimated &= row->has_estimated && one_unit(to->units);
	to->max = row->max > to->max ? row->max : to->max;
	to->last = row->last > to->last ? row->last : to->last;
	to->loads += row->loads;
	to->stores += row->stores;
	to->translated += row->translated;
	to->walks += row->walks;
	to->aborted += row->aborted;
	to->cycles += row->cycles;
	estimate_merge(&to->waits, &row->waits);
	to->known += row->known;
	to->dram += row->dram;
	to->remote += row->remote;
	to->hitm += row->hitm;
	to->missed += row->missed;
	to->blocking += row->blocking;
	to->exposed += row->exposed;
	to->unexposed += row->unexposed;
	to->stateful += row->stateful;
	to->cached += row->cached;
	to->price += row->price;
}

static void set_labels(struct report *r, size_t i, struct report_row *row, const char **label,
		       const char **mangled)
{
	const __u64 *words = &r->keys[i * r->words];
	char buf[32];

	for (unsigned int k = 0; k < r->opts.n_by; k++) {
		row->inlined = row->inlined ?: report_inlined(r, words, k);
		mangled[k] = report_mangled(r, words, k);
		label[k] = report_label(r, words, k, buf, sizeof(buf));
		if (label[k] == buf)
			label[k] = intern_text(&r->texts, intern_get(&r->texts, buf));
	}
}

/* A row in which the column is absent comes behind all that have it. */
static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct report_row *a = pa, *b = pb;
	const struct ordering *o = arg;
	double x = report_value(o->table, a, o->sort), y = report_value(o->table, b, o->sort);

	if (o->by_key) {
		x = a->label[0] ? -strtod(a->label[0], NULL) : (double)NAN;
		y = b->label[0] ? -strtod(b->label[0], NULL) : (double)NAN;
	}
	x = isnan(x) ? -INFINITY : x;
	y = isnan(y) ? -INFINITY : y;
	if (o->weak_last && table_is_weak(a->valid) != table_is_weak(b->valid))
		return table_is_weak(a->valid) ? 1 : -1;
	if (x != y)
		return x > y ? -1 : 1;
	/* rows of which exposed cycles are unknown, or 0 */
	if (o->sort == TABLE_EXPOSED && a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	for (unsigned int k = 0; k < o->table->opts->n_by; k++) {
		int c = !a->label[k] - !b->label[k];

		if (!c && a->label[k])
			c = strcmp(a->label[k], b->label[k]);
		if (!c && a->mangled[k] && b->mangled[k])
			c = strcmp(a->mangled[k], b->mangled[k]);
		if (c)
			return c;
	}
	if (a->inlined && b->inlined)
		return strcmp(a->inlined->into_mangled ?: "", b->inlined->into_mangled ?: "");
	return 0;
}

static bool has_answer(const struct report_table *t)
{
	double strong = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!table_is_weak(t->rows[i].valid))
			strong += report_value(t, &t->rows[i], TABLE_SHARE);
	return strong >= TABLE_ANSWER;
}

/* Does the row belong into the rest? @few: rows of few samples do */
static bool folds(const struct report_table *t, const struct report_order *order,
		  const struct report_row *row, size_t kept, bool few)
{
	const double of_all = report_value(t, row, TABLE_SHARE),
		     share = !row->valid && t->total.valid ? 0 : of_all;

	return order->fold_few && (table_folds_idle(kept, t->sort, share) ||
				   (few && table_folds(kept, row->samples, row->valid, share)));
}

/* Leave out what the order says, which is at the end but for rows of few samples. */
static void cut(struct report_table *t, const struct report_order *order)
{
	const bool few = order->fold_few && has_answer(t);
	size_t kept = 0;

	t->rest.has_estimated = true;
	t->rest.imbalance = NAN;
	for (size_t i = 0; i < t->n; i++) {
		const struct report_row *row = &t->rows[i];

		if ((order->top && kept == order->top) || row->samples < order->min_samples ||
		    folds(t, order, row, kept, few)) {
			add_row(&t->rest, &t->rows[i]);
			report_buckets(&t->rows[i], t->rest_buckets);
			t->n_rest++;
			continue;
		}
		t->rows[kept++] = t->rows[i];
	}
	t->n = kept;
	set_percentiles(&t->rest, t->rest_buckets, t->strata);
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
	struct ordering o = { out, order->sort, order->by_key };
	struct cell *cells;
	size_t n_cells = buckets_by_row(r, &cells), c = 0;

	*out = (struct report_table){
		.opts = &r->opts,
		.rows = xcalloc(r->n, sizeof(*out->rows)),
		.n = r->n,
		.labels = xcalloc(2 * r->n * r->opts.n_by, sizeof(*out->labels)),
		.cells = cells,
		.total.has_estimated = true,
		.total.imbalance = NAN,
		.n_ranks = r->n_ranks,
		.strata = r->strata,
		.effective = r->weights.squares > 0
				     ? r->weights.sum * r->weights.sum / r->weights.squares
				     : 0,
		.kinds.data = r->flags & KEY_DATA ? r->data : NULL,
		.kinds.types = r->flags & KEY_TYPES ? r->types : NULL,
		.kinds.code = report_by(&r->opts, LABEL_SYMBOL) ? r->code : NULL,
		.kinds.nodes = r->flags & KEY_NODES ? r->nodes : NULL,
	};
	if (r->opts.price)
		report_prices(r, out->rows);
	for (size_t i = 0; i < r->n; i++) {
		struct report_row *row = &out->rows[i];
		__u64 buckets[IBS_LAT_BUCKETS] = { 0 };
		const char **label;

		label = &out->labels[2 * i * r->opts.n_by];
		row->label = label;
		row->mangled = label + r->opts.n_by;
		set_labels(r, i, row, label, label + r->opts.n_by);
		set_sums(&r->sums[i], row);
		row->cells = &cells[c];
		while (c < n_cells && cell_row(&cells[c]) == i)
			c++;
		row->n_cells = &cells[c] - row->cells;
		report_buckets(row, buckets);
		report_buckets(row, out->total_buckets);
		set_percentiles(row, buckets, r->strata);
		add_row(&out->total, row);
	}
	set_percentiles(&out->total, out->total_buckets, r->strata);
	report_strata_intervals(r, out);
	report_imbalances(r, out);
	report_pages(r, out);
	if (o.sort == TABLE_CURRENCY)
		o.sort = table_currency(report_value(out, &out->total, TABLE_EXPOSED));
	/* where a period is unknown, by what is known of all */
	if (o.sort == TABLE_CYCLES && !out->total.has_estimated)
		o.sort = TABLE_TOTAL;
	out->sort = o.sort;
	out->estimated_unit = report_unit_name(out->total.units);
	o.weak_last = order->weak_last && !order->by_key && order->sort != TABLE_SAMPLES &&
		      order->sort != TABLE_VALID && order->sort != TABLE_OPS;
	qsort_r(out->rows, out->n, sizeof(*out->rows), compare_rows, &o);
	cut(out, order);
	return 0;
}

void report_table_free(struct report_table *t)
{
	free(t->rows);
	free(t->labels);
	free(t->cells);
	memset(t, 0, sizeof(*t));
}
