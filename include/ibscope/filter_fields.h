/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields of a sample that a filter can test: table of fields, when each is valid, its value. */
#ifndef IBSCOPE_FILTER_FIELDS_H
#define IBSCOPE_FILTER_FIELDS_H

#include <ibscope/op.h>

/* Where the value of a term comes from; bit r is register r. */
#define IBS_FILTER_NEEDS_REG(r) (1U << (r))
#define IBS_FILTER_NEEDS_TASK	(1U << 16)
#define IBS_FILTER_NEEDS_UID	(1U << 17)
#define IBS_FILTER_NEEDS_CPU	(1U << 18)
#define IBS_FILTER_NEEDS_CGROUP (1U << 19)
#define IBS_FILTER_NEEDS_SRC	(1U << 20)
/* Tested first, these masks save the program most of the single tests. */
#define IBS_FILTER_NEEDS_CONTEXT (15U << 16)
#define IBS_FILTER_NEEDS_MORE	 (31U << 16)

/* Apart from the registers, only members that the filter's `needs` names must be set. */
struct ibs_filter_sample {
	const __u64 *regs;
	/* a constant in BPF; volatile: the compiler must not test caps that no term needs */
	const volatile struct ibs_cpu *ibs;
	__u64 pid_tgid; /* tgid << 32 | tid, as BPF returns it */
	__u64 uid_gid;	/* gid << 32 | uid */
	__u32 cpu;
	__u32 cgroups; /* bit k: predicate k of the filter holds for the current cgroup */
	__u32 src;     /* ibs_filter_src(), computed once for all terms */
};

/* perf's values for its own terms (Linux uapi/linux/perf_event.h, PERF_MEM_*). */
enum ibs_filter_perf {
	IBS_PERF_OP_NA = 1,
	IBS_PERF_OP_LOAD = 2,
	IBS_PERF_OP_STORE = 4,
	IBS_PERF_LVL_L1 = 1,
	IBS_PERF_LVL_L2 = 2,
	IBS_PERF_LVL_L3 = 3,
	IBS_PERF_LVL_UNC = 8,
	IBS_PERF_LVL_CXL = 9,
	IBS_PERF_LVL_IO = 10,
	IBS_PERF_LVL_ANY_CACHE = 11,
	IBS_PERF_LVL_LFB = 12,
	IBS_PERF_LVL_RAM = 13,
	IBS_PERF_LVL_PMEM = 14,
	IBS_PERF_SNOOP_HITM = 16,
	IBS_PERF_REMOTE = 1,
	IBS_PERF_LOCK_NA = 1,
	IBS_PERF_LOCKED = 2,
	IBS_PERF_TLB_HIT = 2,
	IBS_PERF_TLB_MISS = 4,
	IBS_PERF_TLB_L1 = 8,
	IBS_PERF_TLB_L2 = 16,
	IBS_PERF_HOPS_0 = 1,
	IBS_PERF_HOPS_1 = 2,
};

/* --- when a field is valid; the conditions are those of op_fields.h --- */

static __always_inline __u64 ibs_filter_data3(const struct ibs_filter_sample *s)
{
	return s->regs[IBS_OP_DATA3];
}

static __always_inline bool ibs_filter_valid_always(const struct ibs_filter_sample *s)
{
	(void)s;
	return true;
}

static __always_inline bool ibs_filter_valid_rip(const struct ibs_filter_sample *s)
{
	return !(s->ibs->caps & IBS_CAPS_RIPINVALIDCHK) ||
	       !(s->regs[IBS_OP_DATA] & IBS_OP_DATA_RIP_INVALID);
}

static __always_inline bool ibs_filter_valid_branch(const struct ibs_filter_sample *s)
{
	return s->regs[IBS_OP_DATA] & IBS_OP_DATA_BRN_RET;
}

static __always_inline bool ibs_filter_valid_brn_fuse(const struct ibs_filter_sample *s)
{
	return s->ibs->caps & IBS_CAPS_OPBRNFUSE;
}

static __always_inline bool ibs_filter_valid_mem(const struct ibs_filter_sample *s)
{
	return ibs_filter_data3(s) & IBS_OP_DATA3_MEM;
}

static __always_inline bool ibs_filter_valid_cached(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_mem(s) && !(ibs_filter_data3(s) & IBS_OP_DATA3_UC_MEM_ACC);
}

