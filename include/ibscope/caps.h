/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * IBS capabilities: CPUID Fn8000_001B EAX, which every raw sample also carries in front of its
 * registers, and the errata implied by family and model.
 */
#ifndef IBSCOPE_CAPS_H
#define IBSCOPE_CAPS_H

#include <ibscope/types.h>

/*
 * X(bit, NAME, "meaning", "first generation that has it"). Names follow Linux
 * arch/x86/include/asm/perf_event.h (7.2). Bits 17 and 18 have no published meaning.
 */
#define IBS_CAPS_TABLE(X)                                                                  \
	X(0, AVAIL, "capability word valid", "10h")                                        \
	X(1, FETCHSAM, "fetch sampling", "10h")                                            \
	X(2, OPSAM, "op sampling", "10h")                                                  \
	X(3, RDWROPCNT, "op counter readable and writable", "10h")                         \
	X(4, OPCNT, "op counting (cnt_ctl)", "10h")                                        \
	X(5, BRNTRGT, "branch target register", "15h")                                     \
	X(6, OPCNTEXT, "27-bit op counter", "15h")                                         \
	X(7, RIPINVALIDCHK, "RipInvalid reported", "15h")                                  \
	X(8, OPBRNFUSE, "fused branches reported", "Zen")                                  \
	X(9, FETCHCTLEXTD, "iTLB refill latency register", "Zen")                          \
	X(10, OPDATA4, "IBS_OP_DATA4 register", "pre-Zen")                                 \
	X(11, ZEN4, "L3 miss filter, 5-bit DataSrc", "Zen 4")                              \
	X(12, OPLDLAT, "load latency filter (ldlat)", "Zen 5")                             \
	X(13, DIS, "alternate disable bit (CTL2)", "Zen 6")                                \
	X(14, FETCHLAT, "fetch latency filter (fetchlat)", "Zen 6")                        \
	X(15, BIT63_FILTER, "user/kernel filter on RIP bit 63", "Zen 6")                   \
	X(16, STRMST_RMTSOCKET, "streaming-store filter, remote-socket bit", "Zen 6")      \
	X(19, OPDTLBPGSIZE, "dTLB page size encoding", "Zen 5")

enum ibs_caps {
#define IBS_CAPS_ENUM(bit, name, meaning, gen) IBS_CAPS_##name = 1 << (bit),
	IBS_CAPS_TABLE(IBS_CAPS_ENUM)
#undef IBS_CAPS_ENUM
};

/* What Linux assumes when the CPUID leaf is missing or not valid. */
#define IBS_CAPS_DEFAULT 0x7u

/*
 * X(NAME, erratum or rule, first family, first model, last family, last model, effect, who handles
 * it). Sources: Linux arch/x86/events/amd/ibs.c and tools/perf/util/amd-sample-raw.c (7.2), AMD
 * revision guides. The decoder must handle all rows that affect a field.
 */
