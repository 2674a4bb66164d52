/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every field of the ibs_op registers, and when it is valid. The few that the NMI needs are in
 * op.h; this is for decoding a sample in full.
 */
#ifndef IBSCOPE_OP_FIELDS_H
#define IBSCOPE_OP_FIELDS_H

#include <linux/errno.h>
#include <stddef.h>

#include <ibscope/op.h>

/* A field: bits @lo .. @lo + @width - 1 of register @reg. */
struct ibs_field {
	const char *perf_name; /* as `perf report -D` prints it */
	const char *name;      /* as in Linux asm/amd/ibs.h */
	__u8 reg;	       /* enum ibs_op_reg or enum ibs_fetch_reg */
	__u8 lo;
	__u8 width;
};

struct ibs_op_sample {
	struct ibs_cpu cpu;
	unsigned int nregs; /* in the record, including unknown ones at its end */
	__u32 present;	    /* bit r: reg[r] was in the record */
	__u64 reg[IBS_OP_REG_N];
};

/*
 * X(NAME, "perf's name", name, register, low bit, width, validity function). Sources: Linux
 * arch/x86/include/asm/amd/ibs.h and tools/perf/util/amd-sample-raw.c (7.2). Bits 4 and 5 of DATA3
 * are flags or, with IBS_CAPS_OPDTLBPGSIZE, a number. OP_DATA4 has no published fields.
 */
