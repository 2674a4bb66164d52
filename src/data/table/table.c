// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"
#include "base/std.h"

#include "base/u64_map.h"
#include "base/utf8.h"
#include "cgroup/container.h"

#include <ibscope/fetch.h>
#include <math.h>

#define KEEP_ROWS  5	/* that fewer samples do not fold */
#define KEEP_SHARE 0.02 /* of miss cycles */

double series_miss_cycles(const struct series *s)
{
	if (!s->sum)
		return 0;
	return s->cycles ? (double)s->cycles : NAN;
}

struct estimate series_waits(const struct series *s)
{
	const double cycles = series_miss_cycles(s);
	struct estimate e = { .sum = isnan(cycles) ? (double)s->sum : cycles,
			      .common = isnan(cycles) ? 0 : s->share_error };
	double mids = 0, scale;

	/* a bucket stands for its middle; all are scaled so that they have the sum of the latencies */
	for (__u32 b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++) {
		const double mid = (ibs_lat_le(b) + (b ? ibs_lat_le(b - 1) + 1 : 0)) / 2.0;

		if (!s->buckets[b])
			continue;
		mids += s->buckets[b] * mid;
		e.squares += s->buckets[b] * mid * mid;
		e.largest = mid;
	}
	scale = mids > 0 ? e.sum / mids : 0;
	e.squares *= scale * scale;
	e.largest *= scale;
	return e;
}

static const struct bounds unknown = { NAN, NAN };

static struct bounds strata_bounds(const struct series *s)
{
	struct bounds b = unknown;

	return series_cycles_interval(s, &b.low, &b.high) ? b : unknown;
}

/* Else the weights of single samples are known, and with them their estimate. */
static bool has_slices(const struct series *s)
{
	return s->strata && s->strata->design;
}

struct bounds series_interval(const struct series *s, double drawn)
{
	const struct estimate waits = series_waits(s);

	return has_slices(s) ? strata_bounds(s) : estimate_interval(&waits, drawn);
}

bool table_is_dram(enum ibs_src src)
{
	return src == IBS_SRC_DRAM || src == IBS_SRC_REMOTE_DRAM;
}

bool table_is_remote(enum ibs_src src)
{
	return src == IBS_SRC_REMOTE_CACHE || src == IBS_SRC_REMOTE_DRAM ||
	       src == IBS_SRC_REMOTE_PMEM || src == IBS_SRC_REMOTE_CXL;
}

bool table_is_other_cache(enum ibs_src src)
{
	return src == IBS_SRC_L3 || src == IBS_SRC_LOCAL_CACHE || src == IBS_SRC_NEAR_CACHE ||
	       src == IBS_SRC_REMOTE_CACHE;
}

double table_share(const struct table *t, const struct table_row *r)
{
	const struct table_row *all = &t->total;

	if (!isnan(all->cycles))
		return all->cycles > 0 ? r->cycles / all->cycles : NAN;
	return all->all.sum && !all->all.ops ? (double)r->all.sum / all->all.sum : NAN;
}

struct bounds table_interval(const struct table *t, const struct table_row *r)
{
	if (has_slices(&r->all))
		return strata_bounds(&r->all);
	return isnan(r->cycles) ? unknown : estimate_interval(&r->waits, t->drawn);
}

double table_error(const struct table *t, const struct table_row *r)
{
	const struct bounds b = strata_bounds(&r->all);

	return has_slices(&r->all) ? (b.high - b.low) / 2 / r->cycles
				   : estimate_error(&r->waits, t->drawn);
}

struct bounds table_share_interval(const struct table *t, const struct table_row *r)
{
	/* parts of a sum of strata are not independent of each other */
	if (has_slices(&r->all) || isnan(table_share(t, r)))
		return unknown;
	return estimate_share(&r->waits, &t->total.waits);
}

static double ratio(double part, double all)
{
	return all > 0 ? part / all : (double)NAN;
}

