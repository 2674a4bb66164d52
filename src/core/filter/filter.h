/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `--filter EXPR`: perf's filter language and terms of IBS, compiled to the decision list of
 * ibscope/filter.h.
 *
 *   expr       := or { "," or }                as in perf, "," is AND and binds weakest
 *   or         := and { "||" and }
 *   and        := unary { "&&" unary }
 *   unary      := "!" unary | "(" expr ")" | comparison
 *   comparison := term ("==" | "!=" | "<" | "<=" | ">" | ">=" | "&") (number | constant)
 *               | flag                         a term of one bit alone: flag == 1
 *               | ("cgroup" | "container") ("==" | "!=" | "=~") text
 *
 * Case is ignored, as are "-" and "_" in constants. A comparison with an absent field is false,
 * even when negated: !(a == b) is a != b.
 */
#ifndef IBSCOPE_FILTER_TEXT_H
#define IBSCOPE_FILTER_TEXT_H

#include <stdio.h>

#include <ibscope/predicate.h>

struct err;

#define FILTER_COMPARISONS 128 /* in a text, before repeated ones are merged */
#define FILTER_DEPTH	   64  /* of parentheses and "!" */
#define FILTER_CGROUP_TEXT 512
#define FILTER_PARTS	   16

enum filter_cgroup_kind {
	FILTER_CGROUP_PATH,
	FILTER_CGROUP_GLOB,
	FILTER_CONTAINER,
	FILTER_CONTAINER_GLOB,
};

/* A test of the current cgroup, resolved by the caller: bit k of the sample's `cgroups`. */
struct filter_cgroup {
	enum filter_cgroup_kind kind;
	char text[FILTER_CGROUP_TEXT]; /* as written, without quotes */
};

/* An expression with its own reason in the ledger. */
struct filter_part {
	const char *option; /* its option, for messages; NULL: none */
	const char *text;
	enum ibs_outcome outcome; /* of samples for which it is false */
	bool fetch;		  /* for ibs_fetch, else for ibs_op; the same in all parts */
};

struct filter {
	struct ibs_filter prog; /* for the program's constants */
	struct filter_cgroup cgroups[IBS_FILTER_CGROUPS];
	unsigned int n_cgroups;
	char *text; /* canonical, all parts joined by &&; NULL: no parts */
	struct {
		enum ibs_outcome outcome;
		char *text; /* canonical; parses to the same tests and cgroups */
	} parts[FILTER_PARTS];
	unsigned int n_parts;
};

/**
 * filter_compile() - compile expressions that must all be true
 * @parts: tested in this order; a sample gets the outcome of the first that is false
 * @out:   on success to be freed with filter_free()
 *
 * Return: as filter_parse(), but messages begin with the option; -E2BIG also for more than
 * FILTER_PARTS parts.
 */
int filter_compile(const struct filter_part *parts, size_t n_parts, struct filter *out,
		   struct err *e);

/**
 * filter_parse() - compile one expression; it drops samples as IBS_OUTCOME_FILTERED_EXPR
 * @out: on success to be freed with filter_free()
 *
 * Return: 0, or with @e set, beginning with "column N: ": -EINVAL for a syntax error, an unknown
 * term or value, a term that IBS does not have, or a comparison that cannot be true; -ERANGE for a
 * number above the maximum of the term; -E2BIG for too many tests or cgroups, or too deep nesting.
 */
int filter_parse(const char *text, struct filter *out, struct err *e);
void filter_free(struct filter *f); /* accepts a zero one */

/**
 * filter_explain() - print what runs in the kernel
 *
 * First one line per part: its reason in the ledger, ": " and the canonical expression. Then one
 * line per test: what is compared, where it is read, when it is valid, and which test comes next.
 *
 * @width: columns to wrap the texts at; expressions stay whole, to be copied
 */
void filter_explain(FILE *out, const struct filter *f, unsigned int width);

/**
 * filter_print_terms() - print every term, its values and where it is read, for --help filter
 */
void filter_print_terms(FILE *out);

#endif
