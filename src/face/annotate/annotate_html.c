// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A page without scripts: each row is an instruction or a line of source. */
#include "annotate_print.h"

#include "annotate_private.h"
#include "annotate_source.h"
#include "base/utf8.h"
#include "html/html_write.h"

#include <math.h>

#define BAR   64 /* pixels of a share of 1 */
#define STEPS 8	 /* colour steps; each is twice the one below */

typedef unsigned long long ull;

struct page {
	FILE *f;
	const struct annotate *a;
	struct source_files sources;
	struct screen screen;
	bool shown[TABLE_COLUMNS];
};

static void put_bar(FILE *f, double share)
{
	int step = share > 0 ? STEPS + 1 + (int)ceil(log2(share)) : 0;

	fprintf(f,
		"<svg width=\"%d\" height=\"10\" aria-hidden=\"true\"><rect class=\"a%d\" "
		"width=\"%.1f\" height=\"10\"/></svg>",
		BAR,
		step < 1       ? share > 0
		: step > STEPS ? STEPS
			       : step,
		share * BAR);
}

static void put_cell(const struct page *p, const struct annotate_sums *s, enum table_column c)
{
	double v = annotate_value(s, &p->a->function[0].total, c);
	char buf[64];

	column_text(&p->screen, c, v, ' ', buf, sizeof(buf));
	fputs(c == TABLE_SHARE ? "<td><div class=\"share\">" : "<td>", p->f);
	if (c == TABLE_SHARE && !isnan(v))
		put_bar(p->f, v);
	fputs(c == TABLE_SHARE ? "<span>" : "", p->f);
	utf8_put_markup(p->f, buf);
	fputs(c == TABLE_SHARE ? "</span></div></td>" : "</td>", p->f);
}

static void put_cells(const struct page *p, const struct annotate_sums *s)
{
	for (unsigned int i = 0; i < annotate_columns.n; i++) {
		const enum table_column c = annotate_columns.column[i].id;

		if (!p->shown[c])
			continue;
		if (s)
			put_cell(p, s, c);
		else
			fputs("<td></td>", p->f);
	}
}

static void put_source(struct page *p, const struct annotate_row *r)
{
	const char *line = source_line(&p->sources, r->file, r->line);

	fputs("<tr><td></td>", p->f);
	put_cells(p, NULL);
	fputs("<td class=\"left\"><span class=\"note\">", p->f);
	utf8_put_markup(p->f, r->file);
	fprintf(p->f, ":%d</span> <code class=\"dim\">", r->line);
	for (; line && *line == ' '; line++)
		fputs("&nbsp;", p->f);
	utf8_put_markup(p->f, line ?: "");
	fputs("</code></td></tr>\n", p->f);
}

static void put_inlined(struct page *p, const struct annotate_row *r)
{
	char text[4096];

	fputs("<tr><td></td>", p->f);
	put_cells(p, NULL);
	fputs("<td class=\"left\"><span class=\"note\">", p->f);
	utf8_put_markup(p->f, annotate_inlined(p->a, r, text, sizeof(text)));
	fputs("</span></td></tr>\n", p->f);
}

static void put_rows(struct page *p)
{
	const struct annotate_row *last = NULL;
	char data[1024];

	for (size_t i = 0; i < p->a->n; i++) {
		const struct annotate_row *r = &p->a->row[i];

		if (annotate_new_inlined(last, r))
			put_inlined(p, r);
		if (annotate_new_line(last, r))
			put_source(p, r);
		last = r;
		fprintf(p->f, "<tr><td class=\"mono\">%llx</td>", (ull)r->addr);
		put_cells(p, r->sums);
		fputs("<td class=\"left\"><code>", p->f);
		fputs(r->inside ? "(inside the one before) " : "", p->f);
		utf8_put_markup(p->f, r->text);
		fputs("</code><span class=\"note\">", p->f);
		utf8_put_markup(p->f, annotate_data(r, data, sizeof(data)));
		fputs("</span></td></tr>\n", p->f);
	}
}

static void put_table(struct page *p)
{
	const struct annotate_sums *total = &p->a->function[0].total;

	fputs("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Code\">\n"
	      "<table><thead><tr><th scope=\"col\">Address</th>",
	      p->f);
	for (unsigned int i = 0; i < annotate_columns.n; i++) {
		const enum table_column c = annotate_columns.column[i].id;

		p->shown[c] = !isnan(annotate_value(total, total, c));
		if (p->shown[c])
			fprintf(p->f, "<th scope=\"col\">%s</th>", column_heading(c));
	}
	fputs("<th scope=\"col\" class=\"left\">Code</th></tr></thead>\n<tbody>\n", p->f);
	put_rows(p);
	fputs("<tr><td><b>total</b></td>", p->f);
	put_cells(p, total);
	fputs("<td></td></tr>\n</tbody></table></div>\n", p->f);
}

static void put_fact(FILE *f, const char *text)
{
	fputs("<span>", f);
	utf8_put_markup(f, text);
	fputs("</span>", f);
}

static void put_head(const struct page *p, const struct report_head *h)
{
	const struct annotate *a = p->a;
	char text[256], callers[8192], *kinds;
	int n;
	FILE *types;
	size_t size;

	fputs("<header><div class=\"top\"><h1>", p->f);
	utf8_put_markup(p->f, a->function[0].code.name);
	fputs("</h1></div>\n<p class=\"facts\">", p->f);
	put_fact(p->f, a->function[0].code.dso);
	put_fact(p->f, h->file);
	put_fact(p->f, *h->info->host ? h->info->host : "host unknown");
	put_fact(p->f, *h->info->cpu.name ? h->info->cpu.name : "processor unknown");
	fputs("</p>\n<p class=\"facts\">", p->f);
	annotate_attribution(a, text, sizeof(text));
	put_fact(p->f, text);
	if (a->function[0].n_callers) {
		n = snprintf(callers, sizeof(callers), "called by ");
		annotate_callers(a, callers + n, sizeof(callers) - n);
		put_fact(p->f, callers);
	}
	if (a->n_functions > 1) {
		snprintf(text, sizeof(text), "%zu other functions of this name",
			 a->n_functions - 1);
		put_fact(p->f, text);
	}
	types = xmemopen(&kinds, &size);
	type_kinds_print(types, a->types);
	xmemclose(types);
	put_fact(p->f, kinds);
	free(kinds);
	fputs("</p>\n</header>\n<main><section>\n", p->f);
}

void annotate_print_html(FILE *f, const struct annotate_print *p, const struct annotate *a)
{
	struct page page = { .f = f,
			     .a = a,
			     .sources = { .program = a->function[0].code.dso },
			     .screen = { .utf8 = true } };
	char band[512];

	snprintf(band, sizeof(band), "%s%s%.300s",
		 p->head->info->simulated ? "SIMULATED samples, not measurements. " : "",
		 p->head->end->whole ? "" : "INCOMPLETE recording: ", p->head->end->missing);
	html_write_head(f, a->function[0].code.name, band);
	put_head(&page, p->head);
	put_table(&page);
	fputs("</section></main>\n<footer>Figures equal those of <code>ibscope annotate</code> on "
	      "the same data and selection. Miss cycles are Σ latency × ops a sample stands for."
	      "</footer>\n</html>\n",
	      f);
	source_warn(&page.sources);
	source_free(&page.sources);
}
