// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "columns.h"

#include "base/choice.h"

#include <math.h>

enum column_unit { COUNT, PERCENT, CYCLES, MEAN, RATIO, TIME, BARS };

#define LOOK(id, name, heading, rank, unit, ...) { heading, rank, unit },
#define OTHER_LOOK(id, heading, rank, unit)	 { heading, rank, unit },
#define COLUMN(id, name, heading, rank, unit, digits, flags, value, help) \
	{ TABLE_##id, name, digits, flags, help },

static const struct {
	const char *heading;
	unsigned char rank;
	enum column_unit unit;
} looks[TABLE_COLUMNS] = { TABLE_COLUMN_TABLE(LOOK) TABLE_OTHER_TABLE(OTHER_LOOK) };

static const struct column counted[] = { TABLE_COLUMN_TABLE(COLUMN) };
const struct columns hist_columns = { counted, TABLE_TREND },
		     top_columns = { counted, TABLE_TREND + 1 };

const struct column *column_find(const struct columns *of, enum table_column id)
{
	for (unsigned int i = 0; i < of->n; i++)
		if (of->column[i].id == id)
			return &of->column[i];
	return NULL;
}

enum table_column table_currency(double exposed)
{
	return exposed > 0 ? TABLE_EXPOSED : TABLE_CYCLES;
}

const char *column_heading(enum table_column id)
{
	return looks[id].heading;
}

unsigned int column_rank(enum table_column id)
{
	return looks[id].rank;
}

void columns_help(FILE *f, const struct columns *of)
{
	fputs("\nColumns:\n", f);
	for (unsigned int i = 0; i < of->n; i++)
		fprintf(f, "  %-13s %s\n", of->column[i].name, of->column[i].help);
}

void column_text(const struct screen *s, enum table_column id, double v, char unit, char *out,
		 size_t size)
{
	switch (looks[id].unit) {
	case PERCENT:
		screen_percent(s, v, out, size);
		break;
	case CYCLES:
		screen_scaled(s, v, unit, out, size);
		break;
	case MEAN:
		screen_mean(s, v, out, size);
		break;
	case RATIO:
		screen_ratio(s, v, out, size);
		break;
	case TIME:
		*out = 0;
		if (!isnan(v))
			snprintf(out, size, "%.3f", v);
		break;
	default:
		screen_count(s, v, out, size);
	}
}

/* "" if it is unknown. */
static const char *digits(const struct column *c, double v, char *buf, size_t size)
{
	if (isnan(v))
		return "";
	snprintf(buf, size, c->digits < 0 ? "%.*g" : "%.*f", c->digits < 0 ? 9 : c->digits, v);
	return buf;
}

void column_csv(FILE *f, const struct column *c, double v)
{
	char buf[64];

	fprintf(f, ",%s", digits(c, v, buf, sizeof(buf)));
}

void column_json(struct json_writer *w, const struct columns *of, const struct column *c, double v)
{
	char buf[64];

	if (of->exact || isnan(v))
		json_put_number(w, c->name, v);
	else
		json_put_raw(w, c->name, digits(c, v, buf, sizeof(buf)));
}

/* --- options --- */

static const struct {
	const char *name;
	bool text;
} formats[FORMAT_N] = {
#define FORMAT_INFO(id, name, print, text, help) [FORMAT_##id] = { name, text },
	[FORMAT_TEXT] = { "text", true }, FORMAT_TABLE(FORMAT_INFO)
#undef FORMAT_INFO
};

const char *format_name(enum table_format format)
{
	return formats[format].name;
}

bool format_is_text(enum table_format format)
{
	return formats[format].text;
}

int format_set(enum table_format *format, enum table_format which, struct err *err)
{
	if (*format && *format != which)
		return err_set(err, -EINVAL, "--%s and --%s exclude each other: give one",
			       format_name(*format), format_name(which));
	*format = which;
	return 0;
}

/* Names of columns; those of --sort have an order. */
static struct choices choices_of(const struct view_opts *v, const char *option, const char **names)
{
	const bool sort = !strcmp(option, "--sort");
	unsigned int n = 0;

	for (unsigned int i = 0; i < v->of->n; i++)
		if (!sort || looks[v->of->column[i].id].unit != BARS)
			names[n++] = v->of->column[i].name;
	if (sort && v->by_name)
		names[n++] = "name";
	return (struct choices){ .option = option, .what = "column", .names = names, .n = n };
}

static int set_sort(void *ctx, const char *arg, struct err *err)
{
	struct view_opts *v = ctx;
	const char *names[TABLE_COLUMNS + 1];
	const struct choices c = choices_of(v, "--sort", names);
	unsigned int i;
	int ret = choice_parse(&c, arg, &i, err);

	if (ret)
		return ret;
	v->sort = TABLE_COLUMNS;
	for (unsigned int k = 0; k < v->of->n; k++)
		if (!strcmp(v->of->column[k].name, names[i]))
			v->sort = v->of->column[k].id;
	v->has_sort = true;
	return 0;
}

static int set_columns(void *ctx, const char *arg, struct err *err)
{
	struct view_opts *v = ctx;
	const char *names[TABLE_COLUMNS + 1];
	const struct choices c = choices_of(v, "--columns", names);
	unsigned int list[TABLE_COLUMNS];
	int ret = choice_list_parse(&c, arg, list, &v->n_columns, err);

	for (unsigned int i = 0; !ret && i < v->n_columns; i++)
		v->columns[i] = v->of->column[list[i]].id;
	return ret;
}

static int set_format(void *ctx, unsigned int which, const char *arg, struct err *err)
{
	(void)arg;
	return format_set(&((struct view_opts *)ctx)->format, which, err);
}

#define FORMAT_OPTION(id, name, print, fences, help) \
	{ name, 0, NULL, help, OPTION_WHICH(set_format, FORMAT_##id) },

/* clang-format off: a row is a row */
static const struct option_row rows_of_views[] = {
	{ "top", 0, "N",
	  "print N rows and the sum of the others; by default as many as fit the terminal, 20 in a "
	  "pipe, all with --csv and --json",
	  OPTION_NUMBER(struct view_opts, top, 1, 1 << 30), .what = "rows" },
	{ "sort", 0, "COLUMN",
	  "sort by this column, largest first, in top also by name; default exposed cycles "
	  "where they are known, else miss cycles",
	  set_sort },
	{ "columns", 0, "COLUMN,..",
	  "print these columns, in this order; by default as many as fit", set_columns },
	FORMAT_TABLE(FORMAT_OPTION)
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(rows_of_views) == VIEW_OPTIONS_MAX, "room for all");

struct option_set view_options(struct option_row rows[VIEW_OPTIONS_MAX], const char *names,
			       const struct columns *of, struct view_opts *ctx)
{
	struct option_set set = { .rows = rows, .ctx = ctx };

	ctx->of = of;
	for (size_t i = 0; i < ARRAY_SIZE(rows_of_views); i++) {
		const char *name = rows_of_views[i].name, *at = strstr(names, name);
		const char end = at ? at[strlen(name)] : 0;

		if (at && (!end || end == ' '))
			rows[set.n++] = rows_of_views[i];
	}
	return set;
}
