// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "top_private.h"

#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define L(name) (1U << LABEL_##name)

enum { CONTAINERS, PODS, CGROUPS, PROCESSES, THREADS, COMMS, CPUS, COMPLEXES, NODES };

const struct top_level top_levels[] = {
	[CONTAINERS] = { "container", TABLE_LABELS, PROCESSES },
	[PODS] = { "pod", L(POD), CONTAINERS },
	[CGROUPS] = { "cgroup", L(CGROUP), PROCESSES },
	[PROCESSES] = { "process", L(PID) | L(COMM), THREADS },
	[THREADS] = { "thread", L(TID) | L(COMM), -1 },
	[COMMS] = { "comm", L(COMM), PROCESSES },
	[CPUS] = { "CPU", L(CPU), PROCESSES },
	[COMPLEXES] = { "L3 complex", L(CCX), CPUS },
	[NODES] = { "node", L(NODE), COMPLEXES },
};
const unsigned int top_n_levels = sizeof(top_levels) / sizeof(top_levels[0]);

/* What Enter goes to instead of processes, for keys with others of their own in a command line. */
static const struct {
	enum label label;
	const char *option;
} zoom_options[] = {
	{ LABEL_PID, "-p" },	      { LABEL_TID, "-t" },
	{ LABEL_CPU, "-C" },	      { LABEL_CONTAINER, "--container" },
	{ LABEL_CGROUP, "--cgroup" }, { LABEL_COMM, "--comm" },
};

static const double intervals[] = { 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60 };
#define INTERVALS (sizeof(intervals) / sizeof(intervals[0]))

static int level_of(unsigned int labels)
{
	for (unsigned int i = 0; i < top_n_levels; i++)
		if (top_levels[i].labels == labels)
			return i;
	return -1;
}

unsigned int top_row_labels(const struct top *t)
{
	return t->level < 0 ? t->opts.labels : top_levels[t->level].labels;
}

const char *top_level_name(const struct top *t)
{
	return t->level < 0 ? "key" : top_levels[t->level].name;
}

unsigned int top_labels(const struct top *t)
{
	unsigned int labels = top_row_labels(t);

	for (unsigned int i = 0; i < t->n_zooms; i++)
		labels |= t->zoom[i].labels;
	return labels;
}

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

bool top_in_zoom(struct top *t, const struct group *g)
{
	for (unsigned int i = 0; i < t->n_zooms; i++)
		if (table_group_hash(g, t->zoom[i].labels, history_name, t->history) !=
		    t->zoom[i].hash)
			return false;
	return true;
}

static void forget_table(struct top *t)
{
	table_free(&t->table);
	snapshot_free(&t->shown);
	free(t->hash);
	free(t->trend);
	t->hash = NULL;
	t->trend = NULL;
	t->fresh = false;
}

