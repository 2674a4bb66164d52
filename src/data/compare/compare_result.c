// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Terms and rows with their intervals, ordered, and what is no finding added up. */
#include "compare_private.h"

#include "base/err.h"
#include "base/text.h"

#include <math.h>

#define ROWS	   2000 /* tested; the others are in the sum */
#define WEAK	   20	/* valid samples of a row, of both sides: fewer are no finding */
#define MOVED_LEFT 0.25 /* of a change that another row takes away */
#define POWER_Z	   0.84 /* 80 % of the normal distribution lie below */

/* A result in the making: the moments of each term and row, and of the sums of what is no finding. */
struct making {
	const struct compare *c;
	struct compare_result *out;
	size_t *line; /* of each row */
	struct compare_moments total, *term, *row, others[2];
};

/* The change of every term and row in a draw; @term and @row have room for them. */
static double changes(const struct making *m, const struct compare_draw *d, double *term,
		      double *row)
{
	const struct compare *c = m->c;
	struct compare_sums sums;
	double all = 0;

	compare_sum(c, d, &sums);
	for (unsigned int k = 0; k < c->causes.n; k++) {
		const struct compare_cell cell[] = { sums.cause[COMPARE_A][k],
						     sums.cause[COMPARE_B][k] };

		compare_terms(cell, sums.base, &term[2 * k]);
		all += term[2 * k] + term[2 * k + 1];
	}
	for (size_t i = 0; i < m->out->n_rows; i++) {
		double v[COMPARE_SIDES];

		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			v[s] = sums.base[s] > 0
				       ? compare_line_sum(c, d, m->line[i], s) / sums.base[s]
				       : 0;
		row[i] = v[COMPARE_B] - v[COMPARE_A];
	}
	return all;
}

/* Draw c->rounds times. With @others only the sums of what is no finding. */
static void bootstrap(struct making *m, bool others)
{
	const struct compare *c = m->c;
	const size_t n_terms = 2 * c->causes.n, n_rows = m->out->n_rows;
	double *term = xcalloc(n_terms + n_rows + 1, sizeof(*term)), *row = term + n_terms;
	struct compare_draw d;
	__u64 state = 2;

	for (unsigned int r = 0; r < c->rounds; r++) {
		double rest[2];

		compare_draw(c, COMPARE_SINGLY, &state, &d);
		rest[0] = rest[1] = changes(m, &d, term, row);
		for (size_t i = 0; i < n_terms; i++) {
			if (!others)
				compare_moment(&m->term[i], term[i]);
			rest[0] -= m->out->term[i].change.finding ? term[i] : 0;
		}
		for (size_t i = 0; i < n_rows; i++) {
			if (!others)
				compare_moment(&m->row[i], row[i]);
			rest[1] -= m->out->row[i].change.finding ? row[i] : 0;
		}
		for (unsigned int i = 0; others && i < 2; i++)
			compare_moment(&m->others[i], rest[i]);
	}
	free(term);
}

/* The same for the whole, of which bursts are the largest part. */
static void bootstrap_total(struct making *m)
{
	const struct compare *c = m->c;
	struct compare_draw d;
	__u64 state = 3;

	for (unsigned int r = 0; r < c->rounds; r++) {
		struct compare_sums sums;
		double y[COMPARE_SIDES] = {};

		compare_draw(c, COMPARE_IN_RUNS, &state, &d);
		compare_sum(c, &d, &sums);
		for (unsigned int s = 0; s < COMPARE_SIDES; s++)
			for (unsigned int k = 0; k < c->causes.n && sums.base[s] > 0; k++)
				y[s] += sums.cause[s][k].cycles / sums.base[s];
		compare_moment(&m->total, y[COMPARE_B] - y[COMPARE_A]);
	}
}

static double line_rate(const struct compare *c, size_t line, const double *base,
			enum compare_side side)
{
	struct compare_draw d;

