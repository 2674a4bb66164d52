// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From what is shown to cells. The frame grows with the screen: rows, then the detail pane, then more. */
#include "top_private.h"
#include "base/std.h"
#include "base/text.h"

#include <math.h>

#define PLAIN_HEIGHT   10 /* below it there is only the table */
#define PANE_HEIGHT    20 /* from it on there is a pane of details below */
#define PANE_LINES     8
#define TRUST_HEIGHT   30  /* from it on there is a line on how far to trust the rows */
#define SIDE_WIDTH     130 /* from it on the pane is at the right */
#define SIDE_COLUMNS   54
#define FEW_WIDTH      60 /* below it there are few columns */
#define MIN_WIDTH      12
#define SHARE_BAR      10
#define GAP	       2
#define AGO	       50 /* columns for the last ten minutes */
#define MACHINE_HEIGHT 45 /* from it on there is a bar for each L3 complex */
#define MACHINE_LINES  10
#define PLACE_COLUMNS  21
#define PLACE_BAR      10

static void ledger_line(struct paint *p, int y)
{
	const struct ledger *l = p->frame ? &p->frame->ledger : NULL;
	enum grid_style style;
	char *text;
	size_t n;
	FILE *f;

	if (!l)
		return;
	f = xmemopen(&text, &n);
	ledger_print(f, l);
	xmemclose(f);
	style = ledger_residual(l) ? GRID_WARN : GRID_DIM;
	if ((int)screen_columns(text) <= p->g->width)
		grid_put(p->g, y, 0, style, text);
	else /* what matters most */
		grid_printf(
			p->g, y, 0, style, "seen %s, lost %s, %s%s", TEXT_COUNT(l->seen),
			TEXT_COUNT(ledger_sum(l, IBS_OUTCOME_KIND_LOST)),
			l->pmu_exact ? "unseen " : "aggregated ",
			TEXT_COUNT((l->pmu_exact ? l->unseen
						 : ledger_sum(l, IBS_OUTCOME_KIND_AGGREGATED))));
	free(text);
}

/* Below the rows, whose samples it is about. */
static void trust_line(struct paint *p, int y)
{
	char *text = p->trust;

	if (!text)
		return;
	text += *text == '\n';
	text[strcspn(text, "\n")] = 0;
	grid_put(p->g, y, 0, GRID_DIM, text);
}

static void key_line(struct paint *p, int y)
{
	static const char *const lines[] = {
		[TOP_TABLE] = ("? help  q quit  c rows  s sort  / filter  Enter zoom  h histogram  "
			       "Space freeze"),
		[TOP_HELP] = "Esc back  q quit",
		[TOP_HISTOGRAM] = "h back  up/down other rows  Space freeze  q quit",
		[TOP_FUNCTION] =
			"Enter, Esc back  up/down, PgUp/PgDn, Home/End scroll  y command  q quit",
		[TOP_EDIT] = "Enter done  Esc as before  ^U clear",
		[TOP_WRITE] = "write as JSON: f this interval  h the whole history  Esc nothing",
	};

	if (*p->t->said)
		grid_put(p->g, y, 0, GRID_STRONG, p->t->said);
	else if (p->t->mode == TOP_HELP && p->t->help_more)
		grid_put(p->g, y, 0, GRID_DIM, "? more  Esc back  q quit");
	else
		grid_put(p->g, y, 0, p->t->mode == TOP_WRITE ? GRID_STRONG : GRID_DIM,
			 lines[p->t->mode]);
}

/* --- tables --- */

/* Into lines from @y on. */
static void put_table(struct paint *p, int y, int x, int lines, const struct table *t,
		      const struct screen *screen, const enum table_column *columns, size_t n,
		      struct top_hits *hits)
{
	struct table_text text;
	int from;

