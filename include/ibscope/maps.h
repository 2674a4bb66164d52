/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layout of the map keys and values that the BPF program and user space share. */
#ifndef IBSCOPE_MAPS_H
#define IBSCOPE_MAPS_H

#include <ibscope/histogram.h>
#include <ibscope/op.h>
#include <ibscope/outcome.h>

/*
 * A series is one (group, kind of op, source). A group is one combination of the --by labels except
 * op and source: a cgroup by default. Each group owns a slot, an array of 64-bit words in the map
 * `series`, with a copy per shard; a CPU adds to its own shard with atomics.
 * In a slot, each pair (op, source) has either
 *   IBS_PLAIN_WORDS: samples, estimated ops
 *   IBS_HIST_WORDS: samples without a valid latency, estimated ops, sum of latencies, miss cycles,
 *		     more counts of loads that missed (enum ibs_miss_word), one word per bucket
 * src/core/counts/layout.c decides which, and at which word. Estimated ops are the sum of the samples'
 * periods: the ops (or cycles) that the samples represent. Miss cycles are the sum of latency times
 * period. Both are 0 if the period does not vary.
 */
#define IBS_PAIR_SAMPLES 0
#define IBS_PAIR_OPS	 1
#define IBS_PLAIN_WORDS	 2
#define IBS_HIST_NO_LAT	 IBS_PAIR_SAMPLES
#define IBS_HIST_SUM	 2
#define IBS_HIST_CYCLES	 3
#define IBS_HIST_MISS	 4
/* Only if the metric is a miss latency; each counts the samples with a valid field. */
enum ibs_miss_word {
	IBS_MISS_OPEN_N,  /* samples with OpDcMissOpenMemReqs */
	IBS_MISS_OPEN,	  /* sum of OpDcMissOpenMemReqs */
	IBS_MISS_STATE_N, /* samples with CacheHitSt */
	/* miss cycles (latencies if the period does not vary) of lines that were modified */
	IBS_MISS_HITM,
	IBS_MISS_WORDS
};
#define IBS_HIST_BUCKET (IBS_HIST_MISS + IBS_MISS_WORDS)
#define IBS_HIST_WORDS	(IBS_HIST_BUCKET + IBS_LAT_BUCKETS)
/* How far a histogram can reach for the verifier: every slot has that room after each pair. */
#define IBS_HIST_BUCKET_MASK 127
#define IBS_HIST_REACH	     (IBS_HIST_BUCKET + IBS_HIST_BUCKET_MASK + 1)
_Static_assert(IBS_LAT_BUCKETS <= IBS_HIST_BUCKET_MASK + 1, "mask cuts buckets");

#define IBS_LAYOUT_HIST 0x8000 /* the pair has a histogram */
#define IBS_LAYOUT_FEED 0x4000 /* its loads feed hot lines; only in ibs_config.layout */
/* With IBS_WEIGH_STRATA, both strata sample the pair; only in ibs_config.layout. */
#define IBS_LAYOUT_REACH	0x2000
#define IBS_LAYOUT_WORD		0x1fff /* its first word */
#define IBS_LAYOUT_ENTRIES	256
#define IBS_LAYOUT_IDX(op, src) ((src) << 3 | (op))
/* Maxima over both events: kinds of op or translations; sources or results of fetches. */
#define IBS_LAYOUT_OPS	8
#define IBS_LAYOUT_SRCS (IBS_LAYOUT_ENTRIES / IBS_LAYOUT_OPS)

/*
 * Layout entries of ibs_fetch samples, indexed by IBS_FETCH_CTL from bit IBS_FETCH_CTL_STATUS on:
 * one step instead of forty. IBS_LAYOUT_HIST is set only if the latency is valid.
 */
#define IBS_FETCH_LAYOUT_ENTRIES (1 << 12)

/*
 * A word below this is not a place but the enum ibs_outcome of the pair's samples. It is the same for
 * all builds that resume each other's counters: new outcomes come after the last one.
 */
#define IBS_LAYOUT_FIRST IBS_OUTCOME_LOST_RING_FULL
_Static_assert((int)IBS_LAYOUT_FIRST == 22, "slots would have another layout");

