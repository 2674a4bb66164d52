// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "verify.h"

#include "loops.h"

#include "base/err.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/output_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct figure {
	const char *id, *sampled, *counted;
	double limit;
	const char *remark;
} figures[] = {
#define VERIFY_ROW(NAME, id, sampled, counted, limit, remark) \
	{ id, sampled, counted, limit, remark },
	VERIFY_TABLE(VERIFY_ROW)
#undef VERIFY_ROW
};

/* Samples in flight when counting starts and stops, on each CPU. */
#define SAMPLES_PER_CPU 2

void verify_unknown(struct verify *v, enum verify_figure figure, const char *why)
{
	v->rows[figure].known = false;
	snprintf(v->rows[figure].why, sizeof(v->rows[figure].why), "%s", why);
}

void verify_set(struct verify *v, enum verify_figure figure, double sampled, double counted)
{
	if (!counted)
		verify_unknown(v, figure, "the counter counted nothing");
	else
		v->rows[figure] = (struct verify_row){ .known = true,
						       .sampled = sampled,
						       .counted = counted };
}

static double difference(const struct verify_row *r)
{
	return r->sampled / r->counted - 1;
}

static bool judged(const struct verify *v, int i)
{
	return v->rows[i].known && figures[i].limit;
}

static bool agrees(const struct verify *v, int i)
{
	const struct verify_row *r = &v->rows[i];
	const double edge = SAMPLES_PER_CPU * v->cpus * (i == VERIFY_OPS ? (double)v->period : 1);

	return fabs(r->sampled - r->counted) <= fmax(figures[i].limit * r->counted, edge);
}

bool verify_compared(const struct verify *v)
{
	bool any = false;

	for (int i = 0; i < VERIFY_N; i++)
		any |= judged(v, i);
	return any;
}

bool verify_agrees(const struct verify *v)
{
	for (int i = 0; i < VERIFY_N; i++)
		if (judged(v, i) && !agrees(v, i))
			return false;
	return verify_compared(v);
}

static void print_unknown(const struct verify *v, int i, FILE *f)
{
	const struct figure *fig = &figures[i];
	const char *why = v->rows[i].why;

	fprintf(f, "%-26s %15s  %-28s %15s  %10s  unknown\n", fig->sampled, "", fig->counted, "",
		"");
	/* print a common reason of adjacent figures once */
	if (i + 1 == VERIFY_N || v->rows[i + 1].known || strcmp(why, v->rows[i + 1].why))
		fprintf(f, "    %s\n", why);
}

static void print_row(const struct verify *v, int i, FILE *f)
{
	const struct figure *fig = &figures[i];
	const struct verify_row *r = &v->rows[i];

	fprintf(f, "%-26s %15.0f  %-28s %15.0f  %+8.2f %%  ", fig->sampled, r->sampled,
		fig->counted, r->counted, 100 * difference(r));
	if (!fig->limit)
		fprintf(f, "-\n");
	else if (agrees(v, i))
		fprintf(f, "ok\n");
	else
		fprintf(f, "DISAGREE: more than %g %%\n", 100 * fig->limit);
	if (*fig->remark)
		fprintf(f, "    %s\n", fig->remark);
}

void verify_print(const struct verify *v, FILE *f)
{
	const char *summary = "Samples and counters agree.";

	fprintf(f, "%.1f s on %u CPU%s, %s, period %s\n\n%-26s %15s  %-28s %15s  %10s\n",
		v->seconds, v->cpus, text_plural(v->cpus), v->event, TEXT_COUNT(v->period),
		"SAMPLED", "", "COUNTED", "", "DIFFERENCE");
	for (int i = 0; i < VERIFY_N; i++) {
		if (v->rows[i].known)
			print_row(v, i, f);
		else
			print_unknown(v, i, f);
	}
	if (!verify_compared(v))
		summary = "Nothing could be compared.";
	else if (!verify_agrees(v))
		summary = "Samples and counters DISAGREE.";
	fprintf(f, "\n%s\n", summary);
}

static double number(bool known, double value)
{
	return known ? value : (double)NAN;
}

static void put_boolean(struct json_writer *w, const char *key, bool known, bool value)
{
	if (known)
		json_put_bool(w, key, value);
	else
		json_put_null(w, key);
}

int verify_print_json(const struct verify *v, const struct loops *loops, FILE *f, struct err *e)
{
	struct json_writer w = { .f = f, .precision = 12 };

	json_begin_object(&w, NULL);
	json_put_text(&w, "event", v->event);
	json_put_u64(&w, "period", v->period);
	json_put_double(&w, "seconds", v->seconds);
	json_put_u64(&w, "cpus", v->cpus);
	json_begin_array(&w, "figures");
	for (int i = 0; i < VERIFY_N; i++) {
		const struct verify_row *r = &v->rows[i];

		json_begin_object(&w, NULL);
		json_put_text(&w, "id", figures[i].id);
		json_put_double(&w, "sampled", number(r->known, r->sampled));
		json_put_double(&w, "counted", number(r->known, r->counted));
		json_put_double(&w, "difference", number(r->known, r->known ? difference(r) : 0));
		json_put_double(&w, "limit", number(figures[i].limit, figures[i].limit));
		put_boolean(&w, "agrees", judged(v, i), r->known && agrees(v, i));
		json_put_text(&w, "why", r->known ? NULL : r->why);
		json_end(&w);
	}
	json_end(&w);
	put_boolean(&w, "agrees", verify_compared(v), verify_agrees(v));
	if (loops)
		loops_print_json(loops, &w);
	json_finish(&w);
	return output_stream_flush(f, e);
}
