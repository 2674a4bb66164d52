// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The instructions of the function that the selected row is: annotate's text, to scroll in. */
#include "top_private.h"
#include "base/std.h"

#include "annotate/annotate_print.h"

#define BOLD "\033[1m"

void top_annotate(struct top *t, const char *function, struct annotate *a)
{
	t->annotate = a;
	t->function = xstrdup(function);
	t->mode = TOP_FUNCTION;
	t->line = 0;
}

void top_leave_function(struct top *t)
{
	annotate_free(t->annotate);
	t->annotate = NULL;
	free(t->function);
	t->function = NULL;
	t->mode = TOP_TABLE;
}

/* The heading of the instructions stays on the screen. */
void top_paint_function(struct top *t, const struct screen *s, struct grid *g, int y, int lines)
{
	struct screen screen = *s;
	const struct view_opts view = { .of = &annotate_columns };
	const struct annotate_print print = { .screen = &screen, .view = &view };
	char *text, *rest;
	size_t size, n = 0, heading = 0;
	FILE *f = xmemopen(&text, &size);

	screen.width = g->width > SCREEN_MIN_WIDTH ? g->width : SCREEN_MIN_WIDTH;
	screen.color = true; /* tells which lines are bold */
	annotate_print_function(f, &print, t->annotate);
	xmemclose(f);
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		n++;
	t->last_line = n > (size_t)lines ? n - lines : 0;
	t->line = t->line < t->last_line ? t->line : t->last_line;
	t->hits.rows = lines > 1 ? lines - 1 : 1;
	rest = text;
	for (size_t i = 0; i < n; i++) {
		char *line = strsep(&rest, "\n");
		bool bold = !strncmp(line, BOLD, strlen(BOLD));
		size_t at = i > t->line ? i - t->line : 0;

		if (bold) {
			line += strlen(BOLD);
			*strchrnul(line, '\033') = 0;
		}
		if (i && !heading && bold)
			heading = i;
		/* above the screen, or behind the heading that stays */
		if (i < t->line ? !heading || i != heading
				: i == t->line && heading && heading < t->line)
			continue;
		if (at < (size_t)lines)
			grid_put(g, y + at, 0, bold ? GRID_STRONG : GRID_PLAIN, line);
	}
	free(text);
}
