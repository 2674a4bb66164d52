// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "grid.h"

#include "base/std.h"
#include "base/utf8.h"

#include <stdarg.h>

#define LINE_BYTES 4096

#define LOOK(id, color256, color8, sgr, css) { color256, color8, sgr, css },
const struct grid_look grid_looks[GRID_STYLES] = { GRID_STYLE_TABLE(LOOK) };

static struct grid_cell *at(const struct grid *g, int y, int x)
{
	return &g->cell[(size_t)y * g->width + x];
}

static void set(struct grid_cell *c, const char *text, size_t n, unsigned int width,
		enum grid_style style)
{
	memcpy(c->text, text, n);
	c->text[n] = 0;
	c->width = width;
	c->style = style;
}

void grid_open(struct grid *g, int width, int height)
{
	*g = (struct grid){ .width = width > 0 ? width : 1, .height = height > 0 ? height : 1 };
	g->cell = xcalloc((size_t)g->width * g->height, sizeof(*g->cell));
	for (int i = 0; i < g->width * g->height; i++)
		set(&g->cell[i], " ", 1, 1, GRID_PLAIN);
}

void grid_free(struct grid *g)
{
	free(g->cell);
	memset(g, 0, sizeof(*g));
}

/* Blank the other half of an overwritten wide character. */
static void make_room(struct grid *g, int y, int x)
{
	if (x < g->width && !at(g, y, x)->width && x)
		set(at(g, y, x - 1), " ", 1, 1, at(g, y, x - 1)->style);
	if (x + 1 < g->width && at(g, y, x)->width == 2)
		set(at(g, y, x + 1), " ", 1, 1, at(g, y, x + 1)->style);
}

int grid_put(struct grid *g, int y, int x, enum grid_style style, const char *text)
{
	char line[LINE_BYTES];
	size_t n;

	if (y < 0 || y >= g->height || x < 0)
		return x;
	utf8_escape(line, sizeof(line), text);
	for (const char *s = line; *s; s += n) {
		int width = utf8_width(s);

		n = utf8_len(s);
		if (!width) { /* combining: append to the previous cell if there is room */
			struct grid_cell *c = x ? at(g, y, x - 1) : NULL;
			size_t len;

			if (c && !c->width)
				c--;
			len = c ? strlen(c->text) : 0;
			if (c && len + n < GRID_CELL) {
				memcpy(c->text + len, s, n);
				c->text[len + n] = 0;
			}
			continue;
		}
		if (x + width > g->width)
			return g->width;
		make_room(g, y, x);
		if (width == 2) {
			make_room(g, y, x + 1);
			set(at(g, y, x + 1), "", 0, 0, style);
		}
		set(at(g, y, x), s, n, width, style);
		x += width;
	}
	return x;
}

int grid_printf(struct grid *g, int y, int x, enum grid_style style, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	return grid_put(g, y, x, style, line);
}

void grid_style(struct grid *g, int y, int x, int n, enum grid_style style)
{
	for (int i = x < 0 ? 0 : x; y >= 0 && y < g->height && i < x + n && i < g->width; i++)
		at(g, y, i)->style = style;
}

/* Number of cells of a line up to the last visible one. */
static int used(const struct grid *g, int y, bool styles)
{
	int n = g->width;

	while (n && !strcmp(at(g, y, n - 1)->text, " ") &&
	       !(styles && at(g, y, n - 1)->style == GRID_SELECTED))
		n--;
	return n;
}

static int lines(const struct grid *g)
{
	int n = g->height;

	while (n && !used(g, n - 1, false))
		n--;
	return n;
}

static void sgr(FILE *f, const struct grid_look *l)
{
	fprintf(f, "\033[0%s%s", *l->sgr ? ";" : "", l->sgr);
	if (l->color256 >= 0)
		fprintf(f, ";38;5;%d", l->color256);
	fputc('m', f);
}

void grid_print(FILE *f, const struct grid *g, bool color)
{
	for (int y = 0; y < lines(g); y++) {
		int style = GRID_PLAIN;

		for (int x = 0; x < used(g, y, color); x++) {
			const struct grid_cell *c = at(g, y, x);

			if (color && c->style != style)
				sgr(f, &grid_looks[c->style]);
			style = c->style;
			fputs(c->text, f);
		}
		fputs(color && style != GRID_PLAIN ? "\033[0m\n" : "\n", f);
	}
}

void grid_print_html(FILE *f, const struct grid *g, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>", f);
	utf8_put_markup(f, title);
	fputs("</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<style>body{background:#fcfcfb;color:#1a1e23}h1{font:600 13px/18px sans-serif}"
	      "pre{font:13px/18px \"DejaVu Sans Mono\",monospace;overflow-x:auto}",
	      f);
	for (int s = 0; s < GRID_STYLES; s++)
		if (*grid_looks[s].css)
			fprintf(f, ".s%d{%s}", s, grid_looks[s].css);
	fputs("</style>\n<main><h1>", f);
	utf8_put_markup(f, title);
	fputs("</h1>\n<pre tabindex=\"0\">", f);
	for (int y = 0; y < lines(g); y++) {
		int style = GRID_PLAIN;

		for (int x = 0; x < used(g, y, true); x++) {
			const struct grid_cell *c = at(g, y, x);

			if (c->style != style && style)
				fputs("</span>", f);
			if (c->style != style && c->style)
				fprintf(f, "<span class=\"s%d\">", c->style);
			style = c->style;
			utf8_put_markup(f, c->text);
		}
		fputs(style ? "</span>\n" : "\n", f);
	}
	fputs("</pre></main></html>\n", f);
}