	table_text_build(screen, t, columns, n, &text);
	for (size_t line = 0; line < text.lines && (int)line < lines; line++) {
		from = x;
		for (size_t c = 0; c < text.n_names + text.n_columns; c++) {
			const char *cell = table_text_cell(&text, line, c);
			int pad = text.width[c] - screen_columns(cell);
			bool bar = c >= text.n_names && table_text_left(&text, c);

			if (pad < 0 || table_text_left(&text, c))
				pad = 0;
			grid_put(p->g, y + line, from + pad,
				 !line ? GRID_STRONG
				 : bar ? GRID_AMOUNT
				       : GRID_PLAIN,
				 cell);
			if (line && line <= t->n && t->row[line - 1].change && c >= text.n_names &&
			    text.column[c - text.n_names] == TABLE_TREND)
				grid_style(p->g, y + line, from + screen_columns(cell) - 1, 1,
					   t->row[line - 1].change > 0 ? GRID_MORE : GRID_LESS);
			if (!line && hits) {
				unsigned int sort = c < text.n_names
							    ? SORT_NAME
							    : text.column[c - text.n_names];

				if (sort == top_sort(p->t))
					grid_style(p->g, y, from + pad, screen_columns(cell),
						   GRID_SELECTED);
				if (sort < TABLE_HISTOGRAM || sort == SORT_NAME) {
					hits->column[hits->n].from = from;
					hits->column[hits->n].to = from + text.width[c];
					hits->column[hits->n++].sort = sort;
				}
			}
			from += text.width[c] + TABLE_GAP;
		}
	}
	table_text_free(&text);
}

/* Whether nothing comes after the interval on the screen, but something came before it. */
static bool at_end(const struct top *t)
{
	return (t->frozen || t->opts.info->ended) && top_shown(t) + 1 < history_n(t->history);
}

static void main_table(struct paint *p, int y, int lines, int width)
{
	struct top *t = p->t;
	const enum table_column few[] = { top_sort(t) == TABLE_EXPOSED ? TABLE_EXPOSED
								       : TABLE_CYCLES,
					  TABLE_P99 };
	struct screen screen = *p->screen;
	size_t n = t->table.n - t->table.n_rest, fit, columns = t->opts.view.n_columns;
	struct top_hits *hits = &t->hits;
	const enum table_column *list = columns ? t->opts.view.columns : NULL;
	struct table window;

	*hits = (struct top_hits){ .heading = y, .first_row = y + 1, .right = width };
	screen.width = width > MIN_WIDTH ? width : MIN_WIDTH;
	if (!columns && width < FEW_WIDTH) {
		list = few;
		columns = width < FEW_WIDTH / 2 ? 1 : 2;
	}
	/* heading, rows, rest, total */
	fit = lines > 2 ? lines - 2 : 1;
	if (fit < t->table.n && fit > 1)
		fit--;
	if (t->cursor < t->first)
		t->first = t->cursor;
	if (t->cursor >= t->first + fit)
		t->first = t->cursor - fit + 1;
	if (t->first && t->first + fit > n)
		t->first = n > fit ? n - fit : 0;
	hits->rows = n - t->first < fit ? n - t->first : fit;
	table_window(&t->table, t->first, hits->rows, &window);
	put_table(p, y, 0, lines, &window, &screen, list, columns, hits);
	p->trust = table_trust_text(&screen, &window);
	table_window_free(&window);
	if (hits->rows)
		grid_style(p->g, y + 1 + t->cursor - t->first, 0, width, GRID_SELECTED);
	if (!t->table.n && t->missing)
		grid_printf(p->g, y + 1, 0, GRID_DIM, "this interval was not counted by %s%s",
			    top_level_name(t), t->frozen ? "" : "; the next one is");
	else if (!t->table.n)
		grid_printf(p->g, y + 1, 0, GRID_DIM, "%s%s",
			    p->frame ? "no samples in this interval"
				     : "waiting for the first interval",
			    at_end(t) ? "; the left arrow goes to the one before" : "");
}

/* --- the selected row --- */

static const struct table_row *selected(const struct top *t)
{
	return t->cursor < t->table.n - t->table.n_rest ? &t->table.row[t->cursor] : NULL;
}

static void row_name(const struct table_row *r, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (int l = 0; l < TABLE_NAMES; l++)
		if (r->name[l] && n < size)
			n += snprintf(out + n, size - n, "%s%s", n ? " " : "", r->name[l]);
}

