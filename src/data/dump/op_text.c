// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "op_text.h"

static bool at_least(unsigned int perf, unsigned int release)
{
	return perf == IBS_PERF_NEWEST || perf >= release;
}

static void put(FILE *f, const struct ibs_field *fields, const __u64 *regs, int field, int width)
{
	fprintf(f, " %s %*llu", fields[field].perf_name, width,
		(unsigned long long)ibs_field_bits(&fields[field], regs));
}

static void put_reg(FILE *f, const char *name, __u64 value)
{
	fprintf(f, "%s:\t%016llx", name, (unsigned long long)value);
}

static void put_reg_line(FILE *f, const char *name, __u64 value)
{
	put_reg(f, name, value);
	fputc('\n', f);
}

#define OP(NAME)	     put(f, ibs_op_fields, s->reg, IBS_OP_FIELD_##NAME, 0)
#define OP_WIDE(NAME, width) put(f, ibs_op_fields, s->reg, IBS_OP_FIELD_##NAME, width)
#define OP_BITS(NAME)	     ibs_field_bits(&ibs_op_fields[IBS_OP_FIELD_##NAME], s->reg)

static void put_op_ctl(FILE *f, const struct ibs_op_sample *s, unsigned int perf)
{
	unsigned long long max = OP_BITS(OPMAXCNT_EXT) << 16 | OP_BITS(OPMAXCNT);

	put_reg(f, "ibs_op_ctl", s->reg[IBS_OP_CTL]);
	fprintf(f, " MaxCnt %9llu", max << 4);
	if (s->cpu.caps & IBS_CAPS_ZEN4)
		OP(L3_MISS_ONLY);
	OP(OP_EN);
	OP(OP_VAL);
	OP(CNT_CTL);
	fputs(OP_BITS(CNT_CTL) ? "=uOps" : "=cycles", f);
	OP_WIDE(OPCURCNT, 9);
	if ((s->cpu.caps & IBS_CAPS_OPLDLAT) && at_least(perf, IBS_PERF(6, 16))) {
		OP_WIDE(LDLAT_THRSH, 2);
		OP(LDLAT_EN);
	}
	fputc('\n', f);
}

static void put_op_data(FILE *f, const struct ibs_op_sample *s)
{
	put_reg(f, "ibs_op_data", s->reg[IBS_OP_DATA]);
	OP_WIDE(COMP_TO_RET_CTR, 5);
	OP_WIDE(TAG_TO_RET_CTR, 5);
	if (OP_BITS(OP_BRN_RET)) {
		OP(OP_RETURN);
		OP(OP_BRN_TAKEN);
		OP(OP_BRN_MISP);
	}
	OP(OP_BRN_RET);
	fputc(' ', f);
	OP(OP_RIP_INVALID);
	OP(OP_BRN_FUSE);
	OP(OP_MICROCODE);
	fputc('\n', f);
}

