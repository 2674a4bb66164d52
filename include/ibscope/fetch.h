/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Meaning of an ibs_fetch sample, as far as the BPF program needs it in the NMI; op.h is the
 * counterpart for ibs_op. fetch_fields.h has all fields.
 */
#ifndef IBSCOPE_FETCH_H
#define IBSCOPE_FETCH_H

#include <ibscope/op.h>

/* Order in the raw record (Linux ibs.c, perf_ibs_handle_irq), after a u32 of caps. */
enum ibs_fetch_reg {
	IBS_FETCH_CTL,
	IBS_FETCH_LINADDR,
	IBS_FETCH_PHYSADDR,
	IBS_FETCH_REG_FIXED,		      /* registers that every record has */
	IBS_FETCH_EXTD = IBS_FETCH_REG_FIXED, /* with IBS_CAPS_FETCHCTLEXTD */
	IBS_FETCH_REG_N,
};

#define IBS_FETCH_RAW_MIN (4 + 8 * IBS_FETCH_REG_FIXED)

#define IBS_FETCH_CTL_STATUS	 50 /* first of the status bits */
#define IBS_FETCH_CTL_COMP	 IBS_BIT(50)
#define IBS_FETCH_CTL_IC_MISS	 IBS_BIT(51)
#define IBS_FETCH_CTL_PHY_VALID	 IBS_BIT(52)
#define IBS_FETCH_CTL_L1TLB_MISS IBS_BIT(55)
#define IBS_FETCH_CTL_L2TLB_MISS IBS_BIT(56)
#define IBS_FETCH_CTL_L2_MISS	 IBS_BIT(58)
#define IBS_FETCH_CTL_OC_MISS	 IBS_BIT(60)
#define IBS_FETCH_CTL_L3_MISS	 IBS_BIT(61)

/* True if the record has every register that processors with @caps report, and no partial one. */
static __always_inline bool ibs_fetch_raw_size_ok(__u32 caps, __u32 bytes)
{
	__u32 least = IBS_FETCH_RAW_MIN + (caps & IBS_CAPS_FETCHCTLEXTD ? 8 : 0);

	return bytes >= least && (bytes & 7) == 4;
}

/* True if the status bits are valid; some processors report them only with a physical address. */
static __always_inline bool ibs_fetch_status_valid(struct ibs_cpu cpu, __u64 ctl)
{
	return !(cpu.quirks & IBS_QUIRK_FETCH_NEEDS_PHY) || (ctl & IBS_FETCH_CTL_PHY_VALID);
}

/*
 * Result of a fetch: each sample has exactly one. X(NAME, "name", "meaning"). "Completed",
 * "aborted" and "killed" follow oprofile (opd_ibs_macro.h) and uProf.
 */
#define IBS_FETCH_CLASS_TABLE(X)                                                                  \
	X(UNKNOWN, "unknown", "not valid")                                                        \
	X(OP_CACHE, "op-cache", "completed, from the op cache (from Zen 4 on)")                   \
	X(L1, "l1", "completed, from the L1 instruction cache; before Zen 4 also the op cache")   \
	X(L1_L2, "l1-l2", "completed, from L1 or L2: Zen 3 does not report which (erratum 1238)") \
	X(L2, "l2", "completed, from the L2 cache")                                               \
	X(L3, "l3", "completed, from the L3 cache (from Zen 4 on)")                               \
	X(L2_MISS, "l2-miss", "completed, missed the L2 cache (before Zen 4)")                    \
	X(L3_MISS, "l3-miss", "completed, missed the L3 cache (from Zen 4 on)")                   \
	X(ABORTED, "aborted", "did not complete; also killed ones where status needs an address") \
	X(KILLED, "killed", "did not complete; no cache or TLB miss, no address")

enum ibs_fetch_class {
#define IBS_FETCH_CLASS_ENUM(name, ...) IBS_FETCH_CLASS_##name,
	IBS_FETCH_CLASS_TABLE(IBS_FETCH_CLASS_ENUM)
#undef IBS_FETCH_CLASS_ENUM
		IBS_FETCH_CLASS_N
};

static __always_inline enum ibs_fetch_class ibs_fetch_class(struct ibs_cpu cpu, __u64 ctl)
{
	__u64 met = IBS_FETCH_CTL_PHY_VALID | IBS_FETCH_CTL_L1TLB_MISS | IBS_FETCH_CTL_L2TLB_MISS;
	const bool no_ic_miss = cpu.quirks & IBS_QUIRK_FETCH_1238;

	if (!(ctl & IBS_FETCH_CTL_COMP)) {
		if (!no_ic_miss)
			met |= IBS_FETCH_CTL_IC_MISS;
		return (ctl & met) || !ibs_fetch_status_valid(cpu, ctl) ? IBS_FETCH_CLASS_ABORTED
									: IBS_FETCH_CLASS_KILLED;
	}
	if (!ibs_fetch_status_valid(cpu, ctl))
		return IBS_FETCH_CLASS_UNKNOWN;
	if (no_ic_miss)
		return ctl & IBS_FETCH_CTL_L2_MISS ? IBS_FETCH_CLASS_L2_MISS
						   : IBS_FETCH_CLASS_L1_L2;
	if (!(ctl & IBS_FETCH_CTL_IC_MISS))
		return (cpu.caps & IBS_CAPS_ZEN4) && !(ctl & IBS_FETCH_CTL_OC_MISS)
			       ? IBS_FETCH_CLASS_OP_CACHE
			       : IBS_FETCH_CLASS_L1;
	if (!(ctl & IBS_FETCH_CTL_L2_MISS))
		return IBS_FETCH_CLASS_L2;
	if (!(cpu.caps & IBS_CAPS_ZEN4))
		return IBS_FETCH_CLASS_L2_MISS;
	return ctl & IBS_FETCH_CTL_L3_MISS ? IBS_FETCH_CLASS_L3_MISS : IBS_FETCH_CLASS_L3;
}

