// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top_private.h"
#include "base/std.h"

#include "base/utf8.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <time.h>

/* --- what rows can be, and going into one of them and out again --- */

#define L(name) (1U << LABEL_##name)

enum { CONTAINERS, PODS, CGROUPS, PROCESSES, THREADS, COMMS, SYMBOLS, CPUS, COMPLEXES, NODES };

static const struct {
	const char *name;
	unsigned int labels;
	int inside; /* the level that Enter goes to; -1: none */
} levels[] = {
	[CONTAINERS] = { "container", TABLE_LABELS, PROCESSES },
	[PODS] = { "pod", L(POD), CONTAINERS },
	[CGROUPS] = { "cgroup", L(CGROUP), PROCESSES },
	[PROCESSES] = { "process", L(PID) | L(COMM), THREADS },
	[THREADS] = { "thread", L(TID) | L(COMM), SYMBOLS },
	[COMMS] = { "comm", L(COMM), PROCESSES },
	[SYMBOLS] = { "symbol", L(SYMBOL), -1 },
	[CPUS] = { "CPU", L(CPU), PROCESSES },
	[COMPLEXES] = { "L3 complex", L(CCX), CPUS },
	[NODES] = { "node", L(NODE), COMPLEXES },
};
#define LEVELS (int)(sizeof(levels) / sizeof(levels[0]))

static int level_of(unsigned int labels)
{
	for (int i = 0; i < LEVELS; i++)
		if (levels[i].labels == labels)
			return i;
	return -1;
}

unsigned int top_row_labels(const struct top *t)
{
	return t->level < 0 ? t->opts.labels : levels[t->level].labels;
}

const char *top_level_name(const struct top *t)
{
	return t->level < 0 ? "key" : levels[t->level].name;
}

unsigned int top_labels(const struct top *t)
{
	unsigned int labels = top_row_labels(t);

	for (unsigned int i = 0; i < t->n_zooms; i++)
		labels |= t->zoom[i].labels;
	return labels;
}

/* Is the group in what the view has gone into? */
static bool in_zoom(struct top *t, const struct group *g)
{
	for (unsigned int i = 0; i < t->n_zooms; i++)
		if (table_group_hash(g, t->zoom[i].labels, history_name, t->history) !=
		    t->zoom[i].hash)
			return false;
	return true;
}

bool top_in_row(struct top *t, const struct group *g)
{
	return in_zoom(t, g) && table_group_hash(g, top_row_labels(t), history_name, t->history) ==
					t->hash[t->cursor];
}

const char *top_function(struct top *t)
{
	top_update(t);
	return t->level == SYMBOLS && t->cursor < t->table.n - t->table.n_rest
		       ? t->table.row[t->cursor].name[LABEL_SYMBOL]
		       : NULL;
}

static void clear_zoom(struct top_zoom *z)
{
	free(z->name);
	for (size_t o = 0; o < TABLE_OPTIONS; o++)
		free(z->option[o]);
	memset(z, 0, sizeof(*z));
}

static void go_to(struct top *t, int level)
{
	t->level = level;
	t->has_selected = false;
	t->cursor = t->first = 0;
	t->fresh = false;
}

/* Can the source tell them apart? */
static bool possible(const struct top *t, int level)
{
	const unsigned int labels = levels[level].labels & ~TABLE_JOINED;

	if (labels & L(COMM) && top_labels(t) & L(SLAB))
		return false; /* no counter has both */
	return !(labels_by(labels) & ~t->opts.info->by_possible);
}

void top_cycle(struct top *t)
{
	for (int i = 1; i <= LEVELS; i++) {
		int level = (t->level + i) % LEVELS;

		if (!possible(t, level))
			continue;
		go_to(t, level);
		return;
	}
}

