// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as one page: tables and pictures in SVG, without scripts. */
#include "diff_private.h"

#include "base/text.h"
#include "base/utf8.h"
#include "html/html_write.h"

#include <math.h>
#include <string.h>

#define ROWS	   24 /* of where */
#define BAR_WIDTH  160
#define BAR_HEIGHT 12
#define CELL	   8 /* pixels */
#define LEFT	   52
#define BELOW	   18
#define STEPS	   8 /* of colour, each half of the next */
#define DIFF_STEPS 4 /* on each side of no change */

/* Of a page: no terminal limits it. */
static const struct screen page = { .utf8 = true, .width = 200 };

/* @tag: with its attributes */
static void put_lines(FILE *f, const char *tag, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		char *line;

		end = strchrnul(text, '\n');
		if (end == text)
			continue;
		line = xstrndup(text, end - text);
		fprintf(f, "<%s>", tag);
		utf8_put_markup(f, line);
		fprintf(f, "</%.*s>\n", (int)strcspn(tag, " "), tag);
		free(line);
	}
}

static void put_answer(FILE *f, const struct diff *d, const struct compare_result *r)
{
	char *text, *rest;
	size_t bytes;
	FILE *m = xmemopen(&text, &bytes);

	diff_put_answer(m, &page, d, r);
	xmemclose(m);
	rest = strchrnul(text, '\n');
	if (*rest)
		*rest++ = 0;
	fputs("<header><div class=\"top\"><h1>", f);
	utf8_put_markup(f, text);
	fputs("</h1></div>\n<ul>\n", f);
	put_lines(f, "li", rest);
	fputs("</ul>\n", f);
	free(text);
}

static void put_sides(FILE *f, const struct diff *d, const struct compare_result *r)
{
	char *text;
	size_t bytes;
	FILE *m = xmemopen(&text, &bytes);

	for (unsigned int i = 0; i < COMPARE_SIDES; i++)
		diff_put_side(m, &page, &d->about[i], "AB"[i], &r -> side[i], 0);
	xmemclose(m);
	put_lines(f, "p class=\"facts\"", text);
	fputs("</header>\n<main>\n", f);
	free(text);
}

/* Scrolls by itself, also with keys, where it is wider than the page. */
#define WIDE(name) "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" name "\">"

/* A change and its interval, around zero. @most: at the edge */
static void put_interval(FILE *f, const struct compare_change *c, double most)
{
	const double k = most > 0 ? (BAR_WIDTH / 2. - 2) / most : 0, zero = BAR_WIDTH / 2.;

	fprintf(f,
		"<td class=\"left\"><svg width=\"%d\" height=\"%d\" aria-hidden=\"true\">"
		"<path class=\"axis\" d=\"M%.1f 0V%d\"/>"
		"<rect class=\"%s\" x=\"%.1f\" y=\"4\" width=\"%.1f\" height=\"4\"/>"
		"<circle class=\"dot\" cx=\"%.1f\" cy=\"6\" r=\"3\"/></svg></td>",
		BAR_WIDTH, BAR_HEIGHT, zero, BAR_HEIGHT,
		!c->finding	? "a3"
		: c->change > 0 ? "up3"
				: "down3",
		zero + c->low * k, fmax((c->high - c->low) * k, 1), zero + c->change * k);
}

static void put_change(FILE *f, const struct compare_change *c, double k, double most)
{
	char v[DIFF_SIGNED], low[DIFF_SIGNED], high[DIFF_SIGNED];

	fprintf(f, "<td>%s</td><td>%s … %s</td>", diff_signed(&page, c->change * k, v),
		diff_signed(&page, c->low * k, low), diff_signed(&page, c->high * k, high));
	put_interval(f, c, most);
}

static double farthest(const struct compare_change *c, double most)
{
	return fmax(most, fmax(fabs(c->low), fabs(c->high)));
}

static void put_term(FILE *f, const struct diff *d, const struct compare_term *t, double of,
		     double most)
{
	const double k = diff_scale(d), unit = t->kind == COMPARE_OFTEN ? k : 1;
	char a[DIFF_NUMBER], b[DIFF_NUMBER];

	fprintf(f, "<tr%s><td>", t->change.finding ? "" : " class=\"dim\"");
	utf8_put_markup(f, compare_cause_name(d->compare, t->cause));
	fprintf(f, "</td><td class=\"left\">%s</td><td>%s</td><td>%s</td>",
		diff_word(t->kind, t->change.change), diff_number(&page, t->a * unit, a),
		diff_number(&page, t->b * unit, b));
	put_change(f, &t->change, k, most);
	if (t->change.finding && of)
		fprintf(f, "<td>%.0f%%</td></tr>\n", t->change.change / of * 100);
	else
		fputs("<td>~</td></tr>\n", f);
}

