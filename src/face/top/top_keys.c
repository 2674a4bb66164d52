// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What keys and clicks do. */
#include "top_private.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double intervals[] = { 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60 };
#define INTERVALS (sizeof(intervals) / sizeof(intervals[0]))

static void select_row(struct top *t, size_t row)
{
	size_t n = t->table.n - t->table.n_rest;

	if (t->mode == TOP_FUNCTION)
		t->line = row < t->last_line ? row : t->last_line;
	if (t->mode == TOP_FUNCTION || !n)
		return;
	t->cursor = row < n ? row : n - 1;
	t->selected = t->id[t->cursor];
	t->has_selected = true;
}

static void move(struct top *t, long by)
{
	size_t at = t->mode == TOP_FUNCTION ? t->line : t->cursor;

	select_row(t, by < 0 && at < (size_t)-by ? 0 : at + by);
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
	t->opts.reverse = column == top_sort(t) ? !t->opts.reverse : false;
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
		if (list[i] == top_sort(t))
			at = i;
	if (n && list[(at + n + step) % n] != top_sort(t))
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

static void escape(struct top *t)
{
	if (t->mode == TOP_FUNCTION) {
		top_leave_function(t);
	} else if (t->mode != TOP_TABLE) {
		t->mode = TOP_TABLE;
	} else if (t->n_zooms) {
		top_zoom_out(t);
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
	if (t->opts.in_strata && want < TOP_STRATA_INTERVAL_S)
		top_say(t, "--strata needs intervals of %d s or longer", TOP_STRATA_INTERVAL_S);
	else
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
	if (t->mode == TOP_HELP && t->help_more) {
		t->help_from += t->help_more;
		t->help_more = 0; /* until it is painted */
		return;
	}
	t->mode = t->mode == TOP_HELP ? TOP_TABLE : TOP_HELP;
	t->help_from = 0;
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
	{ TOP_ENTER, '\n', "Enter",
	  "zoom into the row: processes, threads, symbols and their instructions", top_zoom_in },
	{ TOP_ESCAPE, 0, "Esc",
	  "zoom out, as Enter in instructions; then clear the filter; then return to live",
	  escape },
	{ 'c', 0, "c", "next kind of rows: pods, processes, symbols (of a recording), CPUs, ..",
	  top_cycle },
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
#define KEYS  (sizeof(keys) / sizeof(keys[0]))
#define MOVES 6 /* keys of the first rows move in a function, too */

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
		if (t->mode == TOP_FUNCTION && i >= MOVES) {
			if (keys[i].run == top_zoom_in || keys[i].run == escape)
				escape(t);
			if (keys[i].run == show_command)
				show_command(t);
			return TOP_NOTHING;
		}
		if (keys[i].run == top_zoom_in && t->mode != TOP_HELP && top_function(t))
			return TOP_ANNOTATE;
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
