/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options that compile to expressions of --filter, with their own reasons in the ledger. The items
 * of one option are ORed, options are ANDed, and a list that begins with "!" excludes. A sample
 * that lacks the field matches neither a list nor its exclusion.
 */
#ifndef IBSCOPE_FILTER_OPTIONS_H
#define IBSCOPE_FILTER_OPTIONS_H

#include "filter.h"

/* X(NAME, "option", outcome of dropped samples), in the order of the tests: the first counts. */
#define FILTER_OPTION_TABLE(X)                            \
	X(MODE, "--user/--kernel", FILTERED_MODE)         \
	X(TLB, "--tlb", FILTERED_TLB)                     \
	X(TLB_LAT, "--min/max-tlb-lat", FILTERED_TLB_LAT) \
	X(PAGE_SIZE, "--page-size", FILTERED_PAGE_SIZE)   \
	X(RMT_NODE, "--remote-node", FILTERED_RMT_NODE)   \
	X(ADDR, "--addr", FILTERED_ADDR)                  \
	X(IP, "--ip", FILTERED_IP)                        \
	X(EXPR, "--filter", FILTERED_EXPR)

enum filter_option {
#define FILTER_OPTION_ENUM(NAME, ...) FILTER_OPTION_##NAME,
	FILTER_OPTION_TABLE(FILTER_OPTION_ENUM)
#undef FILTER_OPTION_ENUM
		FILTER_OPTION_N
};

/* All zero: no option given. */
struct filter_options {
	bool fetch;			/* for ibs_fetch, else for ibs_op */
	bool user, kernel;		/* both or none: any */
	__u32 min_tlb_lat, max_tlb_lat; /* cycles, up to 65535; 0: no limit */
	/* by filter_options_add() */
	__u32 names[FILTER_OPTION_N]; /* bit i: the option's i-th name */
	char *text[FILTER_OPTION_N];
	bool but[FILTER_OPTION_N]; /* the list is excluded */
};

/**
 * filter_options_add() - add one use of an option
 * @o:   FILTER_OPTION_TLB        a list of l1, l2, walk: where the dTLB had the translation
 *       FILTER_OPTION_PAGE_SIZE  a list of 4k, 2m, 1g
 *       FILTER_OPTION_RMT_NODE   yes or no: memory of another node
 *       FILTER_OPTION_ADDR, _IP  a list of LO-HI (up to, not including HI), LO+LENGTH or single
 *                                addresses, all hexadecimal, "0x" or not
 *       FILTER_OPTION_EXPR       an expression, which replaces an earlier one
 *
 * Return: 0, or with option and column in @e: -EINVAL, -ERANGE, -E2BIG for more than the kernel can
 * test.
 */
int filter_options_add(struct filter_options *opts, enum filter_option o, const char *arg,
		       struct err *e);

/**
 * filter_options_compile() - compile all options to one filter
 * @out: on success to be freed with filter_free(); without parts if no option was given
 *
 * Return: as filter_compile(); -EINVAL also for an empty range of latencies.
 */
int filter_options_compile(const struct filter_options *opts, struct filter *out, struct err *e);

void filter_options_free(struct filter_options *opts);

#endif
