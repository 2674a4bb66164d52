/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Meaning of an ibs_op sample, as far as the BPF program needs it in the NMI. Pure functions of
 * register values, shared by kernel and user space. op_fields.h has all fields.
 */
#ifndef IBSCOPE_OP_H
#define IBSCOPE_OP_H

#include <ibscope/caps.h>

/* Order in the raw record (Linux ibs.c, perf_ibs_handle_irq), after a u32 of caps. */
enum ibs_op_reg {
	IBS_OP_CTL,
	IBS_OP_RIP,
	IBS_OP_DATA,
	IBS_OP_DATA2,
	IBS_OP_DATA3,
	IBS_DC_LINADDR,
	IBS_DC_PHYSADDR,
	IBS_OP_REG_FIXED,		 /* registers that every record has */
	IBS_BRTARGET = IBS_OP_REG_FIXED, /* with IBS_CAPS_BRNTRGT */
	IBS_OP_DATA4,			 /* with IBS_CAPS_OPDATA4; one earlier without BRTARGET */
	IBS_OP_REG_N,
};

/* Size of the smallest raw record: caps and the registers that are always present. */
#define IBS_OP_RAW_MIN (4 + 8 * IBS_OP_REG_FIXED)

/* True if no fixed register is missing and only whole registers follow the caps. */
static __always_inline bool ibs_op_raw_size_ok(__u32 bytes)
{
	return bytes >= IBS_OP_RAW_MIN && (bytes & 7) == 4;
}

#define IBS_OP_DATA_BRN_TAKEN	  IBS_BIT(35)
#define IBS_OP_DATA_BRN_RET	  IBS_BIT(37)
#define IBS_OP_DATA_RIP_INVALID	  IBS_BIT(38)
#define IBS_OP_DATA2_RMT_NODE	  IBS_BIT(4)
#define IBS_OP_DATA2_OWNED	  IBS_BIT(5) /* CacheHitSt: 1: the line was in state O, 0: in M */
#define IBS_OP_DATA2_RMT_SOCKET	  IBS_BIT(9)
#define IBS_OP_DATA3_LD_OP	  IBS_BIT(0)
#define IBS_OP_DATA3_ST_OP	  IBS_BIT(1)
#define IBS_OP_DATA3_L1TLB_MISS	  IBS_BIT(2)
#define IBS_OP_DATA3_L2TLB_MISS	  IBS_BIT(3)
#define IBS_OP_DATA3_DC_MISS	  IBS_BIT(7)
#define IBS_OP_DATA3_UC_MEM_ACC	  IBS_BIT(14)
#define IBS_OP_DATA3_LOCKED_OP	  IBS_BIT(15)
#define IBS_OP_DATA3_NO_MAB	  IBS_BIT(16)
#define IBS_OP_DATA3_LIN_VALID	  IBS_BIT(17)
#define IBS_OP_DATA3_PHY_VALID	  IBS_BIT(18)
#define IBS_OP_DATA3_L2_MISS	  IBS_BIT(20)
#define IBS_OP_DATA3_SW_PF	  IBS_BIT(21)
#define IBS_OP_DATA3_OPEN_REQS(v) ((v) >> 26 & 0x3f) /* OpDcMissOpenMemReqs */
#define IBS_OP_DATA3_MEM	  (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_ST_OP)

/*
 * Kinds of op: each sample has exactly one. X(NAME, "name", "meaning"). Like in the kernel, a
 * read-modify-write is a load unless it is locked. SwPf decides first: it is documented for any
 * memory op, and makes DcMissLat invalid, locked or not.
 */
#define IBS_OP_KIND_TABLE(X)                                        \
	X(LOAD, "load", "reads memory (also read-modify-write)")    \
	X(STORE, "store", "writes memory only")                     \
	X(LOCKED, "locked", "locked access")                        \
	X(PREFETCH, "prefetch", "software prefetch")                \
	X(BRANCH, "branch", "retired branch without memory access") \
	X(OTHER, "other", "neither memory access nor branch")

enum ibs_op_kind {
#define IBS_OP_KIND_ENUM(name, ...) IBS_OP_KIND_##name,
	IBS_OP_KIND_TABLE(IBS_OP_KIND_ENUM)
#undef IBS_OP_KIND_ENUM
		IBS_OP_KIND_N
};