static void leave_zoom_only(struct top *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->shown.n_groups; i++) {
		if (top_in_zoom(t, &t->shown.groups[i]))
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

/* Rows that the filter leaves come first; the others are in the sum of the rest. Return: how many. */
static size_t order(struct top *t)
{
	struct table *tab = &t->table;
	struct table_row *out = calloc(tab->n ?: 1, sizeof(*out));
	size_t n = 0;

	if (!out)
		return tab->n;
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
	return tab->n;
}

static int find_trends(struct top *t, size_t frame)
{
	struct u64_map rows = {};
	int ret;

	t->hash = calloc(t->table.n ?: 1, sizeof(*t->hash));
	t->trend = calloc((t->table.n ?: 1) * TOP_TREND, sizeof(*t->trend));
	ret = t->hash && t->trend ? 0 : -ENOMEM;
	for (size_t i = 0; !ret && i < t->table.n; i++) {
		t->hash[i] = table_row_hash(&t->table.row[i]);
		t->table.row[i].trend = t->trend + i * TOP_TREND;
		ret = u64_map_put(&rows, t->hash[i], i);
	}
	if (!ret)
		history_trend(t->history, frame, top_row_labels(t), &rows, t->table.n, t->trend,
			      TOP_TREND);
	t->table.n_trend = TOP_TREND;
	u64_map_free(&rows);
	return ret;
}

static void find_cursor(struct top *t)
{
	size_t n = t->table.n - t->table.n_rest;

	for (size_t i = 0; t->has_selected && i < n; i++)
		if (t->hash[i] == t->selected)
			t->cursor = i;
	if (t->cursor >= n)
		t->cursor = n ? n - 1 : 0;
}

int top_update(struct top *t)
{
	enum table_column sort = t->sort == SORT_NAME ? TABLE_CYCLES : t->sort;
	const struct frame *f;
	size_t i = top_shown(t);
	int ret;

	if (t->fresh || !history_n(t->history))
		return 0;
	forget_table(t);
	f = history_frame(t->history, i);
	t->missing = labels_by(top_labels(t) & ~TABLE_JOINED) & ~f->by;
	ret = history_snapshot(t->history, i, &t->shown);
	if (ret)
		return ret;
	if (t->missing)
		for (size_t k = 0; k < t->shown.n_groups; k++)
			group_free(&t->shown.groups[k]);
	if (t->missing)
		t->shown.n_groups = 0;
	leave_zoom_only(t);
	ret = table_build(&t->shown, f->metric, top_row_labels(t), sort, 0, history_name,
			  t->history, &t->table);
	if (ret)
		return ret;
	order(t);
	ret = find_trends(t, i);
	find_cursor(t);
	t->fresh = !ret;
	return ret;
}

int top_add(struct top *t, const struct snapshot *interval, const struct frame *info,
	    cgroup_namer name, void *arg)
{
	t->fresh &= t->frozen;
	return history_add(t->history, interval, info, name, arg);
}

/* --- keys --- */

static void select_row(struct top *t, size_t row)
{
	size_t n = t->table.n - t->table.n_rest;

	if (!n)
		return;
	t->cursor = row < n ? row : n - 1;
	t->selected = t->hash[t->cursor];
	t->has_selected = true;
}

static void move(struct top *t, long by)
{
	select_row(t, by < 0 && t->cursor < (size_t)-by ? 0 : t->cursor + by);
}

static void up(struct top *t)
{
	move(t, -1);
}

static void down(struct top *t)
{
	move(t, 1);
}

static void page_up(struct top *t)
{
	move(t, -(t->hits.rows ?: 1));
}

static void page_down(struct top *t)
{
	move(t, t->hits.rows ?: 1);
}

static void home(struct top *t)
{
	select_row(t, 0);
}

static void end(struct top *t)
{
	select_row(t, SIZE_MAX);
}

static void sort_by(struct top *t, unsigned int column)
{
	t->opts.reverse = column == t->sort ? !t->opts.reverse : false;
	t->sort = column;
	t->fresh = false;
}

/* Columns that have an order, those of the last paint first to last, then the names. */
static void sort_step(struct top *t, int step)
{
	unsigned int list[TABLE_COLUMNS + TABLE_NAMES], at = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->hits.n; i++) {
		if (t->hits.column[i].sort == SORT_NAME && n)
			continue;
		list[n++] = t->hits.column[i].sort;
	}
	for (size_t i = 0; i < n; i++)
		if (list[i] == t->sort)
			at = i;
	if (n && list[(at + n + step) % n] != t->sort)
		sort_by(t, list[(at + n + step) % n]);
}

static void sort_next(struct top *t)
{
	sort_step(t, 1);
}

static void sort_previous(struct top *t)
{
	sort_step(t, -1);
}

static void reverse(struct top *t)
{
	t->opts.reverse = !t->opts.reverse;
	t->fresh = false;
}

static void edit(struct top *t)
{
	memcpy(t->match_before, t->opts.match, sizeof(t->match_before));
	t->mode = TOP_EDIT;
}

static void clear_zoom(struct top_zoom *z)
{
	free(z->name);
	free(z->option);
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
	return !(labels_by(top_levels[level].labels & ~TABLE_JOINED) & ~t->opts.info->by_possible);
}

static void cycle(struct top *t)
{
	for (unsigned int i = 1; i <= top_n_levels; i++) {
		int level = (t->level + (int)i) % (int)top_n_levels;

		if (!possible(t, level))
			continue;
		go_to(t, level);
		return;
	}
}

static char *quote(const char *option, const char *value)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fprintf(f, " %s ", option);
	if (*value && !value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_-./:@%+=,")]) {
		fputs(value, f);
	} else {
		fputc('\'', f);
		for (; *value; value++)
			fputs(*value == '\'' ? "'\\''" : (char[]){ *value, 0 }, f);
		fputc('\'', f);
	}
	fclose(f);
	return text;
}