/* The first words of a slot, which count all its samples with a valid linear address. */
enum ibs_tlb_word {
	IBS_TLB_L2_HIT,	 /* missed the L1 data TLB, hit the L2 */
	IBS_TLB_L2_MISS, /* missed both: a page walk */
	IBS_TLB_L2_HIT_OPS,
	IBS_TLB_L2_MISS_OPS,
	IBS_TLB_REFILL_N,   /* of both, samples with a valid TlbRefillLat */
	IBS_TLB_REFILL_SUM, /* sum of TlbRefillLat, in cycles */
	IBS_TLB_WORDS
};
_Static_assert((int)IBS_TLB_WORDS <= (int)IBS_LAYOUT_FIRST, "words of pairs begin there");

/*
 * Exposed cycles (exposed.h) have words of a slot that no pair uses, so that counters of older builds, which have 0 there,
 * keep their layout: loads of which they are unknown, and one word for each pair with a histogram, counted from the last
 * pair: in the room behind it, then behind the words of TLB misses. With IBS_METRIC_DC_MISS_LAT alone, while
 * ibs_control.exposed is IBS_EXPOSED_ON.
 */
#define IBS_EXPOSED_UNKNOWN ((int)IBS_TLB_WORDS)
#define IBS_EXPOSED_FRONT   (IBS_EXPOSED_UNKNOWN + 1)
#define IBS_EXPOSED_TAIL    (IBS_HIST_REACH - IBS_HIST_WORDS)
#define IBS_EXPOSED_PAIRS   (IBS_EXPOSED_TAIL + (int)IBS_LAYOUT_FIRST - IBS_EXPOSED_FRONT)

/* The word of the pair whose first word is @word; 0: it has none. */
static __always_inline __u32 ibs_exposed_word(__u32 slot_words, __u32 word)
{
	__u32 pair = (slot_words - IBS_HIST_REACH - word) / IBS_HIST_WORDS;

	if (pair < IBS_EXPOSED_TAIL)
		return slot_words - IBS_EXPOSED_TAIL + pair;
	return pair < IBS_EXPOSED_PAIRS ? IBS_EXPOSED_FRONT + pair - IBS_EXPOSED_TAIL : 0;
}

/* Slot 0 counts groups that find no slot of their own. */
#define IBS_SLOT_OTHER 0

/* Key of a group; ibs_config.by decides which members are set, the others are 0. */
struct ibs_group_key {
	__u64 cgroup_id;
	__u32 tgid;
	__u32 tid;
	__u16 cpu;
	__u16 node;
	__u16 complex; /* core complex: cores that share an L3 */
	__u8 mode;     /* enum ibs_mode */
	__u8 mem_node; /* NUMA node of the physical address, + 1; 0: unknown */
	union {
		char comm[16];
		struct {
			/* with IBS_BY_SLAB: ibs_slab.id, or one of enum ibs_key_slab */
			__u64 slab;
			__u64 zero; /* keys are compared as bytes */
		};
	};
};
_Static_assert(sizeof(struct ibs_group_key) == 40, "ibs_group_key has implicit padding");

/* Values of ibs_group_key.slab that are not the id of a slab cache. */
enum ibs_key_slab {
	IBS_KEY_SLAB_NONE,    /* kernel memory outside of slab caches */
	IBS_KEY_SLAB_USER,    /* an address of user space: not looked up */
	IBS_KEY_SLAB_UNKNOWN, /* no valid address */
};

enum ibs_slot_use {
	IBS_SLOT_FREE,
	IBS_SLOT_USED,
	IBS_SLOT_LEAVING, /* user space is about to move its counts: nothing new is counted here */
	IBS_SLOT_ENDED,	  /* only user space adds: counts of groups that ended or were displaced */
};

/* On allocation, `key` is written before `used`. */
struct ibs_slot_owner {
	struct ibs_group_key key;
	__u64 used; /* enum ibs_slot_use */
};