	compare_draw_all(c, &d);
	return base[side] > 0 ? compare_line_sum(c, &d, line, side) / base[side] : 0;
}

/* The same, without what blocks round. */
static double exact_rate(const struct compare *c, size_t line, const double *base,
			 enum compare_side side)
{
	double sum = 0;

	for (unsigned int k = 0; k < c->causes.n; k++)
		sum += compare_cell_of(c, line, k, side).cycles;
	return base[side] > 0 ? sum / base[side] : 0;
}

struct ranked {
	size_t line;
	double change;
};

static int by_size(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	double p = fabs(x->change), q = fabs(y->change);

	return (p < q) - (p > q) ?: (x->line > y->line) - (x->line < y->line);
}

/* The rows with the largest changes. */
static void choose_rows(struct making *m, const double *base)
{
	const struct compare *c = m->c;
	struct ranked *all = xcalloc(c->n_lines, sizeof(*all));

	for (size_t i = 0; i < c->n_lines; i++)
		all[i] = (struct ranked){ i, line_rate(c, i, base, COMPARE_B) -
						     line_rate(c, i, base, COMPARE_A) };
	qsort(all, c->n_lines, sizeof(*all), by_size);
	m->out->n_rows = c->n_lines < ROWS ? c->n_lines : ROWS;
	m->line = xcalloc(m->out->n_rows, sizeof(*m->line));
	for (size_t i = 0; i < m->out->n_rows; i++)
		m->line[i] = all[i].line;
	free(all);
}

/* The largest term of a row in the direction of its change. */
static void explain_row(const struct compare *c, size_t line, const double *base,
			struct compare_where *w)
{
	double most = 0;

	for (unsigned int k = 0; k < c->causes.n; k++) {
		const struct compare_cell cell[] = { compare_cell_of(c, line, k, COMPARE_A),
						     compare_cell_of(c, line, k, COMPARE_B) };
		double term[2];

		compare_terms(cell, base, term);
		for (unsigned int kind = 0; kind < 2; kind++) {
			double v = w->change.change < 0 ? -term[kind] : term[kind];

			if (v <= most)
				continue;
			most = v;
			w->cause = k;
			w->kind = kind;
		}
	}
}

static void make_rows(struct making *m, const double *base)
{
	const struct compare *c = m->c;
	struct compare_result *out = m->out;
	const char **name;

	choose_rows(m, base);
	out->row = xcalloc(out->n_rows, sizeof(*out->row));
	m->row = xcalloc(out->n_rows, sizeof(*m->row));
	for (size_t i = 0; i < out->n_rows; i++) {
		struct compare_where *w = &out->row[i];
		const struct compare_line *l = &c->line[m->line[i]];

		name = xcalloc(c->n_names, sizeof(*name));
		for (unsigned int k = 0; k < c->n_names; k++)
			name[k] = c->names[l->name + k] == INTERN_NONE
					  ? NULL
					  : intern_text(&c->texts, c->names[l->name + k]);
		*w = (struct compare_where){ .name = name,
					     .a = exact_rate(c, m->line[i], base, COMPARE_A),
					     .b = exact_rate(c, m->line[i], base, COMPARE_B),
					     .valid = l->valid,
					     .moved = -1 };
		w->change.change = w->b - w->a;
		explain_row(c, m->line[i], base, w);
	}
}

static void make_terms(struct making *m, const struct compare_sums *sums)
{
	struct compare_result *out = m->out;

	out->n_terms = 2 * m->c->causes.n;
	out->term = xcalloc(out->n_terms, sizeof(*out->term));
	m->term = xcalloc(out->n_terms, sizeof(*m->term));
	for (unsigned int k = 0; k < m->c->causes.n; k++) {
		const struct compare_cell cell[] = { sums->cause[COMPARE_A][k],
						     sums->cause[COMPARE_B][k] };
		double v[2];

		compare_terms(cell, sums->base, v);
		for (unsigned int kind = 0; kind < 2; kind++) {
			double side[COMPARE_SIDES];

			for (unsigned int s = 0; s < COMPARE_SIDES; s++)
				side[s] = kind == COMPARE_OFTEN ? cell[s].ops / sums->base[s]
								: cell[s].cycles / cell[s].ops;
			out->term[2 * k + kind] = (struct compare_term){
				.cause = k,
				.kind = kind,
				.a = side[COMPARE_A],
				.b = side[COMPARE_B],
				.change.change = v[kind],
			};
		}
	}
}

