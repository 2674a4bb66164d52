/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a governor can be at, and why: of src/governor.h, and of the collector's status. */
#ifndef IBSCOPE_GOVERNOR_TABLES_H
#define IBSCOPE_GOVERNOR_TABLES_H

/* X(NAME, "name", "meaning") */
#define GOVERNOR_STATE_TABLE(X)                                                             \
	X(OFF, "off", "no budget: the period stays as it was asked for")                    \
	X(AT_RATE, "at_rate", "the period asked for keeps the budget")                      \
	X(BACKED_OFF, "backed_off", "a longer period than asked for keeps the budget")      \
	X(RETURNING, "returning", "the same, and it was shortened since it was lengthened") \
	X(STOPPED, "stopped", "nothing is sampled; it is tried again after a while")

enum governor_state {
#define GOVERNOR_STATE_ENUM(NAME, ...) GOVERNOR_STATE_##NAME,
	GOVERNOR_STATE_TABLE(GOVERNOR_STATE_ENUM)
#undef GOVERNOR_STATE_ENUM
		GOVERNOR_STATE_N
};

/* Why a state is not at_rate, and why periods were changed. X(NAME, "name", "meaning") */
#define GOVERNOR_REASON_TABLE(X)                                                                   \
	X(NONE, "none", "nothing")                                                                 \
	X(BUDGET, "budget", "the estimated cost was above the budget")                             \
	X(THROTTLED, "throttled", "the kernel throttled sampling")                                 \
	X(KERNEL_LIMIT, "kernel_limit", "a CPU came to half of kernel.perf_event_max_sample_rate") \
	X(BPF_SLOW, "bpf_slow", "the BPF program took too long")                                   \
	X(MEMORY, "memory", "the collector's memory was above its bound")                          \
	X(CALM, "calm", "less was going on: the period was shortened, or sampling tried again")

enum governor_reason {
#define GOVERNOR_REASON_ENUM(NAME, ...) GOVERNOR_REASON_##NAME,
	GOVERNOR_REASON_TABLE(GOVERNOR_REASON_ENUM)
#undef GOVERNOR_REASON_ENUM
		GOVERNOR_REASON_N
};

#endif
