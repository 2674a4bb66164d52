// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "annotate_print.h"

#include "annotate_private.h"
#include "annotate_source.h"
#include "base/text.h"
#include "base/utf8.h"

#include <math.h>

#define CODE_MIN      40 /* minimum width of the code */
#define FIGURES	      4	 /* columns before the code, unless others are chosen */
#define GAP	      2
#define AROUND	      4 /* instructions shown before and after one with samples */
#define LINE_MAX      1024
#define CALLERS	      5 /* that are named */
#define CALLERS_BYTES (CALLERS * LINE_MAX)

typedef unsigned long long ull;

struct text {
	FILE *f;
	const struct annotate_print *p;
	const struct annotate *a;
	struct source_files sources;
	size_t width[TABLE_COLUMNS]; /* by column; 0: not shown */
	size_t left;		     /* columns before the code */
	char unit;
	const struct annotate_row *hottest; /* NULL: none */
};

static const struct annotate_sums *total_of(const struct annotate *a)
{
	return &a->function[0].total;
}

static void cell(const struct text *t, const struct annotate_sums *s, enum table_column c,
		 char *buf, size_t size)
{
	column_text(t->p->screen, c, annotate_value(s, total_of(t->a), c), t->unit, buf, size);
}

void annotate_attribution(const struct annotate *a, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s samples of ops in it", TEXT_COUNT(total_of(a)->samples));

	if (a->namesakes)
		n += snprintf(buf + n, size - n, " + %s in others of its name",
			      TEXT_COUNT(a->namesakes));
	n += snprintf(buf + n, size - n, " + %s elsewhere + %s without an exact address",
		      TEXT_COUNT(a->elsewhere), TEXT_COUNT(a->inexact));
	if (a->fetches)
		snprintf(buf + n, size - n, " + %s of fetches", TEXT_COUNT(a->fetches));
}

static double caller_share(const struct annotate *a, const struct annotate_caller *c)
{
	return annotate_callers_by_cycles(a) ? (double)c->cycles / total_of(a)->cycles
					     : (double)c->samples / total_of(a)->samples;
}

void annotate_callers(const struct annotate *a, char *buf, size_t size)
{
	const struct annotate_function *fn = &a->function[0];
	double rest = 0;
	size_t n = 0;

	*buf = 0;
	for (size_t i = 0; i < fn->n_callers; i++) {
		const struct annotate_caller *c = &fn->callers[i];
		const double share = caller_share(a, c);

		if (i < CALLERS || fn->n_callers == CALLERS + 1)
			n += snprintf(buf + n, size - n, "%s%.600s %.0f %%", n ? ", " : "",
				      c->name ?: "[unknown]", 100 * share);
		else
			rest += share;
	}
	if (fn->n_callers > CALLERS + 1)
		n += snprintf(buf + n, size - n, ", %zu others %.0f %%", fn->n_callers - CALLERS,
			      100 * rest);
	snprintf(buf + n, size - n, " of %s",
		 annotate_callers_by_cycles(a) ? "miss cycles" : "samples");
}

const char *annotate_data(const struct annotate_row *r, char *buf, size_t size)
{
	const struct type_access *d = &r->data;

	if (!TYPE_FOUND(d->kind))
		return "";
	snprintf(buf, size, d->field ? "  # %s: %s" : "  # %s", d->type, d->field);
	return buf;
}

bool annotate_new_line(const struct annotate_row *last, const struct annotate_row *r)
{
	return r->file && (!last || last->file != r->file || last->line != r->line);
}

bool annotate_new_inlined(const struct annotate_row *last, const struct annotate_row *r)
{
	return r->inlined != (last ? last->inlined : NULL);
}

