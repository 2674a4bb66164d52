/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields of an ibs_fetch sample that a filter can test, besides IBS_FILTER_TASK_TABLE. */
#ifndef IBSCOPE_FETCH_FILTER_FIELDS_H
#define IBSCOPE_FETCH_FILTER_FIELDS_H

#include <ibscope/fetch.h>
#include <ibscope/filter_fields.h>

/* When a field is valid: X(NAME, condition, "in words"). */
#define IBS_FETCH_WHEN_TABLE(X)                                                               \
	X(ALWAYS, true, "always")                                                             \
	X(ZEN4, cpu.caps &IBS_CAPS_ZEN4, "Zen 4 or later")                                    \
	X(STATUS, status, "status valid")                                                     \
	X(DONE, status && (ctl & IBS_FETCH_CTL_COMP), "fetch completed, status valid")        \
	X(DONE_ZEN4, status && (ctl & IBS_FETCH_CTL_COMP) && (cpu.caps & IBS_CAPS_ZEN4),      \
	  "fetch completed, status valid; Zen 4 or later")                                    \
	X(IC_MISS, status && !(cpu.quirks & IBS_QUIRK_FETCH_1238), "status valid; not Zen 3") \
	X(L1TLB, status && (ctl & (IBS_FETCH_CTL_L1TLB_MISS | IBS_FETCH_CTL_PHY_VALID)),      \
	  "status valid, and missed the L1 ITLB or has a physical address")                   \
	X(L2TLB, status && (ctl & IBS_FETCH_CTL_L1TLB_MISS), "status valid, L1 ITLB missed")  \
	X(REFILL, ibs_fetch_metric_valid(IBS_METRIC_ITLB_REFILL_LAT, cpu, ctl),               \
	  "status valid, L1 ITLB missed; Zen or later")                                       \
	X(PAGE, ibs_fetch_page_code(cpu, ctl) < 4, "physical address valid, page size known") \
	X(PHYS, ibs_fetch_phys_valid(s->regs), "physical address valid and not withheld")     \
	X(ADDR, s->regs[IBS_FETCH_LINADDR], "address known")                                  \
	X(CLASS, ibs_fetch_class(cpu, ctl) != IBS_FETCH_CLASS_UNKNOWN, "status valid")        \
	X(ITLB, ibs_fetch_itlb(cpu, ctl) != IBS_FETCH_ITLB_UNKNOWN,                           \
	  "status valid, and missed the L1 ITLB or has a physical address")