/*
 * A CPU looks at ibs_control.lease_ns once in this many samples; a power of two. The counter that
 * every sample increments anyway tells when.
 */
#define IBS_LEASE_EVERY 256

/* What a selection says about a cgroup that it names. */
enum ibs_cgroup_choice {
	IBS_CGROUP_OUT, /* excluded, as are its descendants unless selected again */
	IBS_CGROUP_IN,
	IBS_CGROUP_AS_ABOVE, /* nothing: only the filter names it */
};

/* A cgroup that --cgroup, --container or --filter names. */
struct ibs_selected_cgroup {
	__u16 min_lat; /* cycles; 0: ibs_cpu_state.lat rules */
	__u8 selected; /* enum ibs_cgroup_choice */
	/* bit k: predicate k of the filter holds for this cgroup and its descendants */
	__u8 filter;
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
		/* excludes IBS_BY_COMM: the key has room for one of them; not for ibs_fetch */
	1 << 9,
};

/*
 * One byte for each possible pid: a test costs the same however many pids are selected. Selected
 * and excluded pids have a bit each, and ibs_cpu_state.live chooses which bit to test: switching
 * from one to the other is a single store per CPU. Threads have only the first bit.
 */
#define IBS_PID_IN    1
#define IBS_PID_OUT   2
#define IBS_PID_BLOCK 4096
#define IBS_PID_MAX   (1 << 22) /* Linux include/linux/threads.h, PID_MAX_LIMIT */

/* State of a cgroup, created by its first sample or by the loader. */
struct ibs_cgroup {
	__u32 slot;    /* IBS_SLOT_OTHER if none was free; used only with --by cgroup alone */
	__u32 gen;     /* IBS_LIVE_GEN of the selection that the members below belong to */
	__u16 min_lat; /* cycles; 0: ibs_cpu_state.lat rules */
	__u8 selected;
	__u8 filter; /* bits of ibs_filter_sample.cgroups */
	__u8 pad[4];
};
_Static_assert(sizeof(struct ibs_cgroup) == 16, "ibs_cgroup has implicit padding");

/* A CPU's cache of recent cgroups, so that most samples need no hash lookup. */
#define IBS_CGROUP_CACHE 8
struct ibs_cgroup_cached {
	__u64 key;   /* task_cgroup_key() */
	__u32 live;  /* if it differs from ibs_cpu_state.live, the entry is stale or empty */
	__u32 index; /* slot index in `series`, including the CPU's shard, or IBS_INDEX_LEFT_OUT */
	__u16 min_lat; /* as in struct ibs_cgroup */
	__u8 filter;
	__u8 pad[5];
};
_Static_assert(sizeof(struct ibs_cgroup_cached) == 24, "ibs_cgroup_cached has implicit padding");
#define IBS_INDEX_LEFT_OUT (~0U) /* the selection leaves the cgroup out */

/*
 * A CPU's ring of records. Each CPU has its own, so that NMIs never contend. A BPF ring buffer
 * would do the same at twice the instructions, and two calls.
 */
struct ibs_ring {
	/* the loader sets these */
	__u32 cpu;
	__u32 first, slots; /* in the array of records; slots 0: no ring */

	__u32 next;    /* slot of the next record */
	__u32 written; /* records so far, modulo 2^32 */
	__u32 taken;   /* records taken, modulo 2^32; only the reader writes it */

	/* if records are copies of counted samples */
	__u32 copies;  /* the reader wants copies */
	__u32 dropped; /* copies that found no room, modulo 2^32 */

	/* cgroup of the last record: task_cgroup_key() + 1, 0: no record yet; and its id */
	__u64 cgroup_key, cgroup_id;

	__u64 forwarded; /* IBS_OUTCOME_FORWARDED is counted here; its place in `outcome` stays 0 */
};

/* Size of the ring buffer that wakes the reader: a page is the minimum. */
#define IBS_BELL_BYTES 4096

/*
 * Layout of ibs_cpu_state.live: the generation of the selection, which changes with every change
 * and is never 0; whether ibs_cpu_state.share applies; and the test of a process's byte: bits below
 * 1 << IBS_PID_SHIFT are a mask, the bits above are the masked value of an excluded process.
 */
