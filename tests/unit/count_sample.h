/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counting a sample in ordinary memory, for what reads counters. */
#ifndef IBSCOPE_TESTS_COUNT_SAMPLE_H
#define IBSCOPE_TESTS_COUNT_SAMPLE_H

#include "counts/counts.h"

#include <ibscope/sim.h>

#define CAPS 0x81bffU /* Zen 5 */

/*
 * As bpf/ibs_op.bpf.c does it in @slot, without weights and TLB counts; @l is of DC_MISS_LAT. Return:
 * the latency that was counted.
 */
static inline __u32 count_sample(const struct layout *l, __u64 *slot, const __u64 *regs)
{
	const struct ibs_cpu cpu = { .caps = CAPS };
	__u64 data3 = regs[IBS_OP_DATA3];
	__u16 entry = l->entry[IBS_LAYOUT_IDX(ibs_op_kind(regs[IBS_OP_DATA], data3),
					      ibs_op_src(cpu, regs))];
	__u64 *words = slot + (entry & IBS_LAYOUT_WORD);

	if (entry & IBS_LAYOUT_HIST && ibs_op_dc_miss_lat_valid(data3)) {
		__u32 lat = ibs_op_metric(IBS_METRIC_DC_MISS_LAT, regs, data3);

		words[IBS_HIST_BUCKET + ibs_lat_bucket(lat)]++;
		words[IBS_HIST_SUM] += lat;
		return lat;
	}
	words[IBS_PAIR_SAMPLES]++;
	return 0;
}

#endif
