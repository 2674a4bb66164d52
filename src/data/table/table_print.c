// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"
#include "base/std.h"
#include "base/text.h"

#include "base/utf8.h"

#include <math.h>

#define GAP	   TABLE_GAP
#define NAME_MIN   8
#define NAME_SHARE 4 /* drop numbers before names are cut to less than 1/4 of the width */
#define CELL	   (3 * TABLE_TREND_MAX + 4)
#define NARROW	   100
#define LEADING	   3 /* rows */

static void histogram(const struct screen *s, const struct series *series, char *out)
{
	double bin[TABLE_BINS];

	table_bins(series, bin);
	table_spark(s, bin, TABLE_BINS, false, out, CELL);
}

/* The marker of table_row.change, printed after the trend. */
static const char *table_change(const struct screen *s, int change)
{
	return s->utf8 ? change > 0 ? "▲" : "▼" : change > 0 ? "+" : "-";
}

static void trend(const struct table_text *g, const struct table_row *r, char *out)
{
	double v[TABLE_TREND_MAX];
	unsigned int n = r->trend ? g->t->n_trend : 0;

	for (unsigned int i = 0; i < n; i++)
		v[i] = r->trend[i];
	table_spark(g->screen, v, n, true, out, CELL);
	if (r->change)
		strcat(out, table_change(g->screen, r->change));
}

static bool is_fetch(const struct table *t)
{
	return ibs_metric_of_fetch(t->metric);
}

/* The rate, or the sum if the time is unknown. */
static double per_second(const struct table *t, double cycles)
{
	return t->seconds > 0 ? cycles / t->seconds : t->key ? cycles : (double)NAN;
}

/*
 * @exact: known whatever the samples say, such as a share of 100 %
 *
 * Return: where the number goes, behind "~" if it is an estimate from few samples.
 */
static char *mark_rough(const struct table_row *r, bool exact, char *out)
{
	if (!exact && table_is_weak(r->all.valid))
		*out++ = '~';
	return out;
}

/* Of the event that the table is not of. */
static bool is_foreign(const struct table *t, enum table_column c)
{
	const struct column *column = column_find(&hist_columns, c);

	return column && column->flags & (is_fetch(t) ? COLUMN_OF_OP : COLUMN_OF_FETCH);
}

static void number(const struct table_text *g, const struct table_row *r, enum table_column c,
		   char *out)
{
	double v = !r->value && is_foreign(g->t, c) ? (double)NAN : table_value(g->t, r, c);
	char *start = out;

	if (c == TABLE_HISTOGRAM) {
		histogram(g->screen, &r->all, out);
		return;
	}
	if (c == TABLE_TREND) {
		trend(g, r, out);
		return;
	}
	if (c == TABLE_CYCLES)
		out = mark_rough(r, !(v > 0), out);
	else if (c == TABLE_SHARE)
		out = mark_rough(r, !(v > 0 && v < 1), out);
	if (c == TABLE_CYCLES || c == TABLE_EXPOSED || c == TABLE_PRICE || c == TABLE_LOW ||
	    c == TABLE_HIGH)
		v = per_second(g->t, v);
	column_text(g->screen, c, v, g->unit, out, CELL - 1);
	if (*out == '<' && out > start) /* says as much as "~" */
		memmove(start, out, strlen(out) + 1);
}

static const char *heading(const struct table_text *g, enum table_column c)
{
	if (c == TABLE_HISTOGRAM)
		return g->screen->utf8 ? "16 ··· 256 ·· 4096" : "16 ... 256 .. 4096";
	if (c == TABLE_CYCLES && g->t->n_trend && g->screen->width < NARROW)
		return "MISS CYC/s";
	if (c == TABLE_CYCLES && g->t->key)
		return g->t->metric == IBS_METRIC_DC_MISS_LAT ? "MISS CYCLES" : "CYCLES";
	if (c == TABLE_CYCLES && g->t->metric != IBS_METRIC_DC_MISS_LAT)
		return "CYCLES/s";
	if (c == TABLE_OPS && is_fetch(g->t))
		return "EST. FETCHES";
	if (c == TABLE_PRICE && g->t->key)
		return "REMOTE PRICE";
	if (c == TABLE_EXPOSED && g->t->key)
		return "EXPOSED";
	if (c == TABLE_LOW && g->t->key)
		return "LOW";
	if (c == TABLE_HIGH && g->t->key)
		return "HIGH";
	if (c == TABLE_OPS && g->t->ops)
		return g->t->ops;
	return column_heading(c);
}

