// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sentences above the table of lines: what is shared, and what that costs. */
#include "lines_rows.h"

#include "heap/heap_blocks.h"
#include "base/utf8.h"
#include "base/text.h"

#include <math.h>

#define FIELDS_MAX 3
#define DEAR	   0.05 /* of all miss cycles */

enum { FALSELY, TRULY, KINDS };

struct sharing {
	size_t n;
	double cost;
	const struct line *first; /* the dearest */
};

static bool is_unproved(const struct line *l)
{
	return l->verdict == LINE_VERDICT_SHARED || l->verdict == LINE_VERDICT_READ_ONLY;
}

/* Miss cycles of modified lines, or all miss cycles where the processor does not report states. */
static double cost_of(const struct lines *lines, const struct line *l)
{
	return lines->total.hitm_cycles ? l->hitm_cycles : l->cycles;
}

/* The one with most samples, or NULL. */
static const char *variable_of(struct line_rows *rows, const struct line *l)
{
	struct line_tally t;
	const char *name;

	line_tally(&rows->namer, l, LINE_VARIABLE, LINE_ANY, ~0u, &t);
	name = t.n ? t.v[0].label.name : NULL;
	free(t.v);
	return name;
}

const char *line_verdict_how(enum line_verdict v)
{
	return v < LINE_VERDICT_FALSE ? "" : v == LINE_VERDICT_TRUE ? "truly" : "falsely";
}

/*
 * "`counters`, fields `hits` and `misses`", "memory from make_table table.c:31, bytes 0 and 8": bytes where the fields
 * are not known.
 */
static void put_name(FILE *f, struct line_rows *rows, const struct line *l)
{
	const char *name[FIELDS_MAX], *variable = variable_of(rows, l), *site, *quote;
	const bool allocated = line_namer_block(&rows->namer, l, &(struct heap_block){ 0 }, &site);
	unsigned int at[FIELDS_MAX], n = 0, known = 0;

	for (unsigned int s = 0; s < LINE_SLOTS && n < FIELDS_MAX; s++) {
		struct line_field field;

		if (!line_slot_field(&rows->namer, l, s, &field))
			continue;
		name[n] = field.field;
		known += name[n] != NULL;
		at[n++] = s * SLOT_BYTES;
	}
	quote = variable && *variable != '[' && !allocated ? "`" : "";
	fprintf(f, "%s%s", allocated ? "memory from " : "", quote);
	utf8_put(f, variable ?: "memory without a name");
	fputs(quote, f);
	if (n)
		fprintf(f, ", %s%s ", known == n ? "field" : "byte", n > 1 ? "s" : "");
	for (unsigned int i = 0; i < n; i++) {
		fputs(!i ? "" : i + 1 < n ? ", " : " and ", f);
		if (known < n) {
			fprintf(f, "%u", at[i]);
			continue;
		}
		fputc('`', f);
		utf8_put(f, name[i]);
		fputc('`', f);
	}
}

static void put_kind(FILE *f, struct line_rows *rows, const struct sharing *g, const char *how)
{
	const struct lines *lines = rows->lines;
	const double all = cost_of(lines, &lines->total);
	char share[32];

	if (!g->n)
		return;
	screen_percent(rows->p->screen, all > 0 ? g->cost / all : (double)NAN, share,
		       sizeof(share));
	fprintf(f, "%s %s%s shared line%s", TEXT_COUNT(g->n), g->first->likely ? "probably " : "",
		how, g->n > 1 ? "s" : "");
	if (g->n > 1)
		fprintf(f, ", %s of %s; first", share,
			lines->total.hitm_cycles ? "HITM" : "miss cycles");
	fputs(": ", f);
	put_name(f, rows, g->first);
	if (g->n == 1)
		fprintf(f, ", %s of %s", share, lines->total.hitm_cycles ? "HITM" : "miss cycles");
	fputs(".\n", f);
}

bool line_rows_tells(const struct line_rows *rows, const struct line *l)
{
	return l->verdict >= LINE_VERDICT_FALSE && (l->samples >= TABLE_FEW || rows->tells_few);
}

static double all_cycles(const struct lines *lines)
{
	return (double)lines->total.cycles + lines->trimmed_cycles;
}

/* Do sentences have lines of a handful of samples, too? */
static void find_few(struct line_rows *rows)
{
	const struct lines *lines = rows->lines;
	double cost = 0;

	rows->tells_few = false;
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *l = &lines->line[i];

		if (line_rows_tells(rows, l))
			return;
		if (l->verdict >= LINE_VERDICT_FALSE)
			cost += cost_of(lines, l);
	}
	rows->tells_few = cost >= DEAR * all_cycles(lines);
}