double series_exposed(const struct series *s)
{
	return s->sum && s->cycles && s->exposed_n == s->valid ? s->exposed : (double)NAN;
}

static double percentile(const struct series *s, double q)
{
	long p = series_percentile(s, q);

	return p < 0 ? (double)NAN : p;
}

double table_value(const struct table *t, const struct table_row *r, enum table_column c)
{
#define VALUE(id, name, heading, rank, unit, digits, flags, value, help) \
	case TABLE_##id:                                                 \
		return value;
	const struct series *s = &r->all;

	if (r->value && c != TABLE_SHARE)
		return r->value[c];
	/* NOLINTBEGIN(bugprone-branch-clone): cases are rows of a table */
	switch (c) {
		TABLE_COLUMN_TABLE(VALUE)
	default:
		return NAN;
	}
	/* NOLINTEND(bugprone-branch-clone) */
#undef VALUE
}

bool table_groups_by(const struct table *t, enum label l)
{
	bool found = t->labels >> l & 1;

	for (unsigned int k = 0; k < t->n_keys; k++)
		found |= !strcmp(t->key[k], label_name(l));
	return found;
}

/* True if a fetch missed all caches of the core complex; before Zen 4, of the core. */
static bool missed_caches(const struct series *s)
{
	return s->src == (enum ibs_src)IBS_FETCH_CLASS_L2_MISS ||
	       s->src == (enum ibs_src)IBS_FETCH_CLASS_L3_MISS;
}

static void add_waits(struct table_row *to, const struct series *s)
{
	const struct estimate waits = series_waits(s);

	estimate_merge(&to->waits, &waits);
}

static void add_fetch(struct table_row *to, const struct series *s)
{
	const double cycles = series_miss_cycles(s), part = isnan(cycles) ? s->sum : cycles;

	to->cycles += cycles;
	add_waits(to, s);
	to->known += part;
	to->dram += missed_caches(s) ? part : 0;
	to->memory += s->op != (enum ibs_op_kind)IBS_FETCH_ITLB_UNKNOWN ? s->samples : 0;
	to->walks += s->op >= (enum ibs_op_kind)IBS_FETCH_ITLB_WALK_4K ? s->samples : 0;
	to->aborted += s->src >= (enum ibs_src)IBS_FETCH_CLASS_ABORTED ? s->samples : 0;
	series_add(&to->all, s);
}

static void add(struct table_row *to, const struct series *s)
{
	double cycles = series_miss_cycles(s);

	/* without estimated ops, shares can be based on latencies */
	double part = isnan(cycles) ? s->sum : cycles;

	to->cycles += cycles;
	add_waits(to, s);
	if (s->src > IBS_SRC_NONE) {
		to->known += part;
		to->dram += table_is_dram(s->src) ? part : 0;
		to->remote += table_is_remote(s->src) ? part : 0;
		to->cached += table_is_other_cache(s->src) ? s->valid : 0;
	}
	series_add(&to->all, s);
}

/* Convert dram and remote, which are sums so far, to shares. */
static void finish(struct table_row *r)
{
	r->dram = r->known > 0 ? r->dram / r->known : NAN;
	r->remote = r->known > 0 ? r->remote / r->known : NAN;
}

static void add_row(struct table_row *to, const struct table_row *r)
{
	double known = to->known + r->known;
	double dram = (to->known > 0 ? to->dram * to->known : 0) +
		      (r->known > 0 ? r->dram * r->known : 0);
	double remote = (to->known > 0 ? to->remote * to->known : 0) +
			(r->known > 0 ? r->remote * r->known : 0);

	to->cycles += r->cycles;
	estimate_merge(&to->waits, &r->waits);
	to->cached += r->cached;
	to->walks += r->walks;
	to->memory += r->memory;
	to->aborted += r->aborted;
	to->known = known;
	to->dram = known > 0 ? dram / known : NAN;
	to->remote = known > 0 ? remote / known : NAN;
	series_add(&to->all, &r->all);
}

#define ROOT "/"

