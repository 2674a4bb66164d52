/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decision core: the counters of a selected sample. */
#ifndef IBSCOPE_DECIDE_COUNT_H
#define IBSCOPE_DECIDE_COUNT_H

#include <ibscope/decide_cgroup.h>
#include <ibscope/decide_filter.h>
#include <ibscope/exposed.h>
#include <ibscope/fetch.h>

/* Ops that a sample counts for; needs cfg->weigh. */
static __always_inline __u64 sample_ops(core_t core, const struct sample *s)
{
	__u64 ops = core_config(core)->weigh >= IBS_WEIGH_TAG
			    ? READ_ONCE(core_control(core)->tag_ops)
			    : sample_period(s);

	/* `live` is in the line that every sample reads, `share` is not */
	if (READ_ONCE(core_state(core)->live) & IBS_LIVE_SHARED)
		ops = ops * READ_ONCE(core_state(core)->share) >> IBS_SHARE_SHIFT;
	return ops;
}

/* The same with IBS_WEIGH_STRATA. @word: the layout entry */
static __always_inline __u64 strata_ops(core_t core, __u32 word)
{
	const struct ibs_control *control = core_control(core);

	return word & IBS_LAYOUT_REACH ? READ_ONCE(control->reach_ops)
				       : READ_ONCE(control->tag_ops);
}

/* Called for every kind of sample; most have nothing to count. @slot: first words of the slot */
static __always_inline void count_tlb(core_t core, __u64 *slot, __u64 data3, const struct sample *s)
{
	core_cfg *cfg = core_config(core);
	const __u32 caps = cfg->ibs.caps;
	__u32 word = data3 & IBS_OP_DATA3_L2TLB_MISS ? IBS_TLB_L2_MISS : IBS_TLB_L2_HIT;

	if (!ibs_op_tlb_valid(caps, data3) || !(data3 & IBS_OP_DATA3_L1TLB_MISS))
		return;
	count_add(&slot[word], 1);
	if (cfg->weigh)
		count_add(&slot[word + IBS_TLB_L2_HIT_OPS], sample_ops(core, s));
	if (ibs_op_tlb_refill_lat_valid(caps, data3)) {
		count_add(&slot[IBS_TLB_REFILL_N], 1);
		count_add(&slot[IBS_TLB_REFILL_SUM],
			  ibs_op_metric(IBS_METRIC_TLB_REFILL_LAT, NULL, data3));
	}
}

/* @miss: words of the pair; @cycles: miss cycles of this load, which missed L1, DcMissLat valid */
static __always_inline void count_miss(core_cfg *cfg, __u64 *miss, const __u64 *regs, __u64 data3,
				       __u64 cycles)
{
	const struct ibs_cpu cpu = { .caps = cfg->ibs.caps, .quirks = cfg->ibs.quirks };
	__u64 data2 = data3 & IBS_OP_DATA3_L2_MISS ? regs[IBS_OP_DATA2] : 0;
	__u64 open = IBS_OP_DATA3_OPEN_REQS(data3);

	if (ibs_op_erratum_1293(cpu.quirks, data3))
		return;
	if (open) {
		count_add(&miss[IBS_MISS_OPEN_N], 1);
		count_add(&miss[IBS_MISS_OPEN], open);
	}
	if (ibs_op_reports_state(cpu, data2)) {
		count_add(&miss[IBS_MISS_STATE_N], 1);
		if (!(data2 & IBS_OP_DATA2_OWNED))
			count_add(&miss[IBS_MISS_HITM], cycles);
	}
}