static void intervals(struct making *m)
{
	struct compare_result *out = m->out;

	bootstrap_total(m);
	bootstrap(m, false);
	compare_interval(m->c, COMPARE_IN_RUNS, &m->total, &out->change);
	for (size_t i = 0; i < out->n_terms; i++)
		compare_interval(m->c, COMPARE_SINGLY, &m->term[i], &out->term[i].change);
	for (size_t i = 0; i < out->n_rows; i++)
		compare_interval(m->c, COMPARE_SINGLY, &m->row[i], &out->row[i].change);
}

/* What is set aside does not count as found, or as tested: it would make room for false findings. */
static bool is_counted(const struct compare_change *c)
{
	return !c->gone;
}

/* Which changes are more than noise. A term without samples was not tested. */
static void discover(struct making *m)
{
	struct compare_result *out = m->out;
	struct compare_change **all;
	size_t n = 0, tests, aside = 0;

	/* with the two sums: of all, and of the percentile */
	all = xcalloc(2 + out->n_terms + out->n_rows + COMPARE_FACTORS,
		      sizeof(struct compare_change *));
	if (is_counted(&out->change))
		all[n++] = &out->change;
	for (size_t i = 0; i < out->n_terms; i++)
		if ((out->term[i].a > 0 || out->term[i].b > 0) && is_counted(&out->term[i].change))
			all[n++] = &out->term[i].change;
	tests = n + m->c->n_lines;
	for (size_t i = 0; i < out->n_rows; i++) {
		const bool set_aside = !is_counted(&out->row[i].change) || out->row[i].moved >= 0;

		aside += set_aside;
		if (out->row[i].valid >= WEAK && !set_aside)
			all[n++] = &out->row[i].change;
	}
	tests -= aside;
	if (out->has_quantile && is_counted(&out->quantile_change)) {
		all[n++] = &out->quantile_change;
		for (size_t i = 0; i < out->n_factors; i++)
			all[n++] = &out->factor[i].change;
		tests += 1 + out->n_factors;
	}
	compare_discover(all, n, tests);
	out->tests = tests;
	free(all);
}

/*
 * Can row @j of @m be another name for what row @i was? All names but the last are the same; or all but one, as those of a
 * program or a container that has been renamed, of which each side knows only one name.
 */
static bool same_place(const struct making *m, size_t i, size_t j)
{
	const struct compare *c = m->c;
	const __u32 *a = &c->names[c->line[m->line[i]].name],
		    *b = &c->names[c->line[m->line[j]].name];
	const struct compare_where *x = &m->out->row[i], *y = &m->out->row[j];
	unsigned int differ = 0;

	for (unsigned int k = 0; k + 1 < c->n_names; k++)
		differ += a[k] != b[k];
	if (!differ)
		return true;
	return differ == 1 && a[c->n_names - 1] == b[c->n_names - 1] &&
	       ((!x->a && !y->b) || (!x->b && !y->a));
}

/* Cycles that left a row for another of the same container, say, are no finding. */
static void find_moved(struct making *m)
{
	struct compare_where *row = m->out->row;

	for (size_t i = 0; i < m->out->n_rows; i++) {
		long best = -1;

		for (size_t j = 0; row[i].change.finding && row[i].moved < 0 && j < m->out->n_rows;
		     j++) {
			double left = row[i].change.change + row[j].change.change;

			if (j == i || !row[j].change.finding || row[j].moved >= 0 ||
			    fabs(left) > MOVED_LEFT * fabs(row[i].change.change) ||
			    !same_place(m, i, j))
				continue;
			if (best < 0 ||
			    fabs(left) < fabs(row[i].change.change + row[best].change.change))
				best = j;
		}
		if (best < 0)
			continue;
		row[i].moved = best;
		row[best].moved = i;
		row[i].change.finding = row[best].change.finding = false;
	}
}

