// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loops.h"

#include "base/json_writer.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>

static const struct figure {
	const char *id, *what;
	enum loop_unit unit;
	double limit;
} figures[] = {
#define LOOPS_ROW(NAME, id, what, unit, limit) { id, what, unit, limit },
	LOOPS_TABLE(LOOPS_ROW)
#undef LOOPS_ROW
};

/* A latency of few clocks is only as exact as the loop's other instructions. */
#define CLOCKS_EXACT 8
/* Of chance: a figure of n samples may be wrong by this over sqrt(n). */
#define SIGMAS 3

void loops_unknown(struct loops *l, enum loop_figure figure, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	l->rows[figure].known = false;
	vsnprintf(l->rows[figure].why, sizeof(l->rows[figure].why), fmt, ap);
	va_end(ap);
}

void loops_set(struct loops *l, enum loop_figure figure, double expected, double measured,
	       unsigned long long samples)
{
	if (samples < LOOPS_SAMPLES_MIN)
		loops_unknown(l, figure, "only %llu samples of the loop", samples);
	else
		l->rows[figure] = (struct loop_row){ .known = true,
						     .expected = expected,
						     .measured = measured,
						     .samples = samples };
}

double loops_error(const struct loops *l, enum loop_figure figure)
{
	const struct loop_row *r = &l->rows[figure];

	return figures[figure].unit == LOOP_SHARE ? r->measured - r->expected
						  : r->measured / r->expected - 1;
}

double loops_limit(const struct loops *l, enum loop_figure figure)
{
	const struct figure *fig = &figures[figure];
	const struct loop_row *r = &l->rows[figure];

	switch (fig->unit) {
	case LOOP_COUNT:
		return fig->limit + SIGMAS / sqrt(r->samples);
	case LOOP_CLOCKS:
		return fmax(fig->limit, CLOCKS_EXACT / r->expected);
	default:
		return fig->limit;
	}
}

static bool agrees(const struct loops *l, int i)
{
	return fabs(loops_error(l, i)) <= loops_limit(l, i);
}

bool loops_compared(const struct loops *l)
{
	bool any = false;

	for (int i = 0; i < LOOPS_N; i++)
		any |= l->rows[i].known;
	return any;
}

bool loops_agree(const struct loops *l)
{
	for (int i = 0; i < LOOPS_N; i++)
		if (l->rows[i].known && !agrees(l, i))
			return false;
	return loops_compared(l);
}

static void print_value(enum loop_unit unit, double value, FILE *f)
{
	if (unit == LOOP_COUNT)
		fprintf(f, " %15s", TEXT_COUNT(llround(value)));
	else if (unit == LOOP_CLOCKS)
		fprintf(f, " %15.0f", value);
	else
		fprintf(f, " %13.1f %%", 100 * value);
}

static void print_row(const struct loops *l, int i, FILE *f)
{
	const struct figure *fig = &figures[i];
	const struct loop_row *r = &l->rows[i];

	fprintf(f, "%-50s", fig->what);
	if (!r->known) {
		fprintf(f, " %15s %15s %10s  unknown\n    %s\n", "", "", "", r->why);
		return;
	}
	print_value(fig->unit, r->expected, f);
	print_value(fig->unit, r->measured, f);
	fprintf(f, " %+8.1f %%  ", 100 * loops_error(l, i));
	if (agrees(l, i))
		fprintf(f, "ok\n");
	else
		fprintf(f, "WRONG: more than %.0f %%\n", 100 * loops_limit(l, i));
}

void loops_print(const struct loops *l, FILE *f)
{
	fprintf(f, "%-50s %15s %15s %10s\n", "LOOP", "EXPECTED", "MEASURED", "ERROR");
	for (int i = 0; i < LOOPS_N; i++)
		print_row(l, i, f);
	fputc('\n', f);
	if (!loops_compared(l))
		fprintf(f, "No loop could be sampled.\n");
	else if (loops_agree(l))
		fprintf(f, "Loops look as they must.\n");
	else
		fprintf(f, "Loops look WRONG.\n");
}

void loops_print_json(const struct loops *l, struct json_writer *w)
{
	json_begin_array(w, "loops");
	for (int i = 0; i < LOOPS_N; i++) {
		const struct loop_row *r = &l->rows[i];
		const double none = NAN;

		json_begin_object(w, NULL);
		json_put_text(w, "id", figures[i].id);
		json_put_double(w, "expected", r->known ? r->expected : none);
		json_put_double(w, "measured", r->known ? r->measured : none);
		json_put_double(w, "error", r->known ? loops_error(l, i) : none);
		json_put_double(w, "limit", r->known ? loops_limit(l, i) : none);
		json_put_u64(w, "samples", r->samples);
		if (r->known)
			json_put_bool(w, "agrees", agrees(l, i));
		else
			json_put_null(w, "agrees");
		json_put_text(w, "why", r->known ? NULL : r->why);
		json_end(w);
	}
	json_end(w);
}
