// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "counts.h"

#include <ibscope/fetch.h>
#include <string.h>

/* Run the decoder over all combinations of the bits that it tests, instead of listing pairs. */
static const __u64 data3_bits[] = {
	IBS_OP_DATA3_LD_OP,   IBS_OP_DATA3_ST_OP,      IBS_OP_DATA3_L1TLB_MISS,
	IBS_OP_DATA3_DC_MISS, IBS_OP_DATA3_UC_MEM_ACC, IBS_OP_DATA3_LOCKED_OP,
	IBS_OP_DATA3_NO_MAB,  IBS_OP_DATA3_LIN_VALID,  IBS_OP_DATA3_PHY_VALID,
	IBS_OP_DATA3_L2_MISS, IBS_OP_DATA3_SW_PF,
};
#define DATA3_BITS (sizeof(data3_bits) / sizeof(data3_bits[0]))
#define DATA2_BITS (7 | IBS_OP_DATA2_RMT_NODE | 3 << 6) /* DataSrc has two parts */

static void mark(bool can[IBS_LAYOUT_ENTRIES], bool hist[IBS_LAYOUT_ENTRIES],
		 enum ibs_metric metric, __u32 caps, __u64 data, __u64 data2, __u64 data3)
{
	/* errata only replace sources by others that occur anyway; still, try both */
	for (__u32 quirks = 0;; quirks = ~0U) {
		struct ibs_cpu cpu = { .caps = caps, .quirks = quirks };
		const __u64 regs[] = { [IBS_OP_DATA2] = data2, [IBS_OP_DATA3] = data3 };
		unsigned int i = IBS_LAYOUT_IDX(ibs_op_kind(data, data3), ibs_op_src(cpu, regs));

		can[i] = true;
		if (ibs_op_metric_valid(metric, caps, data3))
			hist[i] = true;
		if (quirks)
			return;
	}
}

static void mark_ops(bool can[IBS_LAYOUT_ENTRIES], bool hist[IBS_LAYOUT_ENTRIES],
		     enum ibs_metric metric, __u32 caps)
{
	for (unsigned int m = 0; m < 1U << DATA3_BITS; m++) {
		__u64 data3 = 0;

		for (unsigned int b = 0; b < DATA3_BITS; b++)
			if (m >> b & 1)
				data3 |= data3_bits[b];
		for (__u64 data2 = 0; data2 <= DATA2_BITS; data2++)
			if (!(data2 & ~DATA2_BITS))
				mark(can, hist, metric, caps, 0, data2, data3);
		mark(can, hist, metric, caps, IBS_OP_DATA_BRN_RET, 0, data3);
	}
}

/* The same for fetches, with all combinations of status bits; CPUs with quirks have these caps. */
static void mark_fetches(bool can[IBS_LAYOUT_ENTRIES], bool hist[IBS_LAYOUT_ENTRIES],
			 enum ibs_metric metric, __u32 caps)
{
	const __u32 quirks[] = { 0, caps & IBS_CAPS_ZEN4
					    ? IBS_QUIRK_FETCH_NEEDS_PHY
					    : IBS_QUIRK_FETCH_1238 | IBS_QUIRK_FETCH_1347 };

	for (__u64 status = 0; status < 2 << 12; status++) { /* CTL[50..61] */
		const struct ibs_cpu cpu = { .caps = caps, .quirks = quirks[status & 1] };
		const __u64 ctl = status >> 1 << 50;
		unsigned int i =
			IBS_LAYOUT_IDX(ibs_fetch_itlb(cpu, ctl), ibs_fetch_class(cpu, ctl));

		can[i] = true;
		hist[i] |= ibs_fetch_metric_valid(metric, cpu, ctl);
	}
}

void layout_init(struct layout *l, enum ibs_metric metric, __u32 caps)
{
	bool can[IBS_LAYOUT_ENTRIES] = {}, hist[IBS_LAYOUT_ENTRIES] = {};

	(ibs_metric_of_fetch(metric) ? mark_fetches : mark_ops)(can, hist, metric, caps);
	memset(l, 0, sizeof(*l));
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
		l->entry[i] = IBS_OUTCOME_LOST_INTERNAL; /* the pair cannot occur */
	l->words = IBS_LAYOUT_FIRST;
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		if (!can[i] || hist[i])
			continue;
		l->entry[i] = l->words;
		l->words += IBS_PLAIN_WORDS;
	}
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		if (!can[i] || !hist[i])
			continue;
		l->entry[i] = l->words | IBS_LAYOUT_HIST;
		l->words += IBS_HIST_WORDS;
		l->hists++;
	}
	l->words += IBS_HIST_REACH - IBS_HIST_WORDS;
}

void layout_filter(struct layout *l, __u32 op_mask, __u32 src_mask)
{
	for (unsigned int i = 0; i < IBS_LAYOUT_ENTRIES; i++) {
		if (!layout_has(l, i))
			continue;
		if (!(op_mask >> (i & 7) & 1))
			l->entry[i] = IBS_OUTCOME_FILTERED_OP;
		else if (!(src_mask >> (i >> 3) & 1))
			l->entry[i] = IBS_OUTCOME_FILTERED_SRC;
	}
}
