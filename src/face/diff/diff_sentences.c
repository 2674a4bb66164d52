// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers and sentences of a comparison. */
#include "diff_private.h"

#include "base/text.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>

#define POINTS 2 /* causes in the sentence */

/* --- numbers */

#define NUMBER DIFF_NUMBER
#define SIGNED DIFF_SIGNED

double diff_scale(const struct diff *d)
{
	return d->per == DIFF_PER_OPS ? 1000 : 1;
}

const char *diff_minus(const struct screen *s)
{
	return s->utf8 ? "−" : "-";
}

static void plain(const struct screen *s, double v, char *buf)
{
	if (fabs(v) >= 1e6) {
		screen_scaled(s, fabs(v), screen_unit(fabs(v)), buf, NUMBER);
		return;
	}
	if (fabs(v) >= 100)
		screen_count(s, fabs(v), buf, NUMBER);
	else
		snprintf(buf, NUMBER, "%.*f", fabs(v) < 1 ? 2 : 1, fabs(v));
}

const char *diff_number(const struct screen *s, double v, char buf[NUMBER])
{
	if (isnan(v))
		snprintf(buf, NUMBER, "%s", s->utf8 ? "–" : "-");
	else
		plain(s, v, buf);
	return buf;
}

const char *diff_signed(const struct screen *s, double v, char buf[SIGNED])
{
	char digits[NUMBER];

	plain(s, v, digits);
	snprintf(buf, SIGNED, "%s%s", v <= -.005 ? diff_minus(s) : "+", digits);
	return buf;
}

/* A change in percent, and half of its interval to as many decimals. */
static const char *percent_range(const struct screen *s, double ratio, double half, char *buf)
{
	const int decimals = fabs(ratio) < .1 || half < .1;

	snprintf(buf, 2 * NUMBER, "%s%.*f %% %s %.*f %%", ratio < 0 ? diff_minus(s) : "+", decimals,
		 fabs(ratio) * 100, s->utf8 ? "±" : "+-", decimals, half * 100);
	return buf;
}

void diff_put(FILE *f, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		out_of_memory();
	va_end(ap);
	utf8_put(f, text);
	free(text);
}

/* --- sentences */

void diff_put_side(FILE *f, const struct screen *s, const struct diff_about *a, char name,
		   const struct compare_side_sum *sum, size_t width)
{
	const size_t columns = screen_columns(a->file);
	char samples[NUMBER];

	screen_count(s, sum->samples, samples, sizeof(samples));
	fprintf(f, "%c  ", name);
	diff_put(f, "%s", a->file);
	fprintf(f, "%*s", columns < width ? (int)(width - columns) : 0, "");
	if (a->selection)
		diff_put(f, "  '%s'", a->selection);
	fputs("  ", f);
	if (a->simulated)
		fputs("SIMULATED, ", f);
	if (*a->host)
		diff_put(f, "host %s, ", a->host);
	if (*a->cpu)
		fprintf(f, "%s, ", a->cpu);
	if (*a->release)
		diff_put(f, "kernel %s, ", a->release);
	if (sum->seconds > 0)
		fprintf(f, sum->seconds < 10 ? "%.1f s, " : "%.0f s, ", sum->seconds);
	fprintf(f, "%s sample%s\n", samples, text_plural(sum->samples));
}

void diff_what(const struct diff *d, char *buf, size_t size)
{
	if (d->per == DIFF_PER_ACCESS)
		snprintf(buf, size, "mean latency in cycles");
	else if (d->per == DIFF_PER_SECOND)
		snprintf(buf, size, "miss cycles per second");
	else
		snprintf(buf, size, "miss cycles per thousand %s", diff_unit(d));
}

static double half(const struct compare_change *c)
{
	return (c->high - c->low) / 2;
}

static void put_points(FILE *f, const struct screen *s, double ratio)
{
	char points[NUMBER];

	snprintf(points, sizeof(points), "%s%.0f", ratio < 0 ? diff_minus(s) : "+",
		 fabs(ratio * 100));
	fprintf(f, "  %*s%s points  ", (int)(5 - screen_columns(points)), "", points);
}

