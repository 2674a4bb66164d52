/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every field of the ibs_fetch registers, and when it is valid. */
#ifndef IBSCOPE_FETCH_FIELDS_H
#define IBSCOPE_FETCH_FIELDS_H

#include <ibscope/fetch.h>
#include <ibscope/op_fields.h> /* struct ibs_field */

struct ibs_fetch_sample {
	struct ibs_cpu cpu;
	unsigned int nregs; /* in the record, including unknown ones at its end */
	__u32 present;	    /* bit r: reg[r] was in the record */
	__u64 reg[IBS_FETCH_REG_N];
};

/*
 * X(NAME, "perf's name", name, register, low bit, width, validity function). Sources as in
 * op_fields.h. The encoding of l1tlb_pgsz depends on the processor: ibs_fetch_page_size().
 */
#define IBS_FETCH_FIELD_TABLE(X)                                                        \
	X(MAXCNT, "MaxCnt", fetch_maxcnt, IBS_FETCH_CTL, 0, 16, always)                 \
	X(CNT, "Cnt", fetch_cnt, IBS_FETCH_CTL, 16, 16, always)                         \
	X(LAT, "Lat", fetch_lat, IBS_FETCH_CTL, 32, 16, status)                         \
	X(EN, "En", fetch_en, IBS_FETCH_CTL, 48, 1, always)                             \
	X(VAL, "Val", fetch_val, IBS_FETCH_CTL, 49, 1, always)                          \
	X(COMP, "Comp", fetch_comp, IBS_FETCH_CTL, 50, 1, always)                       \
	X(IC_MISS, "IcMiss", ic_miss, IBS_FETCH_CTL, 51, 1, ic_miss)                    \
	X(PHY_ADDR_VALID, "PhyAddrValid", phy_addr_valid, IBS_FETCH_CTL, 52, 1, always) \
	X(L1TLB_PGSZ, "L1TlbPgSz", l1tlb_pgsz, IBS_FETCH_CTL, 53, 2, phy)               \
	X(L1TLB_MISS, "L1TlbMiss", l1tlb_miss, IBS_FETCH_CTL, 55, 1, status)            \
	X(L2TLB_MISS, "L2TlbMiss", l2tlb_miss, IBS_FETCH_CTL, 56, 1, status)            \
	X(RAND_EN, "RandEn", rand_en, IBS_FETCH_CTL, 57, 1, always)                     \
	X(L2_MISS, "L2Miss", fetch_l2_miss, IBS_FETCH_CTL, 58, 1, l2_miss)              \
	X(L3_MISS_ONLY, "L3MissOnly", l3_miss_only, IBS_FETCH_CTL, 59, 1, zen4)         \
	X(OC_MISS, "FetchOcMiss", fetch_oc_miss, IBS_FETCH_CTL, 60, 1, zen4_status)     \
	X(L3_MISS, "FetchL3Miss", fetch_l3_miss, IBS_FETCH_CTL, 61, 1, zen4_status)     \
	X(LIN_AD, "IbsFetchLinAd", fetch_lin_ad, IBS_FETCH_LINADDR, 0, 64, lin_ad)      \
	X(PHYS_AD, "IbsFetchPhysAd", fetch_phys_ad, IBS_FETCH_PHYSADDR, 0, 64, phys_ad) \
	X(ITLB_REFILL_LAT, "IbsItlbRefillLat", itlb_refill_lat, IBS_FETCH_EXTD, 0, 16, status)

enum ibs_fetch_field {
#define IBS_FETCH_FIELD_ENUM(NAME, ...) IBS_FETCH_FIELD_##NAME,
	IBS_FETCH_FIELD_TABLE(IBS_FETCH_FIELD_ENUM)
#undef IBS_FETCH_FIELD_ENUM
		IBS_FETCH_FIELD_N
};