/* The option that selects what the row is of. */
static char *zoom_option(struct top *t, unsigned int labels, __u64 hash)
{
	for (size_t i = 0; i < t->shown.n_groups; i++) {
		const struct group *g = &t->shown.groups[i];

		if (table_group_hash(g, labels, history_name, t->history) != hash)
			continue;
		for (size_t o = 0; o < sizeof(zoom_options) / sizeof(zoom_options[0]); o++) {
			enum label l = zoom_options[o].label;
			char *value = labels >> l & 1 ? group_label(g, l, history_name, t->history)
						      : NULL;
			char *out = value && *value && *value != '#' && !g->other
					    ? quote(zoom_options[o].option, value)
					    : NULL;

			free(value);
			if (out)
				return out;
		}
	}
	return strdup("");
}

static void enter(struct top *t)
{
	int inside = t->level < 0 ? PROCESSES : top_levels[t->level].inside;
	struct top_zoom *z = &t->zoom[t->n_zooms];
	const struct table_row *r;

	if (top_update(t) || t->cursor >= t->table.n - t->table.n_rest)
		return;
	if (inside < 0 || t->n_zooms == TOP_ZOOMS) {
		top_say(t, "there is nothing inside a %s", top_level_name(t));
		return;
	}
	if (!possible(t, inside)) {
		top_say(t, "%s tells no %s apart", t->opts.info->origin, top_levels[inside].name);
		return;
	}
	r = &t->table.row[t->cursor];
	*z = (struct top_zoom){ .labels = top_row_labels(t), .hash = t->hash[t->cursor] };
	for (int l = 0; l < TABLE_NAMES; l++) {
		char *name = NULL;

		if (!r->name[l])
			continue;
		if (asprintf(&name, "%s%s%s", z->name ?: "", z->name ? " " : "", r->name[l]) < 0)
			return;
		free(z->name);
		z->name = name;
	}
	z->option = zoom_option(t, z->labels, z->hash);
	t->n_zooms++;
	go_to(t, inside);
}

static void escape(struct top *t)
{
	if (t->mode != TOP_TABLE) {
		t->mode = TOP_TABLE;
	} else if (t->n_zooms) {
		struct top_zoom *z = &t->zoom[t->n_zooms - 1];

		t->n_zooms--;
		go_to(t, level_of(z->labels));
		t->selected = z->hash;
		t->has_selected = true;
		clear_zoom(z);
	} else if (*t->opts.match) {
		*t->opts.match = 0;
		t->fresh = false;
	} else if (t->frozen) {
		t->frozen = false;
		t->fresh = false;
	}
}

static void freeze(struct top *t)
{
	if (!history_n(t->history))
		return;
	t->number = history_frame(t->history, top_shown(t))->number;
	t->frozen = !t->frozen;
	t->fresh = false;
}

/* To the interval @seconds later, or to the next one. */
static void travel(struct top *t, double seconds)
{
	size_t n = history_n(t->history), i = top_shown(t);
	__u64 from;

	if (!n)
		return;
	from = history_frame(t->history, i)->end_ns;
	do {
		if (seconds < 0 ? i + 1 >= n : !i)
			break;
		i += seconds < 0 ? 1 : -1;
	} while (fabs((double)history_frame(t->history, i)->end_ns - from) / 1e9 < fabs(seconds));
	t->number = history_frame(t->history, i)->number;
	t->frozen = true;
	t->fresh = false;
}

#define STEP 1e-9

static void back(struct top *t)
{
	travel(t, -STEP);
}

static void forward(struct top *t)
{
	travel(t, STEP);
}

static void back_minute(struct top *t)
{
	travel(t, -60);
}

static void forward_minute(struct top *t)
{
	travel(t, 60);
}

static void change_interval(struct top *t, int step)
{
	double *now = &t->opts.interval_s, want = *now;

	for (size_t k = 0; k < INTERVALS; k++) {
		size_t i = step < 0 ? k : INTERVALS - 1 - k;

		if (step < 0 ? intervals[i] < *now - 1e-9 : intervals[i] > *now + 1e-9)
			want = intervals[i];
	}
	*now = want;
}

static void slower(struct top *t)
{
	change_interval(t, 1);
}

