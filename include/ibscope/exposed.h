/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exposed cycles: an estimate of the time that retirement waited for the data of a load that missed
 * the L1 cache. Pure functions of register values, integer arithmetic.
 *
 * What is certain. Ops retire in order, so retirement waits for a load only if all older ops retired
 * before its data came; it then retires at once, and CompToRet is as small as it can be. A larger
 * CompToRet proves that older ops were what retirement waited for: such a load exposes nothing. And
 * the oldest load has its operands, so that retirement waits for its miss no longer than DcMissLat.
 *
 * What is estimated. Of the latency of a load that retirement waited for, part had passed while it
 * waited for older ops, whose misses were under way at the same time. The latency is shared equally
 * by the requests that were open when the data came: if N of equal latency are always under way,
 * one arrives every N-th part of it. The estimate says nothing of the wait for one load, only for
 * many, and is too low rather than too high: where misses begin together, the first one has all of
 * the wait. Loads that joined a miss count like others, since that may have been a prefetch.
 *
 * The estimate needs every op to be sampled with the same probability, so an event that counts ops.
 * An event that counts cycles tags what is dispatched after a stall, not what stalled. Nothing is
 * known of stores, which retire before they miss: they have no DcMissLat.
 *
 * Sources: AMD, Processor Programming Reference, IBS_OP_DATA (CompToRetCtr) and IBS_OP_DATA3
 * (DcMissLat; OpDcMissOpenMemReqs: miss buffers in use when the data came, with that of this load;
 * 0: no information). `make model` judges the estimate against a modelled core that knows the truth
 * (tests/model), and against what can be learnt from all fields.
 */
#ifndef IBSCOPE_EXPOSED_H
#define IBSCOPE_EXPOSED_H

#include <ibscope/op.h>

/*
 * The largest CompToRet, in cycles, of an op that retires at once. No document has the minimum; four
 * published samples (tests/data/seed.jsonl) have 1, 2, 2 and 512. In the model it is 1, and 2 makes
 * hardly a difference. `ibscope report --metric comp_to_ret` shows the values of a machine.
 */
#define IBS_EXPOSED_COMP_TO_RET 2

/* True if retirement waited for the op, or the op was ready just in time. */
static __always_inline bool ibs_op_blocked(__u64 data)
{
	return (data & 0xffff) <= IBS_EXPOSED_COMP_TO_RET;
}

/*
 * True if ibs_op_exposed() is known of a load with a valid DcMissLat. A load that retirement did not
 * wait for needs no count of open requests.
 */
static __always_inline bool ibs_op_exposed_valid(__u32 quirks, __u64 data, __u64 data3)
{
	if (!ibs_op_blocked(data))
		return true;
	return IBS_OP_DATA3_OPEN_REQS(data3) && !ibs_op_erratum_1293(quirks, data3);
}

/*
 * Cycles that retirement waited for a load, estimated; requires ibs_op_dc_miss_lat_valid() and
 * ibs_op_exposed_valid(), and an event that counts ops.
 */
static __always_inline __u32 ibs_op_exposed(__u64 data, __u64 data3)
{
	__u32 open = IBS_OP_DATA3_OPEN_REQS(data3), lat = data3 >> 32 & 0xffff;

	return ibs_op_blocked(data) ? lat / (open ?: 1) : 0;
}

#endif
