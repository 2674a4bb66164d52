// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as text: a sentence that answers, then the table that proves it. */
#include "diff_private.h"

#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>

#define COLUMNS	  12
#define ROWS_PIPE 20
#define ROWS_MIN  5
#define LINES	  27 /* of a screen, besides the rows of the last table */
#define BAR	  15
#define NAME_MIN  12
#define BAR_FROM  96 /* columns of a screen with bars */

#define NUMBER DIFF_NUMBER
#define SIGNED DIFF_SIGNED

/* --- a table of cells */

struct grid {
	const struct screen *screen;
	size_t n, room; /* lines */
	char *(*line)[COLUMNS];
	size_t width[COLUMNS];
	bool left[COLUMNS];
};

static void grid_line(struct grid *g)
{
	array_reserve_zero(g->line, g->room, g->n + 1);
	g->n++;
}

__attribute__((format(printf, 3, 4))) static void grid_put(struct grid *g, unsigned int column,
							   const char *fmt, ...)
{
	va_list ap;
	char *text, *clean;
	size_t width;
	FILE *f = xmemopen(&clean, &width);

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		out_of_memory();
	va_end(ap);
	utf8_put(f, text);
	xmemclose(f);
	free(text);
	g->line[g->n - 1][column] = clean;
	width = screen_columns(clean);
	g->width[column] = width > g->width[column] ? width : g->width[column];
}

/* Shorten the names of a column. */
static void grid_fit(struct grid *g, unsigned int column, size_t width)
{
	const char **name = xcalloc(g->n, sizeof(*name));
	char **out = xcalloc(g->n, sizeof(*out));

	if (width < NAME_MIN)
		width = NAME_MIN;
	for (size_t i = 0; i < g->n; i++)
		name[i] = g->line[i][column] ?: "";
	if (g->width[column] > width) {
		screen_shorten(g->screen, name, g->n, width, out);
		g->width[column] = 0;
		for (size_t i = 0; i < g->n; i++) {
			size_t w = screen_columns(out[i]);

			free(g->line[i][column]);
			g->line[i][column] = out[i];
			g->width[column] = w > g->width[column] ? w : g->width[column];
		}
	}
	free(name);
	free(out);
}

static size_t grid_width(const struct grid *g)
{
	size_t width = 0;

	for (unsigned int c = 0; c < COLUMNS; c++)
		width += g->width[c] ? g->width[c] + 2 : 0;
	return width ? width - 2 : 0;
}

/* The width of a column with which the table fits the screen, if that is possible. */
static size_t fitting(const struct grid *g, unsigned int column)
{
	size_t width = grid_width(g),
	       over = width > g->screen->width ? width - g->screen->width : 0;

	return g->width[column] > over ? g->width[column] - over : 0;
}

static void grid_print(FILE *f, struct grid *g)
{
	for (size_t i = 0; i < g->n; i++) {
		size_t blanks = 0;

		if (!i && g->screen->color)
			fputs("\033[1m", f);
		for (unsigned int c = 0; c < COLUMNS; c++) {
			const char *text = g->line[i][c] ?: "";
			size_t pad = g->width[c] - screen_columns(text);

			if (!g->width[c])
				continue;
			blanks += g->left[c] ? 0 : pad;
			if (*text) {
				fprintf(f, "%*s%s", (int)blanks, "", text);
				blanks = 0;
			}
			blanks += (g->left[c] ? pad : 0) + 2;
		}
		fputs(!i && g->screen->color ? "\033[0m\n" : "\n", f);
		for (unsigned int c = 0; c < COLUMNS; c++)
			free(g->line[i][c]);
	}
	free(g->line);
}

/* --- tables */

static void put_change(struct grid *g, unsigned int column, const struct compare_change *c,
		       double k)
{
	const struct screen *s = g->screen;
	char v[SIGNED], low[SIGNED], high[SIGNED];

	grid_put(g, column, "%s", diff_signed(s, c->change * k, v));
	grid_put(g, column + 1, "%s %s %s", diff_signed(s, c->low * k, low), s->utf8 ? "…" : "..",
		 diff_signed(s, c->high * k, high));
}

static void put_share(struct grid *g, unsigned int column, double share, bool noise)
{
	char bar[BAR * 3 + 1] = "";
	/* an input may claim differences beside which the sum is nothing */
	int n = (int)(fmin(fabs(share), 1) * BAR + .5);

	grid_put(g, column, "%s%.0f%%", share < -.005 ? diff_minus(g->screen) : "",
		 fabs(share) * 100);
	for (int i = 0; i < n; i++)
		strcat(bar, g->screen->utf8 ? "█" : "#");
	if (noise)
		grid_put(g, column + 1, "~");
	else if (g->screen->width >= BAR_FROM && share > 0)
		grid_put(g, column + 1, "%s", bar);
}

static void put_sum(struct grid *g, const char *name, unsigned int column,
		    const struct compare_change *c, double k)
{
	grid_line(g);
	grid_put(g, 0, "%s", name);
	put_change(g, column, c, k);
}

