// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lines_rows.h"

#include "base/utf8.h"
#include "table/table.h"
#include "base/text.h"

#include <math.h>

#define ABSENT "[unknown]"

typedef unsigned long long ull;

#define NAME(id, name, ...)		   name,
#define VIEW_COLUMN(id, name, column, ...) TABLE_##column,
static const char *const column_names[] = { LINES_COLUMN_TABLE(NAME) };
static const enum table_column view_columns[] = { LINES_COLUMN_TABLE(VIEW_COLUMN) };

const char *lines_column_name(unsigned int c)
{
	return column_names[c];
}

/* Does the processor report it? */
static bool is_reported(const struct lines *lines, enum lines_column c)
{
	bool zen4 = lines->cpu.caps & IBS_CAPS_ZEN4;
	bool states = !(lines->cpu.quirks & IBS_QUIRK_NO_CACHE_HIT_ST);

	switch (c) {
	case LINES_COLUMN_HITM:
	case LINES_COLUMN_HITM_CCX:
	case LINES_COLUMN_OWNED:
		return states;
	case LINES_COLUMN_HITM_NEAR:
	case LINES_COLUMN_HITM_REMOTE:
		return states && zen4;
	case LINES_COLUMN_HITM_SOCKET:
		return states && (lines->cpu.caps & IBS_CAPS_STRMST_RMTSOCKET);
	default:
		return true;
	}
}

static double share(double part, double all)
{
	return all > 0 ? part / all : (double)NAN;
}

double line_rows_value(const struct line_rows *rows, const struct line_row *r, enum lines_column c)
{
	const struct line *l = r->l;

	if (!is_reported(rows->lines, c))
		return NAN;
	if (r->slot && c != LINES_COLUMN_SAMPLES && c != LINES_COLUMN_LOADS &&
	    c != LINES_COLUMN_STORES && c != LINES_COLUMN_CPUS && c != LINES_COLUMN_THREADS)
		return NAN;
	switch (c) {
	case LINES_COLUMN_CYCLES:
		return !l->valid || rows->lines->has_period ? l->cycles : (double)NAN;
	case LINES_COLUMN_SHARE:
		return l->valid ? share(l->cycles, rows->lines->total.cycles) : (double)NAN;
	case LINES_COLUMN_SAMPLES:
		return l->samples;
	case LINES_COLUMN_HITM:
		return share(l->hitm_cycles, l->known);
	case LINES_COLUMN_HITM_CCX:
		return l->from[LINE_FROM_HITM_CCX];
	case LINES_COLUMN_HITM_NEAR:
		return l->from[LINE_FROM_HITM_NEAR];
	case LINES_COLUMN_HITM_REMOTE:
		return l->from[LINE_FROM_HITM_REMOTE];
	case LINES_COLUMN_HITM_SOCKET:
		return l->from[LINE_FROM_HITM_SOCKET];
	case LINES_COLUMN_OWNED:
		return l->from[LINE_FROM_OWNED];
	case LINES_COLUMN_TRANSFERS:
		return l->from[LINE_FROM_TRANSFERS];
	case LINES_COLUMN_LOADS:
		return l->loads;
	case LINES_COLUMN_STORES:
		return l->stores;
	case LINES_COLUMN_MEAN:
		return share(l->sum, l->valid);
	case LINES_COLUMN_CPUS:
		return r->sum ? (double)NAN : l->cpus;
	default:
		return r->sum ? (double)NAN : l->threads;
	}
}

static bool print_value(const struct line_rows *rows, const struct line_row *r, enum lines_column c,
			char *buf, size_t size)
{
	double v = line_rows_value(rows, r, c);
	bool is_share = c == LINES_COLUMN_SHARE || c == LINES_COLUMN_HITM;

	snprintf(buf, size, c == LINES_COLUMN_MEAN ? "%.1f" : is_share ? "%.9g" : "%.0f", v);
	return !isnan(v);
}