#define IBS_OP_FIELD_TABLE(X)                                                                      \
	X(OPMAXCNT, "MaxCnt", opmaxcnt, IBS_OP_CTL, 0, 16, always)                                 \
	X(L3_MISS_ONLY, "L3MissOnly", l3_miss_only, IBS_OP_CTL, 16, 1, zen4)                       \
	X(OP_EN, "En", op_en, IBS_OP_CTL, 17, 1, always)                                           \
	X(OP_VAL, "Val", op_val, IBS_OP_CTL, 18, 1, always)                                        \
	X(CNT_CTL, "CntCtl", cnt_ctl, IBS_OP_CTL, 19, 1, opcnt)                                    \
	X(OPMAXCNT_EXT, "MaxCntExt", opmaxcnt_ext, IBS_OP_CTL, 20, 7, opcntext)                    \
	X(OPCURCNT, "CurCnt", opcurcnt, IBS_OP_CTL, 32, 27, rdwropcnt)                             \
	X(LDLAT_THRSH, "LdLatThrsh", ldlat_thrsh, IBS_OP_CTL, 59, 4, opldlat)                      \
	X(LDLAT_EN, "LdLatEn", ldlat_en, IBS_OP_CTL, 63, 1, opldlat)                               \
	X(RIP, "IbsOpRip", rip, IBS_OP_RIP, 0, 64, rip)                                            \
	X(COMP_TO_RET_CTR, "CompToRetCtr", comp_to_ret_ctr, IBS_OP_DATA, 0, 16, always)            \
	X(TAG_TO_RET_CTR, "TagToRetCtr", tag_to_ret_ctr, IBS_OP_DATA, 16, 16, always)              \
	X(OP_RETURN, "OpReturn", op_return, IBS_OP_DATA, 34, 1, branch)                            \
	X(OP_BRN_TAKEN, "OpBrnTaken", op_brn_taken, IBS_OP_DATA, 35, 1, branch)                    \
	X(OP_BRN_MISP, "OpBrnMisp", op_brn_misp, IBS_OP_DATA, 36, 1, branch)                       \
	X(OP_BRN_RET, "BrnRet", op_brn_ret, IBS_OP_DATA, 37, 1, always)                            \
	X(OP_RIP_INVALID, "RipInvalid", op_rip_invalid, IBS_OP_DATA, 38, 1, ripinvalidchk)         \
	X(OP_BRN_FUSE, "BrnFuse", op_brn_fuse, IBS_OP_DATA, 39, 1, opbrnfuse)                      \
	X(OP_MICROCODE, "Microcode", op_microcode, IBS_OP_DATA, 40, 1, always)                     \
	X(DATA_SRC_LO, "DataSrcLo", data_src_lo, IBS_OP_DATA2, 0, 3, data2)                        \
	X(RMT_NODE, "RmtNode", rmt_node, IBS_OP_DATA2, 4, 1, rmt_node)                             \
	X(CACHE_HIT_ST, "CacheHitSt", cache_hit_st, IBS_OP_DATA2, 5, 1, cache_hit_st)              \
	X(DATA_SRC_HI, "DataSrcHi", data_src_hi, IBS_OP_DATA2, 6, 2, data_src_hi)                  \
	X(STRM_ST, "StrmSt", strm_st, IBS_OP_DATA2, 8, 1, strm_st)                                 \
	X(RMT_SOCKET, "RmtSocket", rmt_socket, IBS_OP_DATA2, 9, 1, rmt_socket)                     \
	X(LD_OP, "LdOp", ld_op, IBS_OP_DATA3, 0, 1, always)                                        \
	X(ST_OP, "StOp", st_op, IBS_OP_DATA3, 1, 1, always)                                        \
	X(DC_L1TLB_MISS, "DcL1TlbMiss", dc_l1tlb_miss, IBS_OP_DATA3, 2, 1, l1tlb)                  \
	X(DC_L2TLB_MISS, "DcL2TlbMiss", dc_l2tlb_miss, IBS_OP_DATA3, 3, 1, l2tlb)                  \
	X(DC_L1TLB_HIT_2M, "DcL1TlbHit2M", dc_l1tlb_hit_2m, IBS_OP_DATA3, 4, 1, l1tlb_hit)         \
	X(DC_L1TLB_HIT_1G, "DcL1TlbHit1G", dc_l1tlb_hit_1g, IBS_OP_DATA3, 5, 1, l1tlb_hit)         \
	X(DC_PAGE_SIZE, "DcPageSize", dc_page_size, IBS_OP_DATA3, 4, 2, page_size)                 \
	X(DC_L2TLB_HIT_2M, "DcL2TlbHit2M", dc_l2tlb_hit_2m, IBS_OP_DATA3, 6, 1, l2tlb_hit)         \
	X(DC_MISS, "DcMiss", dc_miss, IBS_OP_DATA3, 7, 1, cached)                                  \
	X(DC_MIS_ACC, "DcMisAcc", dc_mis_acc, IBS_OP_DATA3, 8, 1, mem)                             \
	X(DC_WC_MEM_ACC, "DcWcMemAcc", dc_wc_mem_acc, IBS_OP_DATA3, 13, 1, mem)                    \
	X(DC_UC_MEM_ACC, "DcUcMemAcc", dc_uc_mem_acc, IBS_OP_DATA3, 14, 1, mem)                    \
	X(DC_LOCKED_OP, "DcLockedOp", dc_locked_op, IBS_OP_DATA3, 15, 1, mem)                      \
	X(DC_MISS_NO_MAB_ALLOC, "DcMissNoMabAlloc", dc_miss_no_mab_alloc, IBS_OP_DATA3, 16, 1,     \
	  mem)                                                                                     \
	X(DC_LIN_ADDR_VALID, "DcLinAddrValid", dc_lin_addr_valid, IBS_OP_DATA3, 17, 1, mem)        \
	X(DC_PHY_ADDR_VALID, "DcPhyAddrValid", dc_phy_addr_valid, IBS_OP_DATA3, 18, 1, mem)        \
	X(DC_L2_TLB_HIT_1G, "DcL2TlbHit1G", dc_l2_tlb_hit_1g, IBS_OP_DATA3, 19, 1, l2tlb_hit)      \
	X(L2_MISS, "L2Miss", l2_miss, IBS_OP_DATA3, 20, 1, l2_miss)                                \
	X(SW_PF, "SwPf", sw_pf, IBS_OP_DATA3, 21, 1, mem)                                          \
	X(OP_MEM_WIDTH, "OpMemWidth", mem_width, IBS_OP_DATA3, 22, 4, mem_width)                   \
	X(OP_DC_MISS_OPEN_MEM_REQS, "OpDcMissOpenMemReqs", op_dc_miss_open_mem_reqs, IBS_OP_DATA3, \
	  26, 6, open_mem_reqs)                                                                    \
	X(DC_MISS_LAT, "DcMissLat", dc_miss_lat, IBS_OP_DATA3, 32, 16, dc_miss_lat)                \
	X(TLB_REFILL_LAT, "TlbRefillLat", tlb_refill_lat, IBS_OP_DATA3, 48, 16, tlb_refill_lat)    \
	X(DC_LIN_AD, "IbsDCLinAd", dc_lin_ad, IBS_DC_LINADDR, 0, 64, lin_ad)                       \
	X(DC_PHYS_AD, "IbsDCPhysAd", dc_phys_ad, IBS_DC_PHYSADDR, 0, 64, phys_ad)                  \
	X(BR_TARGET, "IbsBrTarget", br_target, IBS_BRTARGET, 0, 64, br_target)                     \
	X(OP_DATA4, "ibs_op_data4", op_data4, IBS_OP_DATA4, 0, 64, always)