static __always_inline bool ibs_filter_valid_l2_miss(const struct ibs_filter_sample *s)
{
	__u64 data3 = ibs_filter_data3(s);

	return ibs_filter_valid_cached(s) && (data3 & IBS_OP_DATA3_DC_MISS) &&
	       !ibs_op_erratum_1293(s->ibs->quirks, data3);
}

static __always_inline bool ibs_filter_valid_open_reqs(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_l2_miss(s) && IBS_OP_DATA3_OPEN_REQS(ibs_filter_data3(s));
}

static __always_inline bool ibs_filter_valid_data2(const struct ibs_filter_sample *s)
{
	const __u64 need = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS;
	__u64 data3 = ibs_filter_data3(s);

	return (data3 & (need | IBS_OP_DATA3_UC_MEM_ACC)) == need &&
	       !ibs_op_erratum_1293(s->ibs->quirks, data3);
}

/* Copied by member: clang mistakes a copy of the whole for a copy of its initial zeros. */
static __always_inline struct ibs_cpu ibs_filter_cpu(const struct ibs_filter_sample *s)
{
	return (struct ibs_cpu){ .caps = s->ibs->caps, .quirks = s->ibs->quirks };
}

static __always_inline __u32 ibs_filter_data_src(const struct ibs_filter_sample *s)
{
	return ibs_op_data_src(ibs_filter_cpu(s), s->regs[IBS_OP_DATA2]);
}

static __always_inline bool ibs_filter_valid_rmt_node(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_data2(s) &&
	       ibs_op_data_src_is_memory(ibs_filter_cpu(s), s->regs[IBS_OP_DATA2]);
}

static __always_inline bool ibs_filter_valid_rmt_socket(const struct ibs_filter_sample *s)
{
	return (s->ibs->caps & IBS_CAPS_STRMST_RMTSOCKET) && ibs_filter_valid_rmt_node(s);
}

static __always_inline bool ibs_filter_valid_cache_hit_st(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_data2(s) &&
	       ibs_op_reports_state(ibs_filter_cpu(s), s->regs[IBS_OP_DATA2]);
}

static __always_inline bool ibs_filter_valid_strm_st(const struct ibs_filter_sample *s)
{
	return (s->ibs->caps & IBS_CAPS_STRMST_RMTSOCKET) &&
	       (ibs_filter_data3(s) & IBS_OP_DATA3_ST_OP);
}

static __always_inline bool ibs_filter_valid_l1tlb(const struct ibs_filter_sample *s)
{
	return ibs_op_tlb_valid(s->ibs->caps, ibs_filter_data3(s));
}

static __always_inline bool ibs_filter_valid_l2tlb(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_l1tlb(s) && (ibs_filter_data3(s) & IBS_OP_DATA3_L1TLB_MISS);
}

static __always_inline bool ibs_filter_valid_mem_width(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_mem(s) && (ibs_filter_data3(s) & 15ULL << 22);
}

static __always_inline bool ibs_filter_valid_dc_miss_lat(const struct ibs_filter_sample *s)
{
	return ibs_op_dc_miss_lat_valid(ibs_filter_data3(s));
}

static __always_inline bool ibs_filter_valid_tlb_refill_lat(const struct ibs_filter_sample *s)
{
	return ibs_op_tlb_refill_lat_valid(s->ibs->caps, ibs_filter_data3(s));
}

static __always_inline bool ibs_filter_valid_addr(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_mem(s) && (ibs_filter_data3(s) & IBS_OP_DATA3_LIN_VALID);
}

static __always_inline bool ibs_filter_valid_phys_addr(const struct ibs_filter_sample *s)
{
	__u64 need = IBS_OP_DATA3_PHY_VALID;

	if (s->ibs->caps & IBS_CAPS_ZEN4)
		need |= IBS_OP_DATA3_LIN_VALID;
	return ibs_filter_valid_mem(s) && (ibs_filter_data3(s) & need) == need &&
	       s->regs[IBS_DC_PHYSADDR];
}

/* --- fields derived from several others --- */