void line_rows_add(struct line *to, const struct line *l)
{
	to->samples += l->samples;
	to->loads += l->loads;
	to->stores += l->stores;
	to->valid += l->valid;
	to->sum += l->sum;
	to->cycles += l->cycles;
	to->known += l->known;
	to->hitm_cycles += l->hitm_cycles;
	for (unsigned int f = 0; f < LINE_FROM_N; f++)
		to->from[f] += l->from[f];
}

static unsigned int columns_of(const struct line_rows *rows, enum lines_column *out)
{
	const struct lines_print *p = rows->p;

	memcpy(out, p->columns, p->n_columns * sizeof(*out));
	for (unsigned int c = 0; !p->n_columns && c < LINES_COLUMN_N; c++)
		out[c] = c;
	return p->n_columns ?: LINES_COLUMN_N;
}

static void view_row(const struct line_rows *rows, const struct line_row *r, struct table_row *out)
{
	const struct line *l = r->l;
	struct series all = { .samples = l->samples, .valid = l->valid, .sum = l->sum };

	*out = (struct table_row){ .all = all, .known = l->known, .cached = l->known };
	out->all.state_n = is_reported(rows->lines, LINES_COLUMN_HITM);
	out->all.hitm = l->hitm_cycles;
	out->cycles = line_rows_value(rows, r, LINES_COLUMN_CYCLES);
	out->dram = out->remote = NAN;
	for (unsigned int c = 0; c < LINES_COLUMN_N; c++)
		if (view_columns[c] >= TABLE_EXTRA)
			out->extra[view_columns[c] - TABLE_EXTRA] = line_rows_value(rows, r, c);
	for (unsigned int k = 0; !r->sum && k < rows->n_keys; k++) {
		const char *name = r->name[k] ?: ABSENT;

		out->name[k] = xcalloc(1, 4 * strlen(name) + 1);
		utf8_escape(out->name[k], 4 * strlen(name) + 1, name);
	}
}

/* Functions of hot lines are examples: samples have none. */
static struct report_kinds kinds_of(const struct line_rows *rows)
{
	return (struct report_kinds){ .data = rows->data,
				      .code = rows->lines->hot.tables ? NULL : rows->code };
}

void line_rows_table(FILE *f, const struct line_rows *rows)
{
	const struct report_kinds kinds = kinds_of(rows);
	/* the most useful first: as many as fit are printed */
	static const enum lines_column useful[] = {
		LINES_COLUMN_CYCLES,	  LINES_COLUMN_SHARE,	    LINES_COLUMN_HITM,
		LINES_COLUMN_STORES,	  LINES_COLUMN_LOADS,	    LINES_COLUMN_HITM_NEAR,
		LINES_COLUMN_HITM_REMOTE, LINES_COLUMN_HITM_SOCKET, LINES_COLUMN_OWNED,
		LINES_COLUMN_TRANSFERS,	  LINES_COLUMN_THREADS,	    LINES_COLUMN_CPUS,
		LINES_COLUMN_HITM_CCX,	  LINES_COLUMN_MEAN,
	};
	enum table_column usual[LINES_COLUMN_N], asked[LINES_COLUMN_N];
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	const struct line_row total = { .l = &rows->total, .sum = true };
	struct table view = { .key = rows->key,
			      .n_keys = rows->n_keys,
			      .metric = rows->p->metric,
			      .usual = usual,
			      .n = rows->n,
			      .n_rest = rows->n_rest,
			      .row = xcalloc(rows->n, sizeof(*view.row)) };

	for (unsigned int i = 0; i < ARRAY_SIZE(useful); i++)
		if (line_rows_value(rows, &total, useful[i]) > 0 || useful[i] >= LINES_COLUMN_CPUS)
			usual[view.n_usual++] = view_columns[useful[i]];
	for (unsigned int i = 0; i < rows->p->n_columns; i++)
		asked[i] = view_columns[rows->p->columns[i]];
	for (size_t i = 0; i < rows->n; i++)
		view_row(rows, &rows->row[i], &view.row[i]);
	view_row(rows, &rest, &view.rest);
	view_row(rows, &total, &view.total);
	table_print(f, rows->p->screen, &view, rows->p->n_columns ? asked : NULL,
		    rows->p->n_columns);
	report_kinds_print(f, &kinds);
	table_free(&view);
}