enum ibs_op_field {
#define IBS_OP_FIELD_ENUM(NAME, ...) IBS_OP_FIELD_##NAME,
	IBS_OP_FIELD_TABLE(IBS_OP_FIELD_ENUM)
#undef IBS_OP_FIELD_ENUM
		IBS_OP_FIELD_N
};

static const struct ibs_field ibs_op_fields[IBS_OP_FIELD_N] = {
#define IBS_OP_FIELD_ROW(NAME, perf, name, reg, lo, width, valid) { perf, #name, reg, lo, width },
	IBS_OP_FIELD_TABLE(IBS_OP_FIELD_ROW)
#undef IBS_OP_FIELD_ROW
};

/* A field's bits, valid or not; @regs as in a parsed sample. */
static inline __u64 ibs_field_bits(const struct ibs_field *f, const __u64 *regs)
{
	return f->width == 64 ? regs[f->reg] : ibs_bits(regs[f->reg], f->lo, f->width);
}

static inline bool ibs_op_has(const struct ibs_op_sample *s, __u64 data3_bits)
{
	return (s->reg[IBS_OP_DATA3] & data3_bits) == data3_bits;
}

static inline bool ibs_op_valid_always(const struct ibs_op_sample *s)
{
	(void)s;
	return true;
}

#define IBS_OP_VALID_CAPS(name, CAPS)                                         \
	static inline bool ibs_op_valid_##name(const struct ibs_op_sample *s) \
	{                                                                     \
		return s->cpu.caps & IBS_CAPS_##CAPS;                         \
	}
IBS_OP_VALID_CAPS(zen4, ZEN4)
IBS_OP_VALID_CAPS(opcnt, OPCNT)
IBS_OP_VALID_CAPS(opcntext, OPCNTEXT)
IBS_OP_VALID_CAPS(rdwropcnt, RDWROPCNT)
IBS_OP_VALID_CAPS(opldlat, OPLDLAT)
IBS_OP_VALID_CAPS(ripinvalidchk, RIPINVALIDCHK)
IBS_OP_VALID_CAPS(opbrnfuse, OPBRNFUSE)
#undef IBS_OP_VALID_CAPS

static inline bool ibs_op_valid_rip(const struct ibs_op_sample *s)
{
	return !((s->cpu.caps & IBS_CAPS_RIPINVALIDCHK) &&
		 (s->reg[IBS_OP_DATA] & IBS_OP_DATA_RIP_INVALID));
}

static inline bool ibs_op_valid_branch(const struct ibs_op_sample *s)
{
	return s->reg[IBS_OP_DATA] & IBS_OP_DATA_BRN_RET;
}

static inline bool ibs_op_valid_br_target(const struct ibs_op_sample *s)
{
	return ibs_op_valid_branch(s) && s->reg[IBS_BRTARGET];
}

static inline bool ibs_op_valid_mem(const struct ibs_op_sample *s)
{
	return s->reg[IBS_OP_DATA3] & IBS_OP_DATA3_MEM;
}

