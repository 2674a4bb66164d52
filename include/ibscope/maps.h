/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the BPF program and user space share in memory: layouts of map keys and values. */
#ifndef IBSCOPE_MAPS_H
#define IBSCOPE_MAPS_H

#include <ibscope/histogram.h>
#include <ibscope/op.h>
#include <ibscope/outcome.h>

/*
 * A series is one (group, kind of op, source). A group is one combination of the labels of --by except op
 * and source: a cgroup by default. Each group owns a slot, an array of 64-bit words in the mmap-able map
 * `series`. There is one copy of a slot per shard; a CPU adds to its own shard with atomics.
 * In a slot, each pair (op, source) has either
 *   IBS_PLAIN_WORDS: samples, estimated ops
 *   IBS_HIST_WORDS: samples without a valid latency, estimated ops, sum of latencies, miss cycles,
 *		     what loads that missed tell besides (enum ibs_miss_word), one word a bucket
 * src/counts/layout.c decides which, and at which word. Estimated ops are the sum of the periods that
 * the samples ended: the ops (or cycles) that they stand for. Miss cycles are the sum of the latencies,
 * each times the period of its sample. Both are 0 where the period does not vary.
 */
#define IBS_PAIR_SAMPLES 0
#define IBS_PAIR_OPS	 1
#define IBS_PLAIN_WORDS	 2
#define IBS_HIST_NO_LAT	 IBS_PAIR_SAMPLES
#define IBS_HIST_SUM	 2
#define IBS_HIST_CYCLES	 3
#define IBS_HIST_MISS	 4
/* Only where the latency is that of misses; each of the samples for which its field is valid. */
enum ibs_miss_word {
	IBS_MISS_OPEN_N,  /* with OpDcMissOpenMemReqs, */
	IBS_MISS_OPEN,	  /* and its sum */
	IBS_MISS_STATE_N, /* with CacheHitSt, */
	/* and the miss cycles (latencies where periods do not vary) of lines that were modified */
	IBS_MISS_HITM,
	IBS_MISS_WORDS
};
#define IBS_HIST_BUCKET (IBS_HIST_MISS + IBS_MISS_WORDS)
#define IBS_HIST_WORDS	(IBS_HIST_BUCKET + IBS_LAT_BUCKETS)
/* What the verifier believes a histogram to reach: every slot has room for that behind each pair. */
#define IBS_HIST_BUCKET_MASK 127
#define IBS_HIST_REACH	     (IBS_HIST_BUCKET + IBS_HIST_BUCKET_MASK + 1)
_Static_assert(IBS_LAT_BUCKETS <= IBS_HIST_BUCKET_MASK + 1, "mask cuts buckets");

#define IBS_LAYOUT_HIST		0x8000 /* the pair has a histogram */
#define IBS_LAYOUT_FEED		0x4000 /* its loads are fed to hot lines; in ibs_config.layout alone */
#define IBS_LAYOUT_WORD		0x3fff /* its first word */
#define IBS_LAYOUT_ENTRIES	256
#define IBS_LAYOUT_IDX(op, src) ((src) << 3 | (op))
/* The most of each that either event has: kinds of op or translations; sources or outcomes of fetches. */
#define IBS_LAYOUT_OPS	8
#define IBS_LAYOUT_SRCS (IBS_LAYOUT_ENTRIES / IBS_LAYOUT_OPS)

/*
 * Where samples of ibs_fetch are counted, by IBS_FETCH_CTL from IBS_FETCH_CTL_STATUS on, which takes
 * one step instead of forty: entries of the layout, with IBS_LAYOUT_HIST only where the latency is valid.
 */
#define IBS_FETCH_LAYOUT_ENTRIES (1 << 12)

/* A word below it is no place but the enum ibs_outcome that samples of the pair come to. */
#define IBS_LAYOUT_FIRST IBS_OUTCOME_N

/* What those first words of a slot count instead, of all its samples with a valid linear address. */
enum ibs_tlb_word {
	IBS_TLB_L2_HIT,	 /* missed the L1 data TLB, hit the L2 */
	IBS_TLB_L2_MISS, /* missed both: a page walk */
	IBS_TLB_L2_HIT_OPS,
	IBS_TLB_L2_MISS_OPS,
	IBS_TLB_REFILL_N,   /* of them, those whose TlbRefillLat is valid, */
	IBS_TLB_REFILL_SUM, /* and its sum, in cycles */
	IBS_TLB_WORDS
};
_Static_assert((int)IBS_TLB_WORDS <= (int)IBS_LAYOUT_FIRST, "words of pairs begin there");

/* Slot 0 takes what finds no slot of its own. */
#define IBS_SLOT_OTHER 0

/* Key of a group; which members are set is decided by cfg_by, the others are 0. */
struct ibs_group_key {
	__u64 cgroup_id;
	__u32 tgid;
	__u32 tid;
	__u16 cpu;
	__u16 node;
	__u16 complex; /* of cores that share an L3 */
	__u8 mode;     /* enum ibs_mode */
	__u8 mem_node; /* of the physical address, + 1; 0: not known */
	char comm[16]; /* with IBS_BY_SLAB it begins with what ibs_key_slab() returns */
};
_Static_assert(sizeof(struct ibs_group_key) == 40, "ibs_group_key has implicit padding");