static int n_names_max(const struct table *t)
{
	return t->key ? (int)t->n_keys : TABLE_NAMES;
}

static int name_at(const struct table *t, int i)
{
	return t->key ? i : (int)label_at(&t->order, i);
}

static bool is_name_column(const struct table *t, int l)
{
	return t->key || (t->joined ? !l : t->labels >> l & 1);
}

static void name_heading(const struct table *t, int l, char *out)
{
	size_t i = 0;
	const char *text = t->key ? t->key[l] : t->joined ? "container" : label_name(l);

	text = strcmp(text, "src") ? text : "source";

	for (; text[i] && i + 1 < CELL; i++)
		out[i] = text[i] - (text[i] >= 'a' && text[i] <= 'z' ? 'a' - 'A' : 0);
	out[i] = 0;
}

static char **cell(struct table_text *g, size_t line, size_t column)
{
	return &g->cell[line * (g->n_names + g->n_columns) + column];
}

static void put(struct table_text *g, size_t line, size_t column, const char *text)
{
	size_t n = screen_columns(text);
	char **c = cell(g, line, column);

	free(*c);
	*c = xstrdup(text);
	if (n > g->width[column])
		g->width[column] = n;
}

static const struct table_row *row_of(const struct table *t, size_t line)
{
	if (line <= t->n)
		return &t->row[line - 1];
	return line == t->n + 1 && t->n_rest ? &t->rest : &t->total;
}

static void fill_line(struct table_text *g, size_t line)
{
	const struct table_row *r = line ? row_of(g->t, line) : NULL;
	size_t column = 0;
	char text[CELL];

	for (int i = 0; i < n_names_max(g->t); i++) {
		int l = name_at(g->t, i);

		if (!is_name_column(g->t, l))
			continue;
		if (!line)
			name_heading(g->t, l, text);
		else if (r == &g->t->rest && !column)
			snprintf(text, sizeof(text), "other (%s)", TEXT_COUNT(g->t->n_rest));
		else
			strcpy(text, r == &g->t->total && !column ? "total" : "");
		put(g, line, column, line && r->name[l] ? r->name[l] : text);
		column++;
	}
	for (size_t i = 0; i < g->n_columns; i++) {
		if (!line)
			strcpy(text, heading(g, g->column[i]));
		else
			number(g, r, g->column[i], text);
		put(g, line, column++, text);
	}
}

static size_t total_width(const struct table_text *g)
{
	size_t sum = 0;

	for (size_t c = 0; c < g->n_names + g->n_columns; c++)
		sum += g->width[c] + (c ? GAP : 0);
	return sum;
}

/* Names are not cut further where there is another way: headings stay whole. */
static size_t least_width(const struct table_text *g, size_t c)
{
	const size_t heading = screen_columns(table_text_cell(g, 0, c));

	return heading > NAME_MIN ? heading : NAME_MIN;
}

/* Width of names that have at most @wanted columns each, or as few as possible. */
static size_t names_width(const struct table_text *g, size_t wanted)
{
	size_t sum = 0;

	for (size_t c = 0; c < g->n_names; c++) {
		const size_t least = least_width(g, c), most = wanted > least ? wanted : least;

		sum += (g->width[c] < most ? g->width[c] : most) + GAP;
	}
	return sum;
}