static void print_term(FILE *f, const struct screen *s, const struct diff *d,
		       const struct compare_term *t, double of)
{
	const char *cause = compare_cause_name(d->compare, t->cause);
	double k = t->kind == COMPARE_OFTEN ? diff_scale(d) : 1;
	char a[NUMBER], b[NUMBER];

	put_points(f, s, t->change.change / of);
	if (t->kind == COMPARE_OFTEN)
		diff_put(f, "%s %s", cause, diff_word(t->kind, t->change.change));
	else
		diff_put(f, "%s answered %s", cause,
			 t->change.change > 0 ? "more slowly" : "faster");
	diff_number(s, t->a * k, a);
	diff_number(s, t->b * k, b);
	fprintf(f, t->kind == COMPARE_COST ? " (mean %s %s %s cycles)" : " (%s %s %s", a,
		s->utf8 ? "→" : "->", b);
	if (t->kind == COMPARE_OFTEN && d->per == DIFF_PER_OPS)
		fprintf(f, " of a thousand %s)", diff_unit(d));
	else if (t->kind == COMPARE_OFTEN)
		fputs(d->per == DIFF_PER_SECOND ? " per second)" : " of all)", f);
	fputc('\n', f);
}

bool diff_is_close(const struct compare_result *r)
{
	return !r->change.finding && !r->change.gone && !r->n_findings && !r->n_row_findings &&
	       (r->change.low > 0 || r->change.high < 0);
}

/* Nothing was found. */
static void print_nothing(FILE *f, const struct screen *s, const struct compare_result *r,
			  const char *change, const char *what)
{
	char line[512];

	if (diff_is_close(r))
		snprintf(line, sizeof(line),
			 "No finding: %s %s. By chance alone 1 of 20 such intervals does not "
			 "contain 0, and %s changes were tested at once, so this one can be noise.",
			 change, what, TEXT_COUNT(r->tests));
	else
		snprintf(line, sizeof(line), "No difference that is more than noise: %s %s.",
			 change, what);
	screen_wrap(f, line, 0, s->width);
}

/* Why the sum is printed as it is, if it is not a finding by itself. */
static void put_doubt(const struct compare_result *r, char *line, size_t size)
{
	if (r->change.gone)
		text_append(line, size, ", but it went away before the end of B");
	else if (!r->change.finding && r->n_findings)
		text_append(line, size,
			    ": as a sum this can be noise, the causes below are findings");
	else if (!r->change.finding)
		text_append(line, size, ": as a sum this can be noise, but %zu row%s %s",
			    r->n_row_findings, text_plural(r->n_row_findings),
			    r->n_row_findings == 1 ? "is a finding" : "are findings");
}

static void print_headline(FILE *f, const struct screen *s, const struct diff *d,
			   const struct compare_result *r)
{
	const double k = diff_scale(d), of = r->side[COMPARE_A].y;
	double rest = r->change.change;
	char text[64], a[NUMBER], b[NUMBER], p[2 * NUMBER], line[384];

	diff_what(d, text, sizeof(text));
	percent_range(s, r->change.change / of, half(&r->change) / of, p);
	if (!r->change.finding && !r->change.gone && !r->n_findings && !r->n_row_findings) {
		print_nothing(f, s, r, p, text);
		return;
	}
	diff_number(s, r->side[COMPARE_A].y * k, a);
	diff_number(s, r->side[COMPARE_B].y * k, b);
	snprintf(line, sizeof(line), "%c%s: %s %s %s, %s", text[0] - 'a' + 'A', text + 1, a,
		 s->utf8 ? "→" : "->", b, p);
	put_doubt(r, line, sizeof(line));
	screen_wrap(f, line, 0, s->width);
	for (size_t i = 0; i < r->n_findings && i < POINTS; i++) {
		print_term(f, s, d, &r->term[i], of);
		rest -= r->term[i].change.change;
	}
	if (!r->n_findings)
		return;
	put_points(f, s, rest / of);
	fprintf(f, "%severything else\n", r->n_findings > POINTS ? "" : "~ ");
}