#define DATA_SRC_NAME(code, src, state, name) [code] = (name),
#define DATA_SRC_NAMES(name, ...) \
	[IBS_DATA_SRC_KIND_##name] = { IBS_DATA_SRC_##name(DATA_SRC_NAME) },
static const char *const data_src_names[IBS_DATA_SRC_KIND_N][32] = { IBS_DATA_SRC_TABLE(
	DATA_SRC_NAMES) };

/* Names that perf had before 6.12. */
static const char *const data_src_names_6_1[IBS_DATA_SRC_KIND_N][32] = {
	[IBS_DATA_SRC_KIND_ZEN4] = {
		[2] = "A peer cache in a near CCX",
		[3] = "Data returned from DRAM",
		[5] = "A peer cache in a far CCX",
		[6] = "DRAM address map with \"long latency\" bit set",
		[7] = "Data returned from MMIO/Config/PCI/APIC",
		[8] = "Extension Memory (S-Link, GenZ, etc)",
		[12] = "Peer Agent Memory",
	},
};

static void put_op_data2(FILE *f, const struct ibs_op_sample *s, unsigned int perf)
{
	const enum ibs_data_src_kind kind = ibs_data_src_encoding(s->cpu).kind;
	const __u32 code = ibs_op_data_src(s->cpu, s->reg[IBS_OP_DATA2]);
	const char *name = data_src_names[kind][code];

	if (!at_least(perf, IBS_PERF(6, 12)) && data_src_names_6_1[kind][code])
		name = data_src_names_6_1[kind][code];
	put_reg(f, "ibs_op_data2", s->reg[IBS_OP_DATA2]);
	if ((s->cpu.caps & IBS_CAPS_STRMST_RMTSOCKET) && at_least(perf, IBS_PERF(7, 1))) {
		OP(RMT_SOCKET);
		OP(STRM_ST);
	}
	if (ibs_op_data_src_has_state(s->cpu, s->reg[IBS_OP_DATA2])) {
		OP(CACHE_HIT_ST);
		fputs(OP_BITS(CACHE_HIT_ST) ? "=O-State" : "=M-state", f);
	}
	OP(RMT_NODE);
	if (name)
		fprintf(f, " DataSrc %u=%s", code, name);
	fputc('\n', f);
}

static void put_op_tlb(FILE *f, const struct ibs_op_sample *s, bool page_size)
{
	static const char *const sizes[4] = { "4K", "2M", "1G", "??" };

	if (page_size && !OP_BITS(DC_PHY_ADDR_VALID))
		return;
	OP(DC_L1TLB_MISS);
	OP(DC_L2TLB_MISS);
	if (page_size) {
		fprintf(f, " DcPageSize %4s", sizes[OP_BITS(DC_PAGE_SIZE)]);
	} else {
		OP(DC_L1TLB_HIT_2M);
		OP(DC_L1TLB_HIT_1G);
		OP(DC_L2TLB_HIT_2M);
	}
}

static void put_op_data3(FILE *f, const struct ibs_op_sample *s, unsigned int perf, bool erratum)
{
	bool page_size = (s->cpu.caps & IBS_CAPS_OPDTLBPGSIZE) && at_least(perf, IBS_PERF(6, 16));

	put_reg(f, "ibs_op_data3", s->reg[IBS_OP_DATA3]);
	OP(LD_OP);
	OP(ST_OP);
	put_op_tlb(f, s, page_size);
	OP(DC_MISS);
	OP(DC_MIS_ACC);
	OP(DC_WC_MEM_ACC);
	OP(DC_UC_MEM_ACC);
	OP(DC_LOCKED_OP);
	OP(DC_MISS_NO_MAB_ALLOC);
	OP(DC_LIN_ADDR_VALID);
	OP(DC_PHY_ADDR_VALID);
	if (!page_size)
		OP(DC_L2_TLB_HIT_1G);
	if (!erratum)
		OP(L2_MISS);
	OP(SW_PF);
	if (OP_BITS(OP_MEM_WIDTH))
		fprintf(f, " OpMemWidth %2u bytes", 1u << (OP_BITS(OP_MEM_WIDTH) - 1));
	if (!erratum)
		OP_WIDE(OP_DC_MISS_OPEN_MEM_REQS, 2);
	OP_WIDE(DC_MISS_LAT, 5);
	if (!(s->cpu.caps & IBS_CAPS_ZEN4) || OP_BITS(DC_PHY_ADDR_VALID) ||
	    !at_least(perf, IBS_PERF(7, 1)))
		OP_WIDE(TLB_REFILL_LAT, 5);
	fputc('\n', f);
}

/* From 7.1 on, perf leaves it out if it was zeroed, and on Zen 4 and later also without a linear address. */
static bool shows_phys(const struct ibs_op_sample *s, unsigned int perf)
{
	if (!OP_BITS(DC_PHY_ADDR_VALID))
		return false;
	if (!at_least(perf, IBS_PERF(7, 1)))
		return true;
	return s->reg[IBS_DC_PHYSADDR] &&
	       (!(s->cpu.caps & IBS_CAPS_ZEN4) || OP_BITS(DC_LIN_ADDR_VALID));
}

void ibs_op_print(FILE *f, const struct ibs_op_sample *s, unsigned int perf)
{
	bool erratum = ibs_op_erratum_1293(s->cpu.quirks, s->reg[IBS_OP_DATA3]);

	if (s->present >> IBS_OP_CTL & 1) {
		if (!OP_BITS(OP_EN) || !OP_BITS(OP_VAL))
			return;
		put_op_ctl(f, s, perf);
	}
	if (!OP_BITS(OP_RIP_INVALID))
		put_reg_line(f, "IbsOpRip", s->reg[IBS_OP_RIP]);
	put_op_data(f, s);
	if (!erratum)
		put_op_data2(f, s, perf);
	put_op_data3(f, s, perf, erratum);
	if (OP_BITS(DC_LIN_ADDR_VALID))
		put_reg_line(f, "IbsDCLinAd", s->reg[IBS_DC_LINADDR]);
	if (shows_phys(s, perf))
		put_reg_line(f, "IbsDCPhysAd", s->reg[IBS_DC_PHYSADDR]);
	if (OP_BITS(OP_BRN_RET) && s->reg[IBS_BRTARGET])
		put_reg_line(f, "IbsBrTarget", s->reg[IBS_BRTARGET]);
}

#define FETCH(NAME)		put(f, ibs_fetch_fields, s->reg, IBS_FETCH_FIELD_##NAME, 0)
#define FETCH_WIDE(NAME, width) put(f, ibs_fetch_fields, s->reg, IBS_FETCH_FIELD_##NAME, width)
#define FETCH_BITS(NAME)	ibs_field_bits(&ibs_fetch_fields[IBS_FETCH_FIELD_##NAME], s->reg)

static const char *const page_sizes[4] = { "4KB", "2MB", "1GB", "RESERVED" };
static const char *const page_sizes_1347[4] = { "4KB", "16KB", "2MB", "1GB" };

static void put_fetch_ctl(FILE *f, const struct ibs_fetch_sample *s, bool status)
{
	bool zen4 = s->cpu.caps & IBS_CAPS_ZEN4;

	put_reg(f, "ibs_fetch_ctl", s->reg[IBS_FETCH_CTL]);
	fprintf(f, " MaxCnt %7llu", (unsigned long long)FETCH_BITS(MAXCNT) << 4);
	fprintf(f, " Cnt %7llu", (unsigned long long)FETCH_BITS(CNT) << 4);
	if (status)
		FETCH_WIDE(LAT, 5);
	FETCH(EN);
	FETCH(VAL);
	FETCH(COMP);
	if (status && !(s->cpu.quirks & IBS_QUIRK_FETCH_1238))
		FETCH(IC_MISS);
	FETCH(PHY_ADDR_VALID);
	if (FETCH_BITS(PHY_ADDR_VALID)) {
		__u64 code = FETCH_BITS(L1TLB_PGSZ);

		fprintf(f, " L1TlbPgSz %s",
			(s->cpu.quirks & IBS_QUIRK_FETCH_1347 ? page_sizes_1347
							      : page_sizes)[code]);
	}
	if (status) {
		FETCH(L1TLB_MISS);
		FETCH(L2TLB_MISS);
	}
	FETCH(RAND_EN);
	if (status && FETCH_BITS(COMP))
		FETCH(L2_MISS);
	if (zen4 || !status)
		FETCH(L3_MISS_ONLY);
	if (zen4 && status) {
		FETCH(OC_MISS);
		FETCH(L3_MISS);
	}
	fputc('\n', f);
}

void ibs_fetch_print(FILE *f, const struct ibs_fetch_sample *s, unsigned int perf)
{
	bool status = ibs_fetch_valid_status(s) || !at_least(perf, IBS_PERF(7, 1));

	if (!FETCH_BITS(EN) || !FETCH_BITS(VAL))
		return;
	put_fetch_ctl(f, s, status);
	put_reg_line(f, "IbsFetchLinAd", s->reg[IBS_FETCH_LINADDR]);
	if (FETCH_BITS(PHY_ADDR_VALID))
		put_reg_line(f, "IbsFetchPhysAd", s->reg[IBS_FETCH_PHYSADDR]);
	if (status && (s->present >> IBS_FETCH_EXTD & 1)) {
		put_reg(f, "ic_ibs_ext_ctl", s->reg[IBS_FETCH_EXTD]);
		FETCH_WIDE(ITLB_REFILL_LAT, 3);
		fputc('\n', f);
	}
}