static void drop(struct table_text *g, size_t i)
{
	size_t all = g->n_names + g->n_columns, at = g->n_names + i, k = 0;

	for (size_t line = 0; line < g->lines; line++) {
		for (size_t c = 0; c < all; c++) {
			if (c == at)
				free(g->cell[line * all + c]);
			else
				g->cell[k++] = g->cell[line * all + c];
		}
	}
	memmove(&g->width[at], &g->width[at + 1], (all - at - 1) * sizeof(g->width[0]));
	memmove(&g->column[i], &g->column[i + 1], (g->n_columns - i - 1) * sizeof(g->column[0]));
	g->n_columns--;
}

/* True if it is zero for all rows, or unknown for the leading ones, as percentiles of few samples are. */
static bool is_empty(struct table_text *g, size_t i)
{
	size_t known = 0, nonzero = 0;

	for (size_t line = 1; line <= g->t->n; line++) {
		const char *text = *cell(g, line, g->n_names + i);
		const bool unknown = !strcmp(text, g->screen->utf8 ? "–" : "-");

		known += !unknown && line <= LEADING;
		nonzero += !unknown && strcmp(text, "0%") && strcmp(text, "0");
	}
	return !known || !nonzero;
}

/* True if column @a is to be dropped before @b. */
/* Nobody understands the order of rows without the estimate that they are ranked by. */
static unsigned int rank_of(const struct table_text *g, enum table_column c)
{
	return c == TABLE_EXPOSED && g->t->sort == c ? column_rank(TABLE_CYCLES) : column_rank(c);
}

static bool less_useful(struct table_text *g, size_t a, size_t b)
{
	bool empty = is_empty(g, a);

	if (empty != is_empty(g, b))
		return empty;
	return rank_of(g, g->column[a]) < rank_of(g, g->column[b]);
}

static void drop_columns(struct table_text *g)
{
	while (g->n_columns > 1) {
		size_t least = 0, numbers = 0;

		for (size_t i = 0; i < g->n_columns; i++) {
			numbers += g->width[g->n_names + i] + (i ? GAP : 0);
			if (g->t->usual || less_useful(g, i, least))
				least = i;
		}
		if (numbers + names_width(g, g->n_columns > g->t->n_kept
						     ? g->screen->width / NAME_SHARE
						     : 0) <=
		    g->screen->width)
			return;
		drop(g, least);
	}
}

static void shorten_column(struct table_text *g, size_t column)
{
	const char **from = xcalloc(g->lines, sizeof(*from));
	char **to = xcalloc(g->lines, sizeof(*to));

	/* the heading, "other" and "total" are not names */
	for (size_t i = 0; i < g->t->n; i++)
		from[i] = *cell(g, i + 1, column);
	screen_shorten(g->screen, from, g->t->n, g->width[column], to);
	for (size_t i = 0; i < g->t->n; i++) {
		free(*cell(g, i + 1, column));
		*cell(g, i + 1, column) = to[i];
	}
	free(from);
	free(to);
}

/* In the order in which they are tried. */
enum cut { CUT_NAMES, CUT_WHOLE, CUT_BELOW_HEADINGS, CUTS };

/* The widest name that can be cut; n_names: none. */
static size_t widest_name(const struct table_text *g, enum cut cut)
{
	size_t most = g->n_names;

	for (size_t c = 0; c < g->n_names; c++) {
		const size_t least = cut == CUT_BELOW_HEADINGS ? NAME_MIN : least_width(g, c);

		if (g->width[c] > least && (cut != CUT_NAMES || !(g->t->whole >> c & 1)) &&
		    (most == g->n_names || g->width[c] > g->width[most]))
			most = c;
	}
	return most;
}

/* Shorten the widest names until the line fits. */
static void fit_names(struct table_text *g)
{
	size_t wide[TABLE_KEYS], width = g->screen->width;

	memcpy(wide, g->width, g->n_names * sizeof(wide[0]));
	while (total_width(g) > width) {
		size_t most = g->n_names;

		for (enum cut cut = 0; cut < CUTS && most == g->n_names; cut++)
			most = widest_name(g, cut);
		if (most == g->n_names)
			break;
		g->width[most]--;
	}
	for (size_t c = 0; c < g->n_names; c++)
		if (g->width[c] < wide[c])
			shorten_column(g, c);
}