static void print_causes(FILE *f, const struct screen *s, const struct diff *d,
			 const struct compare_result *r)
{
	enum { CAUSE, HOW, A, B, CHANGE, RANGE, SHARE, BARS };
	struct grid g = { .screen = s, .left = { [CAUSE] = true, [HOW] = true, [BARS] = true } };
	const double k = diff_scale(d), all = r->change.change;
	char a[NUMBER], b[NUMBER];
	static const char *const head[] = { "CAUSE", "", "A", "B", "CHANGE", "95 %", "SHARE" };

	grid_line(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(head); i++)
		grid_put(&g, i, "%s", head[i]);
	for (size_t i = 0; i < r->n_findings; i++) {
		const struct compare_term *t = &r->term[i];
		const double unit = t->kind == COMPARE_OFTEN ? k : 1;

		grid_line(&g);
		grid_put(&g, CAUSE, "%s", compare_cause_name(d->compare, t->cause));
		grid_put(&g, HOW, "%s", diff_word(t->kind, t->change.change));
		grid_put(&g, A, "%s", diff_number(s, t->a * unit, a));
		grid_put(&g, B, "%s", diff_number(s, t->b * unit, b));
		put_change(&g, CHANGE, &t->change, k);
		put_share(&g, SHARE, t->change.change / all, false);
	}
	put_sum(&g, "others", CHANGE, &r->other_terms, k);
	put_share(&g, SHARE, r->other_terms.change / all,
		  r->other_terms.low <= 0 && r->other_terms.high >= 0);
	put_sum(&g, "sum", CHANGE, &r->change, k);
	grid_put(&g, A, "%s", diff_number(s, r->side[COMPARE_A].y * k, a));
	grid_put(&g, B, "%s", diff_number(s, r->side[COMPARE_B].y * k, b));
	grid_put(&g, SHARE, "100%%");
	for (unsigned int c = BARS; c >= SHARE && grid_width(&g) > s->width; c--)
		g.width[c] = 0; /* it is not printed */
	grid_fit(&g, CAUSE, fitting(&g, CAUSE));
	fputc('\n', f);
	grid_print(f, &g);
}

const char *diff_name(const struct diff *d, const struct compare_where *w, unsigned int k)
{
	if (!w->name[k])
		return "[unknown]";
	return table_is_none(w->name[k], d->by[k]) ? table_none(d->by[k]) : w->name[k];
}

/* The key whose name differs, where the same was found under another name. */
static unsigned int moved_key(const struct diff *d, const struct compare_result *r, size_t i)
{
	const struct compare_where *w = &r->row[i], *to = &r->row[w->moved];
	unsigned int k = 0;

	while (k + 1 < d->n_by && !strcmp(diff_name(d, w, k), diff_name(d, to, k)))
		k++;
	return k;
}

static bool moved_alike(const struct diff *d, const struct compare_result *r, size_t i, size_t j)
{
	const struct compare_where *w = &r->row[i], *v = &r->row[j];
	unsigned int k;

	if (v->moved < 0 || v->change.change >= 0)
		return false;
	k = moved_key(d, r, i);
	return k == moved_key(d, r, j) && !strcmp(diff_name(d, w, k), diff_name(d, v, k)) &&
	       !strcmp(diff_name(d, &r->row[w->moved], k), diff_name(d, &r->row[v->moved], k));
}

/* One line for all rows of a program, say, that has another name now; with the first of them. */
static void put_moved(FILE *f, const struct screen *s, const struct diff *d,
		      const struct compare_result *r, size_t i)
{
	const unsigned int k = moved_key(d, r, i);
	double change = 0;
	size_t n = 0;
	char v[NUMBER];

	for (size_t j = 0; j < r->n_rows; j++) {
		if (!moved_alike(d, r, i, j))
			continue;
		if (j < i)
			return;
		change += r->row[j].change.change;
		n++;
	}
	diff_put(f, "moved, not counted: %s from %s %s to %s",
		 diff_number(s, change * diff_scale(d), v), label_name(d->by[k]),
		 diff_name(d, &r->row[i], k), diff_name(d, &r->row[r->row[i].moved], k));
	if (n > 1)
		fprintf(f, " (%zu rows)", n);
	fputc('\n', f);
}

static void print_moved(FILE *f, const struct screen *s, const struct diff *d,
			const struct compare_result *r)
{
	const unsigned int last = d->n_by - 1;
	char v[NUMBER];

	for (size_t i = 0; i < r->n_rows; i++) {
		const struct compare_where *w = &r->row[i];

		if (w->change.gone && !r->change.gone)
			diff_put(f, "went away again, not counted: %s %s", diff_name(d, w, last),
				 diff_number(s, w->change.change * diff_scale(d), v));
		if (w->change.gone && !r->change.gone)
			fputc('\n', f);
		if (w->moved >= 0 && w->change.change < 0)
			put_moved(f, s, d, r, i);
	}
}

/* Is a key absent from all findings? */
static bool key_is_known(const struct compare_result *r, unsigned int k)
{
	for (size_t i = 0; i < r->n_row_findings; i++)
		if (r->row[i].name[k] && *r->row[i].name[k])
			return true;
	return false;
}

