/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names, shared by parsing and printing of filters. */
#ifndef IBSCOPE_FILTER_PRIVATE_H
#define IBSCOPE_FILTER_PRIVATE_H

#include "base/std.h"

#include <ibscope/predicate.h>

struct filter;

enum filter_values {
	FILTER_NUM,
	FILTER_HEX, /* a number printed in hexadecimal */
	FILTER_FLAG,
	FILTER_MEM_OP,
	FILTER_MEM_LVL,
	FILTER_MEM_REMOTE,
	FILTER_MEM_HOPS,
	FILTER_MEM_SNOOP,
	FILTER_MEM_LOCK,
	FILTER_MEM_DTLB,
	FILTER_PAGE_SIZE,
	FILTER_OP,	 /* only names exist for these */
	FILTER_DATA_SRC, /* unordered */
	FILTER_FETCH,
	FILTER_ITLB,
	FILTER_CGROUP,
	FILTER_VALUES_N
};

struct filter_const {
	const char *name;
	__u64 value;
};

struct filter_field {
	const char *name;
	const char *others; /* separated by commas */
	const char *where;
	enum filter_values values;
	__u8 when; /* enum ibs_filter_when or ibs_fetch_filter_when */
	__u32 needs;
	__u64 max;
};

extern const struct filter_field filter_fields[IBS_FETCH_FILTER_END];
extern const struct filter_const *const filter_consts[FILTER_VALUES_N]; /* NULL: numbers only */

enum filter_node_kind { FILTER_NODE_OR, FILTER_NODE_AND, FILTER_NODE_TEST };

/* A node of an expression, which is a tree in an array. */
struct filter_node {
	enum filter_node_kind kind;
	unsigned int a, b; /* operands of OR and AND */
	unsigned int field, cmp;
	__u64 value;
};

struct filter_root {
	unsigned int node;
	enum ibs_outcome outcome; /* of the samples that it rejects */
};

/*
 * Compile all roots, in sequence, to one decision list; they have at most FILTER_COMPARISONS tests.
 * Return: the number of tests; if above IBS_FILTER_TERMS, @prog is unchanged.
 */
unsigned int filter_build(const struct filter_node *nodes, const struct filter_root *roots,
			  size_t n_roots, struct ibs_filter *prog);

/* An expression in its canonical form; of @f only the texts of cgroups are used. */
char *filter_text(const struct filter *f, const struct filter_node *nodes, unsigned int root);

static inline bool filter_names_only(enum filter_values v)
{
	return v >= FILTER_OP && v <= FILTER_ITLB;
}

/* True if samples of the event have the field; task fields belong to both events. */
static inline bool filter_field_of(unsigned int field, bool fetch)
{
	return field > IBS_FETCH_FILTER_FIRST ? fetch
	       : fetch ? field >= IBS_FILTER_PID && field <= IBS_FILTER_CGROUP
		       : true;
}

#endif