const char *annotate_inlined(const struct annotate *a, const struct annotate_row *r, char *buf,
			     size_t size)
{
	size_t n = text_at(buf, size, 0, "[");

	for (const struct inlined *f = r->inlined; f; f = f->into) {
		n = text_at(buf, size, n, "%s,%s ", f->function.name,
			    f == r->inlined ? " inlined" : "");
		if (f->file)
			n = text_at(buf, size, n, "at %s:%d ", text_last_part(f->file), f->line);
		n = text_at(buf, size, n, "in ");
	}
	text_at(buf, size, n, "%s]", a->function[0].code.name);
	return buf;
}

static bool is_wanted(const struct text *t, enum table_column c)
{
	const struct view_opts *v = t->p->view;
	bool listed = !v->n_columns;

	for (unsigned int i = 0; i < v->n_columns; i++)
		listed |= v->columns[i] == c;
	return listed && !isnan(annotate_value(total_of(t->a), total_of(t->a), c));
}

static size_t width_of(const struct text *t, enum table_column c)
{
	size_t width = strlen(column_heading(c));
	char buf[64];

	for (size_t i = 0; i <= t->a->n; i++) {
		const struct annotate_sums *s = i < t->a->n ? t->a->row[i].sums : total_of(t->a);

		if (!s)
			continue;
		cell(t, s, c, buf, sizeof(buf));
		if (screen_columns(buf) > width)
			width = screen_columns(buf);
	}
	return width;
}

/* Choose columns with known values, without the least useful if the code needs the width. */
static void choose_columns(struct text *t)
{
	static const enum table_column useful[] = {
		TABLE_SHARE,
		TABLE_SAMPLES,
		TABLE_INSTRUCTION_MEAN,
		TABLE_DRAM,
		TABLE_INSTRUCTION_CYCLES,
		TABLE_REMOTE,
		TABLE_HITM,
		TABLE_WALK,
		TABLE_MISPREDICTED,
		TABLE_SAMPLE_SHARE,
	};
	unsigned int n = 0, most = t->p->view->n_columns ? ARRAY_SIZE(useful) : FIGURES;

	for (unsigned int i = 0; i < ARRAY_SIZE(useful); i++) {
		const enum table_column c = useful[i];

		if (!is_wanted(t, c))
			continue;
		t->width[c] = width_of(t, c);
		t->left += t->width[c] + GAP;
		n++;
	}
	for (unsigned int i = ARRAY_SIZE(useful);
	     n > most || (n && t->left + CODE_MIN > t->p->screen->width);) {
		size_t *width = &t->width[useful[--i]];

		if (!*width)
			continue;
		t->left -= *width + GAP;
		*width = 0;
		n--;
	}
}

/* Print as much of a text as fits the rest of the line. */
static void put_code(struct text *t, const char *text)
{
	size_t room = t->p->screen->width - t->left, n;
	char line[4 * LINE_MAX];

	utf8_escape(line, sizeof(line), text);
	for (n = 0; line[n]; n += utf8_len(line + n)) {
		unsigned int columns = utf8_width(line + n);

		if (columns > room)
			break;
		room -= columns;
	}
	while (n && line[n - 1] == ' ') /* no trailing blanks */
		n--;
	fwrite(line, 1, n, t->f);
}

static void put_line(struct text *t, const struct annotate_sums *s, const char *code, bool bold)
{
	char buf[64];

	bold &= t->p->screen->color;
	fputs(bold ? "\033[1m" : "", t->f);
	for (unsigned int i = 0; i < annotate_columns.n; i++) {
		const enum table_column c = annotate_columns.column[i].id;

		if (!t->width[c])
			continue;
		buf[0] = 0;
		if (s)
			cell(t, s, c, buf, sizeof(buf));
		fprintf(t->f, "%*s%s%*s", (int)(t->width[c] - screen_columns(buf)), "", buf, GAP,
			"");
	}
	put_code(t, code);
	fputs(bold ? "\033[0m\n" : "\n", t->f);
}