void line_rows_answer(FILE *f, struct line_rows *rows)
{
	const struct lines *lines = rows->lines;
	struct sharing kind[KINDS] = { { 0 } };
	size_t unproved = 0, few = 0;
	char samples[32];

	find_few(rows);
	for (size_t i = 0; i < lines->n; i++) {
		const struct line *l = &lines->line[i];
		struct sharing *g = &kind[l->verdict == LINE_VERDICT_TRUE ? TRULY : FALSELY];

		unproved += is_unproved(l);
		if (!line_rows_tells(rows, l)) {
			few += l->verdict >= LINE_VERDICT_FALSE;
			continue;
		}
		if (!g->n++ || cost_of(lines, l) > cost_of(lines, g->first))
			g->first = l;
		g->cost += cost_of(lines, l);
	}
	put_kind(f, rows, &kind[FALSELY], line_verdict_how(LINE_VERDICT_FALSE));
	put_kind(f, rows, &kind[TRULY], line_verdict_how(LINE_VERDICT_TRUE));
	if (!kind[FALSELY].n && !kind[TRULY].n && lines->total.stores) {
		screen_count(rows->p->screen, lines->total.samples, samples, sizeof(samples));
		fprintf(f, "%s shared line in %s samples",
			unproved || few ? "No falsely or truly" : "No", samples);
		if (few)
			fprintf(f, ", but for %s with fewer than %d", TEXT_COUNT(few), TABLE_FEW);
		if (unproved)
			fprintf(f, "; %s shared without HITM", TEXT_COUNT(unproved));
		fputs(".\n", f);
	}
	if (rows->hidden)
		fprintf(f, "%s line%s of one thread or CPU %s not listed (--all).\n",
			TEXT_COUNT(rows->hidden), rows->hidden > 1 ? "s" : "",
			rows->hidden > 1 ? "are" : "is");
}

static char *printable_name(struct line_rows *rows, const struct line *l)
{
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	put_name(f, rows, l);
	xmemclose(f);
	return text;
}

/* The function that most samples are in; the caller frees it. NULL: unknown */
static char *function_of(struct line_rows *rows, const struct line *l)
{
	struct line_tally t;
	char *name;

	line_tally(&rows->namer, l, LINE_FUNCTION, LINE_ANY, ~0u, &t);
	name = t.n && *t.v[0].label.name != '[' ? xstrdup(t.v[0].label.name) : NULL;
	free(t.v);
	return name;
}

bool lines_hottest(const struct lines_print *p, const struct lines *lines, double least,
		   struct lines_hottest *out)
{
	struct line_rows rows = line_rows_new(p, lines, 0);
	const bool hitm = lines->total.hitm_cycles;
	const double cycles = all_cycles(lines);
	const double all = hitm ? (double)lines->total.hitm_cycles + lines->trimmed_hitm : cycles;
	const struct line *best = NULL;
	char address[LINE_ADDRESS];

	find_few(&rows);
	for (size_t i = 0; i < lines->n; i++)
		if (line_rows_tells(&rows, &lines->line[i]) &&
		    (!best || cost_of(lines, &lines->line[i]) > cost_of(lines, best)))
			best = &lines->line[i];
	if (best && (!(all > 0) || best->cycles < least * cycles))
		best = NULL;
	if (best)
		*out = (struct lines_hottest){
			.line = line_address(best, true, address) ? xstrdup(address) : NULL,
			.verdict = best->verdict,
			.likely = best->likely,
			.name = printable_name(&rows, best),
			.function = function_of(&rows, best),
			.share = cost_of(lines, best) / all,
			.of_hitm = hitm,
			.cycles_share = best->cycles / cycles,
		};
	line_rows_free(&rows);
	return best;
}

void lines_hottest_free(struct lines_hottest *h)
{
	free(h->line);
	free(h->name);
	free(h->function);
}

void line_rows_advice(FILE *f, struct line_rows *rows, const struct line *l, const char *label,
		      unsigned int indent)
{
	char *advice = line_advice(&rows->namer, l), *line, *text;
	size_t size;
	FILE *printable;

	if (!advice)
		return;
	line = xasprintf("%s%s", label, advice);
	printable = xmemopen(&text, &size);
	utf8_put(printable, line);
	xmemclose(printable);
	screen_wrap(f, text, indent, rows->p->screen->width);
	free(text);
	free(line);
	free(advice);
}

void line_rows_next_function(FILE *f, struct line_rows *rows, const struct line *l)
{
	const char *function;
	struct line_tally t;

	if (!rows->p->file)
		return;
	line_tally(&rows->namer, l, LINE_FUNCTION, LINE_STORE, ~0u, &t);
	if (!t.n) {
		free(t.v);
		line_tally(&rows->namer, l, LINE_FUNCTION, LINE_ANY, ~0u, &t);
	}
	function = t.n ? t.v[0].label.code ?: t.v[0].label.name : NULL;
	if (function && !strchr("[-", *function))
		screen_next(f, rows->p->screen, "annotate", "-i", rows->p->file, function, NULL);
	free(t.v);
}