static __always_inline enum ibs_op_kind ibs_op_kind(__u64 data, __u64 data3)
{
	if (!(data3 & IBS_OP_DATA3_MEM))
		return data & IBS_OP_DATA_BRN_RET ? IBS_OP_KIND_BRANCH : IBS_OP_KIND_OTHER;
	if (data3 & (IBS_OP_DATA3_SW_PF | IBS_OP_DATA3_LOCKED_OP)) /* rare: most take one test */
		return data3 & IBS_OP_DATA3_SW_PF ? IBS_OP_KIND_PREFETCH : IBS_OP_KIND_LOCKED;
	return data3 & IBS_OP_DATA3_LD_OP ? IBS_OP_KIND_LOAD : IBS_OP_KIND_STORE;
}

/* User or kernel mode, by the op's address, which the processor may not report. */
enum ibs_mode { IBS_MODE_UNKNOWN, IBS_MODE_USER, IBS_MODE_KERNEL, IBS_MODE_N };

static __always_inline enum ibs_mode ibs_op_mode(__u32 caps, const __u64 *regs)
{
	if ((caps & IBS_CAPS_RIPINVALIDCHK) && (regs[IBS_OP_DATA] & IBS_OP_DATA_RIP_INVALID))
		return IBS_MODE_UNKNOWN;
	return regs[IBS_OP_RIP] >> 63 ? IBS_MODE_KERNEL : IBS_MODE_USER;
}

/*
 * Where the data came from: each sample has exactly one. X(NAME, "name", "meaning"). "none" is an
 * op without memory access; "unknown" is a memory access for which the hardware reports no source,
 * or reports it in an invalid field.
 */
#define IBS_SRC_TABLE(X)                                                              \
	X(UNKNOWN, "unknown", "not reported, reserved or not valid")                  \
	X(NONE, "none", "no memory access")                                           \
	X(L1, "l1", "L1 data cache")                                                  \
	X(L2, "l2", "L2 cache")                                                       \
	X(L3, "l3", "L3, or an L1/L2 of the same core complex")                       \
	X(LOCAL_CACHE, "local-cache", "L3 or other cache of the node (before Zen 4)") \
	X(NEAR_CACHE, "near-cache", "another core complex of the node")               \
	X(REMOTE_CACHE, "remote-cache", "a cache of another node")                    \
	X(DRAM, "dram", "DRAM of the node")                                           \
	X(REMOTE_DRAM, "remote-dram", "DRAM of another node")                         \
	X(PMEM, "pmem", "long-latency DIMM of the node")                              \
	X(REMOTE_PMEM, "remote-pmem", "long-latency DIMM of another node")            \
	X(CXL, "cxl", "extension memory of the node")                                 \
	X(REMOTE_CXL, "remote-cxl", "extension memory of another node")               \
	X(IO, "io", "MMIO, config space, PCI, APIC")                                  \
	X(PEER, "peer", "coherent memory of another processor type")                  \
	X(UNCACHED, "uncached", "uncached access")                                    \
	X(MAB, "mab", "joined an outstanding miss (miss address buffer)")

enum ibs_src {
#define IBS_SRC_ENUM(name, ...) IBS_SRC_##name,
	IBS_SRC_TABLE(IBS_SRC_ENUM)
#undef IBS_SRC_ENUM
		IBS_SRC_N
};

/*
 * Encodings of DataSrc: X(code, SRC, state, "name in perf's dump") for each code. `state` is 1 if
 * CacheHitSt reports the state of the line. Reserved codes are unknown; others have no row.
 */
#define IBS_DATA_SRC_COARSE(X)                     \
	X(1, UNKNOWN, 0, "(reserved)")             \
	X(2, LOCAL_CACHE, 1, "Local node cache")   \
	X(3, DRAM, 0, "DRAM")                      \
	X(4, REMOTE_CACHE, 0, "Remote node cache") \
	X(5, UNKNOWN, 0, "(reserved)")             \
	X(6, UNKNOWN, 0, "(reserved)")             \
	X(7, IO, 0, "Other")
/* Codes above 12 are reserved, too; perf prints no name for them. */
#define IBS_DATA_SRC_ZEN4(X)                                                \
	X(1, L3, 1, "Local L3 or other L1/L2 in CCX")                       \
	X(2, NEAR_CACHE, 1, "Another CCX cache in the same NUMA node")      \
	X(3, DRAM, 0, "DRAM")                                               \
	X(4, UNKNOWN, 0, "(reserved)")                                      \
	X(5, REMOTE_CACHE, 1, "Another CCX cache in a different NUMA node") \
	X(6, PMEM, 0, "Long-latency DIMM")                                  \
	X(7, IO, 0, "MMIO/Config/PCI/APIC")                                 \
	X(8, CXL, 0, "Extension Memory")                                    \
	X(9, UNKNOWN, 0, "(reserved)")                                      \
	X(10, UNKNOWN, 0, "(reserved)")                                     \
	X(11, UNKNOWN, 0, "(reserved)")                                     \
	X(12, PEER, 0, "Coherent Memory of a different processor type")

