/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A running collection: the BPF object, its maps and the events that drive it. The only module that
 * knows the skeleton.
 */
#ifndef IBSCOPE_SAMPLER_H
#define IBSCOPE_SAMPLER_H

#include "base/err.h"
#include "machine/event.h"
#include "machine/memory.h"
#include "rings.h"
#include "select/selection.h"
#include "counts/snapshot.h"

#include <ibscope/hot_lines.h>
#include <ibscope/predicate.h>

#include <linux/perf_event.h>

enum sampler_source {
	SAMPLER_IBS,  /* the kernel's IBS driver */
	SAMPLER_SIM,  /* software clock, modelled registers */
	SAMPLER_TWIN, /* no event: samples are handed over by tests */
	SAMPLER_LOAD, /* no event: the program for IBS, loaded only to be looked at */
};

enum sampler_prog {
	SAMPLER_PROG_FULL,
	SAMPLER_PROG_EMPTY, /* for measuring: the floor of any program */
	SAMPLER_PROG_NONE,  /* for measuring: the event alone */
};

/* What becomes of a sample that is selected. */
enum sampler_output {
	SAMPLER_SERIES,	     /* it is added up, see sampler_snapshot() */
	SAMPLER_RECORDS,     /* it is forwarded as a struct ibs_record, see sampler_rings() */
	SAMPLER_RECORDS_RAW, /* the same as a struct ibs_record_raw */
};

struct pins;

/* What core counters count, so that estimates are known although hardware drops tagged ops. */
enum sampler_tag {
	SAMPLER_TAG_OPS, /* retired ops, or cycles: what the event counts; of fetches the tagged ones */
	SAMPLER_TAG_RETIRED, /* tagged ops that retired, or tagged fetches that were not discarded */
	SAMPLER_TAG_VALID,   /* those of them that interrupted; may be missing */
	SAMPLER_TAGS
};

struct sampler_opts {
	enum sampler_source source;
	enum sampler_prog prog;
	enum sampler_output output; /* with records `by` and `max_groups` have no meaning */
	bool copies; /* with SAMPLER_SERIES: also struct ibs_record, see sampler_copy() */
	/*
	 * Of the ring of each CPU, rounded up to a power of two; 0: what the bound of memory allows,
	 * up to SAMPLER_RING_MAX_DEFAULT
	 */
	__u32 ring_bytes;
	/* Records have call chains. The kernel unwinds at each sample, selected or not. */
	bool stacks;
	/* Records have the slab cache of kernel data; needs kernel_finds_slabs(). */
	bool slabs;
	struct perf_event_attr attr; /* of the event; for the sim of the software clock */
	const char *event;	     /* for messages and output */
	enum event_filter filter;    /* of the event: what is not known because of it */
	struct perf_event_attr tags[SAMPLER_TAGS]; /* counters beside the event; zero: none */
	bool tags_are_lost; /* the latter two count the tagged fetches that did not, instead */
	int cgroup; /* directory of the only cgroup while whose tasks run to sample; 0: always */
	const unsigned int *cpus; /* one event on each that is online */
	size_t n_cpus;
	struct ibs_cpu ibs;	/* caps and quirks of the machine (or of the model) */
	enum ibs_metric metric; /* of the event: those of ibs_fetch have programs of their own */
	__u32 by;		/* enum ibs_by bits; 0: one group */
	const char *cgroup_controller; /* whose v1 hierarchy cgroups are of; NULL or "": v2 */
	struct selection sel;
	__u32 max_groups;	/* 0: MAX_GROUPS */
	__u64 max_memory_bytes; /* 0: SAMPLER_MAX_MEMORY */
	__u64 sim_seed;
	/*
	 * Of pins.h: counters are pinned there, or gone on with if they fit; NULL: they end with
	 * the sampler. sampler_close() leaves the pins, but nothing samples any more.
	 */
	struct pins *pins;
	bool count_ops; /* the period may change: add up the ops that each sample stands for */
	bool tlb;	/* count TLB misses of groups */
	/* Hot lines are kept (ibscope/hot_lines.h): sets of each CPU's tables, a power of two; 0: not */
	__u32 line_sets;
	__u32 line_feed; /* 1 << enum ibs_src of the loads that are fed, IBS_LINE_FEED_WALKS */
	const struct memory_range *memory; /* sorted, for IBS_BY_MEM_NODE; NULL: this machine's */
	size_t n_memory;
	bool probe_read; /* do not use direct reads even where the kernel has them */
};