static void put_causes(FILE *f, const struct diff *d, const struct compare_result *r)
{
	double most = farthest(&r->change, 0);
	char text[64], a[DIFF_NUMBER], b[DIFF_NUMBER];
	const double k = diff_scale(d);

	for (size_t i = 0; i < r->n_terms; i++)
		most = farthest(&r->term[i].change, most);
	diff_what(d, text, sizeof(text));
	fprintf(f,
		"<section><div class=\"head\"><h2>Causes</h2><p>They add up to the difference, in "
		"%s. %zu changes were tested at once; grey rows are not findings.</p></div>\n" WIDE(
			"Causes") "<table><thead><tr>"
				  "<th>cause</th><th "
				  "class=\"left\">how</th><th>A</th><th>B</th><th>change</th>"
				  "<th>95 %%</th><th class=\"left\">around "
				  "0</th><th>share</th></tr></thead><tbody>\n",
		text, r->tests);
	for (size_t i = 0; i < r->n_terms; i++)
		if (r->term[i].change.change)
			put_term(f, d, &r->term[i], r->change.change, most);
	fprintf(f, "<tr class=\"total\"><td>sum</td><td></td><td>%s</td><td>%s</td>",
		diff_number(&page, r->side[COMPARE_A].y * k, a),
		diff_number(&page, r->side[COMPARE_B].y * k, b));
	put_change(f, &r->change, k, most);
	fputs("<td>100%</td></tr>\n</tbody></table></div></section>\n", f);
}

static void put_where(FILE *f, const struct diff *d, const struct compare_result *r)
{
	const size_t n = r->n_rows < ROWS ? r->n_rows : ROWS;
	double most = 0;

	if (!d->n_by || n < 2)
		return;
	for (size_t i = 0; i < n; i++)
		most = farthest(&r->row[i].change, most);
	fputs("<section><div class=\"head\"><h2>Where</h2>", f);
	fprintf(f,
		"<p>%zu of %zu rows. Grey rows are not findings, went away again, or only "
		"moved.</p>"
		"</div>\n" WIDE("Where") "<table><thead><tr>",
		n, r->n_rows);
	for (unsigned int k = 0; k < d->n_by; k++)
		fprintf(f, "<th class=\"left\">%s</th>", label_name(d->by[k]));
	fputs("<th>change</th><th>95 %</th><th class=\"left\">around 0</th><th class=\"left\">"
	      "most of it</th></tr></thead><tbody>\n",
	      f);
	for (size_t i = 0; i < n; i++) {
		const struct compare_where *w = &r->row[i];

		fprintf(f, "<tr%s>", w->change.finding ? "" : " class=\"dim\"");
		for (unsigned int k = 0; k < d->n_by; k++) {
			fputs("<td class=\"left\">", f);
			utf8_put_markup(f, diff_name(d, w, k));
			fputs("</td>", f);
		}
		put_change(f, &w->change, diff_scale(d), most);
		fputs("<td class=\"left\">", f);
		utf8_put_markup(f, compare_cause_name(d->compare, w->cause));
		fprintf(f, " %s</td></tr>\n", diff_word(w->kind, w->change.change));
	}
	fputs("</tbody></table></div></section>\n", f);
}

/* --- latencies over time */

static void put_axes(FILE *f, double seconds)
{
	const int bottom = DIFF_HEAT_ROWS * CELL;

	for (unsigned int row = 2; row < DIFF_HEAT_ROWS; row += 4)
		fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%u</text>", LEFT - 4,
			bottom - (int)row * CELL + 4, diff_heat_edge(row));
	fprintf(f, "<text x=\"%d\" y=\"%d\">0</text>", LEFT, bottom + BELOW - 4);
	if (seconds > 0)
		fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g s</text>",
			LEFT + DIFF_HEAT_COLUMNS * CELL, bottom + BELOW - 4, seconds);
}

static void begin_map(FILE *f, const char *title)
{
	fprintf(f,
		"<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" "
		"aria-label=\"%s: latency in cycles over time\"><rect class=\"plot\" x=\"%d\" "
		"width=\"%d\" height=\"%d\"/>\n",
		title, LEFT + DIFF_HEAT_COLUMNS * CELL, DIFF_HEAT_ROWS * CELL + BELOW, title, LEFT,
		DIFF_HEAT_COLUMNS * CELL, DIFF_HEAT_ROWS * CELL);
}

static void put_cell(FILE *f, const char *class, int step, unsigned int column, unsigned int row,
		     double v)
{
	fprintf(f,
		"<rect class=\"%s%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>up to %u "
		"cycles: %.3g</title></rect>\n",
		class, step, LEFT + (int)column * CELL, (int)(DIFF_HEAT_ROWS - 1 - row) * CELL,
		CELL, CELL, diff_heat_edge(row), v);
}