/* "stores, cache hits and memory loads" */
static const char *fed_by(__u64 feed)
{
	static const struct {
		__u32 bits;
		const char *what;
	} feeds[] = {
#define FEED(id, name, bits, what) { bits, what },
		LINE_FEED_TABLE(FEED)
	};
	static char text[128];
	unsigned int n = 0;

	*text = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(feeds); i++) {
		if (!(feed & feeds[i].bits))
			continue;
		feed &= ~(__u64)feeds[i].bits;
		n += snprintf(text + n, sizeof(text) - n, "%s%s",
			      !n     ? ""
			      : feed ? ", "
				     : " and ",
			      feeds[i].what);
	}
	return text;
}

static void put_hot(struct json_writer *w, const struct lines_hot *hot)
{
	json_begin_object(w, "hot");
	json_begin_array(w, "feed");
	for (unsigned int i = 0; line_feed_name(i); i++)
		if (hot->feed & line_feed_bits(i))
			json_put_text(w, NULL, line_feed_name(i));
	json_end(w);
	json_put_u64(w, "fed", hot->fed);
	json_put_u64(w, "kept", hot->kept);
	json_put_u64(w, "lack", hot->lack);
	json_put_u64(w, "replaced", hot->replaced);
	json_put_u64(w, "cpus", hot->cpus);
	json_end(w);
}

void line_rows_head(FILE *f, const struct line_rows *rows)
{
	const struct lines *lines = rows->lines;

	report_print_head(f, rows->p->head, rows->p->metric);
	if (lines->physical && !lines->only_virtual && !lines->hot.tables && !lines->moved &&
	    !log_is_verbose())
		return;
	fprintf(f, "lines     %s",
		lines->physical || lines->hot.tables
			? "by physical address"
			: "by VIRTUAL address: no physical one is recorded, "
			  "so sharing between processes does not show");
	if (lines->physical && lines->only_virtual)
		fprintf(f, "; %llu samples have only a virtual one", (ull)lines->only_virtual);
	if (lines->no_address)
		fprintf(f, "; %llu sample%s no address", (ull)lines->no_address,
			lines->no_address == 1 ? " has" : "s have");
	if (lines->hot.tables)
		fprintf(f, "; %llu of %llu %s of %llu CPU%s are in them, a line lacks at most %llu",
			(ull)lines->hot.kept, (ull)lines->hot.fed, fed_by(lines->hot.feed),
			(ull)lines->hot.cpus, text_plural(lines->hot.cpus), (ull)lines->hot.lack);
	if (lines->moved)
		fprintf(f, "; %llu page%s moved", (ull)lines->moved, lines->moved > 1 ? "s" : "");
	fputc('\n', f);
}

static void csv_row(FILE *f, const struct line_rows *rows, const struct line_row *r)
{
	const char *source = rows->p->head->info->source ?: "";
	enum lines_column columns[LINES_COLUMN_N];
	unsigned int n = columns_of(rows, columns);
	char buf[64];

	for (unsigned int k = 0; k < rows->n_keys; k++) {
		fputs(k ? "," : "", f);
		if (r->sum && !k)
			fputs("[rest]", f);
		else if (!r->sum && r->name[k])
			utf8_put_csv(f, r->name[k]);
	}
	for (unsigned int i = 0; i < n; i++)
		fprintf(f, ",%s", print_value(rows, r, columns[i], buf, sizeof(buf)) ? buf : "");
	fputc(',', f);
	utf8_put_csv(f, source);
	fputc('\n', f);
}