/* @words: words of the pair; @ops: sample_ops(), if cfg->weigh */
static __always_inline void count_hist(core_t core, __u64 *words, const __u64 *regs, __u64 status,
				       __u64 ops, bool fetch)
{
	core_cfg *cfg = core_config(core);
	const __u32 metric = cfg->metric;
	__u32 lat = fetch ? ibs_fetch_metric(metric, regs, status)
			  : ibs_op_metric(metric, regs, status);
	/* for the verifier, which cannot follow the bucket arithmetic */
	__u32 bucket = ibs_lat_bucket(lat) & IBS_HIST_BUCKET_MASK;
	__u64 cycles = cfg->weigh ? lat * ops : lat;

	if (cfg->weigh)
		count_add(&words[IBS_HIST_CYCLES], cycles);
	if (!fetch && metric == IBS_METRIC_DC_MISS_LAT)
		count_miss(cfg, words + IBS_HIST_MISS, regs, status, cycles);
	count_add(&words[IBS_HIST_BUCKET + bucket], 1);
	count_add(&words[IBS_HIST_SUM], lat);
}

/* Few ops have a latency. Not inlined, so that the code of the others is contiguous. */
static __noinline int count_op_hist(core_t core, __u64 *words, const __u64 *regs, __u64 data3,
				    __u64 ops)
{
	if (ibs_op_metric_valid(core_config(core)->metric, core_config(core)->ibs.caps, data3))
		count_hist(core, words, regs, data3, ops, false);
	else
		count_add(&words[IBS_PAIR_SAMPLES], 1);
	return 0;
}

/*
 * Exposed cycles of a pair with a histogram. Not inlined, as above. @slot: its first word
 */
static __noinline int count_exposed(core_t core, __u64 *slot, const __u64 *regs, __u32 word,
				    __u64 ops)
{
	core_cfg *cfg = core_config(core);
	const __u64 data = regs[IBS_OP_DATA];
	__u64 data3;

	if (!ibs_op_blocked(data))
		return 0;
	data3 = regs[IBS_OP_DATA3];
	if (!ibs_op_dc_miss_lat_valid(data3))
		return 0;
	word = ibs_exposed_word(cfg->slot_words, word);
	if (!ibs_op_exposed_valid(cfg->ibs.quirks, data, data3))
		count_add(&slot[IBS_EXPOSED_UNKNOWN], 1);
	else if (word && word < cfg->slot_words)
		count_add(&slot[word], ops * ibs_op_exposed(data, data3));
	return 0;
}

/* @place: set by regs_select() */
static __always_inline __u32 aggregate(core_t core, const struct place *place,
				       const struct sample *s, bool fetch)
{
	__u32 index, hist = place->word & IBS_LAYOUT_HIST, word = place->word & IBS_LAYOUT_WORD;
	__u64 status = place->status, ops = 0, *slot, *words;
	core_cfg *cfg = core_config(core);

	if (cfg->weigh == IBS_WEIGH_STRATA) {
		ops = strata_ops(core, place->word);
		if (!ops)
			return IBS_OUTCOME_FILTERED_SRC;
	}
	index = slot_index(core, s->regs, fetch);
	slot = words = map_find(core, series, &index);
	if (!words || word > cfg->slot_words - IBS_HIST_REACH)
		return IBS_OUTCOME_LOST_INTERNAL;
	/* the filter lets through TLB misses of few ops only: the full stratum alone counts them */
	if (!fetch && cfg->tlb && (cfg->weigh != IBS_WEIGH_STRATA || sample_ops(core, s)))
		count_tlb(core, words, status, s);
	words += word;
	if (cfg->weigh) {
		if (cfg->weigh != IBS_WEIGH_STRATA)
			ops = sample_ops(core, s);
		count_add(&words[IBS_PAIR_OPS], ops);
	}
	if (!hist)
		count_add(&words[IBS_PAIR_SAMPLES], 1);
	else if (fetch)
		count_hist(core, words, s->regs, status, ops, true);
	else
		count_op_hist(core, words, s->regs, status, ops);
	if (hist && !fetch && cfg->exposed)
		count_exposed(core, slot, s->regs, word, cfg->weigh ? ops : 1);
	return IBS_OUTCOME_AGGREGATED;
}

#endif
