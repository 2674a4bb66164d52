// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compiles expressions to the decision list. */
#include "filter.h"
#include "filter_private.h"

/* Target of a test that ends the list: this plus the outcome. */
#define TO_OUTCOME 1000

struct test {
	unsigned int field, cmp, on_true, on_false;
	__u64 value;
	bool used;
};

/* Tests are added in reverse, so each leads to earlier ones only. */
struct list_builder {
	struct test tests[FILTER_COMPARISONS];
	unsigned int n;
};

static bool same_test(const struct list_builder *b, unsigned int to, const struct filter_node *n)
{
	const struct test *t;

	if (to >= TO_OUTCOME)
		return false;
	t = &b->tests[to];
	return t->field == n->field && t->cmp == n->cmp && t->value == n->value;
}

static unsigned int emit(struct list_builder *b, const struct filter_node *n, unsigned int yes,
			 unsigned int no)
{
	unsigned int i;

	/* do not repeat a test whose result is known */
	while (same_test(b, yes, n))
		yes = b->tests[yes].on_true;
	while (same_test(b, no, n))
		no = b->tests[no].on_false;
	if (yes == no)
		return yes;
	for (i = 0; i < b->n; i++)
		if (same_test(b, i, n) && b->tests[i].on_true == yes && b->tests[i].on_false == no)
			return i;
	b->tests[b->n] = (struct test){
		.field = n->field,
		.cmp = n->cmp,
		.value = n->value,
		.on_true = yes,
		.on_false = no,
	};
	return b->n++;
}

static unsigned int compile(struct list_builder *b, const struct filter_node *nodes,
			    unsigned int at, unsigned int yes, unsigned int no)
{
	const struct filter_node *n = &nodes[at];
	unsigned int second;

	if (n->kind == FILTER_NODE_TEST)
		return emit(b, n, yes, no);
	second = compile(b, nodes, n->b, yes, no);
	if (n->kind == FILTER_NODE_AND)
		return compile(b, nodes, n->a, second, no);
	return compile(b, nodes, n->a, yes, second);
}

static __u8 target(const __u8 *place, unsigned int to)
{
	return to >= TO_OUTCOME ? IBS_FILTER_TO(to - TO_OUTCOME) : place[to];
}

unsigned int filter_build(const struct filter_node *nodes, const struct filter_root *roots,
			  size_t n_roots, struct ibs_filter *prog)
{
	unsigned int first = TO_OUTCOME + IBS_OUTCOME_AGGREGATED, i, n = 0;
	struct list_builder b = { .n = 0 };
	__u8 place[FILTER_COMPARISONS];

	for (size_t k = n_roots; k-- > 0;)
		first = compile(&b, nodes, roots[k].node, first, TO_OUTCOME + roots[k].outcome);
	if (first < b.n)
		b.tests[first].used = true;
	for (i = b.n; i-- > 0;) {
		struct test *t = &b.tests[i];

		if (!t->used)
			continue;
		place[i] = n++;
		if (t->on_true < b.n)
			b.tests[t->on_true].used = true;
		if (t->on_false < b.n)
			b.tests[t->on_false].used = true;
	}
	if (n > IBS_FILTER_TERMS)
		return n;
	for (i = b.n; i-- > 0;) {
		const struct test *t = &b.tests[i];

		if (!t->used)
			continue;
		prog->terms[prog->n++] = (struct ibs_filter_term){
			.field = t->field,
			.when = filter_fields[t->field].when,
			.cmp = t->cmp,
			.on_true = target(place, t->on_true),
			.on_false = target(place, t->on_false),
			.value = t->value,
		};
		prog->needs |= filter_fields[t->field].needs;
	}
	return n;
}
