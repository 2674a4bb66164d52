// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What rows count in cells, and the columns worked out of them: prices, imbalance of ranks, pages. */
#include "report_private.h"

#include "table/table.h"

#include <math.h>
#include <stdlib.h>

bool report_count(struct report *r, size_t row, enum cell_kind kind, __u32 value, __u64 n)
{
	__u64 key = cell_key(row, kind, value);
	__u32 i = u64_map_get(&r->cell_of, key);

	if (i == U64_MAP_NONE) {
		i = r->n_cells;
		if (i == U64_MAP_NONE - 1)
			out_of_memory();
		array_reserve(r->cells, r->cell_room, r->n_cells + 1);
		u64_map_add(&r->cell_of, key, i);
		r->cells[r->n_cells++] = (struct cell){ .key = key };
	}
	r->cells[i].count += n;
	return r->cells[i].count == n;
}

/* --- the price of remote memory --- */

/* A cell of kind CELL_PRICE: place, remote or local, and what it counts. */
enum { REMOTE = 2, OPS = 1 };

void report_price_add(struct report *r, size_t row, const struct trace_event *ev, __u64 cycles,
		      __u64 ops)
{
	const struct trace_info *info = r->opts.info;
	const struct trace_topology *t = info->topology;
	const struct trace_sample *s = &ev->sample;
	enum ibs_src src = s->op.present >> IBS_OP_DATA2 & 1 ? ibs_op_src(s->op.cpu, s->op.reg)
							     : IBS_SRC_UNKNOWN;
	__u32 node = t && s->has_cpu && s->cpu < t->n ? t->node[s->cpu] : PRICE_NODE_UNKNOWN, value;
	bool remote;
	int place = price_place(src, node, report_memory_node(info, &s->op), &remote);

	if (place < 0)
		return;
	value = (__u32)place << 2 | (remote ? REMOTE : 0);
	report_count(r, row, CELL_PRICE, value, cycles);
	report_count(r, row, CELL_PRICE, value | OPS, ops);
}

static bool is_price(const struct cell *c)
{
	return cell_kind(c) == CELL_PRICE;
}

void report_prices(const struct report *r, struct report_row *rows)
{
	struct price_local *local = price_local_new();

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < r->n_cells; i++) {
			const struct cell *c = &r->cells[i];
			bool ops = c->key & OPS, remote = c->key & REMOTE;
			int place = (__u32)c->key >> 2;
			double n = c->count;

			if (!is_price(c))
				continue;
			if (!pass && !remote)
				price_local_add(local, place, ops ? 0 : n, ops ? n : 0);
			else if (pass && remote)
				rows[cell_row(c)].price +=
					ops ? -n * price_local_mean(local, place) : n;
		}
	}
	free(local);
}

/* --- ranks ---
 *
 * How unevenly the miss cycles of a row are spread over the ranks of an MPI job: the largest of their
 * sums over the mean. Ranks without samples count, those without a recording do not. 1 is even; n
 * ranks of which one has all is n, so rows of single ranks have none.
 */

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

static void add_rank(struct spread *s, __u32 rank, __u64 cycles)
{
	s->sum += cycles;
	if (cycles > s->max || (cycles == s->max && rank < s->busiest)) {
		s->max = cycles;
		s->busiest = rank;
	}
}

static void set_imbalance(struct report_row *row, const struct spread *s, size_t ranks)
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
		add_rank(&row[cell_row(c)], c->key, c->count);
		of_rank[u64_map_get(&r->ranks, (__u32)c->key)] += c->count;
	}
	for (size_t i = 0; i < r->n && !report_by(&r->opts, LABEL_RANK); i++)
		set_imbalance(&t->rows[i], &row[i], r->n_ranks);
	for (size_t i = 0; i < r->ranks.size; i++) {
		const struct u64_map_slot *slot = &r->ranks.slots[i];

		if (slot->value != U64_MAP_NONE)
			add_rank(&total, slot->key, of_rank[slot->value]);
	}
	set_imbalance(&t->total, &total, r->n_ranks);
	free(of_rank);
	free(row);
}

/* --- pages ---
 *
 * The pages of physical memory behind a row, and those of them on another node than the one that accesses them most:
 * as a rule the thread that touched such a page first, which decided its node, is not the one that uses it.
 */

#define PAGE_SHIFT   12
#define PART_SHIFT   (52 - PAGE_SHIFT) /* above the pages of physical memory */
#define NODE_UNKNOWN (~0u)

void report_pages_add(struct report *r, size_t row, const struct trace_event *ev)
{
	const struct trace_topology *t = r->opts.info->topology;
	const struct trace_sample *s = &ev->sample;
	__u64 phys;
	__u32 page;

	if (!ibs_op_field(&s->op, IBS_OP_FIELD_DC_PHYS_AD, &phys))
		return;
	phys = phys >> PAGE_SHIFT | (__u64)r->part << PART_SHIFT;
	page = u64_map_get(&r->page_of, phys);
	if (page == U64_MAP_NONE) {
		page = r->n_pages++;
		array_reserve(r->page_node, r->page_room, r->n_pages);
		r->page_node[page] = report_memory_node(r->opts.info, &s->op);
		u64_map_put(&r->page_of, phys, page);
	}
	report_count(r, row, CELL_PAGE, page, 1);
	if (t && s->has_cpu && s->cpu < t->n && r->page_node[page] != NODE_UNKNOWN)
		report_count(r, page, CELL_PAGE_NODE, t->node[s->cpu], 1);
}

/* Accesses of a page: from the node that has most, and from its own. */
struct page_use {
	__u64 most, own;
};

static void add_page(struct report_row *row, const struct page_use *use)
{
	row->pages++;
	row->placed += use->most > 0;
	row->misplaced += use->most > use->own;
}

void report_pages(const struct report *r, struct report_table *t)
{
	struct page_use *use = xcalloc(r->n_pages, sizeof(*use));

	for (size_t i = 0; i < r->n_cells; i++) {
		const struct cell *c = &r->cells[i];
		struct page_use *of = &use[cell_row(c)];

		if (cell_kind(c) != CELL_PAGE_NODE)
			continue;
		if (c->count > of->most)
			of->most = c->count;
		if ((__u32)c->key == r->page_node[cell_row(c)])
			of->own = c->count;
	}
	for (size_t i = 0; i < r->n_cells; i++)
		if (cell_kind(&r->cells[i]) == CELL_PAGE)
			add_page(&t->rows[cell_row(&r->cells[i])], &use[(__u32)r->cells[i].key]);
	for (size_t p = 0; p < r->n_pages; p++)
		add_page(&t->total, &use[p]);
	free(use);
}
