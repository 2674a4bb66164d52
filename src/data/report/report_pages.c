// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pages of physical memory behind a row, and those of them on another node than the one that accesses them most:
 * as a rule the thread that touched such a page first, which decided its node, is not the one that uses it.
 */
#include "report_private.h"

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

static void add(struct report_row *row, const struct page_use *use)
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
			add(&t->rows[cell_row(&r->cells[i])], &use[(__u32)r->cells[i].key]);
	for (size_t p = 0; p < r->n_pages; p++)
		add(&t->total, &use[p]);
	free(use);
}