const char *table_none(enum label l)
{
	switch (l) {
	case LABEL_CGROUP:
	case LABEL_CONTAINER:
		return CONTAINER_NONE;
	case LABEL_POD:
		return "no pod";
	case LABEL_COMM:
		return "[unknown]";
	default:
		return "[none]";
	}
}

bool table_is_none(const char *text, enum label l)
{
	return !*text || (l == LABEL_CGROUP && !strcmp(text, ROOT));
}

char *table_name(const char *text, enum label l)
{
	const size_t room = 4 * strlen(text) + 1;
	char *name;

	if (table_is_none(text, l))
		return xstrdup(table_none(l));
	name = xcalloc(1, room);
	utf8_escape(name, room, text);
	return name;
}

const char *table_csv_name(const char *name, enum label l)
{
	return strcmp(name, table_none(l)) ? name : l == LABEL_CGROUP ? ROOT : "";
}

const struct table_option table_options[TABLE_OPTIONS] = {
	{ LABEL_PID, "-p" },	      { LABEL_TID, "-t" },
	{ LABEL_CPU, "-C" },	      { LABEL_CONTAINER, "--container" },
	{ LABEL_CGROUP, "--cgroup" }, { LABEL_COMM, "--comm" },
};

bool table_is_selectable(const char *name)
{
	static const char *const others[] = { CONTAINER_NONE, "other", "unknown" };
	bool is_name = name && *name && !strchr("[#", *name) && screen_is_repeatable(name);

	for (size_t i = 0; is_name && i < ARRAY_SIZE(others); i++)
		is_name = strcmp(name, others[i]) != 0;
	return is_name;
}

/* POD/CONTAINER, or CONTAINER, or the cgroup. */
static char *joined_name(const struct group *g, cgroup_namer name, void *arg)
{
	char *cgroup = group_label(g, LABEL_CGROUP, name, arg);
	char *container = group_label(g, LABEL_CONTAINER, name, arg);
	char *pod = group_label(g, LABEL_POD, name, arg), *both = NULL, *out;

	/* an unknown cgroup is "#ID" under every label */
	container_cut_command(cgroup);
	if (!*container || *container == '#')
		out = table_name(cgroup, LABEL_CGROUP);
	else if (!*pod || !strcmp(pod, container)) /* "other" is both */
		out = table_name(container, LABEL_CONTAINER);
	else
		out = table_name(both = xasprintf("%s/%s", pod, container), LABEL_CONTAINER);
	free(cgroup);
	free(container);
	free(pod);
	free(both);
	return out;
}

static void name_row(unsigned int labels, const struct group *g, const struct series *s,
		     cgroup_namer name, void *arg, struct table_row *to)
{
	if (labels & TABLE_JOINED) {
		to->name[0] = joined_name(g, name, arg);
		return;
	}
	for (int l = 0; l < LABEL_N; l++) {
		char *label;

		if (!(labels >> l & 1))
			continue;
		if (LABELS_PAIR >> l & 1) {
			to->name[l] = xstrdup(series_label(s, l));
		} else {
			label = group_label(g, l, name, arg);
			to->name[l] = table_name(label, l);
			free(label);
		}
	}
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

struct ranked {
	struct table_row row;
	double key, cycles;
};

static int compare_ranked_names(const void *pa, const void *pb)
{
	return compare_names(&((const struct ranked *)pa)->row, &((const struct ranked *)pb)->row);
}

/* Largest first, unknown last, then by samples and name, so that the order is reproducible. */
static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	double ka = isnan(a->key) ? -INFINITY : a->key, kb = isnan(b->key) ? -INFINITY : b->key;

	if (ka != kb)
		return ka > kb ? -1 : 1;
	/* rows of which exposed cycles are unknown, or 0 */
	if (a->cycles != b->cycles)
		return a->cycles > b->cycles ? -1 : 1;
	if (a->row.all.samples != b->row.all.samples)
		return a->row.all.samples > b->row.all.samples ? -1 : 1;
	return compare_names(&a->row, &b->row);
}