#define IBS_LIVE_GEN	 0xfffffe00
#define IBS_LIVE_STEP	 0x200 /* from one generation to the next */
#define IBS_LIVE_SHARED	 0x100
#define IBS_PID_SHIFT	 4
#define IBS_PID_TEST_IN	 IBS_PID_IN
#define IBS_PID_TEST_OUT (IBS_PID_OUT << IBS_PID_SHIFT | IBS_PID_OUT)

/*
 * A CPU's counts, which anyone may read, and its private state. Only this CPU's program writes it,
 * and never nests; exceptions are noted here and in struct ibs_ring. A sample pays for each cache
 * line and page that it touches: the first line has what most samples need, a page all of it.
 */
struct ibs_cpu_state {
	__u64 seen;
	/* cgroup of the last sample, as in struct ibs_cgroup_cached */
	__u64 key;
	__u32 key_live;
	__u32 index;
	/* User space stores these two while programs run: IBS_LIVE_* and IBS_PID_TEST_*, */
	__u32 live;
	/*
	 * and the latency range in cycles: minimum of cgroups without their own; above
	 * IBS_LAT_MAX_SHIFT the maximum, 0: no limit. In one word, so that a change is atomic.
	 */
	__u32 lat;
	__u64 outcome[IBS_OUTCOME_ROOM];

	/* cgroup of the last sample, with `index` */
	__u16 min_lat;
	__u8 filter;
	__u8 lapsed; /* ibs_control.lease_ns has passed; user space clears it */
	/* the loader sets this, `node` and `complex` before the first sample */
	__u16 shard;
	/*
	 * The factor for the ops of a sample on this CPU, in units of 1 / IBS_SHARE_ONE, while others
	 * use the PMU, too. It applies with IBS_LIVE_SHARED, if ops are counted; user space changes it
	 */
	__u16 share;
	__u16 node, complex;
	__u32 lines; /* index of the hot-line table in use; user space changes it */

	struct ibs_ring ring __attribute__((aligned(64)));
	/*
	 * Of the event that samples here, for the next collector (struct ibs_control): the id of its bpf_link, 0:
	 * none; and what the event had counted of a period when its last one began
	 */
	__u32 link;
	__u32 link_rest;
	struct ibs_cgroup_cached cache[IBS_CGROUP_CACHE] __attribute__((aligned(64)));
	/* copy of ibs_config.layout, set by the loader */
	__u16 layout[IBS_LAYOUT_ENTRIES] __attribute__((aligned(64)));
} __attribute__((aligned(1024)));
_Static_assert(sizeof(struct ibs_cpu_state) == 1024,
	       "index must be a shift, and entries must not cross pages");
_Static_assert(__builtin_offsetof(struct ibs_cpu_state, outcome[IBS_OUTCOME_FIRST_LINE]) == 64,
	       "the first cache line must have the commonest outcomes");
_Static_assert(IBS_OUTCOME_N <= IBS_OUTCOME_ROOM &&
		       __builtin_offsetof(struct ibs_cpu_state, ring) == 256,
	       "no room for an outcome");
_Static_assert(sizeof(struct ibs_ring) <= 64, "a ring must fit one cache line");

/*
 * Where the raw record and its data were in a CPU's last sample, relative to the program's context;
 * 0: unknown. Not in struct ibs_cpu_state, which anyone may read: `ctx` is a kernel address.
 */
struct ibs_raw_place {
	__u64 ctx;
	__u64 raw_delta, data_delta;
} __attribute__((aligned(64)));

/* A CPU checks once per this many records whether to wake the reader; a power of two. */
#define IBS_RING_CHECK 32

/*
 * Tests of the task, made before any register is read: bits of one constant, since the NMI pays two
 * instructions per constant, used or not.
 */
