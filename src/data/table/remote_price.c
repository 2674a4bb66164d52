// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"

#include "base/std.h"

#include <math.h>
#include <stdlib.h>

#define KINDS	      4
#define ALL_OF(place) (((place) % KINDS) * KINDS + KINDS - 1) /* unused by any single kind */

int price_place(enum ibs_src src, __u32 node, int memory, bool *remote)
{
	/* local and remote memory alternate, see op.h */
	if (src < IBS_SRC_DRAM || src > IBS_SRC_REMOTE_CXL)
		return -1;
	*remote = memory >= 0 && node != PRICE_NODE_UNKNOWN ? (__u32)memory != node
							    : (src - IBS_SRC_DRAM) % 2;
	return node * KINDS + (src - IBS_SRC_DRAM) / 2;
}

struct price_local *price_local_new(void)
{
	return xcalloc(PRICE_PLACES, sizeof(struct price_local));
}

void price_local_add(struct price_local *l, int place, double cycles, double ops)
{
	struct price_local *to[] = { &l[place], &l[ALL_OF(place)] };

	for (int i = 0; i < 2; i++) {
		to[i]->cycles += cycles;
		to[i]->ops += ops;
	}
}

double price_local_mean(const struct price_local *l, int place)
{
	const struct price_local *from = l[place].ops ? &l[place] : &l[ALL_OF(place)];

	return from->ops ? from->cycles / from->ops : (double)NAN;
}

static int place_of(const struct snapshot *s, const struct group *g, const struct series *series,
		    bool *remote)
{
	__u32 node = s->by & IBS_BY_NODE && !g->other ? g->key.node : PRICE_NODE_UNKNOWN;
	int memory = s->by & IBS_BY_MEM_NODE && !g->other ? g->key.mem_node - 1 : -1;

	return series->sum ? price_place(series->src, node, memory, remote) : -1;
}

/* Estimated ops of the samples with a latency; if periods vary, at their mean. */
static double ops_of(const struct series *s)
{
	return (double)s->cycles / s->sum * s->valid;
}

void snapshot_prices(struct snapshot *s, enum ibs_metric metric)
{
	struct price_local *local = price_local_new();
	const bool fetch = ibs_metric_of_fetch(metric);

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < s->n_groups; i++) {
			for (size_t k = 0; k < s->groups[i].n_series; k++) {
				struct series *series = &s->groups[i].series[k];
				bool remote = false;
				int place = place_of(s, &s->groups[i], series, &remote);

				if (!pass)
					series->price =
						fetch || (series->sum && !series->cycles) ? NAN : 0;
				if (place < 0 || isnan(series->price))
					continue;
				if (!pass && !remote)
					price_local_add(local, place, series->cycles,
							ops_of(series));
				else if (pass && remote)
					series->price =
						series->cycles -
						ops_of(series) * price_local_mean(local, place);
			}
		}
	}
	free(local);
}
