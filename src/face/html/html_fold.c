// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Details that the HTML report gives up, step by step, to limit its size. */
#include "html_facts.h"

#include "base/array.h"

#define NODES_MAX (1u << 22) /* of call chains */

__u32 html_node_of(struct html_report *r, __u32 parent, __u32 frame)
{
	__u64 key = (__u64)parent << 32 | frame;
	__u32 node = u64_map_get(&r->node_of, key);

	if (node != U64_MAP_NONE)
		return node;
	if (r->n_nodes >= NODES_MAX)
		return parent; /* deeper frames count towards this one */
	array_reserve(r->nodes, r->room_nodes, r->n_nodes + 1);
	node = r->n_nodes++;
	r->nodes[node] = (struct html_node){ parent, frame, 0 };
	u64_map_put(&r->node_of, key, node);
	return node;
}

static void lose_callers(struct html_key *k, void *ctx)
{
	struct html_report *r = ctx;

	__u32 alone;

	if (!k->stack)
		return;
	alone = r->nodes[k->stack].alone ?: html_node_of(r, 0, r->nodes[k->stack].frame);
	r->nodes[k->stack].alone = alone;
	k->stack = alone;
}

static void lose_cpus(struct html_key *k, void *ctx)
{
	struct html_report *r = ctx;

	k->cpu = html_places_l3(&r->places, k->cpu);
}

static void lose_code(struct html_key *k, void *unused)
{
	(void)unused;
	k->stack = 0;
}

static void lose_sites(struct html_key *k, void *unused)
{
	(void)unused;
	k->site = 0;
}

static void lose_threads(struct html_key *k, void *unused)
{
	(void)unused;
	k->role = 0;
}

static void lose_regions(struct html_key *k, void *unused)
{
	(void)unused;
	k->region = 0;
}

/* The page does not show the kind of the op. */
static void lose_flags(struct html_key *k, void *unused)
{
	(void)unused;
	k->flags = 0;
}

static void lose_places(struct html_key *k, void *unused)
{
	(void)unused;
	k->cpu = HTML_NO_CPU;
}

/* Least useful details first. */
static const struct {
	const char *what;
	unsigned int bins;
	void (*change)(struct html_key *key, void *ctx);
} steps[] = {
	{ "time has at most 60 steps", 60, NULL },
	{ "functions have no callers", 0, lose_callers },
	{ "CPUs with one L3 are added up", 0, lose_cpus },
	{ "time has at most 12 steps", 12, NULL },
	{ "functions are not shown", 0, lose_code },
	{ "allocations are not shown", 0, lose_sites },
	{ "threads of a rank are added up", 0, lose_threads },
	{ "page walks and modified lines are not shown", 0, lose_flags },
	{ "regions are not shown", 0, lose_regions },
	{ "time has at most 4 steps", 4, NULL },
	{ "CPUs are not shown", 0, lose_places },
};

static int fold(struct html_report *r)
{
	unsigned int i = r->folds;

	if (i == ARRAY_SIZE(steps))
		return -E2BIG;
	r->folds++;
	if (steps[i].bins)
		html_rows_limit_bins(&r->rows, steps[i].bins);
	else
		html_rows_rekey(&r->rows, steps[i].change, r);
	return 0;
}

/* Apply the steps from @done on, which grows. */
static void apply_steps(struct html_report *r, struct html_key *key, unsigned int *done)
{
	for (; *done < r->folds; ++*done)
		if (steps[*done].change)
			steps[*done].change(key, r);
}

/* @done: steps that were applied to the key */
static int add(struct html_report *r, struct html_key key, unsigned int done, __u64 time_ns,
	       const struct html_row *what)
{
	for (;;) {
		apply_steps(r, &key, &done);
		if (html_rows_add(&r->rows, &key, time_ns, what) != -E2BIG)
			return 0;
		if (fold(r))
			return -E2BIG;
	}
}

static struct html_row row_of(const struct html_sample *s)
{
	struct html_row row = html_row_of_sample(&s->key, s->latency, s->period);

	row.exposed = (double)s->exposed * s->period;
	return row;
}

static int add_sample(struct html_report *r, const struct html_sample *s)
{
	const struct html_row row = row_of(s);

	return add(r, s->key, s->folds, s->time_ns, &row);
}

/*
 * Another thread adds up to the first sample for which there is no room. Folding, which changes call chains, is for the
 * first thread.
 */
static void add_batch(void *ctx, const void *items, size_t n)
{
	struct html_report *r = ctx;

	r->left = items;
	for (r->n_left = n; r->n_left; r->left++, r->n_left--) {
		const struct html_row row = row_of(r->left);

		if (r->folds != r->left->folds ||
		    html_rows_add(&r->rows, &r->left->key, r->left->time_ns, &row))
			break;
	}
}

/* Wait for the batch; fold, if need be, and add the rest of it. */
static int end_batch(struct html_report *r)
{
	int ret = 0;

	parallel_queue_wait(&r->queue);
	for (; !ret && r->n_left; r->left++, r->n_left--)
		ret = add_sample(r, r->left);
	return ret;
}

int html_fold_flush(struct html_report *r)
{
	int ret = end_batch(r);

	if (ret)
		return ret;
	parallel_queue_flush(&r->queue);
	return end_batch(r);
}

int html_fold_sample(struct html_report *r, const struct html_sample *sample)
{
	struct html_sample s = *sample;
	int ret = 0;

	if (!r->queue.work)
		r->queue = (struct parallel_queue){
			.item = sizeof(s), .room = HTML_BATCH, .work = add_batch, .ctx = r
		};
	/* the batch before must be complete when another one begins */
	if (parallel_queue_is_filled_by_next(&r->queue))
		ret = end_batch(r);
	s.folds = 0;
	apply_steps(r, &s.key, &s.folds);
	parallel_queue_put(&r->queue, &s, 1);
	return ret;
}

int html_fold_add(struct html_report *r, struct html_key key, __u64 time_ns,
		  const struct html_row *what)
{
	return add(r, key, 0, time_ns, what);
}

void html_fold_text(const struct html_report *r, char *buf, size_t size)
{
	size_t n = 0;

	*buf = 0;
	for (unsigned int i = 0; i < r->folds && n < size; i++) {
		/* only the last limit of time applies, and that of allocations if there are any */
		bool skip = steps[i].change == lose_sites && r->names[HTML_SITE].n < 2;

		for (unsigned int k = i + 1; k < r->folds; k++)
			skip |= steps[i].bins && steps[k].bins;
		if (!skip)
			n += snprintf(buf + n, size - n, "%s%s", n ? ", " : "", steps[i].what);
	}
}
