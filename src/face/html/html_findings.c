// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_findings.h"

#include <math.h>
#include <string.h>

const char *html_cause_name(enum html_cause c)
{
	static const char *const names[] = {
#define HTML_CAUSE_NAME(id, name) name,
		HTML_CAUSE_TABLE(HTML_CAUSE_NAME)
#undef HTML_CAUSE_NAME
	};

	return names[c];
}

void html_part_add(struct html_part *p, double n, double squares, double cycles, bool cause)
{
	p->all += cycles;
	p->samples += n;
	p->squares += squares;
	p->part += cause ? cycles : 0;
	p->part_samples += cause ? n : 0;
}

/* All rows but one; tiny differences of sums count as nothing. */
static double without(double all, double row)
{
	return all - row > 1e-9 * all ? all - row : 0;
}

static struct html_part rest_of(const struct html_part *all, const struct html_part *row)
{
	return (struct html_part){ without(all->all, row->all), without(all->samples, row->samples),
				   without(all->part, row->part),
				   without(all->part_samples, row->part_samples),
				   without(all->squares, row->squares) };
}

static double share_of(const struct html_part *p)
{
	return p->all > 0 ? p->part / p->all : 0;
}

static double term(double share, double expected)
{
	return share > 0 ? share * log(share / expected) : 0;
}

/*
 * The negative logarithm of a bound on the probability that so many samples have the cause, or numbers farther
 * off; of samples, since the costs of a few may be most of a row's.
 */
static double surprise(const struct html_part *p, double expected)
{
	double share = p->samples > 0 ? p->part_samples / p->samples : 0;
	double n = p->squares > 0 ? p->samples * p->samples / p->squares : 0;

	return n * (term(share, expected) + term(1 - share, 1 - expected));
}

static double excess_of(const struct html_tally *row, const struct html_tally *all,
			enum html_cause cause, double more)
{
	const struct html_part *mine = &row->of[cause], *total = &all->of[cause];

	if (cause != HTML_CAUSE_SLOW)
		return more * row->cycles;
	return row->dram_cycles -
	       mine->all * (all->dram_cycles - row->dram_cycles) / (total->all - mine->all);
}

/* Return: false if the row does not differ. */
static bool differs(const struct html_tally *row, const struct html_tally *all,
		    enum html_cause cause, double threshold, struct html_finding *out)
{
	const struct html_part *mine = &row->of[cause], *total = &all->of[cause];
	const struct html_part rest = rest_of(total, mine);
	double expected = total->samples > 0 ? total->part_samples / total->samples : 0;

	if (mine->part <= 0 || rest.all <= 0 || expected >= 1 ||
	    mine->part_samples <= expected * mine->samples)
		return false;
	out->cause = cause;
	out->share = share_of(mine);
	out->rest = share_of(&rest);
	if (out->share < out->rest + HTML_LEAST_SHARE || out->share < out->rest * HTML_LEAST_RATIO)
		return false;
	out->excess = excess_of(row, all, cause, out->share - out->rest);
	if (out->excess < HTML_LEAST_EXCESS * all->cycles)
		return false;
	/* drawn without replacement, the row is as improbable as the rest is */
	return fmax(surprise(mine, expected), surprise(&rest, expected)) >= threshold;
}

static void add_up(const struct html_tally *row, size_t n, struct html_tally *all)
{
	for (size_t i = 0; i < n; i++) {
		for (unsigned int c = 0; c < HTML_CAUSES; c++) {
			all->of[c].all += row[i].of[c].all;
			all->of[c].samples += row[i].of[c].samples;
			all->of[c].part += row[i].of[c].part;
			all->of[c].part_samples += row[i].of[c].part_samples;
			all->of[c].squares += row[i].of[c].squares;
		}
		all->cycles += row[i].cycles;
		all->dram_cycles += row[i].dram_cycles;
	}
}

static double tests_of(const struct html_tally *row, size_t n)
{
	size_t tests = 0;

	for (size_t i = 0; i < n; i++)
		for (unsigned int c = 0; c < HTML_CAUSES; c++)
			tests += row[i].of[c].all > 0;
	return tests ?: 1;
}

/* Keep the most expensive ones, in order. */
static size_t insert(struct html_finding *out, size_t n, size_t most, const struct html_finding *f)
{
	size_t at = n;

	while (at && out[at - 1].excess < f->excess)
		at--;
	if (at >= most)
		return n;
	n = n < most ? n + 1 : n;
	memmove(&out[at + 1], &out[at], (n - at - 1) * sizeof(*out));
	out[at] = *f;
	return n;
}

size_t html_findings_find(const struct html_tally *row, size_t n, double wrong,
			  struct html_finding *out, size_t most)
{
	struct html_tally all = { 0 };
	double threshold = log(tests_of(row, n) / wrong);
	size_t found = 0;

	add_up(row, n, &all);
	for (size_t i = 0; i < n; i++) {
		struct html_finding best = { .excess = 0 }, f = { .row = i };

		if (row[i].nameless)
			continue;
		for (unsigned int c = 0; c < HTML_CAUSES; c++) {
			/* "memory" says nothing that a cause before it does not say better */
			if (c == HTML_CAUSE_MEMORY && best.excess > 0)
				continue;
			if (differs(&row[i], &all, c, threshold, &f) && f.excess > best.excess)
				best = f;
		}
		if (best.excess > 0)
			found = insert(out, found, most, &best);
	}
	return found;
}