static void faster(struct top *t)
{
	change_interval(t, -1);
}

static void toggle_histogram(struct top *t)
{
	t->mode = t->mode == TOP_HISTOGRAM ? TOP_TABLE : TOP_HISTOGRAM;
}

static void toggle_help(struct top *t)
{
	t->mode = t->mode == TOP_HELP ? TOP_TABLE : TOP_HELP;
}

static void show_command(struct top *t)
{
	char text[sizeof(t->said)];

	top_command(t, text, sizeof(text));
	top_say(t, "%s", text);
}

static void ask_write(struct top *t)
{
	t->mode = TOP_WRITE;
}

static const struct {
	unsigned int key, also; /* 0: none */
	const char *keys, *help;
	void (*run)(struct top *t); /* NULL: quit */
} keys[] = {
	{ TOP_UP, 'k', "up, k", "select the row above", up },
	{ TOP_DOWN, 'j', "down, j", "select the row below", down },
	{ TOP_PAGE_UP, 0, "PgUp", "one page up", page_up },
	{ TOP_PAGE_DOWN, 0, "PgDn", "one page down", page_down },
	{ TOP_HOME, 'g', "Home, g", "first row", home },
	{ TOP_END, 'G', "End, G", "last row", end },
	{ TOP_ENTER, '\n', "Enter", "zoom into the row: processes, then threads", enter },
	{ TOP_ESCAPE, 0, "Esc", "zoom out; then clear the filter; then return to live", escape },
	{ 'c', 0, "c", "cycle rows: container, pod, cgroup, process, thread, comm, CPU, L3, node",
	  cycle },
	{ 's', '>', "s, >", "sort by the next column; a click on a heading does it, too",
	  sort_next },
	{ 'S', '<', "S, <", "sort by the previous column", sort_previous },
	{ 'r', 0, "r", "reverse the order", reverse },
	{ '/', 0, "/", "show only rows with a text in their name", edit },
	{ ' ', 0, "Space", "freeze; again: return to live", freeze },
	{ TOP_LEFT, 0, "left", "one interval back in time", back },
	{ TOP_RIGHT, 0, "right", "one interval forward", forward },
	{ '[', 0, "[", "one minute back", back_minute },
	{ ']', 0, "]", "one minute forward", forward_minute },
	{ '+', 0, "+", "longer intervals", slower },
	{ '-', 0, "-", "shorter intervals", faster },
	{ 'h', 0, "h", "full histogram of the selected row", toggle_histogram },
	{ 'y', 0, "y", "print the equivalent command line", show_command },
	{ 'w', 0, "w", "write this interval or the whole history as JSON", ask_write },
	{ '?', 0, "?", "this help", toggle_help },
	{ 'q', 0, "q", "quit", NULL },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

bool top_help_line(size_t i, const char **names, const char **text)
{
	if (i >= KEYS)
		return false;
	*names = keys[i].keys;
	*text = keys[i].help;
	return true;
}

void top_keys_help(FILE *f)
{
	fputs("\nKeys:\n", f);
	for (size_t i = 0; i < KEYS; i++)
		fprintf(f, "  %-8s %s\n", keys[i].keys, keys[i].help);
}

static void edit_key(struct top *t, unsigned int key)
{
	char *text = t->opts.match;
	size_t n = strlen(text);

	if (key == TOP_ENTER || key == '\n' || key == TOP_ESCAPE) {
		if (key == TOP_ESCAPE)
			memcpy(text, t->match_before, sizeof(t->match_before));
		t->mode = TOP_TABLE;
	} else if (key == TOP_BACKSPACE || key == 0x7f || key == 8) {
		while (n && (text[--n] & 0xc0) == 0x80)
			;
		text[n] = 0;
	} else if (key == 0x15) { /* ^U */
		*text = 0;
	} else if (key >= ' ' && key < TOP_UP && n + 5 < sizeof(t->opts.match)) {
		if (key < 0x80) {
			text[n++] = key;
		} else if (key < 0x800) {
			text[n++] = 0xc0 | key >> 6;
			text[n++] = 0x80 | (key & 0x3f);
		} else {
			if (key < 0x10000) {
				text[n++] = 0xe0 | key >> 12;
			} else {
				text[n++] = 0xf0 | key >> 18;
				text[n++] = 0x80 | (key >> 12 & 0x3f);
			}
			text[n++] = 0x80 | (key >> 6 & 0x3f);
			text[n++] = 0x80 | (key & 0x3f);
		}
		text[n] = 0;
	}
	t->fresh = false;
}

enum top_action top_key(struct top *t, unsigned int key)
{
	*t->said = 0;
	if (t->mode == TOP_EDIT) {
		edit_key(t, key);
		return TOP_NOTHING;
	}
	if (t->mode == TOP_WRITE) {
		t->mode = TOP_TABLE;
		return key == 'f' ? TOP_WRITE_FRAME : key == 'h' ? TOP_WRITE_HISTORY : TOP_NOTHING;
	}
	for (size_t i = 0; i < KEYS; i++) {
		if (key != keys[i].key && (!keys[i].also || key != keys[i].also))
			continue;
		if (!keys[i].run)
			return TOP_QUIT;
		/* behind help, the table is not seen */
		if (t->mode == TOP_HELP && keys[i].run != toggle_help)
			escape(t);
		else
			keys[i].run(t);
		return TOP_NOTHING;
	}
	return TOP_NOTHING;
}

void top_click(struct top *t, int y, int x)
{
	const struct top_hits *h = &t->hits;

	*t->said = 0;
	if (t->mode != TOP_TABLE || x >= h->right)
		return;
	if (y >= h->first_row && y < h->first_row + h->rows)
		select_row(t, t->first + y - h->first_row);
	for (size_t i = 0; y == h->heading && i < h->n; i++)
		if (x >= h->column[i].from && x < h->column[i].to)
			sort_by(t, h->column[i].sort);
}

/* --- for programs --- */

void top_command(const struct top *t, char *out, size_t size)
{
	unsigned int labels = top_row_labels(t) & ~TABLE_JOINED;
	const char *sep = " --by ";
	size_t n = snprintf(out, size, "%s", t->opts.command);

#define ADD(...) (n += n < size ? snprintf(out + n, size - n, __VA_ARGS__) : 0)
	for (unsigned int i = 0; i < t->n_zooms; i++)
		ADD("%s", t->zoom[i].option ?: "");
	for (int l = 0; t->level && l < LABEL_N; l++) {
		if (!(labels >> l & 1))
			continue;
		ADD("%s%s", sep, label_name(l));
		sep = ",";
	}
	if (t->sort != TABLE_CYCLES)
		ADD(" --sort %s", t->sort == SORT_NAME ? "name" : table_column_name(t->sort));
	if (t->opts.reverse)
		ADD(" --reverse");
	if (*t->opts.match) {
		char *match = quote("--match", t->opts.match);

		ADD("%s", match ?: "");
		free(match);
	}
	ADD(" -d %g", t->opts.interval_s);
#undef ADD
}

static int write_frame(struct top *t, size_t i, FILE *f, struct err *err)
{
	const struct frame *frame = history_frame(t->history, i);
	unsigned int labels = top_labels(t) & ~TABLE_JOINED;
	struct hist_view view = { .json = true };
	struct hist_info hist = t->opts.info->hist;
	struct snapshot s;
	int ret = history_snapshot(t->history, i, &s);

	if (ret)
		return err_set(err, ret, "out of memory for the output");
	hist.period = frame->period;
	hist.metric = frame->metric;
	hist.end_ns = frame->end_ns;
	/* only what the interval tells apart */
	for (int l = 0; l < LABEL_N; l++)
		if (labels_by(1U << l) & ~frame->by)
			labels &= ~(1U << l);
	ret = hist_print(f, &view, &hist, &s, labels | L(SRC) | L(OP), history_name, t->history,
			 err);
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

int top_new(const struct top_opts *opts, struct top **out)
{
	struct top *t = calloc(1, sizeof(*t));

	if (!t || history_new(&t->history)) {
		free(t);
		return -ENOMEM;
	}
	t->opts = *opts;
	t->sort = opts->sort;
	t->level = opts->labels ? level_of(opts->labels) : CONTAINERS;
	if (t->level >= 0 && !possible(t, t->level))
		cycle(t);
	*out = t;
	return 0;
}

void top_free(struct top *t)
{
	if (!t)
		return;
	forget_table(t);
	for (unsigned int i = 0; i < t->n_zooms; i++)
		clear_zoom(&t->zoom[i]);
	history_free(t->history);
	free(t);
}