static __always_inline __u64 ibs_filter_op(const struct ibs_filter_sample *s)
{
	/* two calls, so that the compiler reduces each to the half that can apply */
	if (ibs_filter_data3(s) & IBS_OP_DATA3_MEM)
		return ibs_op_kind(0, ibs_filter_data3(s));
	return ibs_op_kind(s->regs[IBS_OP_DATA], 0);
}

static __always_inline __u32 ibs_filter_src(const struct ibs_filter_sample *s)
{
	struct ibs_cpu cpu = { .caps = s->ibs->caps, .quirks = s->ibs->quirks };

	return ibs_op_src(cpu, s->regs);
}
_Static_assert(IBS_SRC_UNKNOWN == 0 && IBS_SRC_NONE == 1 && IBS_SRC_N == 18,
	       "sources from 2 on must fit 16 nibbles");

static __always_inline __u64 ibs_filter_mem_op(const struct ibs_filter_sample *s)
{
	if (ibs_filter_data3(s) & IBS_OP_DATA3_LD_OP)
		return IBS_PERF_OP_LOAD;
	return ibs_filter_data3(s) & IBS_OP_DATA3_ST_OP ? IBS_PERF_OP_STORE : IBS_PERF_OP_NA;
}

/* perf's level by source, as the kernel maps it (ibs.c, 6.12); 0: perf has no such level. */
#define IBS_FILTER_LVL(src, lvl) ((__u64)IBS_PERF_LVL_##lvl << 4 * (IBS_SRC_##src - 2))
#define IBS_FILTER_LVLS                                                                   \
	(IBS_FILTER_LVL(L1, L1) | IBS_FILTER_LVL(L2, L2) | IBS_FILTER_LVL(L3, L3) |       \
	 IBS_FILTER_LVL(LOCAL_CACHE, ANY_CACHE) | IBS_FILTER_LVL(NEAR_CACHE, ANY_CACHE) | \
	 IBS_FILTER_LVL(REMOTE_CACHE, ANY_CACHE) | IBS_FILTER_LVL(DRAM, RAM) |            \
	 IBS_FILTER_LVL(REMOTE_DRAM, RAM) | IBS_FILTER_LVL(PMEM, PMEM) |                  \
	 IBS_FILTER_LVL(REMOTE_PMEM, PMEM) | IBS_FILTER_LVL(CXL, CXL) |                   \
	 IBS_FILTER_LVL(REMOTE_CXL, CXL) | IBS_FILTER_LVL(IO, IO) |                       \
	 IBS_FILTER_LVL(UNCACHED, UNC) | IBS_FILTER_LVL(MAB, LFB))
#define IBS_FILTER_REMOTE_MEM \
	(1 << IBS_SRC_REMOTE_DRAM | 1 << IBS_SRC_REMOTE_PMEM | 1 << IBS_SRC_REMOTE_CXL)
#define IBS_FILTER_HOPS_0 (1 << IBS_SRC_LOCAL_CACHE | 1 << IBS_SRC_NEAR_CACHE)
#define IBS_FILTER_HOPS_1 (1 << IBS_SRC_REMOTE_CACHE | IBS_FILTER_REMOTE_MEM)
#define IBS_FILTER_REMOTE (1 << IBS_SRC_NEAR_CACHE | IBS_FILTER_HOPS_1)

/* The next three require @src > IBS_SRC_NONE. */
static __always_inline __u64 ibs_filter_mem_lvl(__u32 src)
{
	return IBS_FILTER_LVLS >> (src - 2) * 4 & 15;
}

static __always_inline bool ibs_filter_valid_hops(__u32 src)
{
	return (IBS_FILTER_HOPS_0 | IBS_FILTER_HOPS_1) >> src & 1;
}

static __always_inline __u64 ibs_filter_mem_hops(__u32 src)
{
	return IBS_PERF_HOPS_0 + (IBS_FILTER_HOPS_1 >> src & 1);
}
_Static_assert(IBS_PERF_HOPS_1 == IBS_PERF_HOPS_0 + 1, "hops must be consecutive");

/* The line was modified in the cache it came from (CacheHitSt 0). */
static __always_inline bool ibs_filter_valid_mem_snoop(const struct ibs_filter_sample *s)
{
	return ibs_filter_valid_cache_hit_st(s) && !(s->regs[IBS_OP_DATA2] & IBS_OP_DATA2_OWNED);
}