static void put_heading(struct text *t)
{
	bool bold = t->p->screen->color;

	fputs(bold ? "\n\033[1m" : "\n", t->f);
	for (unsigned int i = 0; i < annotate_columns.n; i++) {
		const enum table_column c = annotate_columns.column[i].id;

		if (t->width[c])
			fprintf(t->f, "%*s%*s", (int)t->width[c], column_heading(c), GAP, "");
	}
	fputs(bold ? "CODE\033[0m\n" : "CODE\n", t->f);
}

static void put_source(struct text *t, const struct annotate_row *r)
{
	const char *line = source_line(&t->sources, r->file, r->line);
	const char *code = line ? line + strspn(line, " \t") : "";
	unsigned int least = screen_columns(code);
	char place[LINE_MAX], text[2 * LINE_MAX];

	least = least < CODE_MIN ? least : CODE_MIN;
	snprintf(place, sizeof(place), "%.200s:%d", text_last_part(r->file), r->line);
	snprintf(text, sizeof(text), "%s%s%.600s", place, line ? "  " : "", line ?: "");
	/* else little is left for the text between the place and the edge */
	if (line &&
	    t->left + (code - line) + screen_columns(place) + 2 + least > t->p->screen->width) {
		put_line(t, NULL, place, false);
		snprintf(text, sizeof(text), "%.600s", code);
	}
	put_line(t, NULL, text, false);
}

static bool near_samples(const struct annotate *a, size_t i)
{
	size_t from = i > AROUND ? i - AROUND : 0,
	       to = i + AROUND + 1 < a->n ? i + AROUND + 1 : a->n;

	for (size_t k = from; k < to; k++)
		if (a->row[k].sums)
			return true;
	return false;
}

static void put_rows(struct text *t)
{
	const struct annotate *a = t->a;
	const struct annotate_row *last = NULL;
	char text[2 * LINE_MAX], data[LINE_MAX];
	size_t skipped = 0, n;
	const char *type;
	bool below;

	for (size_t i = 0; i < a->n; i++) {
		const struct annotate_row *r = &a->row[i];

		if (!t->p->all && !near_samples(a, i)) {
			skipped++;
			continue;
		}
		if (skipped) {
			snprintf(text, sizeof(text), "... %s instruction%s without samples",
				 TEXT_COUNT(skipped), text_plural(skipped));
			put_line(t, NULL, text, false);
		}
		if (annotate_new_inlined(skipped ? NULL : last, r))
			put_line(t, NULL, annotate_inlined(a, r, text, sizeof(text)), false);
		if (annotate_new_line(skipped ? NULL : last, r))
			put_source(t, r);
		skipped = 0;
		last = r;
		n = snprintf(text, sizeof(text), "%8llx:  %s%s", (ull)r->addr,
			     r->inside ? "(inside the one before) " : "", r->text);
		type = annotate_data(r, data, sizeof(data));
		below = n + strlen(type) + t->left > t->p->screen->width;
		if (!below)
			snprintf(text + n, sizeof(text) - n, "%s", type);
		put_line(t, r->sums, text, r == t->hottest);
		if (below && *type) {
			snprintf(text, sizeof(text), "%9s%s", "", type);
			put_line(t, NULL, text, false);
		}
	}
	if (skipped) {
		snprintf(text, sizeof(text), "... %s instruction%s without samples",
			 TEXT_COUNT(skipped), text_plural(skipped));
		put_line(t, NULL, text, false);
	}
}

static void put_namesakes(FILE *f, const struct annotate *a)
{
	const struct symbol_code *code = &a->function[0].code;

	for (size_t i = 1; i < a->n_functions; i++)
		report_print_line(f, "also      %s of %s at 0x%llx, %s samples%s", code->name,
				  a->function[i].code.dso, (ull)a->function[i].code.start,
				  TEXT_COUNT(a->function[i].total.samples),
				  a->function[i].code.object != code->object ? "; --object chooses"
									     : "");
}

static void put_callers_line(FILE *f, const struct annotate *a)
{
	char callers[CALLERS_BYTES];

	if (!a->function[0].n_callers)
		return;
	annotate_callers(a, callers, sizeof(callers));
	report_print_line(f, "called by %s", callers);
}

