// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as JSON and CSV, with all causes and rows that were tested. */
#include "diff_private.h"

#include "base/json_writer.h"
#include "base/utf8.h"

#include <math.h>

static void put_change(struct json_writer *w, const char *key, const struct compare_change *c)
{
	json_begin_object(w, key);
	json_put_double(w, "change", c->change);
	json_put_double(w, "low", c->low);
	json_put_double(w, "high", c->high);
	json_put_double(w, "p", c->p);
	json_put_bool(w, "finding", c->finding);
	json_put_bool(w, "gone", c->gone);
	json_end(w);
}

static void put_side(struct json_writer *w, const char *key, const struct diff_about *a,
		     const struct compare_side_sum *s)
{
	json_begin_object(w, key);
	json_put_text(w, "file", a->file);
	json_put_text(w, "selection", a->selection);
	json_put_text_if_any(w, "host", a->host);
	json_put_text_if_any(w, "release", a->release);
	json_put_text_if_any(w, "cpu", a->cpu);
	json_put_text_if_any(w, "source", a->source);
	json_put_bool(w, "simulated", a->simulated);
	json_put_text_if_any(w, "event", a->event);
	json_put_text_if_any(w, "filter", a->filter);
	json_put_u64(w, "samples", s->samples);
	json_put_u64(w, "valid", s->valid);
	json_put_double(w, "seconds", s->seconds > 0 ? s->seconds : NAN);
	json_put_u64(w, "blocks", s->blocks);
	json_put_double(w, "base", s->base);
	json_put_double(w, "value", s->y);
	json_end(w);
}

static void put_quantile(struct json_writer *w, const struct diff *d,
			 const struct compare_result *r)
{
	if (!r->has_quantile) {
		json_put_null(w, "p99");
		return;
	}
	json_begin_object(w, "p99");
	json_put_double(w, "a", r->quantile[COMPARE_A]);
	json_put_double(w, "b", r->quantile[COMPARE_B]);
	for (unsigned int s = 0; r->quantile_wide && s < COMPARE_SIDES; s++) {
		json_begin_array(w, s ? "b_edges" : "a_edges");
		json_put_double(w, NULL, r->quantile_low[s]);
		json_put_double(w, NULL, r->quantile_high[s]);
		json_end(w);
	}
	put_change(w, "change", &r->quantile_change);
	json_begin_array(w, "factors");
	for (size_t i = 0; i < r->n_factors; i++) {
		json_begin_object(w, NULL);
		json_put_text(w, "factor",
			      r->factor[i].cause == COMPARE_FACTOR_MIX ? "mix" : "latency");
		json_put_text(w, "cause",
			      r->factor[i].cause < 0
				      ? NULL
				      : compare_cause_name(d->compare, r->factor[i].cause));
		put_change(w, "change", &r->factor[i].change);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

static void put_where(struct json_writer *w, const struct diff *d, const struct compare_result *r)
{
	json_begin_array(w, "where");
	for (size_t i = 0; i < r->n_rows; i++) {
		const struct compare_where *row = &r->row[i];

		json_line_break(w);
		json_begin_object(w, NULL);
		json_begin_object(w, "labels");
		for (unsigned int k = 0; k < d->n_by; k++)
			json_put_text(w, label_name(d->by[k]), row->name[k]);
		json_end(w);
		json_put_u64(w, "valid", row->valid);
		json_put_double(w, "a", row->a);
		json_put_double(w, "b", row->b);
		put_change(w, "change", &row->change);
		json_put_text(w, "cause", compare_cause_name(d->compare, row->cause));
		json_put_text(w, "kind", diff_word(row->kind, row->change.change));
		json_put_bool(w, "moved", row->moved >= 0);
		json_end(w);
	}
	json_end(w);
}

void diff_put_json(FILE *f, const struct diff_print *p, const struct diff *d,
		   const struct compare_result *r)
{
	struct json_writer w = { .f = f, .precision = 9 };

	json_begin_object(&w, NULL);
	json_put_text(&w, "per", diff_per_name(d->per));
	json_put_text(&w, "unit", d->per == DIFF_PER_OPS ? diff_unit(d) : NULL);
	json_put_text(&w, "metric", d->about[COMPARE_A].metric);
	put_side(&w, "a", &d->about[COMPARE_A], &r->side[COMPARE_A]);
	put_side(&w, "b", &d->about[COMPARE_B], &r->side[COMPARE_B]);
	put_change(&w, "change", &r->change);
	json_put_double(&w, "detectable", r->detectable);
	json_begin_array(&w, "causes");
	for (size_t i = 0; i < r->n_terms; i++) {
		const struct compare_term *t = &r->term[i];

		json_line_break(&w);
		json_begin_object(&w, NULL);
		json_put_text(&w, "cause", compare_cause_name(d->compare, t->cause));
		json_put_text(&w, "kind", diff_word(t->kind, t->change.change));
		json_put_double(&w, "a", t->a);
		json_put_double(&w, "b", t->b);
		put_change(&w, "change", &t->change);
		json_end(&w);
	}
	json_end(&w);
	put_change(&w, "other_causes", &r->other_terms);
	put_where(&w, d, r);
	put_change(&w, "other_where", &r->other_rows);
	put_quantile(&w, d, r);
	if (p->more)
		p->more(p->ctx, &w);
	json_finish(&w);
}

static void csv_change(FILE *f, double a, double b, const struct compare_change *c)
{
	const double v[] = { a, b, c->change, c->low, c->high, c->p };

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (isfinite(v[i]))
			fprintf(f, ",%.9g", v[i]);
		else
			fputc(',', f);
	fprintf(f, ",%d\n", c->finding);
}

void diff_put_csv(FILE *f, const struct diff *d, const struct compare_result *r)
{
	fputs("table", f);
	for (unsigned int k = 0; k < d->n_by; k++)
		fprintf(f, ",%s", label_name(d->by[k]));
	fputs(",cause,kind,a,b,change,low,high,p,finding\n", f);
	for (size_t i = 0; i < r->n_terms; i++) {
		fputs("cause", f);
		for (unsigned int k = 0; k < d->n_by; k++)
			fputc(',', f);
		fputc(',', f);
		utf8_put_csv(f, compare_cause_name(d->compare, r->term[i].cause));
		fprintf(f, ",%s", diff_word(r->term[i].kind, r->term[i].change.change));
		csv_change(f, r->term[i].a, r->term[i].b, &r->term[i].change);
	}
	for (size_t i = 0; i < r->n_rows; i++) {
		fputs("where", f);
		for (unsigned int k = 0; k < d->n_by; k++) {
			fputc(',', f);
			utf8_put_csv(f, r->row[i].name[k] ?: "");
		}
		fputc(',', f);
		utf8_put_csv(f, compare_cause_name(d->compare, r->row[i].cause));
		fprintf(f, ",%s", diff_word(r->row[i].kind, r->row[i].change.change));
		csv_change(f, r->row[i].a, r->row[i].b, &r->row[i].change);
	}
}