static __always_inline __u64 ibs_filter_mem_lock(const struct ibs_filter_sample *s)
{
	return ibs_filter_data3(s) & IBS_OP_DATA3_LOCKED_OP ? IBS_PERF_LOCKED : IBS_PERF_LOCK_NA;
}

static __always_inline __u64 ibs_filter_mem_dtlb(const struct ibs_filter_sample *s)
{
	if (!(ibs_filter_data3(s) & IBS_OP_DATA3_L1TLB_MISS))
		return IBS_PERF_TLB_L1 | IBS_PERF_TLB_HIT;
	if (!(ibs_filter_data3(s) & IBS_OP_DATA3_L2TLB_MISS))
		return IBS_PERF_TLB_L2 | IBS_PERF_TLB_HIT;
	return IBS_PERF_TLB_L2 | IBS_PERF_TLB_MISS;
}

/*
 * 0 4K, 1 2M, 2 1G, 3 unknown. Before IBS_CAPS_OPDTLBPGSIZE the TLB level that hit reports the page
 * size in two flags; neither is set for the smallest size.
 */
static __always_inline __u32 ibs_filter_page_code(const struct ibs_filter_sample *s)
{
	__u64 data3 = ibs_filter_data3(s);
	bool is_2m, is_1g;

	if (s->ibs->caps & IBS_CAPS_OPDTLBPGSIZE) {
		if (!ibs_filter_valid_mem(s) || !(data3 & IBS_OP_DATA3_PHY_VALID))
			return 3;
		return data3 >> 4 & 3;
	}
	if (!ibs_filter_valid_l1tlb(s))
		return 3;
	if (!(data3 & IBS_OP_DATA3_L1TLB_MISS)) {
		is_2m = data3 & IBS_BIT(4);
		is_1g = data3 & IBS_BIT(5);
	} else {
		if (data3 & IBS_OP_DATA3_L2TLB_MISS)
			return 3;
		is_2m = data3 & IBS_BIT(6);
		is_1g = data3 & IBS_BIT(19);
	}
	return is_1g ? (is_2m ? 3 : 2) : is_2m;
}

/*
 * When a field is valid: X(NAME, function, "in words"). Each row has a validity function; the
 * conditions from IBS_FILTER_WHEN_PAGE on also compute an intermediate result for the value.
 */
#define IBS_FILTER_WHEN_TABLE(X)                                                                   \
	X(ALWAYS, always, "always")                                                                \
	X(RIP, rip, "address of the op known")                                                     \
	X(BRANCH, branch, "retired branch")                                                        \
	X(BRN_FUSE, brn_fuse, "Zen or later")                                                      \
	X(MEM, mem, "memory access")                                                               \
	X(CACHED, cached, "memory access, not uncached")                                           \
	X(L2_MISS, l2_miss, "missed L1, not uncached; unless affected by erratum 1293")            \
	X(OPEN_REQS, open_reqs, "missed L1, not uncached, not 0; unless affected by erratum 1293") \
	X(DATA2, data2, "load that missed L2, not uncached; unless affected by erratum 1293")      \
	X(RMT_NODE, rmt_node, "load that missed L2, from memory")                                  \
	X(RMT_SOCKET, rmt_socket, "load that missed L2, from memory; Zen 6")                       \
	X(CACHE_HIT_ST, cache_hit_st, "load that missed L2, from a cache; not Zen 3")              \
	X(MEM_SNOOP, mem_snoop, "load from another cache, which had modified the line")            \
	X(STRM_ST, strm_st, "store; Zen 6")                                                        \
	X(L1TLB, l1tlb, "memory access, address valid")                                            \
	X(L2TLB, l2tlb, "memory access, address valid, L1 dTLB missed")                            \
	X(MEM_WIDTH, mem_width, "memory access of known width")                                    \
	X(DC_MISS_LAT, dc_miss_lat, "load that missed L1; no prefetch, not uncached")              \
	X(TLB_REFILL_LAT, tlb_refill_lat, "memory access, address valid, L1 dTLB missed")          \
	X(ADDR, addr, "memory access, address valid")                                              \
	X(PHYS_ADDR, phys_addr, "memory access, physical address valid and not withheld")

