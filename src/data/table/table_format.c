// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Output formats of tables. */
#include "table.h"

#include "base/array.h"
#include "base/err.h"

#include <errno.h>
#include <limits.h>

typedef void table_printer(FILE *f, const struct table_text *x);

static const struct {
	const char *name;
	table_printer *print; /* NULL: table_print(), or a format for programs */
} formats[FORMAT_N] = {
#define FORMAT_INFO(id, name, print, help) [FORMAT_##id] = { name, print },
	FORMAT_TABLE(FORMAT_INFO)
#undef FORMAT_INFO
};

const char *format_name(enum table_format format)
{
	return formats[format].name;
}

bool format_is_text(enum table_format format)
{
	return !format || formats[format].print;
}

int format_set(enum table_format *format, enum table_format which, struct err *err)
{
	if (*format && *format != which)
		return err_set(err, -EINVAL, "--%s and --%s exclude each other: give one",
			       format_name(*format), format_name(which));
	*format = which;
	return 0;
}

void format_lines(FILE *f, enum table_format format, const char *text)
{
	(void)format;
	fputs(text, f);
}

void format_table(FILE *f, enum table_format format, const struct screen *screen,
		  const struct table *t, const enum table_column *columns, size_t n)
{
	struct screen wide = *screen;
	struct table_text text;

	if (!formats[format].print) {
		table_print(f, screen, t, columns, n);
		return;
	}
	wide.width = UINT_MAX;
	wide.color = false;
	table_text_build(&wide, t, columns, n, &text);
	formats[format].print(f, &text);
	table_text_free(&text);
}