static void mark_gone(const struct compare *c, struct compare_change *change,
		      struct compare_part_of of, bool all_gone)
{
	change->gone = change->finding && compare_is_gone(c, of, true, all_gone);
	change->finding &= !change->gone;
}

static void find_gone(struct making *m)
{
	const struct compare_part_of all = { -1, -1 };
	struct compare_result *out = m->out;

	/* what a change leaves behind makes it uncertain as a whole */
	out->change.gone = compare_is_gone(m->c, all, out->change.finding, false);
	out->change.finding &= !out->change.gone;
	for (size_t i = 0; i < out->n_terms; i++)
		mark_gone(m->c, &out->term[i].change,
			  (struct compare_part_of){ -1, out->term[i].cause }, out->change.gone);
	for (size_t i = 0; i < out->n_rows; i++)
		mark_gone(m->c, &out->row[i].change, (struct compare_part_of){ m->line[i], -1 },
			  out->change.gone);
	out->quantile_change.gone =
		out->quantile_change.finding && compare_quantile_is_gone(m->c, out);
	out->quantile_change.finding &= !out->quantile_change.gone;
	for (size_t i = 0; i < out->n_factors && out->quantile_change.gone; i++)
		out->factor[i].change.finding = false;
}

/* Sums of what is no finding. */
static void add_others(struct making *m)
{
	struct compare_result *out = m->out;

	out->other_terms.change = out->other_rows.change = out->change.change;
	for (size_t i = 0; i < out->n_terms; i++) {
		out->other_terms.change -=
			out->term[i].change.finding ? out->term[i].change.change : 0;
		out->n_findings += out->term[i].change.finding;
	}
	for (size_t i = 0; i < out->n_rows; i++) {
		out->other_rows.change -=
			out->row[i].change.finding ? out->row[i].change.change : 0;
		out->n_row_findings += out->row[i].change.finding;
	}
	bootstrap(m, true);
	compare_interval(m->c, COMPARE_SINGLY, &m->others[0], &out->other_terms);
	compare_interval(m->c, COMPARE_SINGLY, &m->others[1], &out->other_rows);
}

static int before(const struct compare_change *a, const struct compare_change *b)
{
	double p = fabs(a->change), q = fabs(b->change);

	return b->finding - a->finding ?: (p < q) - (p > q);
}

static int term_order(const void *a, const void *b)
{
	const struct compare_term *x = a, *y = b;

	return before(&x->change, &y->change) ?: (x->cause > y->cause) - (x->cause < y->cause);
}

/* The order of rows, so that `moved` follows. */
static int row_order(const void *a, const void *b, void *rows)
{
	const size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct compare_where *row = rows;

	return before(&row[i].change, &row[j].change) ?: (i > j) - (i < j);
}

static void order(struct compare_result *out)
{
	size_t *at = xcalloc(out->n_rows, sizeof(*at)), *to = xcalloc(out->n_rows, sizeof(*to));
	struct compare_where *row = xcalloc(out->n_rows, sizeof(*row));

	qsort(out->term, out->n_terms, sizeof(*out->term), term_order);
	for (size_t i = 0; i < out->n_rows; i++)
		at[i] = i;
	qsort_r(at, out->n_rows, sizeof(*at), row_order, out->row);
	for (size_t i = 0; i < out->n_rows; i++)
		to[at[i]] = i;
	for (size_t i = 0; i < out->n_rows; i++) {
		row[i] = out->row[at[i]];
		if (row[i].moved >= 0)
			row[i].moved = to[row[i].moved];
	}
	free(out->row);
	out->row = row;
	free(at);
	free(to);
}