enum ibs_filter_when {
#define IBS_FILTER_WHEN_ENUM(NAME, ...) IBS_FILTER_WHEN_##NAME,
	IBS_FILTER_WHEN_TABLE(IBS_FILTER_WHEN_ENUM)
#undef IBS_FILTER_WHEN_ENUM
		IBS_FILTER_WHEN_PAGE, /* page size known */
	IBS_FILTER_WHEN_SRC,	      /* memory access, source known */
	IBS_FILTER_WHEN_LVL,	      /* the same, and perf has a level for it */
	IBS_FILTER_WHEN_HOPS,	      /* the same, and it is another cache or node */
	IBS_FILTER_WHEN_N
};

/* Terms of every event: the current task and CPU, not registers. */
#define IBS_FILTER_TASK_TABLE(X)                                                               \
	X(PID, "pid", "", NUM, 0xffffffff, TASK, ALWAYS, s->pid_tgid >> 32, "current process") \
	X(TID, "tid", "", NUM, 0xffffffff, TASK, ALWAYS, (__u32)s->pid_tgid, "current thread") \
	X(UID, "uid", "", NUM, 0xffffffff, UID, ALWAYS, (__u32)s->uid_gid, "current task")     \
	X(GID, "gid", "", NUM, 0xffffffff, UID, ALWAYS, s->uid_gid >> 32, "current task")      \
	X(CPU, "cpu", "", NUM, 0xffffffff, CPU, ALWAYS, s->cpu, "this CPU")                    \
	X(CGROUP, "cgroup", "", CGROUP, 0xff, CGROUP, ALWAYS, s->cgroups, "current cgroup")

/*
 * Every term. X(NAME, "name", "other names", values, greatest value, needs, when, value, "where").
 * Other names: first perf's, then those of asm/amd/ibs.h. `values` is a row of the table of
 * constants in src/core/filter/filter.c.
 */