/* Has the row samples of this series? Its group has. */
static bool has_series(const struct table_row *r, const struct series *s)
{
	for (int l = 0; l < TABLE_NAMES; l++)
		if (LABELS_PAIR >> l & 1 && r->name[l] && strcmp(r->name[l], series_label(s, l)))
			return false;
	return true;
}

static void take_series(struct group *g, const struct table_row *r)
{
	const struct series *all = g->series;
	const size_t n = g->n_series;

	g->series = xcalloc(n, sizeof(*g->series));
	g->n_series = 0;
	for (size_t i = 0; i < n; i++)
		if (has_series(r, &all[i]))
			g->series[g->n_series++] = all[i];
}

/* The samples of the selected row by source. */
static void by_source(struct top *t, const struct table_row *r, struct table *out)
{
	struct snapshot part = t->shown;

	part.n_groups = 0;
	part.groups = xcalloc(t->shown.n_groups, sizeof(*part.groups));
	for (size_t i = 0; i < t->shown.n_groups; i++) {
		if (table_group_hash(&t->shown.groups[i], top_row_labels(t), history_name,
				     t->history) != t->hash[t->cursor])
			continue;
		part.groups[part.n_groups] = t->shown.groups[i];
		take_series(&part.groups[part.n_groups++], r);
	}
	table_build(&part, t->table.metric, 1U << top_source_label(t), TABLE_CYCLES, 0,
		    history_name, t->history, out);
	for (size_t i = 0; i < part.n_groups; i++)
		free(part.groups[i].series); /* what a series has is still that of the interval */
	free(part.groups);
}

static enum grid_style style_of_source(const char *name)
{
	if (strstr(name, "remote"))
		return GRID_REMOTE;
	return strstr(name, "dram") ? GRID_DRAM : GRID_CACHE;
}

static void bar(struct paint *p, int y, int x, int width, double share, enum grid_style style)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int n = isnan(share) ? 0 : round(share * width * 8);

	for (int i = 0; i < n / 8; i++)
		x = grid_put(p->g, y, x, style, p->screen->utf8 ? "█" : "#");
	if (p->screen->utf8)
		grid_put(p->g, y, x, style, eighths[n % 8]);
}

/* Ten minutes of the row in AGO columns. */
static void ago_line(struct paint *p, int y, int x, int width)
{
	struct top *t = p->t;
	struct u64_map rows = {};
	size_t n = history_n(t->history), start = top_shown(t);
	double columns[AGO];
	unsigned int count[AGO] = {};
	float *all = xcalloc(n, sizeof(*all));
	char text[3 * AGO + 1];

	u64_map_put(&rows, t->hash[t->cursor], 0);
	history_trend(t->history, start, top_row_labels(t), &rows, 1, all, n);
	for (int c = 0; c < AGO; c++)
		columns[c] = NAN;
	for (size_t k = start; k < n; k++) {
		__u64 ago = p->frame->end_ns - history_frame(t->history, k)->end_ns;
		int c = AGO - 1 - (int)(ago / (HISTORY_S / AGO * 1000000000ULL));
		double v = all[n - 1 - (k - start)];

		if (c < 0 || isnan(v))
			continue;
		columns[c] = count[c]++ ? columns[c] + (v - columns[c]) / count[c] : v;
	}
	table_spark(p->screen, columns, AGO, true, text, sizeof(text));
	x = grid_put(p->g, y, x, GRID_DIM, width >= AGO + 13 ? "last 10 min  " : "");
	grid_put(p->g, y, x, GRID_AMOUNT, text);
	u64_map_free(&rows);
	free(all);
}