static void row_free(struct table_row *r)
{
	for (int l = 0; l < TABLE_KEYS; l++)
		free(r->name[l]);
	series_free(&r->all);
	free(r->value);
}

/* Merge adjacent entries of the same name into the first one. */
static size_t fold_equal(struct ranked *d, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (k && !compare_names(&d[k - 1].row, &d[i].row)) {
			add_row(&d[k - 1].row, &d[i].row);
			row_free(&d[i].row);
		} else {
			d[k++] = d[i];
		}
	}
	return k;
}

bool table_is_weak(__u64 valid)
{
	return valid < TABLE_FEW;
}

bool table_is_few(__u64 samples, __u64 valid)
{
	return table_is_weak(valid ?: samples);
}

bool table_folds(size_t kept, __u64 samples, __u64 valid, double share)
{
	return kept >= KEEP_ROWS && table_is_few(samples, valid) && !(share >= KEEP_SHARE);
}

bool table_folds_idle(size_t kept, enum table_column sort, double share)
{
	return kept && (sort == TABLE_CYCLES || sort == TABLE_SHARE || sort == TABLE_EXPOSED) &&
	       share <= 0;
}

/* Does the row belong into the rest? @few: rows of few samples do */
static bool folds(const struct table *t, const struct table_row *r, size_t kept, bool few)
{
	const double share = table_share(t, r);

	return table_folds_idle(kept, t->sort, share) ||
	       (few && table_folds(kept, r->all.samples, r->all.valid, share));
}

void table_rank_weak(struct table *t, size_t top, bool fold)
{
	const bool by_samples =
		t->sort == TABLE_SAMPLES || t->sort == TABLE_VALID || t->sort == TABLE_OPS;
	struct table_row *row = xcalloc(t->n, sizeof(*row)), *rest = xcalloc(t->n, sizeof(*row));
	size_t n = 0, kept = 0, folded = 0;
	double strong = 0;

	for (int weak = 0; weak < 2; weak++)
		for (size_t i = 0; i < t->n; i++)
			if ((!by_samples && table_is_weak(t->row[i].all.valid)) == weak)
				row[n++] = t->row[i];
	for (size_t i = 0; i < n; i++)
		strong += table_is_weak(row[i].all.valid) ? 0 : table_share(t, &row[i]);
	for (size_t i = 0; i < n; i++) {
		if ((top && kept == top) ||
		    (fold && folds(t, &row[i], kept, strong >= TABLE_ANSWER)))
			rest[folded++] = row[i];
		else
			t->row[kept++] = row[i];
	}
	/* "other (1)" would take the line that the row itself can have */
	if (folded == 1 && !t->n_rest)
		t->row[kept++] = rest[--folded];
	for (size_t i = 0; i < folded; i++) {
		add_row(&t->rest, &rest[i]);
		row_free(&rest[i]);
	}
	t->n = kept;
	t->n_rest += folded;
	free(row);
	free(rest);
}

static enum table_column currency(const struct table *t, const struct ranked *d, size_t n)
{
	struct table_row total = {};

	for (size_t i = 0; i < n; i++) {
		total.all.sum += d[i].row.all.sum;
		total.all.cycles += d[i].row.all.cycles;
		total.all.exposed += d[i].row.all.exposed;
		total.all.valid += d[i].row.all.valid;
		total.all.exposed_n += d[i].row.all.exposed_n;
	}
	return table_currency(table_value(t, &total, TABLE_EXPOSED));
}

