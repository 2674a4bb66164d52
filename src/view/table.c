// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 8192 /* of an escaped name; longer ones are cut */

/* A row while its group is being added up. */
struct sums {
	double known, dram, remote;
};

double series_miss_cycles(const struct series *s)
{
	if (!s->sum)
		return 0;
	return s->ops && s->samples ? (double)s->sum * s->ops / s->samples : NAN;
}

static bool is_dram(enum ibs_src src)
{
	return src == IBS_SRC_DRAM || src == IBS_SRC_REMOTE_DRAM;
}

static bool is_remote(enum ibs_src src)
{
	return src == IBS_SRC_REMOTE_CACHE || src == IBS_SRC_REMOTE_DRAM ||
	       src == IBS_SRC_REMOTE_PMEM || src == IBS_SRC_REMOTE_CXL;
}

static int add(struct table_row *to, struct sums *sums, const struct series *s)
{
	double cycles = series_miss_cycles(s);

	/* shares need no period as long as all ops are unknown: latencies then stand for themselves */
	double part = isnan(cycles) ? s->sum : cycles;

	to->cycles += cycles;
	if (s->src > IBS_SRC_NONE) {
		sums->known += part;
		sums->dram += is_dram(s->src) ? part : 0;
		sums->remote += is_remote(s->src) ? part : 0;
	}
	return series_add(&to->all, s);
}

static void finish(struct table_row *r, const struct sums *sums)
{
	r->dram = sums->known > 0 ? sums->dram / sums->known : NAN;
	r->remote = sums->known > 0 ? sums->remote / sums->known : NAN;
}

static char *printable(const char *text, const char *empty)
{
	char buf[NAME_BYTES];

	if (!*text)
		return strdup(empty);
	utf8_escape(buf, sizeof(buf), text);
	return strdup(buf);
}

/* POD/CONTAINER, or CONTAINER, or the cgroup. */
static char *joined_name(const struct row *r)
{
	const char *container = r->label[LABEL_CONTAINER], *pod = r->label[LABEL_POD];
	char *both = NULL, *out;

	/* an unknown cgroup is "#ID" under every label */
	if (!*container || *container == '#')
		return printable(r->label[LABEL_CGROUP], "/");
	if (!*pod || !strcmp(pod, container)) /* "other" is both */
		return printable(container, "");
	if (asprintf(&both, "%s/%s", pod, container) < 0)
		return NULL;
	out = printable(both, "");
	free(both);
	return out;
}

static bool name_row(const struct table *t, const struct row *r, struct table_row *to)
{
	if (t->joined) {
		to->name[0] = joined_name(r);
		return to->name[0];
	}
	for (int l = 0; l < LABEL_N; l++) {
		if (!(t->labels >> l & 1))
			continue;
		to->name[l] = printable(r->label[l], l == LABEL_CGROUP ? "/" : "(none)");
		if (!to->name[l])
			return false;
	}
	return true;
}

static int compare_names(const struct table_row *a, const struct table_row *b)
{
	for (int l = 0; l < TABLE_NAMES; l++) {
		int c = a->name[l] ? strcmp(a->name[l], b->name[l]) : 0;

		if (c)
			return c;
	}
	return 0;
}

static double sort_key(const struct table_row *r, enum table_column c)
{
	switch (c) {
	case TABLE_SAMPLES:
		return r->all.samples;
	case TABLE_VALID:
		return r->all.valid;
	case TABLE_OPS:
		return r->all.ops;
	case TABLE_DRAM:
		return r->dram;
	case TABLE_REMOTE:
		return r->remote;
	case TABLE_MEAN:
		return r->all.valid ? (double)r->all.sum / r->all.valid : NAN;
	case TABLE_P50:
		return series_percentile(&r->all, 0.5);
	case TABLE_P90:
		return series_percentile(&r->all, 0.9);
	case TABLE_P99:
		return series_percentile(&r->all, 0.99);
	default: /* a constant period ranks by the sums, known or not */
		return isnan(r->cycles) ? r->all.sum : r->cycles;
	}
}

struct ranked {
	struct table_row row;
	struct sums sums;
	double key;
};

static int compare_ranked_names(const void *pa, const void *pb)
{
	return compare_names(&((const struct ranked *)pa)->row, &((const struct ranked *)pb)->row);
}