static void put_function(FILE *f, const struct annotate *a)
{
	const struct symbol_code *code = &a->function[0].code;
	char text[256];

	report_print_line(f, "function  %s of %s, 0x%llx to 0x%llx, %llu bytes", code->name,
			  code->dso, (ull)code->start, (ull)(code->start + code->size),
			  (ull)code->size);
	put_namesakes(f, a);
	annotate_attribution(a, text, sizeof(text));
	fprintf(f, "found     %s\n", text);
	put_callers_line(f, a);
}

static const struct annotate_row *hottest_of(const struct annotate *a)
{
	const struct annotate_row *hottest = NULL;
	double most = 0;

	for (size_t i = 0; i < a->n; i++) {
		double v = a->row[i].sums ? annotate_value(a->row[i].sums, total_of(a), TABLE_SHARE)
					  : (double)NAN;

		if (v > most) {
			most = v;
			hottest = &a->row[i];
		}
	}
	return hottest;
}

/* How far the share of the hottest instruction may be from the truth. */
static void put_trust(struct text *t)
{
	const struct annotate_sums *s = t->hottest ? t->hottest->sums : NULL;
	char low[32], high[32];

	if (!s || s->valid == total_of(t->a)->valid)
		return;
	cell(t, s, TABLE_SHARE_LOW, low, sizeof(low));
	cell(t, s, TABLE_SHARE_HIGH, high, sizeof(high));
	fprintf(t->f, "\n95%% interval of the highest share: %s to %s\n", low, high);
}

/* Once, where the table has stores. */
static void put_stores(const struct text *t)
{
	if (total_of(t->a)->stores)
		fprintf(t->f, "\nstores have no latency (%s): IBS measures that of loads only\n",
			t->p->screen->utf8 ? "–" : "-");
}

static void put_code_table(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	struct text t = { .f = f,
			  .p = p,
			  .a = a,
			  .sources = { .program = a->function[0].code.dso },
			  .hottest = hottest_of(a) };

	t.unit = screen_unit(annotate_value(total_of(a), total_of(a), TABLE_INSTRUCTION_CYCLES));
	choose_columns(&t);
	put_heading(&t);
	put_rows(&t);
	put_line(&t, total_of(a), "total", true);
	put_trust(&t);
	put_stores(&t);
	type_kinds_print(f, a->types);
	source_warn(&t.sources);
	source_free(&t.sources);
}

void annotate_print_function(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	put_function(f, a);
	put_code_table(f, p, a);
}

/* In two lines, with those of its name elsewhere; what called it is below. */
static void print_short(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	struct report_head head = *p->head;
	char *shown =
		xasprintf("%s in %s", TEXT_COUNT(total_of(a)->samples), a->function[0].code.name);

	head.shown = shown;
	report_print_head(f, &head, a->opts.metric);
	free(shown);
	put_namesakes(f, a);
	put_code_table(f, p, a);
	if (a->function[0].n_callers) {
		fputc('\n', f);
		put_callers_line(f, a);
	}
}

/* Suggest what shows more of the data that the hottest instruction waits for. */
static void print_next(FILE *f, const struct annotate_print *p, const struct annotate_row *hottest)
{
	const char *type = hottest && TYPE_FOUND(hottest->data.kind) && hottest->data.field
				   ? hottest->data.type
				   : NULL;

	screen_next(f, p->screen, "report", p->file, type ? "--type" : "--by", type ?: "type,field",
		    NULL);
}

void annotate_print(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	if (log_is_verbose()) {
		report_print_head(f, p->head, a->opts.metric);
		annotate_print_function(f, p, a);
	} else {
		print_short(f, p, a);
	}
	print_next(f, p, hottest_of(a));
}