/* What it would take to know. */
static void put_longer(FILE *f, const struct screen *s, const struct compare_result *r)
{
	char least[NUMBER], more[NUMBER], text[256];
	double samples = fmin(r->side[0].samples, r->side[1].samples);

	plain(s, samples, least);
	plain(s, samples * r->longer, more);
	snprintf(text, sizeof(text),
		 "(To find a change of this size, measure %.1f times as long: about %s samples on "
		 "each side, rather than %s.)",
		 r->longer, more, least);
	screen_wrap(f, text, 0, s->width);
}

/* What would have been seen. */
void diff_put_power(FILE *f, const struct screen *s, const struct compare_result *r)
{
	const double needed = compare_needed(r, .01);
	char samples[NUMBER], more[NUMBER], text[256];

	if (diff_is_close(r)) {
		put_longer(f, s, r);
		return;
	}
	plain(s, fmin(r->side[0].samples, r->side[1].samples), samples);
	plain(s, needed, more);
	snprintf(text, sizeof(text),
		 "(A change of %.1f %% would have been seen with these %s samples",
		 r->detectable * 100, samples);
	if (r->detectable > .01)
		text_append(text, sizeof(text), "; 1 %% needs about %s on each side", more);
	text_append(text, sizeof(text), ".)");
	screen_wrap(f, text, 0, s->width);
}

/* The edges of the wide buckets that both are in. */
static void print_buckets(FILE *f, const struct screen *s, const struct compare_result *r)
{
	char v[NUMBER];

	for (int side = 0; side < COMPARE_SIDES; side++) {
		fprintf(f, side ? " %s " : "  in buckets: ", s->utf8 ? "→" : "->");
		fprintf(f, "%s to ", diff_number(s, r->quantile_low[side], v));
		fputs(diff_number(s, r->quantile_high[side], v), f);
	}
	fputs(" cycles\n", f);
}

static void print_quantile(FILE *f, const struct screen *s, const struct diff *d,
			   const struct compare_result *r)
{
	const struct compare_change *c = &r->quantile_change;
	const double of = r->quantile[COMPARE_A];
	char a[NUMBER], b[NUMBER], p[2 * NUMBER];

	if (!r->has_quantile)
		return;
	diff_number(s, r->quantile[COMPARE_A], a);
	diff_number(s, r->quantile[COMPARE_B], b);
	fprintf(f, "p99 of latency: %s %s %s cycles", a, s->utf8 ? "→" : "->", b);
	if (c->finding)
		fprintf(f, ", %s\n", percent_range(s, c->change / of, half(c) / of, p));
	else
		fprintf(f, ", %s\n",
			c->gone				? "but that went away before the end of B"
			: r->quantile_wide && c->p == 1 ? "within the width of buckets"
							: "within noise");
	if (r->quantile_wide)
		print_buckets(f, s, r);
	if (!c->finding)
		return;
	for (size_t i = 0; i < r->n_factors; i++) {
		const struct compare_factor *x = &r->factor[i];

		if (!x->change.finding)
			continue;
		put_points(f, s, x->change.change / of);
		if (x->cause == COMPARE_FACTOR_MIX)
			fputs("another mix of causes\n", f);
		else
			diff_put(f, "%s %s",
				 x->cause < 0 ? "others" : compare_cause_name(d->compare, x->cause),
				 diff_word(COMPARE_COST, x->change.change));
		if (x->cause != COMPARE_FACTOR_MIX)
			fputc('\n', f);
	}
}

/* What points are, and the line without a cause, where either is shown. */
static void print_points(FILE *f, const struct screen *s, const struct compare_result *r)
{
	bool any = r->n_findings;
	char text[128] = "1 point is 1 % of the first value.";

	for (size_t i = 0; r->has_quantile && r->quantile_change.finding && i < r->n_factors; i++)
		any = any || r->factor[i].change.finding;
	if (!any)
		return;
	if (r->n_findings > POINTS)
		text_append(text, sizeof(text), " Everything else: smaller causes, and noise.");
	else if (r->n_findings)
		text_append(text, sizeof(text), " ~: causes that are within noise one by one.");
	screen_wrap(f, text, 0, s->width);
}

void diff_put_answer(FILE *f, const struct screen *s, const struct diff *d,
		     const struct compare_result *r)
{
	print_headline(f, s, d, r);
	print_quantile(f, s, d, r);
	print_points(f, s, r);
}
