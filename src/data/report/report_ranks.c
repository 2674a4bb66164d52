// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How unevenly the miss cycles of a row are spread over the ranks of an MPI job: the largest of their
 * sums over the mean. Ranks without samples count, those without a recording do not. 1 is even; n
 * ranks of which one has all is n, so rows of single ranks have none.
 */
#include "report_private.h"

#include <math.h>

void report_ranks_add(struct report *r, size_t row, const struct trace_event *ev, __u64 cycles)
{
	const struct trace_sample *s = &ev->sample;
	__u32 rank;

	if (s->has_task && tasks_rank(r->opts.tasks, s->tgid, ev->time, &rank))
		report_count(r, row, CELL_RANK, rank, cycles);
}

struct spread {
	__u64 sum, max;
	__u32 busiest;
};

static void add(struct spread *s, __u32 rank, __u64 cycles)
{
	s->sum += cycles;
	if (cycles > s->max || (cycles == s->max && rank < s->busiest)) {
		s->max = cycles;
		s->busiest = rank;
	}
}

static void set(struct report_row *row, const struct spread *s, size_t ranks)
{
	row->imbalance = s->sum ? (double)s->max * ranks / s->sum : (double)NAN;
	row->busiest = s->busiest;
}

void report_imbalances(const struct report *r, struct report_table *t)
{
	struct spread *row = xcalloc(r->n, sizeof(*row)), total = { 0 };
	__u64 *of_rank = xcalloc(r->n_ranks, sizeof(*of_rank));

	for (size_t i = 0; r->n_ranks && i < r->n_cells; i++) {
		const struct cell *c = &r->cells[i];

		if (cell_kind(c) != CELL_RANK)
			continue;
		add(&row[cell_row(c)], c->key, c->count);
		of_rank[u64_map_get(&r->ranks, (__u32)c->key)] += c->count;
	}
	for (size_t i = 0; i < r->n && !report_by(&r->opts, LABEL_RANK); i++)
		set(&t->rows[i], &row[i], r->n_ranks);
	for (size_t i = 0; i < r->ranks.size; i++) {
		const struct u64_map_slot *slot = &r->ranks.slots[i];

		if (slot->value != U64_MAP_NONE)
			add(&total, slot->key, of_rank[slot->value]);
	}
	set(&t->total, &total, r->n_ranks);
	free(of_rank);
	free(row);
}