static void put_values(struct json_writer *w, const struct annotate *a,
		       const struct annotate_sums *s)
{
	static const struct annotate_sums none;

	for (unsigned int i = 0; i < annotate_columns.n; i++)
		column_json(w, &annotate_columns, &annotate_columns.column[i],
			    annotate_value(s ?: &none, total_of(a), annotate_columns.column[i].id));
}

static void put_inlined(struct json_writer *w, const struct inlined *f)
{
	json_begin_array(w, "inlined");
	for (; f; f = f->into) {
		json_begin_object(w, NULL);
		json_put_text(w, "function", f->function.name);
		json_put_text(w, "mangled", f->function.mangled);
		json_put_text(w, "call_file", f->file);
		json_put_known(w, "call_line", f->file, f->line);
		json_end(w);
	}
	json_end(w);
}

static void put_json_row(struct json_writer *w, const struct annotate *a,
			 const struct annotate_row *r)
{
	json_begin_object(w, NULL);
	json_put_u64(w, "address", r->addr);
	json_put_u64(w, "bytes", r->len);
	json_put_bool(w, "inside", r->inside);
	json_put_text(w, "text", r->text);
	json_put_text(w, "file", r->file);
	json_put_known(w, "line", r->file, r->line);
	json_put_text(w, "type", r->data.type);
	json_put_text(w, "field", r->data.field);
	json_put_text(w, "type_found", type_kind_name(r->data.kind));
	put_inlined(w, r->inlined);
	put_values(w, a, r->sums);
	json_end(w);
}

static void put_others(struct json_writer *w, const struct annotate *a)
{
	json_begin_array(w, "others");
	for (size_t i = 1; i < a->n_functions; i++) {
		const struct annotate_function *fn = &a->function[i];

		json_begin_object(w, NULL);
		json_put_text(w, "object", fn->code.dso);
		json_put_text(w, "mangled", fn->code.mangled);
		json_put_u64(w, "start", fn->code.start);
		json_put_u64(w, "samples", fn->total.samples);
		json_end(w);
	}
	json_end(w);
}

static void put_callers(struct json_writer *w, const struct annotate *a)
{
	const struct annotate_function *fn = &a->function[0];

	json_begin_array(w, "callers");
	for (size_t i = 0; i < fn->n_callers; i++) {
		const struct annotate_caller *c = &fn->callers[i];

		json_begin_object(w, NULL);
		json_put_text(w, "function", c->name);
		json_put_text(w, "mangled", c->mangled);
		json_put_u64(w, "samples", c->samples);
		json_put_double(w, "sample_share", (double)c->samples / total_of(a)->samples);
		json_put_double(w, "share",
				total_of(a)->cycles ? (double)c->cycles / total_of(a)->cycles
						    : (double)NAN);
		json_end(w);
	}
	json_end(w);
}

static void put_attribution(struct json_writer *w, const struct annotate *a)
{
	json_begin_object(w, "attribution");
	json_put_u64(w, "function", total_of(a)->samples);
	json_put_u64(w, "namesakes", a->namesakes);
	json_put_u64(w, "elsewhere", a->elsewhere);
	json_put_u64(w, "inexact", a->inexact);
	json_put_u64(w, "fetches", a->fetches);
	json_end(w);
}

void annotate_print_json(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	const struct symbol_code *code = &a->function[0].code;
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	report_head_put(&w, p->head, a->opts.metric);
	json_put_text(&w, "function", code->name);
	json_put_text(&w, "mangled", code->mangled);
	json_put_text(&w, "object", code->dso);
	json_put_u64(&w, "start", code->start);
	json_put_u64(&w, "size", code->size);
	put_others(&w, a);
	put_attribution(&w, a);
	put_callers(&w, a);
	type_kinds_put(&w, a->types);
	json_begin_array(&w, "instructions");
	for (size_t i = 0; i < a->n; i++)
		put_json_row(&w, a, &a->row[i]);
	json_end(&w);
	json_begin_object(&w, "total");
	put_values(&w, a, total_of(a));
	json_finish(&w);
}