/* The hardware reports no cache state for uncached accesses (Linux ibs.c, perf_ibs_get_mem_lvl). */
static inline bool ibs_op_valid_cached(const struct ibs_op_sample *s)
{
	return ibs_op_valid_mem(s) && !(s->reg[IBS_OP_DATA3] & IBS_OP_DATA3_UC_MEM_ACC);
}

static inline bool ibs_op_valid_l2_miss(const struct ibs_op_sample *s)
{
	return ibs_op_valid_cached(s) && ibs_op_has(s, IBS_OP_DATA3_DC_MISS) &&
	       !ibs_op_erratum_1293(s->cpu.quirks, s->reg[IBS_OP_DATA3]);
}

/* Outstanding misses when this one was filled, including itself; 0: "no information" (AMD PPR). */
static inline bool ibs_op_valid_open_mem_reqs(const struct ibs_op_sample *s)
{
	return ibs_op_valid_l2_miss(s) && IBS_OP_DATA3_OPEN_REQS(s->reg[IBS_OP_DATA3]);
}

static inline bool ibs_op_valid_data2(const struct ibs_op_sample *s)
{
	return ibs_op_valid_l2_miss(s) && ibs_op_has(s, IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_L2_MISS);
}

static inline bool ibs_op_valid_data_src_hi(const struct ibs_op_sample *s)
{
	return ibs_op_valid_data2(s) && ibs_op_valid_zen4(s);
}

static inline bool ibs_op_valid_rmt_node(const struct ibs_op_sample *s)
{
	return ibs_op_valid_data2(s) && ibs_op_data_src_is_memory(s->cpu, s->reg[IBS_OP_DATA2]);
}

static inline bool ibs_op_valid_cache_hit_st(const struct ibs_op_sample *s)
{
	return ibs_op_valid_data2(s) && ibs_op_reports_state(s->cpu, s->reg[IBS_OP_DATA2]);
}

/* The only field of DATA2 that applies to stores. */
static inline bool ibs_op_valid_strm_st(const struct ibs_op_sample *s)
{
	return (s->cpu.caps & IBS_CAPS_STRMST_RMTSOCKET) && ibs_op_has(s, IBS_OP_DATA3_ST_OP);
}

/* Documented only as a refinement of RmtNode, so valid when RmtNode is. */
static inline bool ibs_op_valid_rmt_socket(const struct ibs_op_sample *s)
{
	return (s->cpu.caps & IBS_CAPS_STRMST_RMTSOCKET) && ibs_op_valid_rmt_node(s);
}

static inline bool ibs_op_valid_l1tlb(const struct ibs_op_sample *s)
{
	return ibs_op_tlb_valid(s->cpu.caps, s->reg[IBS_OP_DATA3]);
}

/* The L2 TLB is looked up only after an L1 miss. */
static inline bool ibs_op_valid_l2tlb(const struct ibs_op_sample *s)
{
	return ibs_op_valid_l1tlb(s) && ibs_op_has(s, IBS_OP_DATA3_L1TLB_MISS);
}

static inline bool ibs_op_valid_l1tlb_hit(const struct ibs_op_sample *s)
{
	return ibs_op_valid_l1tlb(s) && !(s->cpu.caps & IBS_CAPS_OPDTLBPGSIZE);
}

static inline bool ibs_op_valid_l2tlb_hit(const struct ibs_op_sample *s)
{
	return ibs_op_valid_l2tlb(s) && !(s->cpu.caps & IBS_CAPS_OPDTLBPGSIZE);
}

static inline bool ibs_op_valid_page_size(const struct ibs_op_sample *s)
{
	return (s->cpu.caps & IBS_CAPS_OPDTLBPGSIZE) && ibs_op_valid_mem(s) &&
	       ibs_op_has(s, IBS_OP_DATA3_PHY_VALID);
}

static inline bool ibs_op_valid_mem_width(const struct ibs_op_sample *s)
{
	return ibs_op_valid_mem(s) && ibs_bits(s->reg[IBS_OP_DATA3], 22, 4);
}