/* The cache of kernel data, ibs_slab.id; or one of enum ibs_key_slab. */
static __always_inline __u64 ibs_key_slab(const struct ibs_group_key *key)
{
	__u64 slab;

	__builtin_memcpy(&slab, key->comm, sizeof(slab));
	return slab;
}

enum ibs_key_slab {
	IBS_KEY_SLAB_NONE,    /* memory of the kernel outside of slab caches */
	IBS_KEY_SLAB_USER,    /* an address of user space: not looked up */
	IBS_KEY_SLAB_UNKNOWN, /* no valid address */
};

enum ibs_slot_use {
	IBS_SLOT_FREE,
	IBS_SLOT_USED,
	IBS_SLOT_LEAVING, /* its counts are about to be added to another: nothing new is counted here */
	IBS_SLOT_ENDED, /* only what user space adds: of groups that ended or made way */
};

/* `key` is written before `used`, when a slot is given away. */
struct ibs_slot_owner {
	struct ibs_group_key key;
	__u64 used; /* enum ibs_slot_use */
};

/* What a selection says of a cgroup that it names. */
enum ibs_cgroup_choice {
	IBS_CGROUP_OUT, /* left out, with all below it that is not selected again */
	IBS_CGROUP_IN,
	IBS_CGROUP_AS_ABOVE, /* nothing: only a filter names it */
};

/* What --cgroup, --container and --filter say about a cgroup that they name. */
struct ibs_selected_cgroup {
	__u16 min_lat; /* cycles; 0: ibs_cpu_state.lat rules */
	__u8 selected; /* enum ibs_cgroup_choice */
	__u8 filter;   /* bit k: predicate k of the filter holds, here and below */
};

/* Members of a group key that --by asks for. */
enum ibs_by {
	IBS_BY_CGROUP = 1 << 0,
	IBS_BY_PID = 1 << 1,
	IBS_BY_COMM = 1 << 2,
	IBS_BY_CPU = 1 << 3,
	IBS_BY_TID = 1 << 4,
	IBS_BY_NODE = 1 << 5,
	IBS_BY_COMPLEX = 1 << 6,
	IBS_BY_MODE = 1 << 7,
	IBS_BY_MEM_NODE = 1 << 8,
	IBS_BY_SLAB =
		1 << 9, /* without IBS_BY_COMM, whose place in the key it takes; not of ibs_fetch */
};

/*
 * One byte for each pid there can be: a test costs the same for one pid as for all. Those that are
 * selected and those that are left out have a bit each, of which ibs_cpu_state.live says one: going
 * over from the one to the other is a single store a CPU. Of threads there is only the first.
 */
#define IBS_PID_IN    1
#define IBS_PID_OUT   2
#define IBS_PID_BLOCK 4096
#define IBS_PID_MAX   (1 << 22) /* Linux include/linux/threads.h, PID_MAX_LIMIT */

/* What is known of a cgroup, from its first sample (or the loader) on. */
struct ibs_cgroup {
	__u32 slot; /* IBS_SLOT_OTHER when none was free; used with --by cgroup alone */
	__u32 gen;  /* IBS_LIVE_GEN of the selection that the members below were worked out for */
	__u16 min_lat; /* cycles; 0: ibs_cpu_state.lat rules */
	__u8 selected;
	__u8 filter; /* bits of ibs_filter_sample.cgroups */
	__u8 pad[4];
};
_Static_assert(sizeof(struct ibs_cgroup) == 16, "ibs_cgroup has implicit padding");

/* What a CPU keeps of the cgroups it saw last, so that most samples need no hash look-up. */
#define IBS_CGROUP_CACHE 8
struct ibs_cgroup_cached {
	__u64 key;   /* what a program tells cgroups apart by: task_cgroup_key() */
	__u32 live;  /* if not ibs_cpu_state.live, the entry is void, or empty */
	__u32 index; /* of the slot in `series`, the CPU's shard included, or IBS_INDEX_LEFT_OUT */
	__u16 min_lat; /* as in struct ibs_cgroup */
	__u8 filter;
	__u8 pad[5];
};
_Static_assert(sizeof(struct ibs_cgroup_cached) == 24, "ibs_cgroup_cached has implicit padding");
#define IBS_INDEX_LEFT_OUT (~0U) /* the selection leaves the cgroup out */

/*
 * Where a CPU's records wait for the reader: a ring of its own, so that no NMI meets another one. A
 * BPF ring buffer would do the same at twice the instructions, and two calls.
 */
struct ibs_ring {
	/* the loader sets these */
	__u32 cpu;
	__u32 first, slots; /* in the array of records; no slots: no ring */

	__u32 next;    /* of the slots: where the next record goes */
	__u32 written; /* records so far, modulo 2^32 */
	__u32 taken;   /* the same of the reader, which alone writes it */