#define IBS_QUIRK_TABLE(X)                                                                 \
	X(OP_1293, "erratum 1293", 0x19, 0x00, 0x19, 0x0f,                                 \
	  "DataSrc, L2Miss and OpDcMissOpenMemReqs of software prefetches and of hits on " \
	  "an outstanding miss are not valid", "decode")                                   \
	X(NO_CACHE_HIT_ST_A, "no CacheHitSt", 0x19, 0x00, 0x19, 0x0f,                      \
	  "the state of the line in another cache is not reported", "decode")              \
	X(NO_CACHE_HIT_ST_B, "no CacheHitSt", 0x19, 0x20, 0x19, 0x5f,                      \
	  "the state of the line in another cache is not reported", "decode")              \
	X(FETCH_1197, "erratum 1197", 0x19, 0x00, 0x19, 0x0f,                              \
	  "fetch samples after CC6 carry no address", "kernel drops them")                 \
	X(FETCH_1238, "erratum 1238", 0x19, 0x00, 0x19, 0x0f,                              \
	  "IbsIcMiss of fetch samples is not valid", "decode")                             \
	X(FETCH_1347, "erratum 1347", 0x19, 0x00, 0x19, 0x0f,                              \
	  "fetch page size has another encoding (4K, 16K, 2M, 1G)", "decode")              \
	X(FETCH_NEEDS_PHY_A, "fetch status rule", 0x1a, 0x50, 0x1a, 0x5f,                  \
	  "fetch status is valid only with a physical address", "decode")                  \
	X(FETCH_NEEDS_PHY_B, "fetch status rule", 0x1a, 0x80, 0x1a, 0xaf,                  \
	  "fetch status is valid only with a physical address", "decode")                  \
	X(FETCH_NEEDS_PHY_C, "fetch status rule", 0x1a, 0xc0, 0x1a, 0xcf,                  \
	  "fetch status is valid only with a physical address", "decode")                  \
	X(FETCH_NEEDS_PHY_D, "fetch status rule", 0x1b, 0x00, 0xff, 0xff,                  \
	  "fetch status is valid only with a physical address", "decode")                  \
	X(LDLAT_1606_A, "erratum 1606", 0x1a, 0x00, 0x1a, 0x4f,                            \
	  "ldlat captures unwanted samples unless L3MissOnly is set too",                  \
	  "kernel forces l3missonly")                                                      \
	X(LDLAT_1606_B, "erratum 1606", 0x1a, 0x60, 0x1a, 0x7f,                            \
	  "ldlat captures unwanted samples unless L3MissOnly is set too",                  \
	  "kernel forces l3missonly")                                                      \
	X(FETCH_RESET, "fetch count not reset", 0x16, 0x00, 0x18, 0xff,                    \
	  "the fetch counter needs an enable toggle", "kernel toggles it")                 \
	X(OP_420, "erratum 420", 0x10, 0x00, 0x10, 0xff,                                   \
	  "a pending sample interrupt cannot be cleared", "kernel clears MaxCnt first")

enum ibs_quirk_nr {
#define IBS_QUIRK_NR(name, ...) IBS_QUIRK_NR_##name,
	IBS_QUIRK_TABLE(IBS_QUIRK_NR)
#undef IBS_QUIRK_NR
	IBS_QUIRK_N
};

enum ibs_quirk {
#define IBS_QUIRK_ENUM(name, ...) IBS_QUIRK_##name = 1 << IBS_QUIRK_NR_##name,
	IBS_QUIRK_TABLE(IBS_QUIRK_ENUM)
#undef IBS_QUIRK_ENUM
};

#define IBS_QUIRK_NO_CACHE_HIT_ST (IBS_QUIRK_NO_CACHE_HIT_ST_A | IBS_QUIRK_NO_CACHE_HIT_ST_B)
#define IBS_QUIRK_FETCH_NEEDS_PHY                                   \
	(IBS_QUIRK_FETCH_NEEDS_PHY_A | IBS_QUIRK_FETCH_NEEDS_PHY_B | \
	 IBS_QUIRK_FETCH_NEEDS_PHY_C | IBS_QUIRK_FETCH_NEEDS_PHY_D)

/**
 * ibs_quirks() - rows of IBS_QUIRK_TABLE that apply to a processor
 * @family: CPUID family, extended family included (0x19 for Zen 3 and 4)
 * @model:  CPUID model, extended model included
 *
 * Return: IBS_QUIRK_* bits.
 */
static inline __u32 ibs_quirks(__u32 family, __u32 model)
{
	__u32 id = family << 8 | model, q = 0;

#define IBS_QUIRK_TEST(name, erratum, f0, m0, f1, m1, ...)           \
	if (id >= ((f0) << 8 | (m0)) && id <= ((f1) << 8 | (m1)))     \
		q |= IBS_QUIRK_##name;
	IBS_QUIRK_TABLE(IBS_QUIRK_TEST)
#undef IBS_QUIRK_TEST
	return q;
}

/* The processor that took a sample, as far as decoding depends on it. */
struct ibs_cpu {
	__u32 caps;   /* IBS_CAPS_* bits, from the sample or CPUID */
	__u32 quirks; /* IBS_QUIRK_* bits */
};

#endif
