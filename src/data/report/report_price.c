// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_private.h"

#include "counts/remote_price.h"

#include <stdlib.h>

/* A cell of kind CELL_PRICE: place, remote or local, and what it counts. */
enum { REMOTE = 2, OPS = 1 };

int report_memory_node(const struct trace_info *info, const struct ibs_op_sample *op)
{
	__u64 phys;

	if (!info->n_memory || !ibs_op_field(op, IBS_OP_FIELD_DC_PHYS_AD, &phys))
		return -1;
	return trace_memory_node(info, phys);
}

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