void top_zoom_in(struct top *t)
{
	int inside = t->level < 0 ? PROCESSES : levels[t->level].inside;
	struct top_zoom *z = &t->zoom[t->n_zooms];
	const struct table_row *r;

	top_update(t);
	if (t->cursor >= t->table.n - t->table.n_rest) {
		top_say(t, "no group is selected");
		return;
	}
	if (inside < 0 || t->n_zooms == TOP_ZOOMS) {
		top_say(t, "there is nothing inside a %s", top_level_name(t));
		return;
	}
	if (!(top_row_labels(t) & ~LABELS_PAIR)) {
		top_say(t, "there is nothing inside a source or an op");
		return;
	}
	if (!possible(t, inside)) {
		if (inside == SYMBOLS)
			top_say(t,
				"counters keep no symbols: make a recording with `ibscope record`, "
				"see it with `ibscope top -i FILE`");
		else
			top_say(t, "%s does not group by %s", t->opts.info->origin,
				levels[inside].name);
		return;
	}
	r = &t->table.row[t->cursor];
	*z = (struct top_zoom){ .labels = top_row_labels(t),
				.hash = t->hash[t->cursor],
				.id = t->id[t->cursor] };
	for (int l = 0; l < TABLE_NAMES; l++) {
		char *name;

		/* inside is all of the group, whatever its source and op */
		if (!r->name[l] || LABELS_PAIR >> l & 1)
			continue;
		name = xasprintf("%s%s%s", z->name ?: "", z->name ? " " : "", r->name[l]);
		free(z->name);
		z->name = name;
	}
	top_zoom_options(t, z);
	t->n_zooms++;
	go_to(t, inside);
}

void top_zoom_out(struct top *t)
{
	struct top_zoom *z = &t->zoom[--t->n_zooms];

	go_to(t, level_of(z->labels));
	t->selected = z->id;
	t->has_selected = true;
	clear_zoom(z);
}

static void leave_zooms(struct top *t)
{
	while (t->n_zooms)
		clear_zoom(&t->zoom[--t->n_zooms]);
}

/* The level that the options ask for, or the first that the source can tell apart. */
static void first_level(struct top *t)
{
	t->level = t->opts.labels ? level_of(t->opts.labels) : CONTAINERS;
	if (t->level >= 0 && !possible(t, t->level))
		top_cycle(t);
}

/* A row is a part of what was selected before, so only the narrowest option of a kind is right. */
static void put_options(FILE *f, const struct top *t)
{
	for (size_t o = 0; o < TABLE_OPTIONS; o++) {
		const char *text = t->opts.given[o];

		for (unsigned int i = 0; i < t->n_zooms; i++)
			text = t->zoom[i].option[o] ?: text;
		fputs(text ?: "", f);
	}
}

/* What top shows: rows, their order, and how often. */
static void put_view(FILE *f, const struct top *t)
{
	unsigned int labels = top_row_labels(t) & ~TABLE_JOINED;
	const char *sep = " --by ";

	for (int l = 0; t->level && l < LABEL_N; l++) {
		if (!(labels >> l & 1))
			continue;
		fprintf(f, "%s%s", sep, label_name(l));
		sep = ",";
	}
	if (t->sort != TABLE_CURRENCY)
		fprintf(f, " --sort %s", top_sort_name(t));
	if (t->opts.reverse)
		fputs(" --reverse", f);
	if (*t->opts.match) {
		fputs(" --match ", f);
		text_put_word(f, t->opts.match);
	}
	fprintf(f, " -d %g", t->opts.interval_s);
}

void top_command(const struct top *t, char *out, size_t size)
{
	const bool function = t->mode == TOP_FUNCTION;
	char *text;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	fputs(function ? t->opts.annotate : t->opts.command, f);
	put_options(f, t);
	if (function) {
		fputc(' ', f);
		text_put_word(f, t->function);
	} else {
		put_view(f, t);
	}
	for (unsigned int i = 0; i < t->n_zooms; i++)
		if (!t->zoom[i].selected)
			fprintf(f, "  # not only of %s, which no option selects%s", t->zoom[i].name,
				t->opts.info->unselectable ? " from a collector" : "");
	xmemclose(f);
	snprintf(out, size, "%s", text);
	free(text);
}

/* --- the table, and what happens to it --- */

double top_interval(const struct top *t)
{
	return t->opts.interval_s;
}

void top_say(struct top *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->said, sizeof(t->said), fmt, ap);
	va_end(ap);
}

bool top_says(const struct top *t)
{
	return *t->said;
}

size_t top_shown(const struct top *t)
{
	size_t n = history_n(t->history), i = 0;

	if (!t->frozen)
		return 0;
	while (i + 1 < n && history_frame(t->history, i)->first > t->number)
		i++;
	return i;
}

/* --- the table of the interval that is shown --- */