#define SAMPLER_MAX_SELECTED \
	4096 /* cgroups that a live selection can name, if not twice the first */
#define SAMPLER_MAX_MEMORY	 (64ULL << 20)
#define SAMPLER_STACKS		 16384 /* different call chains that a sampler can tell */
#define SAMPLER_RING_MIN	 (16U << 10)
#define SAMPLER_RING_MAX_DEFAULT (1U << 20)
#define SAMPLER_RING_MAX	 (64U << 20)

/* Bytes of kernel memory by map, from the options and the cache topology alone. */
struct sampler_memory {
	__u32 shards, complexes; /* fewer shards: neighbouring complexes write the same counters */
	__u32 ring_bytes;	 /* of one ring at the most */
	__u32 ring_slots;	 /* records that it holds */
	__u64 series, cgroups, groups, slots, pids, rings, stacks, cpu_states, lines, total;
};

/**
 * sampler_memory() - what a sampler with these options will take
 * @complexes: groups of CPUs that share an L3; there are at most as many shards
 *
 * Counters are sharded by cache complex as far as @opts->max_memory_bytes allows. Rings of a size
 * that was asked for count against a bound that was asked for, too, but not against the default one;
 * tables of hot lines have a size of their own.
 *
 * Return: 0, or -ENOSPC with @err if not even one shard fits, or not the smallest rings.
 */
int sampler_memory(const struct sampler_opts *opts, unsigned int complexes,
		   struct sampler_memory *out, struct err *err);

struct sampler;

/**
 * sampler_open() - load, open and attach, but do not start
 *
 * Return: 0, or a negative errno with @err saying what was refused, why and what to do; nothing is
 * left behind then. SAMPLER_TWIN needs v5.17, else -EOPNOTSUPP.
 */
int sampler_open(const struct sampler_opts *opts, struct sampler **out, struct err *err);

/*
 * What tests hand samples to, see tests/bpf/twin_run.h: the program ibs_op_twin, and memory shared with it.
 * -EINVAL and NULL if the sampler is not of SAMPLER_TWIN.
 */
struct ibs_twin_area;
int sampler_twin_fd(const struct sampler *s);
struct ibs_twin_area *sampler_twin_area(const struct sampler *s);

/* Also after sampler_stop(): counts go on. Return: 0 or a negative errno with @err; sampler_tick()
 * tries those CPUs again that cannot be sampled. */
int sampler_start(struct sampler *s, struct err *err);

/**
 * sampler_set_processes(), _set_cgroups(), _set_latency() - change the selection while sampling
 *
 * For samplers opened with that bit of sel.live. No sample is lost, and each is judged by the old
 * selection or by the new one: that of cgroups changes for all CPUs at one moment, that of
 * processes one by one, but for going over to or from all but some.
 *
 * Return: 0, or a negative errno with @err: -EINVAL if @s was not opened for it; -E2BIG for more
 * cgroups than SAMPLER_MAX_SELECTED and twice as many as it was opened with.
 */
int sampler_set_processes(struct sampler *s, const struct selected_pids *processes,
			  struct err *err);
int sampler_set_cgroups(struct sampler *s, const struct selected_cgroup *cgroups, size_t n,
			struct err *err);
int sampler_set_latency(struct sampler *s, __u32 min_lat, __u32 max_lat, struct err *err);

/**
 * sampler_set_cgroup() - sample only while tasks of one cgroup run
 * @cgroup: as in struct sampler_opts
 *
 * Events are opened again, which takes some milliseconds; what happens meanwhile is not sampled.
 *
 * Return: 0, or a negative errno with @err; it then samples whatever runs.
 */