/*
 * X(NAME, applies, wide): the first encoding that applies to a `cpu` is used; its codes are
 * IBS_DATA_SRC_NAME above. `wide` is true if DataSrc has its two upper bits.
 */
#define IBS_DATA_SRC_TABLE(X)                     \
	X(ZEN4, (cpu.caps & IBS_CAPS_ZEN4), true) \
	X(COARSE, true, false)

enum ibs_data_src_kind {
#define IBS_DATA_SRC_ENUM(name, ...) IBS_DATA_SRC_KIND_##name,
	IBS_DATA_SRC_TABLE(IBS_DATA_SRC_ENUM)
#undef IBS_DATA_SRC_ENUM
		IBS_DATA_SRC_KIND_N
};

struct ibs_data_src_encoding {
	enum ibs_data_src_kind kind;
	bool wide;
	__u64 sources; /* enum ibs_src, a nibble per code, so that the NMI reads no memory */
	__u32 states;  /* 1 << code of caches for which CacheHitSt is valid */
	__u32 memory;  /* 1 << code of memory, which RmtNode qualifies */
};

#define IBS_SRC_IS_MEMORY(src) \
	((src) == IBS_SRC_DRAM || (src) == IBS_SRC_PMEM || (src) == IBS_SRC_CXL)
#define IBS_DATA_SRC_NIBBLE(code, src, ...)	  | (__u64)IBS_SRC_##src << 4 * (code)
#define IBS_DATA_SRC_STATE(code, src, state, ...) | (state) << (code)
#define IBS_DATA_SRC_MEMORY(code, src, ...)	  | IBS_SRC_IS_MEMORY(IBS_SRC_##src) << (code)

static __always_inline struct ibs_data_src_encoding ibs_data_src_encoding(struct ibs_cpu cpu)
{
#define IBS_DATA_SRC_ROW(name, applies, is_wide)                               \
	if (applies)                                                           \
		return (struct ibs_data_src_encoding){                         \
			.kind = IBS_DATA_SRC_KIND_##name,                      \
			.wide = is_wide,                                       \
			.sources = 0 IBS_DATA_SRC_##name(IBS_DATA_SRC_NIBBLE), \
			.states = 0 IBS_DATA_SRC_##name(IBS_DATA_SRC_STATE),   \
			.memory = 0 IBS_DATA_SRC_##name(IBS_DATA_SRC_MEMORY),  \
		};
	/* the last row applies to all */
	/* cppcheck-suppress missingReturn */
	IBS_DATA_SRC_TABLE(IBS_DATA_SRC_ROW)
#undef IBS_DATA_SRC_ROW
}

