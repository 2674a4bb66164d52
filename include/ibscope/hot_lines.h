/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache lines that each CPU accesses most, in fixed-size tables that only this CPU's program
 * writes, so that no kernel needs atomics. Readers sum the tables of all CPUs.
 *
 * Counts: a line's physical address selects a set with IBS_LINE_WAYS entries. If the line has no
 * entry, it takes over the entry with the least count n, with count n + 1 and error n
 * ("Space-Saving", Metwally et al. 2005, within a set). Thus the counts of a set add up to its
 * samples, a count is too high by at most its error, and a line without an entry has had at most
 * the least count of its set, a quarter of the set's samples.
 *
 * Details: the lines with the greatest counts have details, exact from when the line got them.
 */
#ifndef IBSCOPE_HOT_LINES_H
#define IBSCOPE_HOT_LINES_H

#include <ibscope/maps.h>
#include <ibscope/op.h>

#define IBS_LINE_SHIFT	  6  /* of an address */
#define IBS_LINE_HAND	  16 /* bits below the line in ibs_line_count.key */
#define IBS_LINE_WAYS	  4
#define IBS_LINE_SETS	  512 /* by default; a power of two */
#define IBS_LINE_SETS_MAX 16384
#define IBS_LINE_DETAILS  64 /* a power of two */
#define IBS_LINE_SLOTS	  8  /* of 8 bytes each */
#define IBS_LINE_LEAST	  4  /* samples that a line needs to get details */

/*
 * What answered a load, with respect to sharing. X(NAME, "name", "meaning"). A line in state O was
 * modified, too, and has been shared since.
 */
#define LINE_FROM_TABLE(X)                                                                     \
	X(UNKNOWN, "unknown", "not known")                                                     \
	X(OTHER, "other", "own caches, memory, or not a load")                                 \
	X(HITM_CCX, "hitm_ccx", "modified, in the same core complex; before Zen 4: same node") \
	X(HITM_NEAR, "hitm_near", "modified, in another complex of the node")                  \
	X(HITM_REMOTE, "hitm_remote", "modified, in another node")                             \
	X(HITM_SOCKET, "hitm_socket", "modified, in another socket (Zen 6)")                   \
	X(OWNED, "owned", "in state O in any cache")                                           \
	X(TRANSFERS, "transfers", "another complex or node, state not reported")

enum line_from {
#define LINE_FROM_ENUM(name, ...) LINE_FROM_##name,
	LINE_FROM_TABLE(LINE_FROM_ENUM)
#undef LINE_FROM_ENUM
		LINE_FROM_N
};

static __always_inline bool line_from_hitm(__u32 from)
{
	return from >= LINE_FROM_HITM_CCX && from <= LINE_FROM_HITM_SOCKET;
}

/* Kinds of access; a load may also store. */
enum { LINE_LOAD = 1, LINE_STORE = 2, LINE_PREFETCH = 4 };

#define IBS_SRC_CACHES                                                             \
	(1u << IBS_SRC_L3 | 1u << IBS_SRC_LOCAL_CACHE | 1u << IBS_SRC_NEAR_CACHE | \
	 1u << IBS_SRC_REMOTE_CACHE)

/* Only caches report sharing. @src tells near from remote; RmtSocket may be set for any load. */
static __always_inline __u32 ibs_line_from(struct ibs_cpu cpu, __u32 src, __u64 data2)
{
	if (src == IBS_SRC_UNKNOWN)
		return LINE_FROM_UNKNOWN;
	if (!(IBS_SRC_CACHES >> src & 1))
		return LINE_FROM_OTHER;
	if (!ibs_op_reports_state(cpu, data2)) /* a hit in the CPU's own L3 is not a transfer */
		return src == IBS_SRC_L3 ? LINE_FROM_OTHER : LINE_FROM_TRANSFERS;
	if (data2 & IBS_OP_DATA2_OWNED)
		return LINE_FROM_OWNED;
	if (src == IBS_SRC_L3 || !(cpu.caps & IBS_CAPS_ZEN4))
		return LINE_FROM_HITM_CCX;
	if (src == IBS_SRC_NEAR_CACHE)
		return LINE_FROM_HITM_NEAR;
	return cpu.caps & IBS_CAPS_STRMST_RMTSOCKET && data2 & IBS_OP_DATA2_RMT_SOCKET
		       ? LINE_FROM_HITM_SOCKET
		       : LINE_FROM_HITM_REMOTE;
}

/* `line` is a physical address >> IBS_LINE_SHIFT. */
struct ibs_line_count {
	/* line << IBS_LINE_HAND | 1 + index of its details (since reassigned?); 0: free */
	__u64 key;
	__u32 count, error;
};

struct ibs_line_user {
	__u64 ip, addr, cgroup_id;
	__u32 tgid, tid;
};