/* Takes ownership of the names and buckets of the @n rows. */
static void fill(struct table *t, struct ranked *d, size_t n, size_t top)
{
	qsort(d, n, sizeof(*d), compare_ranked_names);
	n = fold_equal(d, n);
	if (t->sort == TABLE_CURRENCY)
		t->sort = currency(t, d, n);
	/* shares rank as their cycles; with a constant period, these as the sums */
	for (size_t i = 0; i < n; i++) {
		const double cycles = isnan(d[i].row.cycles) ? d[i].row.all.sum : d[i].row.cycles;

		d[i].key = t->sort == TABLE_CYCLES || t->sort == TABLE_SHARE
				   ? cycles
				   : table_value(t, &d[i].row, t->sort);
		d[i].cycles = t->sort == TABLE_EXPOSED ? cycles : 0;
	}
	qsort(d, n, sizeof(*d), compare_ranked);
	t->n = top && top < n ? top : n;
	/* "other (1)" would take the line that the group itself can have */
	if (n == t->n + 1)
		t->n++;
	t->row = xcalloc(t->n, sizeof(*t->row));
	for (size_t i = 0; i < n; i++) {
		add_row(&t->total, &d[i].row);
		if (i < t->n) {
			t->row[i] = d[i].row;
		} else {
			add_row(&t->rest, &d[i].row);
			row_free(&d[i].row);
		}
	}
	t->n_rest = n - t->n;
}

void table_build(struct snapshot *s, enum ibs_metric metric, unsigned int labels,
		 enum table_column sort, size_t top, cgroup_namer name, void *arg,
		 struct table *out)
{
	const bool each_series = labels & LABELS_PAIR, fetch = ibs_metric_of_fetch(metric);
	size_t n = 0, max = 0;
	struct ranked *d;

	*out = (struct table){ .labels = labels & ~TABLE_JOINED,
			       .joined = labels & TABLE_JOINED,
			       .metric = metric,
			       .seconds = s->time_ns / 1e9,
			       .drawn = s->ledger.pmu_exact ? s->ledger.pmu_samples : 0,
			       .sort = sort };
	snapshot_prices(s, metric);
	for (size_t i = 0; i < s->n_groups; i++)
		max += each_series ? s->groups[i].n_series : 1;
	d = xcalloc(max, sizeof(*d));
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];

		for (size_t k = 0; k < g->n_series; k++) {
			if (!k || each_series)
				name_row(labels, g, &g->series[k], name, arg, &d[n++].row);
			(fetch ? add_fetch : add)(&d[n - 1].row, &g->series[k]);
			/* walks are counted per group, in what series_counted() counts */
			if (!each_series && g->has_tlb && g->series[k].src != IBS_SRC_NONE)
				d[n - 1].row.memory += series_counted(&g->series[k]);
		}
		if (g->n_series && !each_series && !fetch)
			d[n - 1].row.walks =
				g->series->strata ? g->tlb.l2_miss_ops : g->tlb.l2_miss;
	}
	for (size_t i = 0; i < n; i++)
		finish(&d[i].row);
	fill(out, d, n, top);
	free(d);
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		row_free(&t->row[i]);
	free(t->row);
	row_free(&t->rest);
	row_free(&t->total);
	memset(t, 0, sizeof(*t));
}

__u64 table_row_hash(const struct table_row *r)
{
	__u64 h = 0;

	for (int l = 0; l < TABLE_NAMES; l++)
		if (r->name[l] && !(LABELS_PAIR >> l & 1))
			h = u64_hash(h ^ text_hash(r->name[l]));
	return h;
}

__u64 table_group_hash(const struct group *g, unsigned int labels, cgroup_namer name, void *arg)
{
	struct table_row r = {};
	__u64 h;

	name_row(labels & ~LABELS_PAIR, g, NULL, name, arg, &r);
	h = table_row_hash(&r);
	row_free(&r);
	return h;
}

void table_window(const struct table *t, size_t first, size_t n, struct table *out)
{
	*out = *t;
	out->row = t->n ? t->row + first : NULL;
	out->n = first + n < t->n ? n : t->n - first;
	out->n_rest = t->n - out->n;
	memset(&out->rest, 0, sizeof(out->rest));
	for (size_t i = 0; i < t->n; i++)
		if (i < first || i >= first + out->n)
			add_row(&out->rest, &t->row[i]);
}

void table_window_free(struct table *t)
{
	row_free(&t->rest);
}
