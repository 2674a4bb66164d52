/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* States of the governor (src/face/collector/governor.h) and the reasons for them, as in the status. */
#ifndef IBSCOPE_GOVERNOR_TABLES_H
#define IBSCOPE_GOVERNOR_TABLES_H

/* X(NAME, "name", "meaning") */
#define GOVERNOR_STATE_TABLE(X)                                                             \
	X(OFF, "off", "no budget: the period is as configured")                    \
	X(AT_RATE, "at_rate", "the configured period stays within the budget")                     \
	X(BACKED_OFF, "backed_off", "a period longer than configured stays within the budget")     \
	X(RETURNING, "returning", "as backed_off, and the period is being lowered") \
	X(STOPPED, "stopped", "sampling is suspended")

enum governor_state {
#define GOVERNOR_STATE_ENUM(NAME, ...) GOVERNOR_STATE_##NAME,
	GOVERNOR_STATE_TABLE(GOVERNOR_STATE_ENUM)
#undef GOVERNOR_STATE_ENUM
		GOVERNOR_STATE_N
};

/* Why a state is not at_rate, and why the period was changed. X(NAME, "name", "meaning") */
#define GOVERNOR_REASON_TABLE(X)                                                                   \
	X(NONE, "none", "nothing")                                                                 \
	X(BUDGET, "budget", "the estimated cost was above the budget")                             \
	X(THROTTLED, "throttled", "the kernel throttled sampling")                                 \
	X(KERNEL_LIMIT, "kernel_limit", "a CPU reached half of kernel.perf_event_max_sample_rate") \
	X(BPF_SLOW, "bpf_slow", "the BPF program took too long")                                   \
	X(MEMORY, "memory", "the collector's memory was above its limit")                          \
	X(CALM, "calm", "the cost is low enough to lower the period or to sample again")

enum governor_reason {
#define GOVERNOR_REASON_ENUM(NAME, ...) GOVERNOR_REASON_##NAME,
	GOVERNOR_REASON_TABLE(GOVERNOR_REASON_ENUM)
#undef GOVERNOR_REASON_ENUM
		GOVERNOR_REASON_N
};

#endif