#define RATES	      (TOP_BEFORE + 1)
#define CHANGE_MIN    5	  /* intervals */
#define CHANGE_LEAST  0.1 /* of the mean */
#define CHANGE_SIGMAS 3
#define NORMAL_95     1.96 /* sigmas that have 95 % */

static void forget_table(struct top *t)
{
	table_free(&t->table);
	snapshot_free(&t->shown);
	free(t->hash);
	free(t->id);
	free(t->trend);
	t->hash = t->id = NULL;
	t->trend = NULL;
	t->fresh = false;
}

static void leave_zoom_only(struct top *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->shown.n_groups; i++) {
		if (in_zoom(t, &t->shown.groups[i]))
			t->shown.groups[n++] = t->shown.groups[i];
		else
			group_free(&t->shown.groups[i]);
	}
	t->shown.n_groups = n;
}

static int compare_names(const void *pa, const void *pb)
{
	const struct table_row *a = pa, *b = pb;

	for (int l = 0; l < TABLE_NAMES; l++) {
		int c = a->name[l] ? strverscmp(a->name[l], b->name[l]) : 0;

		if (c)
			return c;
	}
	return 0;
}

static bool matches(const struct top *t, const struct table_row *r)
{
	bool any = !*t->opts.match;

	for (int l = 0; l < TABLE_NAMES; l++)
		any |= r->name[l] && strcasestr(r->name[l], t->opts.match);
	return any;
}

/* Rows that the filter leaves come first; the others are in the sum of the rest. */
static void order(struct top *t)
{
	struct table *tab = &t->table;
	struct table_row *out = xcalloc(tab->n, sizeof(*out));
	size_t n = 0;

	if (t->sort == SORT_NAME)
		qsort(tab->row, tab->n, sizeof(*tab->row), compare_names);
	for (int want = 1; want >= 0; want--) {
		for (size_t i = 0; i < tab->n; i++) {
			struct table_row *r = &tab->row[t->opts.reverse ? tab->n - 1 - i : i];

			if (matches(t, r) == want)
				out[n++] = *r;
		}
		if (want)
			tab->n_rest = tab->n - n; /* until table_window() */
	}
	free(tab->row);
	tab->row = out;
}

/* Of the rate of miss cycles, @now, by the samples of the row; of strata by their slices. */
static double sampling_variance(const struct table_row *r, double now)
{
	const struct series *s = &r->all;
	double error = 0, low, high;

	if (series_cycles_interval(s, &low, &high))
		return pow((high - low) / (2 * NORMAL_95) * now / s->cycles, 2);
	for (int b = 0; s->sum && s->buckets && b < IBS_LAT_BUCKETS; b++)
		error += (double)s->buckets[b] * ibs_lat_le(b) * ibs_lat_le(b);
	return s->sum ? error * (now / s->sum) * (now / s->sum) : 0;
}

/*
 * Is what a row costs now beyond the noise of sampling, and beyond how it went up and down before?
 */
static int change_of(const struct table_row *r, const float *rates)
{
	double sum = 0, squares = 0, now = rates[TOP_BEFORE], mean, error, variance;
	int n = 0;

	for (int i = 0; i < TOP_BEFORE; i++) {
		if (isnan(rates[i]))
			continue;
		n++;
		sum += rates[i];
		squares += (double)rates[i] * rates[i];
	}
	if (n < CHANGE_MIN || isnan(now))
		return 0;
	mean = sum / n;
	variance = fmax(squares / n - mean * mean, 0) * (n + 1) / (n - 1);
	error = sampling_variance(r, now);
	if (fabs(now - mean) <= CHANGE_LEAST * mean ||
	    (now - mean) * (now - mean) <= CHANGE_SIGMAS * CHANGE_SIGMAS * (variance + error))
		return 0;
	return now > mean ? 1 : -1;
}

/* A row's hash, with its source and op. */
static __u64 id_of(const struct table_row *r)
{
	__u64 h = table_row_hash(r);

	for (int l = 0; l < TABLE_NAMES; l++)
		if (LABELS_PAIR >> l & 1 && r->name[l])
			h = u64_hash(h ^ text_hash(r->name[l]));
	return h;
}

static void find_ids(struct top *t)
{
	t->hash = xcalloc(t->table.n, sizeof(*t->hash));
	t->id = xcalloc(t->table.n, sizeof(*t->id));
	for (size_t i = 0; i < t->table.n; i++) {
		t->hash[i] = table_row_hash(&t->table.row[i]);
		t->id[i] = id_of(&t->table.row[i]);
	}
}