static void pad(FILE *f, size_t n)
{
	fprintf(f, "%*s", (int)n, "");
}

bool table_text_left(const struct table_text *x, size_t c)
{
	enum table_column column = c < x->n_names ? TABLE_HISTOGRAM : x->column[c - x->n_names];

	return column == TABLE_HISTOGRAM || column == TABLE_TREND;
}

const char *table_text_cell(const struct table_text *x, size_t line, size_t c)
{
	return x->cell[line * (x->n_names + x->n_columns) + c];
}

/* Heading and total are bold, rows of few samples are dim. */
static const char *style_of(const struct table *t, size_t line)
{
	const struct series *s = &row_of(t, line ?: 1)->all;

	if (!line || line > t->n + !!t->n_rest)
		return "\033[1m";
	return line <= t->n && table_is_few(s->samples, s->valid) ? "\033[2m" : "";
}

static void print_line(FILE *f, struct table_text *g, size_t line)
{
	const char *style = g->screen->color ? style_of(g->t, line) : "";
	size_t all = g->n_names + g->n_columns, blank = 0;

	fputs(style, f);
	for (size_t c = 0; c < all; c++) {
		const char *text = *cell(g, line, c);
		size_t n = strlen(text), columns = screen_columns(text), gap;
		bool left = table_text_left(g, c);

		gap = g->width[c] > columns ? g->width[c] - columns : 0;
		blank += left ? 0 : gap;
		/* print blanks only if something follows: no line ends in one */
		while (n && text[n - 1] == ' ')
			n--;
		if (n) {
			pad(f, blank);
			fwrite(text, 1, n, f);
			blank = strlen(text) - n;
		} else {
			blank += columns;
		}
		blank += (left ? gap : 0) + GAP;
	}
	fputs(*style ? "\033[0m\n" : "\n", f);
}

static size_t default_columns(const struct table *t, unsigned int width, enum table_column *out)
{
	const bool sources = table_groups_by(t, LABEL_SRC) || table_groups_by(t, LABEL_FETCH);
	size_t n = 0;

	if (t->usual) {
		memcpy(out, t->usual, t->n_usual * sizeof(*out));
		return t->n_usual;
	}
	for (int c = 0; c < TABLE_COLUMNS; c++) {
		/* with one source these are 0 or 100 % */
		bool useless =
			sources && (c == TABLE_DRAM || c == TABLE_REMOTE || c == TABLE_L3_MISS ||
				    c == TABLE_ABORTED || (c == TABLE_WALK && !is_fetch(t)));

		useless |= is_foreign(t, c);
		if (c == TABLE_HITM || c == TABLE_MLP || c == TABLE_WALK)
			/* not reported by this CPU, or implied by the rows */
			useless |= isnan(table_value(t, &t->total, c)) ||
				   (c == TABLE_WALK && table_groups_by(t, LABEL_ITLB));
		if (c >= TABLE_LOADS)
			useless = !t->data || c >= TABLE_HITM_CCX;
		if (c == TABLE_IMBALANCE)
			useless = !t->spread;
		if (c == TABLE_ERROR)
			useless = !t->total.all.strata || !t->total.all.strata->design;
		if (c == TABLE_EXPOSED)
			useless = true; /* beside miss cycles */
		if (t->data && (c == TABLE_HISTOGRAM || c == TABLE_P50))
			useless = true;
		if (c == TABLE_TREND)
			useless = !t->n_trend;
		if (c == TABLE_HISTOGRAM && t->n_trend)
			useless = width < NARROW; /* the trend needs the room */
		if (column_rank(c) && !useless)
			out[n++] = c;
		if (c == TABLE_CYCLES && !isnan(table_value(t, &t->total, TABLE_EXPOSED)))
			out[n++] = TABLE_EXPOSED;
	}
	return n;
}