/* Like IBS_FILTER_FIELD_TABLE. Options compile to the names that ibs_op has, too. */
#define IBS_FETCH_FILTER_TABLE(X)                                                                  \
	X(LAT, "fetch_lat", "lat", NUM, 0xffff, 0, DONE, C(32, 16), "CTL[32..47]")                 \
	X(REFILL_LAT, "itlb_refill_lat", "tlb_refill_lat", NUM, 0xffff, 0, REFILL,                 \
	  s->regs[IBS_FETCH_EXTD] & 0xffff, "EXTD[0..15]")                                         \
	X(CLASS, "fetch", "", FETCH, IBS_FETCH_CLASS_N - 1, 0, CLASS, ibs_fetch_class(cpu, ctl),   \
	  "CTL[50..52,55,56,58,60,61]")                                                            \
	X(ITLB, "itlb", "", ITLB, IBS_FETCH_ITLB_N - 1, 0, ITLB, ibs_fetch_itlb(cpu, ctl),         \
	  "CTL[52..56]")                                                                           \
	X(PAGE_SIZE, "page_size", "code_pgsz,l1tlb_pgsz", PAGE_SIZE, 1ULL << 30, 0, PAGE,          \
	  IBS_FETCH_PAGE_BYTES(ibs_fetch_page_code(cpu, ctl)), "CTL[53,54]")                       \
	X(IP, "ip", "rip,fetch_lin_ad", HEX, ~0ULL, 0, ADDR, s->regs[IBS_FETCH_LINADDR],           \
	  "LINADDR")                                                                               \
	X(KERNEL, "kernel", "", FLAG, 1, 0, ADDR, s->regs[IBS_FETCH_LINADDR] >> 63, "LINADDR[63]") \
	X(USER, "user", "", FLAG, 1, 0, ADDR, !(s->regs[IBS_FETCH_LINADDR] >> 63),                 \
	  "LINADDR[63], inverted")                                                                 \
	X(PHYS_ADDR, "phys_addr", "fetch_phys_ad", HEX, ~0ULL, 0, PHYS,                            \
	  s->regs[IBS_FETCH_PHYSADDR], "PHYSADDR")                                                 \
	X(COMP, "fetch_comp", "comp", FLAG, 1, 0, ALWAYS, C(50, 1), "CTL[50]")                     \
	X(OC_MISS, "oc_miss", "fetch_oc_miss", FLAG, 1, 0, DONE_ZEN4, C(60, 1), "CTL[60]")         \
	X(IC_MISS, "ic_miss", "", FLAG, 1, 0, IC_MISS, C(51, 1), "CTL[51]")                        \
	X(L2_MISS, "l2_miss", "fetch_l2_miss", FLAG, 1, 0, DONE, C(58, 1), "CTL[58]")              \
	X(L3_MISS, "l3_miss", "fetch_l3_miss", FLAG, 1, 0, DONE_ZEN4, C(61, 1), "CTL[61]")         \
	X(L1TLB_MISS, "l1tlb_miss", "", FLAG, 1, 0, L1TLB, C(55, 1), "CTL[55]")                    \
	X(L2TLB_MISS, "l2tlb_miss", "", FLAG, 1, 0, L2TLB, C(56, 1), "CTL[56]")                    \
	X(PHY_VALID, "phy_addr_valid", "", FLAG, 1, 0, ALWAYS, C(52, 1), "CTL[52]")                \
	X(RAND_EN, "rand_en", "", FLAG, 1, 0, ALWAYS, C(57, 1), "CTL[57]")                         \
	X(L3_MISS_ONLY, "l3_miss_only", "", FLAG, 1, 0, ZEN4, C(59, 1), "CTL[59]")                 \
	X(MAXCNT, "fetch_maxcnt", "", NUM, 0xffff, 0, ALWAYS, C(0, 16), "CTL[0..15]")              \
	X(CNT, "fetch_cnt", "", NUM, 0xffff, 0, ALWAYS, C(16, 16), "CTL[16..31]")

/* Numbered after those of ibs_op: one array of names holds all. */
enum ibs_fetch_filter_when {
	IBS_FETCH_WHEN_FIRST = IBS_FILTER_WHEN_N - 1,
#define IBS_FETCH_WHEN_ENUM(NAME, ...) IBS_FETCH_WHEN_##NAME,
	IBS_FETCH_WHEN_TABLE(IBS_FETCH_WHEN_ENUM)
#undef IBS_FETCH_WHEN_ENUM
		IBS_FETCH_WHEN_END
};

enum ibs_fetch_filter_field {
	IBS_FETCH_FILTER_FIRST = IBS_FILTER_FIELD_N - 1,
#define IBS_FETCH_FILTER_ENUM(NAME, ...) IBS_FETCH_FILTER_##NAME,
	IBS_FETCH_FILTER_TABLE(IBS_FETCH_FILTER_ENUM)
#undef IBS_FETCH_FILTER_ENUM
		IBS_FETCH_FILTER_END
};

/* Like ibs_filter_value(). */
static __always_inline bool ibs_fetch_filter_value(__u32 when, __u32 field,
						   const struct ibs_filter_sample *s, __u64 *value)
{
	const struct ibs_cpu cpu = { .caps = s->ibs->caps, .quirks = s->ibs->quirks };
	const __u64 ctl = s->regs[IBS_FETCH_CTL];
	const bool status = ibs_fetch_status_valid(cpu, ctl);

	switch (when) {
	case IBS_FILTER_WHEN_ALWAYS:
		break;
#define IBS_FETCH_CASE(NAME, condition, words) \
	case IBS_FETCH_WHEN_##NAME:            \
		if (!(condition))              \
			return false;          \
		break;
		IBS_FETCH_WHEN_TABLE(IBS_FETCH_CASE)
#undef IBS_FETCH_CASE
	default:
		return false;
	}
	switch (field) {
#define C(lo, width) ibs_bits(ctl, lo, width)
#define IBS_FETCH_CASE(NAME, name, others, values, max, needs, when, val, ...) \
	case IBS_FETCH_FILTER_##NAME:                                          \
		*value = val;                                                  \
		return true;
		IBS_FETCH_FILTER_TABLE(IBS_FETCH_CASE)
#undef IBS_FETCH_CASE
#undef C
		IBS_FILTER_TASK_TABLE(IBS_FILTER_VALUE_CASE)
	default:
		return false;
	}
}

#endif