static void find_trends(struct top *t, size_t frame)
{
	struct u64_map rows = {};

	/* of each group, the history has the sum of its sources and ops */
	if (top_row_labels(t) & LABELS_PAIR)
		return;
	t->trend = xcalloc(t->table.n * RATES, sizeof(*t->trend));
	for (size_t i = 0; i < t->table.n; i++) {
		t->table.row[i].trend = t->trend + (i + 1) * RATES - TOP_TREND;
		u64_map_put(&rows, t->hash[i], i);
	}
	history_trend(t->history, frame, top_row_labels(t), &rows, t->table.n, t->trend, RATES);
	for (size_t i = 0; i < t->table.n; i++)
		t->table.row[i].change = change_of(&t->table.row[i], t->trend + i * RATES);
	t->table.n_trend = t->opts.once ? 0 : TOP_TREND;
	u64_map_free(&rows);
}

static void find_cursor(struct top *t)
{
	size_t n = t->table.n - t->table.n_rest;

	for (size_t i = 0; t->has_selected && i < n; i++)
		if (t->id[i] == t->selected)
			t->cursor = i;
	if (t->cursor >= n)
		t->cursor = n ? n - 1 : 0;
}

void top_update(struct top *t)
{
	enum table_column sort = t->sort == SORT_NAME ? TABLE_CURRENCY : t->sort;
	const struct frame *f;
	size_t i = top_shown(t);

	if (t->fresh || !history_n(t->history))
		return;
	forget_table(t);
	f = history_frame(t->history, i);
	t->missing = labels_by(top_labels(t) & ~TABLE_JOINED) & ~f->by;
	history_snapshot(t->history, i, &t->shown);
	if (t->missing)
		for (size_t k = 0; k < t->shown.n_groups; k++)
			group_free(&t->shown.groups[k]);
	if (t->missing)
		t->shown.n_groups = 0;
	leave_zoom_only(t);
	t->shown.by = f->by;
	table_build(&t->shown, f->metric, top_row_labels(t), sort, 0, history_name, t->history,
		    &t->table);
	table_rank_weak(&t->table, 0, false);
	order(t);
	find_ids(t);
	find_trends(t, i);
	find_cursor(t);
	t->fresh = true;
}

void top_add(struct top *t, const struct snapshot *interval, const struct frame *info,
	     cgroup_namer name, void *arg)
{
	t->fresh &= t->frozen;
	history_add(t->history, interval, info, name, arg);
}

/* --- for programs --- */

static int write_frame(struct top *t, size_t i, FILE *f, struct err *err)
{
	const struct frame *frame = history_frame(t->history, i);
	unsigned int labels = top_labels(t) & ~TABLE_JOINED;
	struct hist_view view = { .opts.format = FORMAT_JSON };
	struct hist_info hist = t->opts.info->hist;
	struct snapshot s;
	int ret;

	history_snapshot(t->history, i, &s);
	hist.period = frame->period;
	hist.metric = frame->metric;
	hist.end_ns = frame->end_ns;
	/* only labels by which the interval was counted */
	for (int l = 0; l < LABEL_N; l++)
		if (labels_by(1U << l) & ~frame->by)
			labels &= ~(1U << l);
	labels |=
		labels_of_event(1U << LABEL_SRC | 1U << LABEL_OP, ibs_metric_of_fetch(hist.metric));
	ret = hist_print(f, &view, &hist, &s, labels, history_name, t->history, err);
	snapshot_free(&s);
	return ret;
}

int top_write(struct top *t, bool all, FILE *f, struct err *err)
{
	size_t n = history_n(t->history);
	int ret = 0;

	for (size_t i = n; !ret && i-- > 0;)
		if (all || i == top_shown(t))
			ret = write_frame(t, i, f, err);
	return ret;
}

struct top *top_new(const struct top_opts *opts)
{
	struct top *t = xcalloc(1, sizeof(*t));

	t->history = history_new();
	t->opts = *opts;
	t->sort = opts->view.sort;
	first_level(t);
	return t;
}

void top_free(struct top *t)
{
	if (!t)
		return;
	forget_table(t);
	top_leave_function(t);
	leave_zooms(t);
	history_free(t->history);
	free(t);
}