void line_rows_csv(FILE *f, const struct line_rows *rows)
{
	const struct report_kinds kinds = kinds_of(rows);
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	enum lines_column columns[LINES_COLUMN_N];
	unsigned int n = columns_of(rows, columns);

	for (unsigned int k = 0; k < rows->n_keys; k++)
		fprintf(f, "%s%s", k ? "," : "", rows->key[k]);
	for (unsigned int i = 0; i < n; i++)
		fprintf(f, ",%s", column_names[columns[i]]);
	fputs(",source\n", f);
	for (size_t i = 0; i < rows->n; i++)
		csv_row(f, rows, &rows->row[i]);
	if (rows->n_rest)
		csv_row(f, rows, &rest);
	report_kinds_log(&kinds);
}

void line_rows_put_values(struct json_writer *w, const struct line_rows *rows,
			  const struct line_row *r)
{
	enum lines_column columns[LINES_COLUMN_N];
	unsigned int n = columns_of(rows, columns);

	for (unsigned int i = 0; i < n; i++)
		json_put_number(w, column_names[columns[i]], line_rows_value(rows, r, columns[i]));
}

static void put_addresses(struct json_writer *w, const struct lines *lines)
{
	json_begin_object(w, "addresses");
	json_put_u64(w, "physical", lines->physical);
	json_put_u64(w, "virtual", lines->only_virtual);
	json_put_u64(w, "none", lines->no_address);
	json_put_u64(w, "moved_pages", lines->moved);
	json_end(w);
}

void line_rows_json(FILE *f, struct line_rows *rows, const struct line *line,
		    line_rows_put *put_line, const char *what, line_rows_put *put)
{
	const struct report_kinds kinds = kinds_of(rows);
	const struct line_row rest = { .l = &rows->rest, .sum = true };
	const struct line_row total = { .l = &rows->total, .sum = true };
	const struct line_row one = { .l = line };
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	report_head_put(&w, rows->p->head, rows->p->metric);
	put_addresses(&w, rows->lines);
	if (rows->lines->hot.tables)
		put_hot(&w, &rows->lines->hot);
	data_kinds_put(&w, kinds.data);
	code_kinds_put(&w, kinds.code);
	if (line) {
		json_begin_object(&w, "line");
		put_line(&w, rows, &one);
		json_end(&w);
	} else if (rows->p->has_line) {
		json_put_null(&w, "line");
	}
	json_begin_array(&w, what);
	for (size_t i = 0; i < rows->n; i++) {
		json_line_break(&w);
		json_begin_object(&w, NULL);
		put(&w, rows, &rows->row[i]);
		json_end(&w);
	}
	json_end(&w);
	json_line_break(&w);
	json_begin_object(&w, "rest");
	json_put_u64(&w, "lines", rows->n_rest);
	line_rows_put_values(&w, rows, &rest);
	json_end(&w);
	json_begin_object(&w, "total");
	line_rows_put_values(&w, rows, &total);
	json_finish(&w);
}

struct line_rows line_rows_new(const struct lines_print *p, const struct lines *lines, size_t n)
{
	return (struct line_rows){ .p = p,
				   .lines = lines,
				   .namer = { .tasks = p->tasks, .symbols = p->symbols },
				   .row = xcalloc(n, sizeof(struct line_row)),
				   .n = n };
}

void line_rows_count(struct line_rows *rows, const struct line *l)
{
	struct data_place place;

	for (size_t i = 0; i < l->n_access; i++) {
		line_namer_place(&rows->namer, &l->access[i], &place);
		rows->data[place.kind] += l->access[i].samples;
		if (!rows->lines->hot.tables)
			rows->code[line_namer_code(&rows->namer, &l->access[i])] +=
				l->access[i].samples;
	}
}

void line_rows_free(struct line_rows *rows)
{
	line_namer_free(&rows->namer);
	free(rows->row);
}