/* Largest first, unknown last, then by samples and name, so that output repeats. */
static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	double ka = isnan(a->key) ? -INFINITY : a->key, kb = isnan(b->key) ? -INFINITY : b->key;

	if (ka != kb)
		return ka > kb ? -1 : 1;
	if (a->row.all.samples != b->row.all.samples)
		return a->row.all.samples > b->row.all.samples ? -1 : 1;
	return compare_names(&a->row, &b->row);
}

static void row_free(struct table_row *r)
{
	for (int l = 0; l < TABLE_NAMES; l++)
		free(r->name[l]);
	free(r->all.buckets);
}

/* Entries of one group are neighbours: add each run up in its first entry. */
static int fold_equal(struct ranked *d, size_t *n)
{
	size_t k = 0;
	int ret = 0;

	for (size_t i = 0; i < *n; i++) {
		if (k && !compare_names(&d[k - 1].row, &d[i].row)) {
			d[k - 1].row.cycles += d[i].row.cycles;
			d[k - 1].sums.known += d[i].sums.known;
			d[k - 1].sums.dram += d[i].sums.dram;
			d[k - 1].sums.remote += d[i].sums.remote;
			ret = ret ?: series_add(&d[k - 1].row.all, &d[i].row.all);
			row_free(&d[i].row);
			continue;
		}
		if (k != i)
			d[k] = d[i];
		k++;
	}
	*n = k;
	return ret;
}

static int fill(struct table *t, struct ranked *d, size_t *n, size_t top)
{
	struct sums rest = {}, total = {};
	int ret = 0;

	qsort(d, *n, sizeof(*d), compare_ranked_names);
	ret = fold_equal(d, n);
	for (size_t i = 0; i < *n; i++) {
		finish(&d[i].row, &d[i].sums);
		d[i].key = sort_key(&d[i].row, t->sort);
	}
	qsort(d, *n, sizeof(*d), compare_ranked);
	t->n = top && top < *n ? top : *n;
	/* "other (1)" would take the line of the group itself */
	if (*n == t->n + 1)
		t->n++;
	t->row = calloc(t->n ?: 1, sizeof(*t->row));
	if (!t->row)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++) {
		struct table_row *sums[] = { &t->total, i < t->n ? NULL : &t->rest };
		struct sums *parts[] = { &total, &rest };

		for (int k = 0; k < 2; k++) {
			if (!sums[k])
				continue;
			sums[k]->cycles += d[i].row.cycles;
			parts[k]->known += d[i].sums.known;
			parts[k]->dram += d[i].sums.dram;
			parts[k]->remote += d[i].sums.remote;
			ret = ret ?: series_add(&sums[k]->all, &d[i].row.all);
		}
		if (i < t->n) {
			t->row[i] = d[i].row;
			memset(&d[i].row, 0, sizeof(d[i].row));
		}
	}
	t->n_rest = *n - t->n;
	finish(&t->rest, &rest);
	finish(&t->total, &total);
	return ret;
}

int table_build(const struct snapshot *s, enum ibs_metric metric, unsigned int labels,
		enum table_column sort, size_t top, cgroup_namer name, void *arg, struct table *out)
{
	struct ranked *d;
	struct rows rows;
	size_t n = 0;
	int ret;

	*out = (struct table){ .labels = labels & ~TABLE_JOINED,
			       .joined = labels & TABLE_JOINED,
			       .metric = metric,
			       .seconds = s->time_ns / 1e9,
			       .sort = sort };
	ret = rows_build(s, out->labels | 1U << LABEL_SRC | 1U << LABEL_OP, name, arg, &rows);
	if (ret)
		return ret;
	d = calloc(rows.n ?: 1, sizeof(*d));
	ret = d ? 0 : -ENOMEM;
	for (; !ret && n < rows.n; n++) {
		ret = name_row(out, &rows.row[n], &d[n].row) ? 0 : -ENOMEM;
		ret = ret ?: add(&d[n].row, &d[n].sums, &rows.row[n].series);
	}
	rows_free(&rows);
	ret = ret ?: fill(out, d, &n, top);
	for (size_t i = 0; d && i < n; i++)
		row_free(&d[i].row);
	free(d);
	if (ret)
		table_free(out);
	return ret;
}

void table_free(struct table *t)
{
	for (size_t i = 0; t->row && i < t->n; i++)
		row_free(&t->row[i]);
	free(t->row);
	row_free(&t->rest);
	row_free(&t->total);
	memset(t, 0, sizeof(*t));
}