	/* where records are copies of samples that are counted */
	__u32 copies;  /* the reader wants some */
	__u32 dropped; /* copies that found no room, modulo 2^32 */

	/* of the last record's cgroup: task_cgroup_key() + 1, 0: no record yet; and its id */
	__u64 cgroup_key, cgroup_id;

	__u64 forwarded; /* counts IBS_OUTCOME_FORWARDED, whose place in `outcome` stays 0 */
};

/* The ring buffer that wakes the reader: a page is the least that there is. */
#define IBS_BELL_BYTES 4096

/*
 * Of ibs_cpu_state.live: the generation of the selection, another one whenever it changes, and never 0;
 * and what is asked of a process's byte: below 1 << IBS_PID_SHIFT a mask of bits, above what those have
 * under it that are left out.
 */
#define IBS_LIVE_GEN	 0xffffff00
#define IBS_LIVE_STEP	 0x100 /* from one generation to the next */
#define IBS_PID_SHIFT	 4
#define IBS_PID_TEST_IN	 IBS_PID_IN
#define IBS_PID_TEST_OUT (IBS_PID_OUT << IBS_PID_SHIFT | IBS_PID_OUT)

/*
 * What a CPU counts, for all who may read, and what it remembers, for itself. Only that CPU's program
 * writes it, which never nests, but for what is said here and in struct ibs_ring. A sample pays for each
 * cache line and page that it touches: what most samples need is in the first line, and in one page.
 */
struct ibs_cpu_state {
	__u64 seen;
	/* of the last sample's cgroup, as in struct ibs_cgroup_cached */
	__u64 key;
	__u32 key_live;
	__u32 index;
	/* User space stores these two while programs run. IBS_LIVE_GEN and IBS_PID_TEST_* */
	__u32 live;
	/*
	 * Cycles: the least, of cgroups that have none of their own; above IBS_LAT_MAX_SHIFT the most,
	 * 0: no limit. In one word, lest a sample is judged by half of an old range.
	 */
	__u32 lat;
	__u64 outcome[IBS_OUTCOME_N];

	/* of the last sample's cgroup, with `index` */
	__u16 min_lat;
	__u8 filter;
	__u8 pad;
	/* the loader sets these before the first sample */
	__u32 shard;
	__u16 node, complex;
	__u32 lines; /* index of the table of hot lines that is in use; user space changes it */

	struct ibs_ring ring __attribute__((aligned(64)));
	struct ibs_cgroup_cached cache[IBS_CGROUP_CACHE] __attribute__((aligned(64)));
	/* of struct ibs_config, set by the loader */
	__u16 layout[IBS_LAYOUT_ENTRIES] __attribute__((aligned(64)));
} __attribute__((aligned(1024)));
_Static_assert(sizeof(struct ibs_cpu_state) == 1024,
	       "index must be a shift, and pages hold whole ones");
_Static_assert(__builtin_offsetof(struct ibs_cpu_state, outcome[IBS_OUTCOME_FIRST_LINE]) == 64,
	       "the first cache line has the commonest outcomes");
_Static_assert(sizeof(struct ibs_ring) <= 64, "a ring is one cache line");

/*
 * Where the raw record and its bytes were in the last sample of a CPU, seen from the program's context; 0:
 * unknown. Not in struct ibs_cpu_state, which everybody may read: `ctx` is an address of the kernel.
 */
struct ibs_raw_place {
	__u64 ctx;
	__u64 raw_delta, data_delta;
} __attribute__((aligned(64)));

/* Each so many records a CPU looks whether the reader must be woken; a power of two. */
#define IBS_RING_CHECK 32

/*
 * What is asked of the task, before any register is read: bits of one constant, as the NMI pays two
 * instructions for each constant, whether anything hangs on it or not.
 */
enum ibs_task_select {
	IBS_TASK_CGROUP = 1 << 0,
	IBS_TASK_CGROUP_V1 = 1 << 1, /* of a v1 hierarchy; with IBS_TASK_CGROUP */
	IBS_TASK_CGROUPS = IBS_TASK_CGROUP | IBS_TASK_CGROUP_V1,
	/* above them: a comparison with a constant costs nothing, a mask does */
	IBS_TASK_TGID = 1 << 2,
	IBS_TASK_TID = 1 << 3,
	IBS_TASK_COMM = 1 << 4,
};

#define IBS_LAT_MAX_SHIFT 16 /* of ibs_cpu_state.lat */

#define IBS_COMMS_MAX 8 /* names of threads that a selection can hold */

/* Changed by user space while the program runs: shared words, for READ_ONCE() and WRITE_ONCE(). */
struct ibs_control {
	__u32 next_slot;     /* hint: where to look for a free slot */
	__u32 fold;	     /* odd while user space moves counts from slot to slot: readers wait */
	__u8 cgroup_default; /* what a cgroup without a named ancestor is */
	__u64 tag_ops;	     /* ops that a sample stands for, where hardware drops others */
};

/* The map that is pinned for readers. */
struct ibs_state {
	struct ibs_control control;
	struct ibs_cpu_state
		cpu[]; /* as many as the machine can have, rounded up to a power of two */
};

#endif
