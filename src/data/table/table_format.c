// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Output formats, and tables as Markdown. */
#include "table.h"

#include "base/array.h"

#include <limits.h>
#include <string.h>

#define FENCE_MIN 3

typedef void table_printer(FILE *f, const struct table_text *x);

static table_printer print_markdown;

/* NULL: table_print(), or a format for programs */
static table_printer *const printers[FORMAT_N] = {
#define FORMAT_PRINTER(id, name, print, ...) [FORMAT_##id] = print,
	FORMAT_TABLE(FORMAT_PRINTER)
#undef FORMAT_PRINTER
};

static size_t longest_run(const char *text, char of)
{
	size_t most = 0, n = 0;

	for (; *text; text++) {
		n = *text == of ? n + 1 : 0;
		most = n > most ? n : most;
	}
	return most;
}

static void put_times(FILE *f, char c, size_t n)
{
	while (n--)
		fputc(c, f);
}

void format_lines(FILE *f, enum table_format format, const char *text)
{
	size_t fence = longest_run(text, '`') + 1, n;

	if (!printers[format]) {
		fputs(text, f);
		return;
	}
	while (*text == '\n')
		text++;
	for (n = strlen(text); n && text[n - 1] == '\n';)
		n--;
	fence = fence < FENCE_MIN ? FENCE_MIN : fence;
	put_times(f, '`', n ? fence : 0);
	if (n)
		fprintf(f, "\n%.*s\n", (int)n, text);
	put_times(f, '`', n ? fence : 0);
	fputs(n ? "\n" : "", f);
}

void format_table(FILE *f, enum table_format format, const struct screen *screen,
		  const struct table *t, const enum table_column *columns, size_t n)
{
	struct screen wide = *screen;
	struct table_text text;

	if (!printers[format]) {
		table_print(f, screen, t, columns, n);
		return;
	}
	wide.width = UINT_MAX;
	wide.color = false;
	table_text_build(&wide, t, columns, n, &text);
	printers[format](f, &text);
	table_text_free(&text);
}

/* Names that others chose: as code, they are no links, mentions or HTML. A bar always ends a cell. */
static void put_code(FILE *f, const char *text)
{
	size_t ticks = longest_run(text, '`') + 1;

	if (!text[strspn(text, " ")])
		return;
	put_times(f, '`', ticks);
	fputs(ticks > 1 ? " " : "", f);
	for (; *text; text++)
		fprintf(f, *text == '|' ? "\\%c" : "%c", *text);
	fputs(ticks > 1 ? " " : "", f);
	put_times(f, '`', ticks);
}

static void put_plain(FILE *f, const char *text)
{
	for (; *text; text++)
		fprintf(f, strchr("\\`*_[]<>|&~", *text) ? "\\%c" : "%c", *text);
}

static void print_markdown(FILE *f, const struct table_text *x)
{
	const size_t all = x->n_names + x->n_columns;

	fputc('\n', f);
	for (size_t line = 0; line < x->lines; line++) {
		bool of_row = line && line <= x->t->n;

		for (size_t c = 0; c < all; c++) {
			const char *text = table_text_cell(x, line, c);
			bool code = c < x->n_names ? of_row : line && table_text_left(x, c);

			fputs(c ? " " : "| ", f);
			(code ? put_code : put_plain)(f, text);
			fputs(" |", f);
		}
		fputc('\n', f);
		for (size_t c = 0; c < all && !line; c++)
			fprintf(f, "%s%s|%s", c ? "" : "|",
				table_text_left(x, c) ? ":---" : "---:", c + 1 == all ? "\n" : "");
	}
	fputc('\n', f);
}