static void put_map(FILE *f, const char *title, const struct diff_parts *p, double most, double k,
		    double seconds)
{
	begin_map(f, title);
	for (unsigned int c = 0; c < DIFF_HEAT_COLUMNS; c++)
		for (unsigned int r = 0; r < DIFF_HEAT_ROWS; r++) {
			const double v = p->y[c][r];
			const int step = v > 0 ? STEPS + (int)ceil(log2(v / most)) : 0;

			if (v > 0)
				put_cell(f, "a", step > 1 ? step : 1, c, r, v * k);
		}
	put_axes(f, seconds);
	fputs("</svg></figure>\n", f);
}

/* Where only one side has samples, there is nothing to compare. */
static void put_difference(FILE *f, const struct diff_parts p[COMPARE_SIDES], double k)
{
	double most = 0;

	for (unsigned int c = 0; c < DIFF_HEAT_COLUMNS; c++)
		for (unsigned int r = 0; r < DIFF_HEAT_ROWS && p[0].known[c] && p[1].known[c]; r++)
			most = fmax(most, fabs(p[1].y[c][r] - p[0].y[c][r]));
	begin_map(f, "B − A");
	for (unsigned int c = 0; c < DIFF_HEAT_COLUMNS; c++)
		for (unsigned int r = 0; r < DIFF_HEAT_ROWS && p[0].known[c] && p[1].known[c];
		     r++) {
			const double v = p[1].y[c][r] - p[0].y[c][r];
			const int step = most > 0 ? lround(fabs(v) / most * DIFF_STEPS) : 0;

			if (step)
				put_cell(f, v > 0 ? "up" : "down", step, c, r, v * k);
		}
	put_axes(f, 0);
	fputs("</svg></figure>\n", f);
}

static void put_heat(FILE *f, const struct diff *d, const struct compare_result *r)
{
	struct diff_parts *p = xcalloc(COMPARE_SIDES, sizeof(*p));
	const double k = diff_scale(d);
	double most = 0;

	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		diff_heat_parts(d, s, r->side[s].seconds, &p[s]);
		for (unsigned int c = 0; c < DIFF_HEAT_COLUMNS; c++)
			for (unsigned int row = 0; row < DIFF_HEAT_ROWS; row++)
				most = fmax(most, p[s].y[c][row]);
	}
	if (most > 0) {
		fputs("<section><div class=\"head\"><h2>Latency over time</h2><p>Miss cycles by "
		      "latency "
		      "in cycles; A and B on one scale, each step of colour doubles. The "
		      "difference is "
		      "that of the same part of both.</p></div>\n<div class=\"maps\">\n",
		      f);
		put_map(f, "A", &p[COMPARE_A], most, k, r->side[COMPARE_A].seconds);
		put_map(f, "B", &p[COMPARE_B], most, k, r->side[COMPARE_B].seconds);
		put_difference(f, p, k);
		fputs("</div></section>\n", f);
	}
	free(p);
}

static void put_notes(FILE *f, const struct diff *d, const struct compare_result *r)
{
	char *text;
	size_t bytes;
	FILE *m = xmemopen(&text, &bytes);

	diff_put_trust(m, &page, r);
	diff_put_notes(m, &page, d, r);
	xmemclose(m);
	fputs("</main>\n<footer>\n", f);
	put_lines(f, "p", text);
	fputs("<p>ibscope " IBSCOPE_VERSION "</p></footer>\n</html>\n", f);
	free(text);
}

void diff_put_html(FILE *f, const struct diff *d, const struct compare_result *r)
{
	char *flame;
	size_t bytes;
	FILE *m;

	html_write_head(f, "ibscope diff",
			d->about[COMPARE_A].simulated || d->about[COMPARE_B].simulated
				? "SIMULATED samples, not measurements."
				: "");
	put_answer(f, d, r);
	put_sides(f, d, r);
	put_causes(f, d, r);
	put_where(f, d, r);
	put_heat(f, d, r);
	m = xmemopen(&flame, &bytes);
	if (diff_put_flame(m, d, r, diff_scale(d))) {
		fflush(m);
		fputs("<section><div class=\"head\"><h2>Callers</h2><p>A frame is as wide as the "
		      "side "
		      "with more of it; its colour is the change.</p></div>\n",
		      f);
		fwrite(flame, 1, bytes, f);
		fputs("</section>\n", f);
	}
	xmemclose(m);
	free(flame);
	put_notes(f, d, r);
}

void diff_reset(struct diff *d)
{
	compare_free(d->compare);
	d->compare = NULL;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		free(d->heat[s]);
		folded_free(d->folded[s]);
		d->heat[s] = NULL;
		d->folded[s] = NULL;
	}
}