int sampler_set_cgroup(struct sampler *s, int cgroup, struct err *err);

/* False also if the kernel refused that when sampling was opened. */
bool sampler_has_cgroup(const struct sampler *s);

/**
 * sampler_run_time() - what the program's runs took, as far as the kernel took the time
 *
 * It does while somebody holds bpf_enable_stats(), at two readings of the clock a run.
 *
 * Return: 0 or a negative errno.
 */
int sampler_run_time(const struct sampler *s, __u64 *ns, __u64 *runs);

/* Counters of an earlier collector were gone on with. */
bool sampler_adopted(const struct sampler *s);

/**
 * sampler_set_period() - change the period of all CPUs, also of those that come online later
 * @period: ops, cycles, or ns with SAMPLER_SIM; of IBS a multiple of 16, at least SAMPLER_PERIOD_MIN
 *
 * Each event rests while it is changed, some microseconds, and begins a period anew: what it had
 * counted of the old one is in pmu_state.counted, but in no estimate.
 *
 * Return: 0, or a negative errno with @err, and the old period is in force: -EINVAL for a period
 * that cannot be, or if @s was not opened with `count_ops`, or samples by frequency.
 */
#define SAMPLER_PERIOD_MIN 0x90 /* Linux arch/x86/events/amd/ibs.c, from v6.15 on */
int sampler_set_period(struct sampler *s, __u64 period, struct err *err);

/* In force; 0: it varies, or there are no events. */
__u64 sampler_period(const struct sampler *s);

/* Notices of throttling since sampler_open(); reads mapped memory only. */
__u64 sampler_throttled(struct sampler *s);

/*
 * Once the machine was suspended: the PMU may have lost its settings. Counters are kept. Return: 0 or a
 * negative errno with @err; sampler_tick() tries again then.
 */
int sampler_restart(struct sampler *s, struct err *err);

/*
 * Once another user has left the PMU: from here on the number of unseen samples is known again; that of
 * the time in which the PMU was shared stays unknown. Sampling stops while events are opened again, for
 * about a tenth of a millisecond per CPU. Return: 0 or a negative errno with @err; sampler_tick() tries again.
 */
int sampler_pmu_alone(struct sampler *s, struct err *err);

/* Ends sampling; a snapshot taken afterwards is final and exact. */
void sampler_stop(struct sampler *s);

/**
 * sampler_snapshot() - everything counted so far, in adopted counters by earlier collectors too
 *
 * Reads mapped memory only, so it costs no samples; one read(2) a CPU for the PMU's counts. While
 * sampling goes on each sample is either in the snapshot or not: the ledger balances, and what it
 * calls aggregated is the sum of the series. Latency sums may lag or lead by samples in flight.
 *
 * Return: 0, the caller frees *out; or a negative errno with @err:
 * -EUCLEAN  the ledger does not balance, which is a bug
 */
int sampler_snapshot(struct sampler *s, struct snapshot *out, struct err *err);

/* The same without the groups: cheap. */
int sampler_ledger(struct sampler *s, struct ledger *ledger, struct pmu_state *pmu,
		   struct err *err);

/**
 * sampler_rings() - where the records are
 *
 * The sum of what rings_drain() hands over, also after sampler_stop(), is what the ledger calls
 * forwarded. What finds its ring full is lost, as ring_full; no CPU ever waits.
 *
 * Return: the rings, which are the sampler's; NULL with SAMPLER_SERIES, unless it has copies.
 */
struct rings *sampler_rings(struct sampler *s);

/**
 * sampler_copy() - forward a copy of each sample that is counted from now on, or no more
 *
 * For samplers opened with `copies`. The ledger knows nothing of copies: those that find their ring
 * full are in sampler_copies_dropped().
 */
void sampler_copy(struct sampler *s, bool on);

/* Since sampler_open(). */
__u64 sampler_copies_dropped(const struct sampler *s);

/**
 * sampler_stack() - the call chain that a record's id stands for
 * @id: of struct ibs_record_extra, not negative; it stands for the same as long as the sampler lives
 * @addresses: TRACE_STACK_MAX of them, from the innermost on
 *
 * A bpf() call, so it may cost a sample: ask once for each id.
 *
 * Return: how many addresses, or a negative errno.
 */
