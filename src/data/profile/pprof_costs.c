// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pprof_costs.h"

#include <ibscope/filter_fields.h>

#define DRAM (1u << IBS_SRC_DRAM | 1u << IBS_SRC_REMOTE_DRAM)

/* 1 << enum ibs_src; 0: unknown */
static __u32 source_of(const struct trace_event *ev)
{
	const __u32 need = 1u << IBS_OP_DATA | 1u << IBS_OP_DATA2 | 1u << IBS_OP_DATA3;
	const struct ibs_op_sample *op = &ev->sample.op;

	if (ev->kind != TRACE_SAMPLE_OP || (op->present & need) != need)
		return 0;
	return 1u << ibs_op_src(op->cpu, op->reg);
}

bool pprof_costs(const struct report_opts *opts, const struct trace_event *ev,
		 struct pprof_row *row, unsigned int *units)
{
	const __u32 source = source_of(ev);
	enum report_unit unit;
	__u64 period = report_period(opts->info, ev, &unit);
	__u32 lat;

	*units |= unit;
	row->samples = 1;
	row->dram = !!(source & DRAM);
	row->estimated = period;
	if (!report_latency(opts->metric, &ev->sample, &lat))
		return period;
	row->latency = lat;
	row->cycles = lat * period;
	if (source & IBS_FILTER_HOPS_1) {
		row->remote_latency = lat;
		row->remote_cycles = lat * period;
	}
	return period;
}