/* MMIO, config space, PCI and APIC have this code in all encodings. */
#define IBS_DATA_SRC_IO 7
#define IBS_DATA_SRC_CHECK(name, ...)                                                         \
	_Static_assert(((0 IBS_DATA_SRC_##name(IBS_DATA_SRC_NIBBLE)) >> 4 * IBS_DATA_SRC_IO & \
			15) == IBS_SRC_IO,                                                    \
		       #name " must use the common code of IO");
IBS_DATA_SRC_TABLE(IBS_DATA_SRC_CHECK)
#undef IBS_DATA_SRC_CHECK
#undef IBS_DATA_SRC_MEMORY
#undef IBS_DATA_SRC_STATE
#undef IBS_DATA_SRC_NIBBLE
_Static_assert(IBS_SRC_PEER < 16 && IBS_SRC_UNKNOWN == 0, "sources of DataSrc must fit a nibble");
_Static_assert(IBS_SRC_REMOTE_DRAM == IBS_SRC_DRAM + 1 && IBS_SRC_PMEM == IBS_SRC_DRAM + 2 &&
		       IBS_SRC_REMOTE_PMEM == IBS_SRC_DRAM + 3 && IBS_SRC_CXL == IBS_SRC_DRAM + 4 &&
		       IBS_SRC_REMOTE_CXL == IBS_SRC_DRAM + 5,
	       "memory and its remote twin must alternate");

/* The DataSrc code of IBS_OP_DATA2. */
static __always_inline __u32 ibs_op_data_src(struct ibs_cpu cpu, __u64 data2)
{
	__u32 code = data2 & 7;

	if (ibs_data_src_encoding(cpu).wide)
		code |= (data2 >> 6 & 3) << 3;
	return code;
}

/* True if erratum 1293 invalidates IBS_OP_DATA2, L2Miss and OpDcMissOpenMemReqs of the sample. */
static __always_inline bool ibs_op_erratum_1293(__u32 quirks, __u64 data3)
{
	return (quirks & IBS_QUIRK_OP_1293) && (data3 & (IBS_OP_DATA3_SW_PF | IBS_OP_DATA3_NO_MAB));
}

/* True if DataSrc names a cache and CacheHitSt reports the state of the line. */
static __always_inline bool ibs_op_data_src_has_state(struct ibs_cpu cpu, __u64 data2)
{
	return ibs_data_src_encoding(cpu).states >> ibs_op_data_src(cpu, data2) & 1;
}

/* The same, on CPUs whose CacheHitSt is valid. */
static __always_inline bool ibs_op_reports_state(struct ibs_cpu cpu, __u64 data2)
{
	return !(cpu.quirks & IBS_QUIRK_NO_CACHE_HIT_ST) && ibs_op_data_src_has_state(cpu, data2);
}

/*
 * The source of a load that missed L2, from IBS_OP_DATA2. RmtNode qualifies memory only: for caches
 * the code itself says near or far.
 */
static __always_inline __u32 ibs_op_data2_src(struct ibs_cpu cpu, __u64 data2)
{
	__u32 code = ibs_op_data_src(cpu, data2), src;

	if (code > 15)
		return IBS_SRC_UNKNOWN;
	src = ibs_data_src_encoding(cpu).sources >> code * 4 & 15;
	if (src >= IBS_SRC_DRAM && src <= IBS_SRC_CXL && (data2 & IBS_OP_DATA2_RMT_NODE))
		src++;
	return src;
}

/* True if DataSrc names memory, which RmtNode qualifies. */
static __always_inline bool ibs_op_data_src_is_memory(struct ibs_cpu cpu, __u64 data2)
{
	return ibs_data_src_encoding(cpu).memory >> ibs_op_data_src(cpu, data2) & 1;
}

/* True if a memory access hit L1, so that no other bit matters. */
static __always_inline bool ibs_op_hit_l1(__u64 data3)
{
	return !(data3 & (IBS_OP_DATA3_UC_MEM_ACC | IBS_OP_DATA3_DC_MISS));
}

/* True if a memory access hit L1 and is a plain load or store. */
static __always_inline bool ibs_op_plain_l1(__u64 data3)
{
	return !(data3 & (IBS_OP_DATA3_UC_MEM_ACC | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_SW_PF |
			  IBS_OP_DATA3_LOCKED_OP));
}

/**
 * ibs_op_src() - source of a sample's data
 * @regs: registers of the sample; IBS_OP_DATA2 is read only if valid
 *
 * The order of the tests is the kernel's (ibs.c, perf_ibs_get_mem_lvl), with three differences:
 * pure stores never consult DataSrc, since DATA2 is not valid for them; an uncached load from IO is
 * IO regardless of DcMiss, which is not valid then; memory of another node is a separate source.
 */
static __always_inline __u32 ibs_op_src(struct ibs_cpu cpu, const __u64 *regs)
{
	__u64 data3 = regs[IBS_OP_DATA3];
	__u32 src = IBS_SRC_UNKNOWN;

	if (!(data3 & IBS_OP_DATA3_MEM))
		return IBS_SRC_NONE;
	if (ibs_op_hit_l1(data3))
		return IBS_SRC_L1;
	if (data3 & IBS_OP_DATA3_UC_MEM_ACC) {
		if ((data3 & IBS_OP_DATA3_LD_OP) && !ibs_op_erratum_1293(cpu.quirks, data3) &&
		    ibs_op_data_src(cpu, regs[IBS_OP_DATA2]) == IBS_DATA_SRC_IO)
			return IBS_SRC_IO;
		return IBS_SRC_UNCACHED;
	}
	if (!ibs_op_erratum_1293(cpu.quirks, data3)) {
		if (!(data3 & IBS_OP_DATA3_L2_MISS))
			return IBS_SRC_L2;
		if (data3 & IBS_OP_DATA3_LD_OP)
			src = ibs_op_data2_src(cpu, regs[IBS_OP_DATA2]);
	}
	if (src == IBS_SRC_UNKNOWN && (data3 & IBS_OP_DATA3_NO_MAB))
		return IBS_SRC_MAB;
	return src;
}

/*
 * Latencies for histograms, in core cycles (16 bits), each of one event. X(NAME, "name",
 * "meaning").
 */
#define IBS_OP_METRIC_TABLE(X)                                        \
	X(DC_MISS_LAT, "dc_miss_lat", "L1 miss to data, loads")       \
	X(TLB_REFILL_LAT, "tlb_refill_lat", "L1 dTLB miss to refill") \
	X(TAG_TO_RET, "tag_to_ret", "tag to retirement, all ops")     \
	X(COMP_TO_RET, "comp_to_ret", "completion to retirement, all ops")
#define IBS_FETCH_METRIC_TABLE(X)                                              \
	X(FETCH_LAT, "fetch_lat", "fetch to delivery, fetches that completed") \
	X(ITLB_REFILL_LAT, "itlb_refill_lat", "L1 ITLB miss to refill")
#define IBS_METRIC_TABLE(X) IBS_OP_METRIC_TABLE(X) IBS_FETCH_METRIC_TABLE(X)

enum ibs_metric {
#define IBS_METRIC_ENUM(name, ...) IBS_METRIC_##name,
	IBS_METRIC_TABLE(IBS_METRIC_ENUM)
#undef IBS_METRIC_ENUM
		IBS_METRIC_N,
	IBS_OP_METRIC_N = IBS_METRIC_FETCH_LAT, /* metrics below belong to ibs_op */
};

/* A metric determines the event that was sampled. */
static __always_inline bool ibs_metric_of_fetch(enum ibs_metric m)
{
	return m >= IBS_METRIC_FETCH_LAT;
}

/* DcMissLat: loads that missed, except prefetches and uncached accesses (AMD PPR, IbsDcMissLat). */
static __always_inline bool ibs_op_dc_miss_lat_valid(__u64 data3)
{
	return (data3 & (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_UC_MEM_ACC |
			 IBS_OP_DATA3_SW_PF)) == (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS);
}

/* TLB miss bits: valid linear address; with the page size encoding also valid physical address. */
static __always_inline bool ibs_op_tlb_valid(__u32 caps, __u64 data3)
{
	__u64 need = IBS_OP_DATA3_LIN_VALID;

	if (caps & IBS_CAPS_OPDTLBPGSIZE)
		need |= IBS_OP_DATA3_PHY_VALID;
	return (data3 & IBS_OP_DATA3_MEM) && (data3 & need) == need;
}

/* TlbRefillLat requires a refill; from Zen 4 on one that led to a physical address. */
static __always_inline bool ibs_op_tlb_refill_lat_valid(__u32 caps, __u64 data3)
{
	return ibs_op_tlb_valid(caps, data3) && (data3 & IBS_OP_DATA3_L1TLB_MISS) &&
	       (!(caps & IBS_CAPS_ZEN4) || (data3 & IBS_OP_DATA3_PHY_VALID));
}

/*
 * The physical address of a load or a store. From Zen 4 on the linear address must be valid, too.
 * Linux 7.2 zeroes the address for unprivileged users but leaves the valid bit set.
 */
static __always_inline bool ibs_op_phys_known(__u32 caps, __u64 data3)
{
	__u64 need = IBS_OP_DATA3_PHY_VALID | (caps & IBS_CAPS_ZEN4 ? IBS_OP_DATA3_LIN_VALID : 0);

	return (data3 & need) == need;
}

static __always_inline bool ibs_op_phys_valid(__u32 caps, const __u64 *regs)
{
	return (regs[IBS_OP_DATA3] & IBS_OP_DATA3_MEM) &&
	       ibs_op_phys_known(caps, regs[IBS_OP_DATA3]) && regs[IBS_DC_PHYSADDR];
}

static __always_inline bool ibs_op_metric_valid(enum ibs_metric m, __u32 caps, __u64 data3)
{
	switch (m) {
	case IBS_METRIC_DC_MISS_LAT:
		return ibs_op_dc_miss_lat_valid(data3);
	case IBS_METRIC_TLB_REFILL_LAT:
		return ibs_op_tlb_refill_lat_valid(caps, data3);
	default:
		return true;
	}
}

/* Cycles of a metric; requires ibs_op_metric_valid(). @data3 is regs[IBS_OP_DATA3]. */
static __always_inline __u32 ibs_op_metric(enum ibs_metric m, const __u64 *regs, __u64 data3)
{
	switch (m) {
	case IBS_METRIC_DC_MISS_LAT:
		return data3 >> 32 & 0xffff;
	case IBS_METRIC_TLB_REFILL_LAT:
		return data3 >> 48;
	case IBS_METRIC_TAG_TO_RET:
		return regs[IBS_OP_DATA] >> 16 & 0xffff;
	default:
		return regs[IBS_OP_DATA] & 0xffff;
	}
}

#endif