#define IBS_FILTER_FIELD_TABLE(X)                                                                 \
	X(DC_MISS_LAT, "dc_miss_lat", "weight,weight1", NUM, 0xffff, R3, DC_MISS_LAT, B3(32, 16), \
	  "DATA3[32..47]")                                                                        \
	X(INS_LAT, "ins_lat", "weight2", NUM, 0xffff, R1 | R3, DC_MISS_LAT, B1(16, 16),           \
	  "DATA[16..31]")                                                                         \
	X(TLB_REFILL_LAT, "tlb_refill_lat", "", NUM, 0xffff, R3, TLB_REFILL_LAT, B3(48, 16),      \
	  "DATA3[48..63]")                                                                        \
	X(TAG_TO_RET, "tag_to_ret", "tag_to_ret_ctr", NUM, 0xffff, R1, ALWAYS, B1(16, 16),        \
	  "DATA[16..31]")                                                                         \
	X(COMP_TO_RET, "comp_to_ret", "comp_to_ret_ctr", NUM, 0xffff, R1, ALWAYS, B1(0, 16),      \
	  "DATA[0..15]")                                                                          \
	X(MEM_OP, "mem_op", "", MEM_OP, 31, R3, ALWAYS, ibs_filter_mem_op(s), "DATA3[0,1]")       \
	X(MEM_LVL, "mem_lvl", "mem_lvlnum", MEM_LVL, 15, R2 | R3 | SRC, LVL,                      \
	  ibs_filter_mem_lvl(found), IBS_FILTER_SRC_BITS)                                         \
	X(MEM_REMOTE, "mem_remote", "", MEM_REMOTE, 1, R2 | R3 | SRC, LVL,                        \
	  IBS_FILTER_REMOTE >> found & 1, IBS_FILTER_SRC_BITS)                                    \
	X(MEM_HOPS, "mem_hops", "", MEM_HOPS, 7, R2 | R3 | SRC, HOPS, ibs_filter_mem_hops(found), \
	  IBS_FILTER_SRC_BITS)                                                                    \
	X(MEM_SNOOP, "mem_snoop", "", MEM_SNOOP, 127, R2 | R3, MEM_SNOOP, IBS_PERF_SNOOP_HITM,    \
	  "DATA2[5]")                                                                             \
	X(MEM_LOCK, "mem_lock", "", MEM_LOCK, 3, R3, MEM, ibs_filter_mem_lock(s), "DATA3[15]")    \
	X(MEM_DTLB, "mem_dtlb", "", MEM_DTLB, 127, R3, L1TLB, ibs_filter_mem_dtlb(s),             \
	  "DATA3[2,3]")                                                                           \
	X(PAGE_SIZE, "page_size", "data_pgsz", PAGE_SIZE, 1ULL << 30, R3, PAGE,                   \
	  4096ULL << found * 9, "DATA3[2..6,19]")                                                 \
	X(IP, "ip", "rip", HEX, ~0ULL, R_IP | R1, RIP, s->regs[IBS_OP_RIP], "RIP")                \
	X(KERNEL, "kernel", "", FLAG, 1, R_IP | R1, RIP, s->regs[IBS_OP_RIP] >> 63, "RIP[63]")    \
	X(USER, "user", "", FLAG, 1, R_IP | R1, RIP, !(s->regs[IBS_OP_RIP] >> 63),                \
	  "RIP[63], inverted")                                                                    \
	X(ADDR, "addr", "dc_lin_ad", HEX, ~0ULL, R_ADDR | R3, ADDR, s->regs[IBS_DC_LINADDR],      \
	  "LINADDR")                                                                              \
	X(PHYS_ADDR, "phys_addr", "dc_phys_ad", HEX, ~0ULL, R_PHYS | R3, PHYS_ADDR,               \
	  s->regs[IBS_DC_PHYSADDR], "PHYSADDR")                                                   \
	IBS_FILTER_TASK_TABLE(X)                                                                  \
	X(OP, "op", "", OP, IBS_OP_KIND_N - 1, R1 | R3, ALWAYS, ibs_filter_op(s),                 \
	  "DATA3[0,1,15,21], DATA[37]")                                                           \
	X(DATA_SRC, "data_src", "src", DATA_SRC, IBS_SRC_N - 1, R2 | R3 | SRC, SRC, found,        \
	  IBS_FILTER_SRC_BITS)                                                                    \
	X(DATA_SRC_RAW, "data_src_raw", "", NUM, 31, R2 | R3, DATA2, ibs_filter_data_src(s),      \
	  "DATA2[0..2,6,7]")                                                                      \
	X(RMT_NODE, "rmt_node", "", FLAG, 1, R2 | R3, RMT_NODE, B2(4, 1), "DATA2[4]")             \
	X(RMT_SOCKET, "rmt_socket", "", FLAG, 1, R2 | R3, RMT_SOCKET, B2(9, 1), "DATA2[9]")       \
	X(CACHE_HIT_ST, "cache_hit_st", "", FLAG, 1, R2 | R3, CACHE_HIT_ST, B2(5, 1), "DATA2[5]") \
	X(STRM_ST, "strm_st", "", FLAG, 1, R2 | R3, STRM_ST, B2(8, 1), "DATA2[8]")                \
	X(LD_OP, "ld_op", "", FLAG, 1, R3, ALWAYS, B3(0, 1), "DATA3[0]")                          \
	X(ST_OP, "st_op", "", FLAG, 1, R3, ALWAYS, B3(1, 1), "DATA3[1]")                          \
	X(DC_MISS, "dc_miss", "", FLAG, 1, R3, CACHED, B3(7, 1), "DATA3[7]")                      \
	X(L2_MISS, "l2_miss", "", FLAG, 1, R3, L2_MISS, B3(20, 1), "DATA3[20]")                   \
	X(L1TLB_MISS, "l1tlb_miss", "dc_l1tlb_miss", FLAG, 1, R3, L1TLB, B3(2, 1), "DATA3[2]")    \
	X(L2TLB_MISS, "l2tlb_miss", "dc_l2tlb_miss", FLAG, 1, R3, L2TLB, B3(3, 1), "DATA3[3]")    \
	X(MISALIGNED, "misaligned", "dc_mis_acc", FLAG, 1, R3, MEM, B3(8, 1), "DATA3[8]")         \
	X(WC, "wc", "dc_wc_mem_acc", FLAG, 1, R3, MEM, B3(13, 1), "DATA3[13]")                    \
	X(UNCACHED, "uncached", "dc_uc_mem_acc", FLAG, 1, R3, MEM, B3(14, 1), "DATA3[14]")        \
	X(LOCKED, "locked", "dc_locked_op", FLAG, 1, R3, MEM, B3(15, 1), "DATA3[15]")             \
	X(NO_MAB, "no_mab", "dc_miss_no_mab_alloc", FLAG, 1, R3, MEM, B3(16, 1), "DATA3[16]")     \
	X(SWPF, "swpf", "sw_pf", FLAG, 1, R3, MEM, B3(21, 1), "DATA3[21]")                        \
	X(MEM_WIDTH, "mem_width", "", NUM, 1 << 14, R3, MEM_WIDTH, IBS_BIT(B3(22, 4) - 1),        \
	  "DATA3[22..25], as bytes")                                                              \
	X(OPEN_REQS, "open_reqs", "op_dc_miss_open_mem_reqs", NUM, 63, R3, OPEN_REQS, B3(26, 6),  \
	  "DATA3[26..31]")                                                                        \
	X(BRN_RET, "brn_ret", "op_brn_ret", FLAG, 1, R1, ALWAYS, B1(37, 1), "DATA[37]")           \
	X(BRN_TAKEN, "brn_taken", "op_brn_taken", FLAG, 1, R1, BRANCH, B1(35, 1), "DATA[35]")     \
	X(BRN_MISP, "brn_misp", "op_brn_misp", FLAG, 1, R1, BRANCH, B1(36, 1), "DATA[36]")        \
	X(BRN_RETURN, "brn_return", "op_return", FLAG, 1, R1, BRANCH, B1(34, 1), "DATA[34]")      \
	X(BRN_FUSE, "brn_fuse", "op_brn_fuse", FLAG, 1, R1, BRN_FUSE, B1(39, 1), "DATA[39]")      \
	X(MICROCODE, "microcode", "op_microcode", FLAG, 1, R1, ALWAYS, B1(40, 1), "DATA[40]")