int sampler_stack(struct sampler *s, __s32 id, __u64 *addresses);

typedef int sampler_slab(const struct ibs_slab *slab, void *arg, struct err *err);

/**
 * sampler_slabs() - the slab caches that the kernel has now
 *
 * For samplers opened with `slabs`. @cb: NULL: nobody wants to know. Return: 0; what @cb returned; or a negative errno with @err.
 */
int sampler_slabs(struct sampler *s, sampler_slab *cb, void *arg, struct err *err);

/* The name of one; NULL if the kernel no longer has it. Lives until the next call. */
const char *sampler_slab_name(struct sampler *s, __u64 id);

/*
 * To be called every half second or so: collects the kernel's notices of throttling, and samples CPUs
 * of sampler_opts.cpus that came online.
 */
void sampler_tick(struct sampler *s);

/* Has the cgroup been dead for so long that nothing of it can come any more? */
typedef bool sampler_dead(void *arg, __u64 cgroup_id);

/**
 * sampler_fold() - give back what cgroups hold that died
 *
 * Their counts are added to those of an heir; without one to `other`, or with pins to a slot of its own
 * that IBS_SLOT_ENDED marks. So sums stay, and their slots serve others. A reader sees all of that or
 * nothing. Costs each CPU one look-up for every cgroup it meets next. Slots of the same cgroup, which
 * CPUs take that meet it at once, become one.
 *
 * Return: how many groups were folded.
 */
__u32 sampler_fold(struct sampler *s, sampler_dead *dead, void *arg);

/* A slot of IBS_SLOT_USED whose group is shown together with that of @slot; 0: there is none. */
typedef __u32 sampler_heir(void *arg, __u32 slot);

/*
 * Whom sampler_fold() and sampler_make_room() ask for heirs. What is shown as one sum then does not
 * become less when a part of it ends.
 */
void sampler_fold_into(struct sampler *s, sampler_heir *heir, void *arg);

/**
 * sampler_make_room() - let cgroups that are busier than others have counters of their own
 *
 * When all slots are taken and cgroups that found none do more than some that have one, the least
 * active are folded. To be called each ten seconds or so: activity is what came since the last call.
 * Of samplers by cgroup with `count_ops`; else it does nothing.
 *
 * Return: how many groups were folded.
 */
__u32 sampler_make_room(struct sampler *s);

struct counts;

/**
 * sampler_lines_next() - begin new tables of hot lines
 *
 * Each sample is in the tables before or in those after: no program writes to the former any more on return.
 */
void sampler_lines_next(struct sampler *s);

/**
 * sampler_lines() - a table of hot lines
 * @n: of the CPU; those that may sample are numbered from 0
 * @current: the one that is in use, which changes while it is read; else the one before
 *
 * Return: the table, or NULL if there are not so many.
 */
const struct ibs_lines *sampler_lines(const struct sampler *s, __u32 n, bool current);

/* Where the counters lie, mapped; lives as long as @s. */
const struct counts *sampler_counts(const struct sampler *s);

/* Size of the program as the kernel runs it: what the selection does not need is left out. */
struct sampler_prog_size {
	__u32 insns;	/* of BPF */
	__u32 bytes;	/* of machine code; 0: it is interpreted, or the kernel does not tell */
	__u32 verified; /* instructions that the verifier went through; 0: not told (before v5.16) */
};

int sampler_prog_size(const struct sampler *s, struct sampler_prog_size *out, struct err *err);

/* The program that was chosen, to be attached to an event of the caller's too. */
int sampler_prog_fd(const struct sampler *s);

const struct sampler_memory *sampler_memory_used(const struct sampler *s);
/* Registers are read in place (v6.2), not copied. */
bool sampler_reads_direct(const struct sampler *s);
size_t sampler_n_cpus(const struct sampler *s);

/* Accepts NULL and any stage of construction. */
void sampler_close(struct sampler *s);

#endif