/* What the sum needs for a finding, by how far it is from 0 now: the threshold is that of the next finding. */
static void find_power(const struct compare *c, struct compare_result *out)
{
	const unsigned int df = compare_freedom(c, COMPARE_IN_RUNS);
	const double one = compare_student_of(.05, df),
		     error = (out->change.high - out->change.low) / 2 / one;
	const size_t found = out->n_findings + out->n_row_findings;

	out->detectable = error * (one + POWER_Z) / out->side[COMPARE_A].y;
	if (!out->tests || !out->change.change)
		return;
	out->longer =
		pow((compare_student_of(COMPARE_FALSE * (found + 1) / out->tests, df) + POWER_Z) *
			    error / out->change.change,
		    2);
}

static double base_of(const struct compare_stream *s)
{
	double base = 0;

	for (unsigned int i = 0; i < s->n; i++)
		base += s->base[i];
	return base;
}

static int check(const struct compare *c, const struct compare_result *out, struct err *err)
{
	static const char *const name[] = { "A", "B" };

	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		const __u64 effective = llround(out->side[s].effective);

		if (effective >= COMPARE_MIN && c->side[s].n < COMPARE_FEW)
			return err_set(
				err, -ENODATA,
				"%s has samples of %u moments: at least %u are needed to tell a "
				"difference from noise; record longer",
				name[s], c->side[s].n, COMPARE_FEW);
		if (effective < COMPARE_MIN)
			return err_set(
				err, -ENODATA,
				"%s has %s samples with a latency%s: at least %u are needed to "
				"tell a difference from noise; record longer, or with a shorter "
				"period (-c)",
				name[s], TEXT_COUNT(effective),
				effective < c->side[s].valid ? ", counted as ones of equal weights"
							     : "",
				COMPARE_MIN);
		if (!(base_of(&c->side[s]) > 0))
			return err_set(err, -ENODATA, "%s has no %s to divide its cycles by",
				       name[s], c->per_second ? "times" : "ops");
	}
	return 0;
}

int compare_finish(struct compare *c, struct compare_result *out, struct err *err)
{
	struct making m = { .c = c, .out = out };
	struct compare_draw d;
	struct compare_sums sums;
	int ret;

	*out = (struct compare_result){};
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		compare_finish_side(c, s);
		out->side[s] = (struct compare_side_sum){
			.samples = c->side[s].samples,
			.valid = c->side[s].valid,
			.effective = compare_effective(&c->side[s]),
			.seconds = c->side[s].seconds,
			.blocks = c->side[s].n,
		};
	}
	ret = check(c, out, err);
	if (ret)
		return ret;
	compare_draw_all(c, &d);
	compare_sum(c, &d, &sums);
	make_terms(&m, &sums);
	make_rows(&m, sums.base);
	for (size_t i = 0; i < out->n_terms; i++)
		out->change.change += out->term[i].change.change;
	for (unsigned int s = 0; s < COMPARE_SIDES; s++) {
		double cycles = 0;

		for (unsigned int k = 0; k < c->causes.n; k++)
			cycles += sums.cause[s][k].cycles;
		out->side[s].base = sums.base[s];
		out->side[s].y = cycles / sums.base[s];
	}
	intervals(&m);
	compare_quantiles(c, out);
	discover(&m);
	find_moved(&m);
	find_gone(&m);
	discover(&m);
	add_others(&m);
	find_power(c, out);
	order(out);
	free(m.line);
	free(m.term);
	free(m.row);
	return 0;
}

double compare_needed(const struct compare_result *r, double share)
{
	double a = r->side[COMPARE_A].samples, b = r->side[COMPARE_B].samples;

	return r->detectable > 0 ? (a < b ? a : b) * pow(r->detectable / share, 2) : 0;
}

void compare_result_free(struct compare_result *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		free((void *)r->row[i].name);
	free(r->row);
	free(r->term);
}