struct ibs_line_detail {
	__u64 line;   /* 0: free */
	__u32 rank;   /* lower bound of the line's samples */
	__u32 before; /* upper bound of its samples before it got these details */
	/* by slot of the first byte; `both`: loads that also store */
	__u32 loads[IBS_LINE_SLOTS], stores[IBS_LINE_SLOTS], both[IBS_LINE_SLOTS];
	__u32 hitm[IBS_LINE_SLOTS];
	__u32 readers[IBS_LINE_SLOTS], writers[IBS_LINE_SLOTS]; /* bits tid & 31 */
	__u32 from[LINE_FROM_N];				/* of accesses that load */
	/* sum of latencies; miss cycles: all, with `from` known, of modified lines */
	__u64 sum, cycles, known, hitm_cycles;
	struct ibs_line_user reader, writer;
	__u32 valid; /* samples with a latency */
	__u32 pad;
};
_Static_assert(sizeof(struct ibs_line_detail) == 344, "ibs_line_detail has implicit padding");

/* Counts since user space cleared the table. */
struct ibs_lines {
	__u64 fed;	  /* samples */
	__u64 no_address; /* of which without a physical address, counted nowhere else */
	__u64 replaced;	  /* lines that lost their entry */
	__u64 lost;	  /* details that were reassigned to another line */
	__u64 hand;	  /* next details to reassign */
	__u64 pad[3];
	struct ibs_line_detail detail[IBS_LINE_DETAILS];
	struct ibs_line_count count[]; /* sets * IBS_LINE_WAYS */
};

/* Size of a table. Each CPU has two adjacent ones; ibs_cpu_state.lines is the one in use. */
#define IBS_LINES_BYTES(sets) \
	(sizeof(struct ibs_lines) + (sets)*IBS_LINE_WAYS * sizeof(struct ibs_line_count))

/* Bits of ibs_config.line_feed above the bits of enum ibs_src. */
#define IBS_LINE_FEED_WALKS  IBS_BIT(30) /* loads that missed the L2 dTLB */
#define IBS_LINE_FEED_STORES IBS_BIT(31) /* always */

#define IBS_SRC_MEMORY                                                         \
	(1u << IBS_SRC_DRAM | 1u << IBS_SRC_REMOTE_DRAM | 1u << IBS_SRC_PMEM | \
	 1u << IBS_SRC_REMOTE_PMEM | 1u << IBS_SRC_CXL | 1u << IBS_SRC_REMOTE_CXL)

/* Values of --feed; sharing needs the first two. X(NAME, "name", bits, "several samples"). */
#define LINE_FEED_TABLE(X)                                         \
	X(STORES, "stores", (__u32)IBS_LINE_FEED_STORES, "stores") \
	X(CACHES, "caches", IBS_SRC_CACHES, "cache hits")          \
	X(DRAM, "dram", IBS_SRC_MEMORY, "memory loads")            \
	X(WALKS, "walks", (__u32)IBS_LINE_FEED_WALKS, "page walks")
#define IBS_LINE_FEED_SHARING ((__u32)IBS_LINE_FEED_STORES | IBS_SRC_CACHES) /* by default */

/*
 * Sharing shows in stores, and in loads that other caches answer. Prefetches are left out: nothing
 * waits for them.
 * @place: layout entry, with IBS_LAYOUT_FEED if loads of the pair are fed
 */
static __always_inline bool ibs_line_feeds(__u32 feed, __u32 caps, __u64 data3, __u32 place)
{
	if ((data3 & IBS_OP_DATA3_ST_OP) || (place & IBS_LAYOUT_FEED))
		return true;
	return (feed & IBS_LINE_FEED_WALKS) && (data3 & IBS_OP_DATA3_L2TLB_MISS) &&
	       (data3 & IBS_OP_DATA3_LD_OP) && !(data3 & IBS_OP_DATA3_SW_PF) &&
	       ibs_op_tlb_valid(caps, data3);
}

static __always_inline __u64 ibs_line_of(const struct ibs_line_count *c)
{
	return c->key >> IBS_LINE_HAND;
}

/* Index of the first entry of the line's set. */
static __always_inline __u64 ibs_line_set(__u64 key, __u32 sets)
{
	return ((key * 0x9e3779b97f4a7c15ull) >> 40 & (sets - 1)) * IBS_LINE_WAYS;
}

/*
 * Count a line in its set.
 * @key: the line, with 0 below it
 * @hand: set to the bits below the line in the entry
 * @replaced: incremented if another line lost its entry
 *
 * Return: the line's entry.
 */
static __always_inline struct ibs_line_count *ibs_line_count(struct ibs_line_count *set, __u64 key,
							     __u64 *hand, __u64 *replaced)
{
	struct ibs_line_count *least = set;
	__u32 n = set->count;

	IBS_UNROLL
	for (int w = 0; w < IBS_LINE_WAYS; w++) {
		*hand = set[w].key ^ key;
		if (*hand < IBS_BIT(IBS_LINE_HAND)) {
			set[w].count++;
			return &set[w];
		}
	}
	IBS_UNROLL
	for (int w = 1; w < IBS_LINE_WAYS; w++) {
		const __u32 other = set[w].count;

		if (other < n) {
			n = other;
			least = &set[w];
		}
	}
	*replaced += least->key != 0;
	least->key = key;
	least->error = n;
	least->count = n + 1;
	*hand = 0;
	return least;
}

#endif