/*
 * Page size code: 0 4K, 1 16K, 2 2M, 3 1G, 4 unknown. Only the encoding of erratum 1347 has 16K
 * pages; elsewhere the hardware codes are 4K, 2M, 1G and reserved.
 */
#define IBS_FETCH_PAGE_BYTES(code) (1ULL << ((code) < 2 ? 12 + 2 * (code) : 3 + 9 * (code)))

static __always_inline __u32 ibs_fetch_page_code(struct ibs_cpu cpu, __u64 ctl)
{
	__u32 code = ctl >> 53 & 3;

	if (!(ctl & IBS_FETCH_CTL_PHY_VALID))
		return 4;
	return (cpu.quirks & IBS_QUIRK_FETCH_1347) || !code ? code : code + 1;
}

/*
 * How the address was translated: each sample has exactly one. X(NAME, "name", "meaning"). Not
 * missing counts as a hit only with an address. Walks are in the order of ibs_fetch_page_code().
 */
#define IBS_FETCH_ITLB_TABLE(X)                                       \
	X(UNKNOWN, "unknown", "not valid, or not translated")         \
	X(L1, "l1", "hit the L1 ITLB")                                \
	X(L2, "l2", "missed the L1 ITLB, hit the L2 ITLB")            \
	X(WALK_4K, "walk-4k", "missed both: a page walk, 4 KiB page") \
	X(WALK_16K, "walk-16k", "a page walk, 16 KiB page (Zen 3)")   \
	X(WALK_2M, "walk-2m", "a page walk, 2 MiB page")              \
	X(WALK_1G, "walk-1g", "a page walk, 1 GiB page")              \
	X(WALK, "walk", "a page walk, page size not reported")

enum ibs_fetch_itlb {
#define IBS_FETCH_ITLB_ENUM(name, ...) IBS_FETCH_ITLB_##name,
	IBS_FETCH_ITLB_TABLE(IBS_FETCH_ITLB_ENUM)
#undef IBS_FETCH_ITLB_ENUM
		IBS_FETCH_ITLB_N
};

static __always_inline enum ibs_fetch_itlb ibs_fetch_itlb(struct ibs_cpu cpu, __u64 ctl)
{
	if (!ibs_fetch_status_valid(cpu, ctl))
		return IBS_FETCH_ITLB_UNKNOWN;
	if (!(ctl & IBS_FETCH_CTL_L1TLB_MISS))
		return ctl & IBS_FETCH_CTL_PHY_VALID ? IBS_FETCH_ITLB_L1 : IBS_FETCH_ITLB_UNKNOWN;
	if (!(ctl & IBS_FETCH_CTL_L2TLB_MISS))
		return IBS_FETCH_ITLB_L2;
	return (enum ibs_fetch_itlb)(IBS_FETCH_ITLB_WALK_4K + ibs_fetch_page_code(cpu, ctl));
}

/* Linux 7.2 zeroes the address for unprivileged users but leaves the valid bit set. */
static __always_inline bool ibs_fetch_phys_valid(const __u64 *regs)
{
	return (regs[IBS_FETCH_CTL] & IBS_FETCH_CTL_PHY_VALID) && regs[IBS_FETCH_PHYSADDR];
}

/* User or kernel mode, by the fetch address. */
static __always_inline enum ibs_mode ibs_fetch_mode(__u64 linaddr)
{
	if (!linaddr) /* erratum 1197 */
		return IBS_MODE_UNKNOWN;
	return linaddr >> 63 ? IBS_MODE_KERNEL : IBS_MODE_USER;
}

/* A latency requires a completed fetch, a refill latency an L1 ITLB miss. */
static __always_inline bool ibs_fetch_metric_valid(enum ibs_metric m, struct ibs_cpu cpu, __u64 ctl)
{
	if (!ibs_fetch_status_valid(cpu, ctl))
		return false;
	if (m == IBS_METRIC_FETCH_LAT)
		return ctl & IBS_FETCH_CTL_COMP;
	return (cpu.caps & IBS_CAPS_FETCHCTLEXTD) && (ctl & IBS_FETCH_CTL_L1TLB_MISS);
}

/* Cycles of a metric; requires ibs_fetch_metric_valid(). @ctl is regs[IBS_FETCH_CTL]. */
static __always_inline __u32 ibs_fetch_metric(enum ibs_metric m, const __u64 *regs, __u64 ctl)
{
	if (m == IBS_METRIC_FETCH_LAT)
		return ctl >> 32 & 0xffff;
	return regs[IBS_FETCH_EXTD] & 0xffff;
}

#endif