static void print_where(FILE *f, const struct screen *s, const struct diff *d,
			const struct compare_result *r, size_t top)
{
	struct grid g = { .screen = s };
	struct compare_change rest = r->other_rows;
	unsigned int names = 0, key[COLUMNS], change;
	size_t n = r->n_row_findings < top ? r->n_row_findings : top;
	const double k = diff_scale(d);
	char text[SIGNED];

	for (unsigned int i = 0; i < d->n_by && names < COLUMNS - 4; i++)
		if (i + 1 == d->n_by || key_is_known(r, i))
			key[names++] = i;
	change = names;
	g.left[change + 2] = true;
	grid_line(&g);
	for (unsigned int i = 0; i < names; i++) {
		size_t at = strlen(label_name(d->by[key[i]]));

		g.left[i] = true;
		grid_put(&g, i, "%s", label_name(d->by[key[i]]));
		while (at--)
			g.line[0][i][at] = toupper(g.line[0][i][at]);
	}
	grid_put(&g, change, "CHANGE");
	grid_put(&g, change + 1, "95 %%");
	grid_put(&g, change + 2, "MOST OF IT");
	for (size_t i = 0; i < r->n_row_findings; i++) {
		const struct compare_where *w = &r->row[i];

		if (i >= n) {
			rest.change += w->change.change;
			continue;
		}
		grid_line(&g);
		for (unsigned int c = 0; c < names; c++)
			grid_put(&g, c, "%s", diff_name(d, w, key[c]));
		put_change(&g, change, &w->change, k);
		grid_put(&g, change + 2, "%s %s", compare_cause_name(d->compare, w->cause),
			 diff_word(w->kind, w->change.change));
	}
	if (n < r->n_row_findings) { /* their interval is not worked out */
		grid_line(&g);
		grid_put(&g, 0, "others");
		grid_put(&g, change, "%s", diff_signed(s, rest.change * k, text));
	} else {
		put_sum(&g, "others", change, &rest, k);
		if (rest.low <= 0 && rest.high >= 0)
			grid_put(&g, change + 2, "~");
	}
	for (unsigned int i = names; i--;)
		grid_fit(&g, i, fitting(&g, i));
	fputc('\n', f);
	grid_print(f, &g);
}

static double error_of(const struct compare_change *c)
{
	return (c->high - c->low) / 2 / fabs(c->change);
}

void diff_put_trust(FILE *f, const struct screen *s, const struct compare_result *r)
{
	const double first = r->n_findings ? error_of(&r->term[0].change) : 0;
	double most = first;

	if (!r->n_findings)
		return;
	for (size_t i = 1; i < r->n_findings; i++)
		most = fmax(most, error_of(&r->term[i].change));
	for (size_t i = 0; i < r->n_row_findings; i++)
		most = fmax(most, error_of(&r->row[i].change));
	fprintf(f, "\n95%% intervals of changes: %s%.0f%%", s->utf8 ? "±" : "+-", 100 * first);
	if (most > first)
		fprintf(f, " (first cause) to %s%.0f%%", s->utf8 ? "±" : "+-", 100 * most);
	fputs("; ~ within noise\n", f);
}

void diff_put_notes(FILE *f, const struct screen *s, const struct diff *d,
		    const struct compare_result *r)
{
	if (r->n_findings && !r->n_row_findings && r->n_rows > 1)
		fputs("\nNo row by itself differs by more than noise.\n", f);
	print_moved(f, s, d, r);
	if (!r->change.finding && !r->n_findings && !r->n_row_findings)
		diff_put_power(f, s, r);
}

static void print_text(FILE *f, const struct diff_print *p, const struct diff *d,
		       const struct compare_result *r)
{
	const struct screen *s = p->screen;
	size_t top = p->top;

	if (!top)
		top = !s->height		     ? ROWS_PIPE
		      : s->height > LINES + ROWS_MIN ? s->height - LINES
						     : ROWS_MIN;
	for (unsigned int i = 0; i < COMPARE_SIDES; i++)
		diff_put_side(f, s, &d->about[i], "AB"[i], &r -> side[i],
			      screen_columns(d->about[!i].file));
	fputc('\n', f);
	diff_put_answer(f, s, d, r);
	if (r->n_findings)
		print_causes(f, s, d, r);
	if (r->n_row_findings && d->n_by)
		print_where(f, s, d, r, top);
	diff_put_trust(f, s, r);
	diff_put_notes(f, s, d, r);
}

void diff_print(FILE *f, const struct diff_print *p, const struct diff *d,
		const struct compare_result *r)
{
	char *text;
	size_t size;
	FILE *m;

	if (p->format == FORMAT_JSON) {
		diff_put_json(f, p, d, r);
		return;
	}
	if (p->format == FORMAT_CSV) {
		diff_put_csv(f, d, r);
		return;
	}
	m = xmemopen(&text, &size);
	print_text(m, p, d, r);
	xmemclose(m);
	format_lines(f, p->format, text);
	free(text);
}
