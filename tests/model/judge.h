/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How far estimates made from IBS registers are from the truth of the model. */
#ifndef MODEL_JUDGE_H
#define MODEL_JUDGE_H

#include "core.h"
#include "stream.h"

/*
 * Estimates of the time that retirement waited for the data of a sampled load that missed. `lat`, `open` and `blocked`
 * are of the sample. X(NAME, "name", value, "meaning")
 */
#define JUDGE_TABLE(X)                                                                           \
	X(MISS_CYCLES, "miss", lat, "miss cycles: latency")                                      \
	X(SHARED, "shared", lat / open, "latency / open requests")                               \
	X(BLOCKING, "blocking", blocked ? lat : 0, "latency, if retirement waited")              \
	X(EXPOSED, "exposed", exposed, "exposed cycles: the same / open requests")               \
	X(PRIMARY, "primary", joined ? 0 : exposed, "exposed, but for loads that joined a miss") \
	X(GAP, "gap", blocked ? 2 * lat / (open + 1) : 0, "blocking x 2 / (open requests + 1)")  \
	X(LEARNT, "learnt", elsewhere,                                                           \
	  "mean share of the latency of loads with equal fields "                                \
	  "in the other streams")                                                                \
	X(BEST, "best", here, "the same in this very run: the best guess at the wait for each load")

enum judge_estimate {
#define JUDGE_ENUM(name, ...) JUDGE_##name,
	JUDGE_TABLE(JUDGE_ENUM)
#undef JUDGE_ENUM
		JUDGE_N
};

extern const char *const judge_names[JUDGE_N], *const judge_meanings[JUDGE_N];

/* Sums of loads with equal fields. */
#define JUDGE_CELLS (1u << 15)
struct judge_cells {
	double stall[JUDGE_CELLS], lat[JUDGE_CELLS];
};

struct judgement {
	double samples;	       /* error of samples alone */
	double error[JUDGE_N]; /* 0 to 1; NAN: not known */
	double total[JUDGE_N]; /* estimated cycles of all loads over true ones */
	double excess;	       /* of the stall of a load over its latency, cycles, at most */
	double hidden;	       /* stall cycles of loads that exposed nothing, by ibs_op_blocked() */
	struct model_run run;
};

/* What to sample: each op, as if there were infinitely many samples; or one of @period ops or cycles. */
struct judge_sampling {
	unsigned int period; /* 1: each op */
	bool by_cycles;
};

/*
 * Run a stream and judge the estimates by instruction. TEA (ISCA'23): the sum of |estimated share - true share| of
 * instructions, halved. Of instructions that load, by the cycles in which retirement waited for them; loads that hit L1 among
 * them, of which no estimate is made.
 * @elsewhere: sums of other streams; @here: filled with those of this run; both or none
 */
void judge(const struct model_core *core, const struct stream_kind *kind, uint64_t seed,
	   uint64_t ops, struct judge_sampling sampling, const struct judge_cells *elsewhere,
	   struct judge_cells *here, struct judgement *out);

/* A core between small and large ones of the last ten years, from a seed. */
struct model_core judge_core(uint64_t seed);

#endif