enum ibs_task_select {
	IBS_TASK_CGROUP = 1 << 0,
	IBS_TASK_CGROUP_V1 = 1 << 1, /* of a v1 hierarchy; with IBS_TASK_CGROUP */
	IBS_TASK_CGROUPS = IBS_TASK_CGROUP | IBS_TASK_CGROUP_V1,
	/* above the cgroup bits: a comparison with a constant is free, a mask is not */
	IBS_TASK_TGID = 1 << 2,
	IBS_TASK_TID = 1 << 3,
	IBS_TASK_COMM = 1 << 4,
};

#define IBS_LAT_MAX_SHIFT 16 /* of ibs_cpu_state.lat */

#define IBS_SHARE_SHIFT 10
#define IBS_SHARE_ONE	(1 << IBS_SHARE_SHIFT)
#define IBS_SHARE_MAX	0xffff

#define IBS_COMMS_MAX 8 /* names of threads that a selection can hold */

/* What a collector with --strata has done in one stratum; only user space writes it. */
struct ibs_stratum {
	__u64 time_ns, slices;
	__u64 seen, outcome[IBS_OUTCOME_ROOM]; /* its ledger, up to the end of the last slice */
	__u64 tags;			       /* tagged ops that retired */
	__u64 period;			       /* the last one */
};

/* The strata of a collector: slices of time without and with a hardware filter (src/core/strata). */
#define IBS_STRATA 2
struct ibs_strata {
	__u64 used; /* 0: never sampled in strata; then what follows is 0 */
	__u64 now;  /* enum stratum that samples, or sampled last */
	__u64 on;   /* a collector samples in strata, or was killed while it did */
	struct ibs_stratum of[IBS_STRATA];
	__u64 outside[IBS_OUTCOME_ROOM]; /* outcomes of samples taken without strata */
	/*
	 * For the next collector: ops that samples so far should have represented in addition, of those that only the full
	 * stratum takes, and of those that both take
	 */
	__s64 owed[IBS_STRATA];
};

/* Shared words that change while programs run: use READ_ONCE() and WRITE_ONCE(). */
struct ibs_control {
	__u32 next_slot;     /* hint: where to search for a free slot */
	__u32 fold;	     /* odd while user space moves counts from slot to slot: readers wait */
	__u8 cgroup_default; /* enum ibs_cgroup_choice of cgroups without a named ancestor */
	/* ops per sample if the hardware filters samples; of strata, of a pair without IBS_LAYOUT_REACH */
	__u64 tag_ops;
	__u64 lease_ns; /* CLOCK_MONOTONIC at which sampling ends; 0: never */
	/*
	 * For the next collector: samples as the PMU counted them, less the whole periods that events count above
	 * ibs_cpu_state.link_rest
	 */
	__u64 pmu_samples;
	__u64 pmu_total;  /* with these periods, if marked IBS_PMU_ENDED */
	__u32 pmu_marked; /* enum ibs_pmu_marked */
	/* with IBS_WEIGH_STRATA: ops per sample of a pair with IBS_LAYOUT_REACH */
	__u64 reach_ops;
	struct ibs_strata strata;
	__u64 exposed; /* enum ibs_exposed_state; 0 in counters of older builds */
	/* ibs_meta.starts when that was written: if more have started, one does not know `exposed` */
	__u64 exposed_starts;
};
_Static_assert(sizeof(struct ibs_control) <= 1024, "the CPUs' states would move");

/*
 * While programs do not count exposed cycles, IBS_EXPOSED_UNKNOWN lacks, modulo 2^64, the latencies that the slot had before.
 * When they count again all its latencies are added, so that those between are unknown, and no others.
 */
enum ibs_exposed_state {
	IBS_EXPOSED_OFF,
	IBS_EXPOSED_ON,
	IBS_EXPOSED_CHANGING, /* some slots have changed, others have not */
};

enum ibs_pmu_marked {
	IBS_PMU_UNKNOWN,
	IBS_PMU_COUNTS, /* events of the links count on */
	IBS_PMU_ENDED,	/* they have ended, or are just being ended */
};

/* Value of the map `state`, pinned for readers. */
struct ibs_state {
	struct ibs_control control;
	struct ibs_cpu_state cpu[]; /* one per possible CPU, rounded up to a power of two */
};

#endif