void table_text_build(const struct screen *screen, const struct table *t,
		      const enum table_column *columns, size_t n, struct table_text *out)
{
	struct table_text *g = out;
	double largest = 0;

	*out = (struct table_text){ .screen = screen,
				    .t = t,
				    .lines = 1 + t->n + !!t->n_rest + (t->n > 1) };
	for (int l = 0; l < n_names_max(t); l++)
		g->n_names += is_name_column(t, l);
	g->n_columns = columns ? n : default_columns(t, screen->width, g->column);
	if (columns)
		memcpy(g->column, columns, n * sizeof(*columns));
	for (size_t i = 0; i < t->n; i++)
		largest = fmax(largest, t->row[i].cycles);
	g->unit = screen_unit(per_second(t, fmax(largest, t->total.cycles)));
	g->cell = xcalloc(g->lines * (g->n_names + g->n_columns), sizeof(*g->cell));
	for (size_t line = 0; line < g->lines; line++)
		fill_line(g, line);
	if (!columns)
		drop_columns(g);
	fit_names(g);
}

void table_text_free(struct table_text *x)
{
	for (size_t i = 0; i < x->lines * (x->n_names + x->n_columns); i++)
		free(x->cell[i]);
	free(x->cell);
	x->cell = NULL;
}

void table_print(FILE *f, const struct screen *screen, const struct table *t,
		 const enum table_column *columns, size_t n)
{
	struct table_text text;

	table_text_build(screen, t, columns, n, &text);
	for (size_t line = 0; line < text.lines; line++) {
		if (line && line == 1 + table_first_weak(t) && line <= t->n)
			fprintf(f, "%s~ under %d samples:%s\n", screen->color ? "\033[2m" : "",
				TABLE_FEW, screen->color ? "\033[0m" : "");
		print_line(f, &text, line);
	}
	table_text_free(&text);
}

/* The columns of CSV. Return: how many. */
static unsigned int csv_columns(const struct table *t, const struct column **out)
{
	static const enum table_column first[] = { TABLE_L3_MISS, TABLE_ABORTED };
	unsigned int n = 0;

	for (enum table_column c = 0; c < TABLE_HISTOGRAM; c++) {
		for (size_t i = 0; c == TABLE_WALK && is_fetch(t) && i < ARRAY_SIZE(first); i++)
			out[n++] = column_find(&hist_columns, first[i]);
		if (!is_foreign(t, c) && c != TABLE_L3_MISS && c != TABLE_ABORTED)
			out[n++] = column_find(&hist_columns, c);
	}
	return n;
}

static void csv_row(FILE *f, const struct table *t, const struct table_row *r)
{
	const struct column *column[TABLE_COLUMNS];
	const unsigned int n = csv_columns(t, column);
	bool first = true;

	for (int i = 0; i < TABLE_NAMES; i++) {
		int l = label_at(&t->order, i);

		if (!is_name_column(t, l))
			continue;
		if (!first)
			fputc(',', f);
		utf8_put_csv(f, r->name[l] ? table_csv_name(r->name[l], l) : first ? "other" : "");
		first = false;
	}
	for (unsigned int i = 0; i < n; i++) {
		double v = table_value(t, r, column[i]->id);

		/* no negative zero */
		column_csv(f, column[i], column[i]->id == TABLE_PRICE ? rint(v) + 0.0 : v);
	}
}

void table_print_csv(FILE *f, const struct table *t, bool simulated, bool header)
{
	const struct column *column[TABLE_COLUMNS];
	unsigned int n;

	if (header) {
		fputs("simulated,interval_s", f);
		for (int i = 0; i < TABLE_NAMES; i++) {
			enum label l = label_at(&t->order, i);

			if (is_name_column(t, l))
				fprintf(f, ",%s", t->joined ? "container" : label_name(l));
		}
		n = csv_columns(t, column);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, ",%s",
				column[i]->id == TABLE_CYCLES ? "miss_cycles" : column[i]->name);
		fputc('\n', f);
	}
	for (size_t i = 0; i < t->n + !!t->n_rest; i++) {
		fprintf(f, "%d,%.3f,", simulated, t->seconds);
		csv_row(f, t, i < t->n ? &t->row[i] : &t->rest);
		fputc('\n', f);
	}
}
