/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A screen as cells of characters and styles, which can be written to a terminal, file or HTML. */
#ifndef IBSCOPE_GRID_H
#define IBSCOPE_GRID_H

#include "base/screen.h"

/* X(ID, foreground of 256 or -1, foreground of 8 or -1, "SGR attributes", "css") */
#define GRID_STYLE_TABLE(X)                                      \
	X(PLAIN, -1, -1, "", "")                                 \
	X(STRONG, -1, -1, "1", "font-weight:600")                \
	X(DIM, 245, -1, "2", "color:#616973")                    \
	X(SELECTED, -1, -1, "7", "background:#e8edf3")           \
	X(WARN, 208, 3, "1", "color:#8a3d00;background:#fdf0dc") \
	X(CACHE, 68, 4, "", "color:#336eaf")                     \
	X(DRAM, 172, 3, "", "color:#a25e0b")                     \
	X(REMOTE, 209, 1, "", "color:#af3312")                   \
	X(AMOUNT, 37, 6, "", "color:#007ba6")                    \
	X(MORE, 130, 1, "", "color:#833b02")                     \
	X(LESS, 25, 4, "", "color:#02468b")

enum grid_style {
#define GRID_STYLE_ENUM(id, ...) GRID_##id,
	GRID_STYLE_TABLE(GRID_STYLE_ENUM)
#undef GRID_STYLE_ENUM
		GRID_STYLES
};

struct grid_look {
	int color256, color8;
	const char *sgr, *css;
};
extern const struct grid_look grid_looks[GRID_STYLES];

#define GRID_CELL 14 /* bytes of a character including combining ones */

struct grid_cell {
	char text[GRID_CELL]; /* "": the right half of a wide character */
	unsigned char style, width;
};

struct grid {
	int width, height;
	struct grid_cell *cell;
};

/* Blank cells, which the caller frees. */
void grid_open(struct grid *g, int width, int height);
void grid_free(struct grid *g);

/**
 * grid_put() - write text into a line, clipped to the grid
 * @text: any text: terminal controls are escaped
 *
 * Return: the column after it.
 */
int grid_put(struct grid *g, int y, int x, enum grid_style style, const char *text);
int grid_printf(struct grid *g, int y, int x, enum grid_style style, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* Set the style of @n cells from @x on. */
void grid_style(struct grid *g, int y, int x, int n, enum grid_style style);

/* Print as text, without trailing blanks and trailing empty lines. */
void grid_print(FILE *f, const struct grid *g, bool color);

/* Print as a self-contained page without scripts. */
void grid_print_html(FILE *f, const struct grid *g, const char *title);

#endif