/* The source depends on LdOp, StOp, DcMiss, UC, NoMab, L2Miss, SwPf, DataSrc and RmtNode. */
#define IBS_FILTER_SRC_BITS "DATA3[0,1,7,14,16,20,21], DATA2[0..2,4,6,7]"

enum ibs_filter_field {
#define IBS_FILTER_ENUM(NAME, ...) IBS_FILTER_##NAME,
	IBS_FILTER_FIELD_TABLE(IBS_FILTER_ENUM)
#undef IBS_FILTER_ENUM
		IBS_FILTER_FIELD_N
};

/*
 * Get a field of a sample, if it is valid; @value may be set even on failure. Condition and value
 * are separate since many fields share a condition: the program has this code once per term.
 */
static __always_inline bool ibs_filter_value(__u32 when, __u32 field,
					     const struct ibs_filter_sample *s, __u64 *value)
{
	__u32 found = 0;

	switch (when) {
#define IBS_FILTER_CASE(NAME, fn, ...)         \
	case IBS_FILTER_WHEN_##NAME:           \
		if (!ibs_filter_valid_##fn(s)) \
			return false;          \
		break;
		IBS_FILTER_WHEN_TABLE(IBS_FILTER_CASE)
#undef IBS_FILTER_CASE
	case IBS_FILTER_WHEN_PAGE:
		found = ibs_filter_page_code(s);
		if (found == 3)
			return false;
		break;
	case IBS_FILTER_WHEN_SRC:
	case IBS_FILTER_WHEN_LVL:
	case IBS_FILTER_WHEN_HOPS:
		found = s->src;
		if (found <= IBS_SRC_NONE ||
		    (when == IBS_FILTER_WHEN_LVL && !ibs_filter_mem_lvl(found)) ||
		    (when == IBS_FILTER_WHEN_HOPS && !ibs_filter_valid_hops(found)))
			return false;
		break;
	default:
		return false;
	}
	switch (field) {
#define B1(lo, width) ibs_bits(s->regs[IBS_OP_DATA], lo, width)
#define B2(lo, width) ibs_bits(s->regs[IBS_OP_DATA2], lo, width)
#define B3(lo, width) ibs_bits(s->regs[IBS_OP_DATA3], lo, width)
#define IBS_FILTER_VALUE_CASE(NAME, name, others, values, max, needs, when, val, ...) \
	case IBS_FILTER_##NAME:                                                       \
		*value = val;                                                         \
		return true;
		IBS_FILTER_FIELD_TABLE(IBS_FILTER_VALUE_CASE)
#undef B3
#undef B2
#undef B1
	default:
		return false;
	}
}

#endif