static const struct ibs_field ibs_fetch_fields[IBS_FETCH_FIELD_N] = {
#define IBS_FETCH_FIELD_ROW(NAME, perf, name, reg, lo, width, valid) \
	{ perf, #name, reg, lo, width },
	IBS_FETCH_FIELD_TABLE(IBS_FETCH_FIELD_ROW)
#undef IBS_FETCH_FIELD_ROW
};

static inline bool ibs_fetch_valid_always(const struct ibs_fetch_sample *s)
{
	(void)s;
	return true;
}

static inline bool ibs_fetch_valid_zen4(const struct ibs_fetch_sample *s)
{
	return s->cpu.caps & IBS_CAPS_ZEN4;
}

static inline bool ibs_fetch_valid_phy(const struct ibs_fetch_sample *s)
{
	return s->reg[IBS_FETCH_CTL] & IBS_FETCH_CTL_PHY_VALID;
}

/* On some processors the status bits are valid only with a physical address. */
static inline bool ibs_fetch_valid_status(const struct ibs_fetch_sample *s)
{
	return ibs_fetch_status_valid(s->cpu, s->reg[IBS_FETCH_CTL]);
}

static inline bool ibs_fetch_valid_ic_miss(const struct ibs_fetch_sample *s)
{
	return ibs_fetch_valid_status(s) && !(s->cpu.quirks & IBS_QUIRK_FETCH_1238);
}

static inline bool ibs_fetch_valid_l2_miss(const struct ibs_fetch_sample *s)
{
	return ibs_fetch_valid_status(s) && (s->reg[IBS_FETCH_CTL] & IBS_FETCH_CTL_COMP);
}

static inline bool ibs_fetch_valid_zen4_status(const struct ibs_fetch_sample *s)
{
	return ibs_fetch_valid_zen4(s) && ibs_fetch_valid_status(s);
}

static inline bool ibs_fetch_valid_lin_ad(const struct ibs_fetch_sample *s)
{
	return !(s->cpu.quirks & IBS_QUIRK_FETCH_1197) || s->reg[IBS_FETCH_LINADDR];
}

static inline bool ibs_fetch_valid_phys_ad(const struct ibs_fetch_sample *s)
{
	return ibs_fetch_phys_valid(s->reg);
}

/**
 * ibs_fetch_field() - get a field of a sample, if it is valid
 * @s:	   parsed sample
 * @field: which field
 * @value: set only on success
 *
 * Return: false if the register is not in the record, the processor does not have the field, its
 * validity condition is not met, or an erratum makes it invalid.
 */
static inline bool ibs_fetch_field(const struct ibs_fetch_sample *s, enum ibs_fetch_field field,
				   __u64 *value)
{
	bool valid;

	switch (field) {
#define IBS_FETCH_FIELD_CASE(NAME, perf, name, reg, lo, width, valid_fn)             \
	case IBS_FETCH_FIELD_##NAME:                                                 \
		valid = (s->present & 1u << (reg)) && ibs_fetch_valid_##valid_fn(s); \
		break;
		IBS_FETCH_FIELD_TABLE(IBS_FETCH_FIELD_CASE)
#undef IBS_FETCH_FIELD_CASE
	default:
		return false;
	}
	if (valid)
		*value = ibs_field_bits(&ibs_fetch_fields[field], s->reg);
	return valid;
}

/**
 * ibs_fetch_page_size() - size of the page that the instruction was fetched from
 * @s:	   parsed sample
 * @bytes: set only on success
 *
 * Return: false if the size is unknown or the hardware reports a reserved code.
 */
static inline bool ibs_fetch_page_size(const struct ibs_fetch_sample *s, __u64 *bytes)
{
	__u32 code = ibs_fetch_page_code(s->cpu, s->reg[IBS_FETCH_CTL]);
	__u64 ignored;

	if (code > 3 || !ibs_fetch_field(s, IBS_FETCH_FIELD_L1TLB_PGSZ, &ignored))
		return false;
	*bytes = IBS_FETCH_PAGE_BYTES(code);
	return true;
}

/**
 * ibs_fetch_parse_raw() - parse a raw record
 * @raw:    u32 of caps and packed registers, as in PERF_SAMPLE_RAW; need not be aligned
 * @bytes:  size of @raw; 28 or 36, excess is ignored
 * @quirks: ibs_quirks() of the processor that took the sample
 * @s:	    filled on success
 *
 * Return: 0, or -EINVAL if the record is too short or ends within a register.
 */
static inline int ibs_fetch_parse_raw(const void *raw, size_t bytes, __u32 quirks,
				      struct ibs_fetch_sample *s)
{
	struct ibs_fetch_sample out = { .cpu.quirks = quirks };
	unsigned int r;

	if (bytes < IBS_FETCH_RAW_MIN || bytes > 0xffffffff || (bytes & 7) != 4)
		return -EINVAL;
	__builtin_memcpy(&out.cpu.caps, raw, sizeof(out.cpu.caps));
	out.nregs = (bytes - 4) / 8;
	for (r = 0; r < IBS_FETCH_REG_N && r < out.nregs; r++) {
		if (r == IBS_FETCH_EXTD && !(out.cpu.caps & IBS_CAPS_FETCHCTLEXTD))
			continue;
		out.reg[r] = ibs_raw_reg(raw, r);
		out.present |= 1u << r;
	}
	*s = out;
	return 0;
}

#endif