static void pane(struct paint *p, int y, int x, int lines, int width)
{
	const enum label label = top_source_label(p->t);
	static const enum table_column columns[] = { TABLE_SHARE, TABLE_P50, TABLE_P99,
						     TABLE_HISTOGRAM };
	static const enum table_column narrow[] = { TABLE_SHARE, TABLE_P50, TABLE_P99 };
	const struct table_row *r = selected(p->t);
	struct screen screen = *p->screen;
	char name[TOP_LINE];
	struct table t;
	int at, shown;

	if (!r || lines < 4)
		return;
	by_source(p->t, r, &t);
	for (shown = t.n; shown && !t.row[shown - 1].all.sum;) /* they cost nothing */
		shown--;
	shown = shown < lines - 3 ? shown : lines - 3;
	row_name(r, name, sizeof(name));
	at = grid_put(p->g, y, x, GRID_STRONG, name);
	if (at + 24 < x + width)
		grid_put(p->g, y, at, GRID_DIM,
			 label == LABEL_SRC ? "   by source of miss cycles"
					    : "   by outcome of fetches");
	screen.width = SIDE_COLUMNS;
	/* a total says nothing beside shares */
	put_table(p, y + 1, x, shown + 1, &t, &screen, width < FEW_WIDTH ? narrow : columns,
		  width < FEW_WIDTH ? 3 : 4, NULL);
	for (int i = 0; i < shown; i++) {
		enum grid_style style = style_of_source(t.row[i].name[label]);
		double share = table_share(&t, &t.row[i]);

		grid_style(p->g, y + 2 + i, x, screen_columns(t.row[i].name[label]), style);
		if (width > SIDE_COLUMNS + SHARE_BAR)
			bar(p, y + 2 + i, x + width - SHARE_BAR, SHARE_BAR, share, style);
	}
	if (p->t->table.n_trend)
		ago_line(p, y + lines - 1, x, width);
	table_free(&t);
}

static void histogram(struct paint *p, int y, int lines)
{
	const struct table_row *r = selected(p->t);
	char *text, *line, *rest;
	size_t n;
	FILE *f;

	if (!r)
		return;
	f = xmemopen(&text, &n);
	hist_print_row(f, &p->info->hist, &(struct label_order){}, r);
	xmemclose(f);
	rest = text;
	for (int i = 0; i < lines && (line = strsep(&rest, "\n")); i++)
		grid_put(p->g, y + i, 0, i ? GRID_PLAIN : GRID_STRONG, line);
	free(text);
}

/* In two columns if there is room, else page by page. */
static void help(struct paint *p, int y, int lines)
{
	int columns = p->g->width >= 160 ? 2 : 1, room = columns * (lines > 1 ? lines : 1);
	const char *names, *text;

	p->t->help_more = top_help_line(p->t->help_from + room, &names, &text) ? room : 0;
	for (int i = 0; i < room && top_help_line(p->t->help_from + i, &names, &text); i++) {
		int x = i / lines * (p->g->width / 2);

		grid_put(p->g, y + i % lines, x, GRID_STRONG, names);
		grid_put(p->g, y + i % lines, x + 10, GRID_PLAIN, text);
	}
}

static enum grid_style style_of_remote(double share)
{
	return share < 0.1 ? GRID_CACHE : share < 0.3 ? GRID_DRAM : GRID_REMOTE;
}

/* As topology_shard() spreads them. */
static unsigned int first_complex(const struct places *p, unsigned int place)
{
	return (place * p->complexes + p->n - 1) / p->n;
}

