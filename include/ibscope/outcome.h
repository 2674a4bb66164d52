/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Outcomes of a sample. Every run of the program counts exactly one. */
#ifndef IBSCOPE_OUTCOME_H
#define IBSCOPE_OUTCOME_H

/*
 * X(NAME, kind, "reason", "meaning"). KIND is its line in the ledger: seen = aggregated + forwarded
 * + sum of filtered + sum of lost. "reason" is the JSON key and the metric label. The first
 * IBS_OUTCOME_FIRST_LINE rows share the cache line that every sample touches (ibs_cpu_state).
 */
#define IBS_OUTCOME_TABLE(X)                                                                  \
	X(AGGREGATED, AGGREGATED, "aggregated", "added to a histogram")                       \
	X(FILTERED_PID, FILTERED, "pid", "process not selected")                              \
	X(FILTERED_CGROUP, FILTERED, "cgroup", "cgroup not selected")                         \
	X(FILTERED_LAT, FILTERED, "latency", "latency outside the range, or not valid")       \
	X(FORWARDED, FORWARDED, "forwarded", "sent as a record")                              \
	X(FILTERED_TID, FILTERED, "tid", "thread not selected")                               \
	X(FILTERED_COMM, FILTERED, "comm", "thread name not selected")                         \
	X(FILTERED_OP, FILTERED, "op", "kind of op not selected")                             \
	X(FILTERED_SRC, FILTERED, "src", "data source not selected")                          \
	X(FILTERED_MODE, FILTERED, "mode", "user or kernel mode not selected")                \
	X(FILTERED_TLB, FILTERED, "tlb", "dTLB level not selected")                           \
	X(FILTERED_TLB_LAT, FILTERED, "tlb_latency", "refill latency outside the range")      \
	X(FILTERED_PAGE_SIZE, FILTERED, "page_size", "page size not selected")                \
	X(FILTERED_RMT_NODE, FILTERED, "remote_node", "node of the memory not selected")      \
	X(FILTERED_ADDR, FILTERED, "addr", "data address not selected")                       \
	X(FILTERED_IP, FILTERED, "ip", "address of the op not selected")                      \
	X(FILTERED_EXPR, FILTERED, "filter", "rejected by the --filter expression")           \
	X(LOST_NO_RAW, LOST, "no_raw", "the kernel attached no registers")                    \
	X(LOST_BAD_RAW, LOST, "bad_raw", "register record truncated")                          \
	X(LOST_READ, LOST, "read_fault", "cannot read the registers")                         \
	X(LOST_INTERNAL, LOST, "internal", "no room in the layout: a bug")                    \
	X(LOST_LEASE, LOST, "lease", "no collector has renewed its lease")                    \
	X(LOST_RING_FULL, LOST, "ring_full", "no room for a record: the reader is behind")     \
	X(LOST_OVERWRITTEN, LOST, "overwritten", "replaced by a newer record")
#define IBS_OUTCOME_FIRST_LINE 4
#define IBS_OUTCOME_ROOM       26 /* room for new outcomes, which then change no layout */

enum ibs_outcome_kind {
	IBS_OUTCOME_KIND_AGGREGATED,
	IBS_OUTCOME_KIND_FORWARDED,
	IBS_OUTCOME_KIND_FILTERED,
	IBS_OUTCOME_KIND_LOST,
	IBS_OUTCOME_KIND_N
};

enum ibs_outcome {
#define IBS_OUTCOME_ENUM(name, ...) IBS_OUTCOME_##name,
	IBS_OUTCOME_TABLE(IBS_OUTCOME_ENUM)
#undef IBS_OUTCOME_ENUM
		IBS_OUTCOME_N
};

#endif
