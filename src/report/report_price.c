// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What remote memory costs above local memory: of each remote access its latency, less the mean of the
 * local ones from the same node to the same kind of memory (DRAM, long-latency DIMMs, extension memory);
 * if that node has none, of those of all nodes. Caches are not memory.
 *
 * Where the nodes of CPU and memory are known they decide what is remote, else the source does.
 */
#include "report_private.h"

#include <math.h>

enum { DRAM, PMEM, CXL, LEVELS };

/* A cell of kind CELL_PRICE: node of the CPU, kind of memory, remote or local, and what it counts. */
enum { REMOTE = 2, OPS = 1 };
#define NODE_UNKNOWN	   0xffffu
#define PLACES		   ((NODE_UNKNOWN + 1) * 4) /* of node and kind; those of all nodes are its last */
#define PLACE(node, level) ((node)*4 + (level))

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
	__u32 node = t && s->has_cpu && s->cpu < t->n ? t->node[s->cpu] : NODE_UNKNOWN;
	int memory = report_memory_node(info, &s->op);
	__u32 value;
	bool remote;

	/* memory and its remote twin alternate, see op.h */
	if (src < IBS_SRC_DRAM || src > IBS_SRC_REMOTE_CXL)
		return;
	remote = memory >= 0 && node != NODE_UNKNOWN ? (__u32)memory != node
						     : (src - IBS_SRC_DRAM) % 2;
	value = PLACE(node, (src - IBS_SRC_DRAM) / 2) << 2 | (remote ? REMOTE : 0);
	report_count(r, row, CELL_PRICE, value, cycles);
	report_count(r, row, CELL_PRICE, value | OPS, ops);
}

struct local {
	double cycles, ops;
};

static bool is_price(const struct cell *c)
{
	return cell_kind(c) == CELL_PRICE;
}

static void add_local(struct local *to, const struct cell *c)
{
	*(c->key & OPS ? &to->ops : &to->cycles) += c->count;
}

void report_prices(const struct report *r, struct report_row *rows)
{
	struct local *local = xcalloc(PLACES, sizeof(*local)), all[LEVELS] = { 0 };

	for (size_t i = 0; i < r->n_cells; i++) {
		const struct cell *c = &r->cells[i];
		__u32 place = (__u32)c->key >> 2;

		if (!is_price(c) || (c->key & REMOTE))
			continue;
		add_local(&local[place], c);
		add_local(&all[place % 4], c);
	}
	for (size_t i = 0; i < r->n_cells; i++) {
		const struct cell *c = &r->cells[i];
		__u32 place = (__u32)c->key >> 2;
		const struct local *l = local[place].ops ? &local[place] : &all[place % 4];

		if (!is_price(c) || !(c->key & REMOTE))
			continue;
		rows[cell_row(c)].price +=
			c->key & OPS ? -(c->count * (l->ops ? l->cycles / l->ops : (double)NAN))
				     : (double)c->count;
	}
	free(local);
}