/* A bar for each L3 complex, a line or more for each node. Return: how many lines. */
static int machine(struct paint *p, int y)
{
	const struct places *places = &p->info->places;
	const struct place_cost *cost = p->frame ? p->frame->place : NULL;
	int first = y, x = 0;
	char number[64], unit;
	float most = 0, per_s;

	if (!cost || places->n < 2 || p->frame->n_places != places->n)
		return 0;
	for (unsigned int i = 0; i < places->n; i++)
		most = cost[i].cycles > most ? cost[i].cycles : most;
	if (most <= 0)
		return 0;
	per_s = most * 1e9 / p->frame->time_ns;
	unit = screen_unit(per_s);
	screen_scaled(p->screen, per_s, unit, number, sizeof(number));
	x = grid_put(p->g, y, 0, GRID_STRONG, "MISS CYCLES/s BY L3 COMPLEX");
	grid_printf(p->g, y++, x, GRID_DIM, "   longest bar %s, %% of it remote%s", number,
		    places->n < places->complexes ? "; neighbours share a bar" : "");
	x = p->g->width;
	for (unsigned int i = 0; i < places->n; i++) {
		double share = cost[i].cycles > 0 ? cost[i].remote / cost[i].cycles : 0;
		enum grid_style style = style_of_remote(share);
		bool other_node = !i || places->node[i] != places->node[i - 1];

		if (other_node || x + PLACE_COLUMNS > p->g->width) {
			y += i > 0;
			if (y - first == MACHINE_LINES) {
				grid_printf(p->g, y++, 0, GRID_DIM, "and %u more", places->n - i);
				return y - first;
			}
			if (other_node)
				grid_printf(p->g, y, 0, GRID_PLAIN, "node %u", places->node[i]);
			x = 10;
		}
		grid_printf(p->g, y, x, GRID_PLAIN, "%3u", first_complex(places, i));
		bar(p, y, x + 4, PLACE_BAR, cost[i].cycles / most, style);
		if (cost[i].cycles > 0)
			grid_printf(p->g, y, x + 4 + PLACE_BAR, style, "%4.0f%%", 100 * share);
		x += PLACE_COLUMNS;
	}
	return y + 2 - first;
}

/* Everything between the first and the last lines. */
static void body(struct paint *p, int y, int lines)
{
	int width = p->g->width, rows = p->t->table.n, table = lines;

	if (p->t->mode == TOP_HELP) {
		help(p, y, lines);
		return;
	}
	if (p->t->mode == TOP_FUNCTION) {
		top_paint_function(p->t, p->screen, p->g, y, lines);
		return;
	}
	if (p->t->mode == TOP_HISTOGRAM) {
		histogram(p, y, lines);
		return;
	}
	if (width >= SIDE_WIDTH && p->g->height >= PLAIN_HEIGHT) {
		const int side = SIDE_COLUMNS + GAP + SHARE_BAR;
		int x = width - side, few = lines < 16 ? lines : 16;

		pane(p, y, x, few, side);
		main_table(p, y, lines, x - 3);
		return;
	}
	if (p->g->height >= PANE_HEIGHT && p->t->table.n) {
		/* heading and total beside the rows; what they leave is the pane's */
		table = rows + 2 + 1 < lines - PANE_LINES ? rows + 2 + 1 : lines - PANE_LINES;
		pane(p, y + table, 0, lines - table, width);
		table--;
	}
	main_table(p, y, table, width);
}

void top_paint(struct top *t, const struct screen *screen, struct grid *g)
{
	struct paint p = { .t = t, .info = t->opts.info, .screen = screen, .g = g };
	int y = 0, end = g->height, keys = -1, trust = -1;

	top_update(t);
	if (history_n(t->history))
		p.frame = history_frame(t->history, top_shown(t));
	if (g->width < 4 || (g->height < 2 && g->width < MIN_WIDTH)) {
		grid_put(g, 0, 0, GRID_PLAIN, ".");
		return;
	}
	if (g->height >= PLAIN_HEIGHT) {
		top_paint_host(&p, y++);
		top_paint_view(&p, y++);
	}
	if (g->height > 2)
		y += top_paint_warnings(&p, y, y > 0);
	if (g->height >= PLAIN_HEIGHT) {
		if (!t->opts.once)
			keys = --end;
		ledger_line(&p, --end);
		if (g->height >= TRUST_HEIGHT &&
		    (t->mode == TOP_TABLE || t->mode == TOP_EDIT || t->mode == TOP_WRITE))
			trust = --end;
		y += g->height >= PANE_HEIGHT;
		end -= g->height >= PANE_HEIGHT;
	} else if (*t->said || t->mode != TOP_TABLE) {
		keys = --end;
	}
	if (g->height >= MACHINE_HEIGHT && t->mode == TOP_TABLE)
		y += machine(&p, y);
	if (end > y)
		body(&p, y, end - y);
	if (trust >= 0)
		trust_line(&p, trust);
	free(p.trust);
	if (keys >= 0)
		key_line(&p, keys);
}
