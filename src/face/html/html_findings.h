/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of the page that differ from the rest beyond noise. Each sample counts as an independent draw.
 */
#ifndef IBSCOPE_HTML_FINDINGS_H
#define IBSCOPE_HTML_FINDINGS_H

#include "base/std.h"

#define HTML_FINDINGS_MAX     5
#define HTML_FINDINGS_SAMPLES 100  /* with a latency: fewer say nothing */
#define HTML_FALSE	      0.01 /* probability that a page of pure noise has a finding */
#define HTML_LEAST_SHARE      0.05 /* a finding's share exceeds that of the rest by this, */
#define HTML_LEAST_RATIO      1.25 /* and by this factor, */
#define HTML_LEAST_EXCESS     0.01 /* and costs this share of all miss cycles more */

/* X(NAME, "name"): what a row may have more of than the rest; the page (2-findings.js) has the sentences. */
#define HTML_CAUSE_TABLE(X) \
	X(HITM, "hitm")     \
	X(REMOTE, "remote") \
	X(FAR, "far")       \
	X(WALK, "walk")     \
	X(SLOW, "slow")     \
	X(MEMORY, "memory")

enum html_cause {
#define HTML_CAUSE_ENUM(name, ...) HTML_CAUSE_##name,
	HTML_CAUSE_TABLE(HTML_CAUSE_ENUM)
#undef HTML_CAUSE_ENUM
		HTML_CAUSES
};

const char *html_cause_name(enum html_cause c);

/* Costs, numbers of samples, and squares of how often each counts: of all, and of the part that has a cause. */
struct html_part {
	double all, samples, part, part_samples, squares;
};

struct html_tally {
	struct html_part of[HTML_CAUSES];
	double cycles;	    /* miss cycles */
	double dram_cycles; /* those of local DRAM */
	bool nameless;	    /* compared, but never a finding */
};

/*
 * Add samples that cost @cycles together and count as @n; @squares: the sum of the squares of what each counts as, @n if
 * that is 1. @cause: they have it.
 */
void html_part_add(struct html_part *p, double n, double squares, double cycles, bool cause);

struct html_finding {
	size_t row;
	enum html_cause cause;
	double share, rest; /* of this row, and of all others together */
	double excess;	    /* miss cycles above those with the share of the rest */
};

/**
 * html_findings_find() - the rows that differ from the rest, with the cause that costs most
 * @wrong: probability that any of the rows is a finding if none differs
 *
 * The test is Hoeffding's bound on the tail of a binomial distribution, which holds for rows of any
 * size, and Bonferroni's correction for the number of rows and causes. Chance is judged by the number of samples,
 * since few of them may cost most, or the number of ones with equal weights that would be as good; how much a finding
 * matters, by costs.
 *
 * Return: number of findings in @out, at most @most, the most expensive first
 */
size_t html_findings_find(const struct html_tally *row, size_t n, double wrong,
			  struct html_finding *out, size_t most);

#endif