static inline bool ibs_op_valid_dc_miss_lat(const struct ibs_op_sample *s)
{
	return ibs_op_dc_miss_lat_valid(s->reg[IBS_OP_DATA3]);
}

static inline bool ibs_op_valid_tlb_refill_lat(const struct ibs_op_sample *s)
{
	return ibs_op_tlb_refill_lat_valid(s->cpu.caps, s->reg[IBS_OP_DATA3]);
}

static inline bool ibs_op_valid_lin_ad(const struct ibs_op_sample *s)
{
	return ibs_op_valid_mem(s) && ibs_op_has(s, IBS_OP_DATA3_LIN_VALID);
}

static inline bool ibs_op_valid_phys_ad(const struct ibs_op_sample *s)
{
	return ibs_op_phys_valid(s->cpu.caps, s->reg);
}

/**
 * ibs_op_field() - get a field of a sample, if it is valid
 * @s:	   parsed sample
 * @field: which field
 * @value: set only on success
 *
 * Reserved encodings are returned as they are.
 *
 * Return: false if the register is not in the record, the processor does not have the field, its
 * validity condition is not met, or an erratum makes it invalid.
 */
static inline bool ibs_op_field(const struct ibs_op_sample *s, enum ibs_op_field field,
				__u64 *value)
{
	bool valid;

	switch (field) {
#define IBS_OP_FIELD_CASE(NAME, perf, name, reg, lo, width, valid_fn)             \
	case IBS_OP_FIELD_##NAME:                                                 \
		valid = (s->present & 1u << (reg)) && ibs_op_valid_##valid_fn(s); \
		break;
		IBS_OP_FIELD_TABLE(IBS_OP_FIELD_CASE)
#undef IBS_OP_FIELD_CASE
	default:
		return false;
	}
	if (valid)
		*value = ibs_field_bits(&ibs_op_fields[field], s->reg);
	return valid;
}

/**
 * ibs_op_period() - period that the counter was set to for this sample, in cycles or ops
 * @s: parsed sample
 */
static inline __u32 ibs_op_period(const struct ibs_op_sample *s)
{
	__u64 ctl = s->reg[IBS_OP_CTL];
	__u32 max = ctl & 0xffff;

	if (s->cpu.caps & IBS_CAPS_OPCNTEXT)
		max |= ibs_bits(ctl, 20, 7) << 16;
	return max << 4;
}

/* The registers follow the caps, unaligned. */
static inline __u64 ibs_raw_reg(const void *raw, unsigned int n)
{
	__u64 v;

	__builtin_memcpy(&v, (const char *)raw + 4 + 8 * n, sizeof(v));
	return v;
}

/**
 * ibs_op_parse_raw() - parse a raw record
 * @raw:    u32 of caps and packed registers, as in PERF_SAMPLE_RAW; need not be aligned
 * @bytes:  size of @raw; 60, 68 or 76, excess is ignored
 * @quirks: ibs_quirks() of the processor that took the sample
 * @s:	    filled on success
 *
 * If the caps promise an optional register that the record lacks, it is not present.
 *
 * Return: 0, or -EINVAL if the record is too short or ends within a register.
 */
static inline int ibs_op_parse_raw(const void *raw, size_t bytes, __u32 quirks,
				   struct ibs_op_sample *s)
{
	struct ibs_op_sample out = { .cpu.quirks = quirks };
	unsigned int r, n = 0;

	if (bytes > 0xffffffff || !ibs_op_raw_size_ok(bytes))
		return -EINVAL;
	__builtin_memcpy(&out.cpu.caps, raw, sizeof(out.cpu.caps));
	out.nregs = (bytes - 4) / 8;
	for (r = 0; r < IBS_OP_REG_N && n < out.nregs; r++) {
		if (r == IBS_BRTARGET && !(out.cpu.caps & IBS_CAPS_BRNTRGT))
			continue;
		if (r == IBS_OP_DATA4 && !(out.cpu.caps & IBS_CAPS_OPDATA4))
			continue;
		out.reg[r] = ibs_raw_reg(raw, n++);
		out.present |= 1u << r;
	}
	*s = out;
	return 0;
}

#endif
