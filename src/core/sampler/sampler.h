/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A running collection: the BPF object, its maps and events. Only this module uses the skeleton. */
#ifndef IBSCOPE_SAMPLER_H
#define IBSCOPE_SAMPLER_H

#include "base/err.h"
#include "event/event.h"
#include "machine/machine.h"
#include "rings.h"
#include "select/selection.h"
#include "counts/snapshot.h"

#include <ibscope/hot_lines.h>
#include <ibscope/predicate.h>

#include <linux/perf_event.h>

enum sampler_source {
	SAMPLER_IBS,  /* the kernel's IBS driver */
	SAMPLER_SIM,  /* software clock, modelled registers */
	SAMPLER_TWIN, /* no event: tests provide the samples */
	SAMPLER_LOAD, /* no event: load the program for IBS only to inspect it */
};

enum sampler_prog {
	SAMPLER_PROG_FULL,
	SAMPLER_PROG_EMPTY, /* for measurements: an empty program */
	SAMPLER_PROG_NONE,  /* for measurements: the event alone */
};

/* What to do with selected samples. */
enum sampler_output {
	SAMPLER_SERIES,	     /* count them, see sampler_snapshot() */
	SAMPLER_RECORDS,     /* forward them as struct ibs_record, see sampler_rings() */
	SAMPLER_RECORDS_RAW, /* forward them as struct ibs_record_raw */
};

struct pins;

/* Events of the core counters that keep estimates known if hardware drops tagged ops. */
enum sampler_tag {
	SAMPLER_TAG_OPS, /* retired ops or cycles, as the event counts; for fetches tagged ones */
	SAMPLER_TAG_RETIRED, /* tagged ops that retired, or tagged fetches not discarded */
	SAMPLER_TAG_VALID,   /* those of them that raised an interrupt; may be missing */
	SAMPLER_TAGS
};

/* Ops of SAMPLER_SIM. CONTENDED: those of tasks, which wait longer the more the L3 complex misses */
enum sampler_sim_ops { SAMPLER_SIM_TASKS, SAMPLER_SIM_RANDOM, SAMPLER_SIM_CONTENDED };

struct sampler_opts {
	enum sampler_source source;
	enum sampler_prog prog;
	enum sampler_output output; /* records ignore `by` and `max_groups` */
	bool copies;		    /* with SAMPLER_SERIES: allow sampler_copy() */
	/*
	 * Size of each CPU's ring, rounded up to a power of two; 0: what the memory limit allows,
	 * up to SAMPLER_RING_MAX_DEFAULT, or with copies of stacks SAMPLER_RING_MAX
	 */
	__u32 ring_bytes;
	/*
	 * With `copies`: the rings of all CPUs keep the last records in this much memory, for
	 * rings_copy(); each has the greatest power of two of records that fits. 0: they do not
	 */
	__u64 history_bytes;
	/* Record call chains, walked by the program once a sample is selected. */
	bool stacks;
	/* With `stacks` and PERF_SAMPLE_CALLCHAIN in `attr`: the kernel unwinds at each sample, selected or not. */
	bool kernel_stacks;
	/*
	 * With `stacks`, instead of chains: copies of so many bytes of the user's stack, a multiple of IBS_COPY_STEP up to
	 * IBS_COPY_MAX
	 */
	__u32 copy_bytes;
	/* Record the slab cache of kernel data; needs kernel_finds_slabs(). */
	bool slabs;
	struct perf_event_attr attr; /* of the event; for the simulation, of the software clock */
	const char *event;	     /* for messages and output */
	enum event_filter filter;    /* filter of the event, which makes some figures unknown */
	struct perf_event_attr tags[SAMPLER_TAGS]; /* additional counters; zero: none */
	/*
	 * Sample in strata (strata/strata.h): the event alternates with this one, which has a hardware filter.
	 * Needs `tags` and `count_ops`. Size 0: no strata
	 */
	struct perf_event_attr miss_attr;
	const char *miss_event;
	__u32 reach;	    /* 1 << enum ibs_src of what both sample */
	bool tags_are_lost; /* RETIRED and VALID count the tagged fetches that did not */
	int cgroup; /* fd of a cgroup directory: sample only while its tasks run; 0: always */
	const unsigned int *cpus; /* one event on each online CPU of these */
	size_t n_cpus;
	struct ibs_cpu ibs;	       /* caps and quirks of the machine (or of the model) */
	enum ibs_metric metric;	       /* metric, which determines the event */
	__u32 by;		       /* enum ibs_by bits; 0: one group */
	const char *cgroup_controller; /* v1 controller of the cgroups; NULL or "": v2 */
	struct selection sel;
	__u32 max_groups;	/* 0: MAX_GROUPS */
	__u64 max_memory_bytes; /* 0: SAMPLER_MAX_MEMORY */
	__u64 sim_seed;
	unsigned int sim_ops; /* enum sampler_sim_ops */
	/*
	 * From pins.h: pin the counters there, or resume them if they match; NULL: they are freed
	 * with the sampler. sampler_close() leaves the pins, but sampling stops.
	 */
	struct pins *pins;
	bool count_ops; /* the period may change: sum the ops of samples */
	bool exposed; /* count exposed cycles: the event counts ops, the metric is IBS_METRIC_DC_MISS_LAT */
	bool tlb; /* count TLB misses of groups */
	/* Hot lines (ibscope/hot_lines.h): sets per table, a power of two; 0: none */
	__u32 line_sets;
	__u32 line_feed; /* 1 << enum ibs_src of the loads to feed; IBS_LINE_FEED_WALKS */
	/* sorted, for IBS_BY_MEM_NODE; NULL: those of this machine */
	const struct memory_range *memory;
	size_t n_memory;
	bool probe_read; /* do not use direct reads even if supported */
	bool unfolded;	 /* for tests: load the program without folding its constants */
};

#define SAMPLER_MAX_SELECTED \
	4096 /* cgroups that a live selection can name, or twice the initial number */
#define SAMPLER_MAX_MEMORY	 (64ULL << 20)
#define SAMPLER_STACKS		 (IBS_STACKS + IBS_MORE_STACKS) /* keys of call chains per sampler */
#define SAMPLER_RING_MIN	 (16U << 10)
#define SAMPLER_RING_MAX_DEFAULT (1U << 20)
#define SAMPLER_RING_MAX	 (64U << 20)

/* Bytes of kernel memory by map, computed from the options and the cache topology. */
struct sampler_memory {
	__u32 shards, complexes; /* fewer shards than complexes: neighbours share counters */
	__u32 ring_bytes;	 /* maximum per ring */
	__u32 ring_slots;	 /* records per ring */
	__u64 series, cgroups, groups, slots, pids, rings, stacks, cpu_states, lines, total;
};

/**
 * sampler_memory() - memory that a sampler with these options needs
 * @complexes: groups of CPUs that share an L3; the maximum number of shards
 *
 * Counters get one shard per complex if @opts->max_memory_bytes allows. Rings of an explicit size
 * count against an explicit limit, but not against the default one; hot-line tables are not
 * limited.
 *
 * Return: 0, or -ENOSPC with @err if not even one shard or the smallest rings fit.
 */
int sampler_memory(const struct sampler_opts *opts, unsigned int complexes,
		   struct sampler_memory *out, struct err *err);

struct sampler;

/**
 * sampler_open() - load, open and attach, but do not start
 *
 * Return: 0, or a negative errno with @err saying what was rejected, why and what to do.
 * SAMPLER_TWIN needs v5.17, else -EOPNOTSUPP.
 */
int sampler_open(const struct sampler_opts *opts, struct sampler **out, struct err *err);

/*
 * For tests, see tests/bpf/twin_run.h: the program ibs_op_twin, and memory shared with it. -EINVAL
 * and NULL if the sampler is not SAMPLER_TWIN.
 */
struct ibs_twin_area;
int sampler_twin_fd(const struct sampler *s);
struct ibs_twin_area *sampler_twin_area(const struct sampler *s);

/*
 * Start, or continue after sampler_stop(). Return: 0 or a negative errno with @err; sampler_tick()
 * retries CPUs that could not be sampled.
 */
int sampler_start(struct sampler *s, struct err *err);

/*
 * Continue after sampler_stop() sooner than sampler_start() does; only if no CPU was offline in
 * between. Each CPU begins a new period: what was counted of the last one is in no sample. Return:
 * as sampler_start().
 */
int sampler_resume(struct sampler *s, struct err *err);

/**
 * sampler_turn() - let the other stratum sample, if it is due
 *
 * Each sample belongs to one of the two: nothing is enabled in between. The counters get weights with which
 * the estimates of both add up to those of the whole time.
 *
 * Return: 0, also without strata; or a negative errno with @err.
 */
int sampler_turn(struct sampler *s, struct err *err);

/* When to call it, in seconds of now_s(); INFINITY: never. */
double sampler_turn_due(const struct sampler *s);

/**
 * sampler_set_processes(), _set_cgroups(), _set_latency() - change the selection while sampling
 *
 * Only for samplers opened with that bit of sel.live. No sample is lost, and each is tested against
 * the old or the new selection: cgroups change for all CPUs at once, processes one by one, except
 * when switching between a list of processes and a list of exclusions.
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
 * Reopens the events, which takes a few milliseconds without samples.
 *
 * Return: 0, or a negative errno with @err; it then samples whatever runs.
 */
int sampler_set_cgroup(struct sampler *s, int cgroup, struct err *err);

/* Also false if the kernel refused it when the sampler was opened. */
bool sampler_has_cgroup(const struct sampler *s);

/**
 * sampler_run_time() - run time of the program, as measured by the kernel
 *
 * The kernel measures only while somebody holds bpf_enable_stats(), at two clock reads per run.
 *
 * Return: 0 or a negative errno.
 */
int sampler_run_time(const struct sampler *s, __u64 *ns, __u64 *runs);

/* True if counters of an earlier collector were resumed. */
bool sampler_adopted(const struct sampler *s);

/**
 * sampler_set_period() - change the period of all CPUs, including those that come online later
 * @period: ops, cycles, or ns with SAMPLER_SIM; for IBS a multiple of 16, at least
 *          SAMPLER_PERIOD_MIN
 *
 * Each event stops for some microseconds and starts a new period: pmu_state.counted includes what
 * it had counted of the old one, but no estimate does.
 *
 * Return: 0, or a negative errno with @err and the old period in force: -EINVAL for an invalid
 * period, or if @s was not opened with `count_ops`, or samples by frequency.
 */
#define SAMPLER_PERIOD_MIN 0x90 /* Linux arch/x86/events/amd/ibs.c, from v6.15 on */
int sampler_set_period(struct sampler *s, __u64 period, struct err *err);

/* The current period; 0: it varies, or there are no events. */
__u64 sampler_period(const struct sampler *s);

/* Throttling events since sampler_open(); reads mapped memory only. */
__u64 sampler_throttled(struct sampler *s);

/*
 * Restart after a suspend, when the PMU may have lost its settings. Counters are kept. Return: 0 or
 * a negative errno with @err; sampler_tick() then retries.
 */
int sampler_restart(struct sampler *s, struct err *err);

/**
 * sampler_renew_lease() - sample for this long without another call
 * @seconds: 0: without end
 * @lapsed:  set if sampling had ended on some CPUs; it goes on
 *
 * Only for samplers with pins.
 *
 * Return: CLOCK_MONOTONIC at which sampling ends; 0: never.
 */
__u64 sampler_renew_lease(struct sampler *s, double seconds, bool *lapsed);

/* With pins: as perf_events_check_links(). */
unsigned int sampler_check_links(struct sampler *s, unsigned int *missing);

/*
 * Call after another user has left the PMU: from then on the number of unseen samples is known
 * again; for the time in which the PMU was shared it stays unknown. Reopens the events, which
 * interrupts sampling for about a tenth of a millisecond per CPU. Return: 0 or a negative errno
 * with @err; sampler_tick() then retries.
 */
int sampler_pmu_alone(struct sampler *s, struct err *err);

/* Stop sampling; a snapshot taken afterwards is final and exact. */
void sampler_stop(struct sampler *s);

/**
 * sampler_snapshot() - everything counted so far, including adopted counters
 *
 * Reads mapped memory only, so it costs no samples, and one read(2) per CPU for the PMU's counts.
 * While sampling continues each sample is either in the snapshot or not: the ledger balances, and
 * its `aggregated` is the sum of the series. Latency sums may be off by samples in flight.
 *
 * Return: 0, the caller frees *out; or a negative errno with @err:
 * -EUCLEAN  the ledger does not balance, which is a bug
 */
int sampler_snapshot(struct sampler *s, struct snapshot *out, struct err *err);

/* The same without the groups: cheap. */
int sampler_ledger(struct sampler *s, struct ledger *ledger, struct pmu_state *pmu,
		   struct err *err);

/**
 * sampler_rings() - the rings with the records
 *
 * The number of records that rings_drain() delivers, also after sampler_stop(), is the ledger's
 * `forwarded`. A sample that finds its ring full is lost as ring_full; no CPU ever waits.
 *
 * Return: the rings, owned by the sampler; NULL with SAMPLER_SERIES without copies.
 */
struct rings *sampler_rings(struct sampler *s);

/**
 * sampler_copy() - start or stop forwarding a copy of each counted sample
 *
 * Only for samplers opened with `copies`. The ledger ignores copies: sampler_copies_dropped()
 * counts those that found their ring full.
 */
void sampler_copy(struct sampler *s, bool on);

/* Since sampler_open(). */
__u64 sampler_copies_dropped(const struct sampler *s);

/**
 * sampler_stack() - the call chain of a record
 * @id: of struct ibs_record_extra, not negative; its meaning does not change
 * @addresses: IBS_STACK_MAX of them, innermost first
 *
 * A bpf() call, so it may cost a sample: call it once per id.
 *
 * Return: how many addresses, or a negative errno.
 */
int sampler_stack(struct sampler *s, __s32 id, __u64 *addresses);

/*
 * Make room for other call chains: ids of records so far lose their meaning. Copying must be off, and the rings drained.
 * Nothing without `stacks`.
 */
void sampler_forget_stacks(struct sampler *s);

typedef int sampler_slab(const struct ibs_slab *slab, void *arg, struct err *err);

/**
 * sampler_slabs() - list the kernel's slab caches
 * @cb: may be NULL
 *
 * Only for samplers opened with `slabs`.
 *
 * Return: 0, the error of @cb, or a negative errno with @err.
 */
int sampler_slabs(struct sampler *s, sampler_slab *cb, void *arg, struct err *err);

/* Name of a slab cache, valid until the next call; NULL if the kernel no longer has it. */
const char *sampler_slab_name(struct sampler *s, __u64 id);

/* Call about every half second: collects throttling events, and samples CPUs that came online. */
void sampler_tick(struct sampler *s);

/*
 * True if another user of the PMU had it for a part of the time between the last two ticks, and samples are
 * weighed by that: tick ten times a second.
 */
bool sampler_is_shared(const struct sampler *s);

/* True if the cgroup has been dead long enough that no more samples of it can come. */
typedef bool sampler_dead(void *arg, __u64 cgroup_id);

/**
 * sampler_fold() - free the slots of dead cgroups
 *
 * Adds their counts to those of an heir; without one to `other`, or with pins to a separate slot
 * marked IBS_SLOT_ENDED. So sums are kept, and the slots can be reused. Readers see all of a fold
 * or nothing. Each CPU pays one lookup for each cgroup that it samples next. Also merges the slots
 * of a cgroup that several CPUs allocated at once.
 *
 * Return: the number of folded groups.
 */
__u32 sampler_fold(struct sampler *s, sampler_dead *dead, void *arg);

/* Returns a slot in use that is shown together with @slot; 0: none. */
typedef __u32 sampler_heir(void *arg, __u32 slot);

/*
 * Set the callback that finds heirs for sampler_fold() and sampler_make_room(), so that what is
 * shown as one sum does not decrease when a part of it ends.
 */
void sampler_fold_into(struct sampler *s, sampler_heir *heir, void *arg);

/**
 * sampler_make_room() - give busy cgroups their own counters
 *
 * If all slots are taken and cgroups without a slot are busier than some that have one, the least
 * active are folded. Call it about every ten seconds: activity is measured since the last call.
 * Only for samplers by cgroup with `count_ops`; else it does nothing.
 *
 * Return: the number of folded groups.
 */
__u32 sampler_make_room(struct sampler *s);

struct counts;

/**
 * sampler_lines_next() - start new tables of hot lines
 *
 * Each sample is in the old or in the new tables; on return no program writes to the old ones.
 */
void sampler_lines_next(struct sampler *s);

/**
 * sampler_lines() - a table of hot lines
 * @n: of the CPU; CPUs that may sample are numbered from 0
 * @current: the table in use, which changes while it is read; else the previous one
 *
 * Return: the table, or NULL if @n is too large.
 */
const struct ibs_lines *sampler_lines(const struct sampler *s, __u32 n, bool current);

/* The mapped counters; valid as long as @s. */
const struct counts *sampler_counts(const struct sampler *s);

/* Size of the program as the kernel runs it, without what the selection does not need. */
struct sampler_prog_size {
	__u32 insns;	/* of BPF */
	__u32 bytes;	/* of machine code; 0: interpreted, or unknown */
	__u32 verified; /* instructions that the verifier processed; 0: unknown (before v5.16) */
};

int sampler_prog_size(const struct sampler *s, struct sampler_prog_size *out, struct err *err);

/* The chosen program, which the caller may attach to another event. */
int sampler_prog_fd(const struct sampler *s);

const struct sampler_memory *sampler_memory_used(const struct sampler *s);
/* True if registers are read in place (v6.2), not copied. */
bool sampler_reads_direct(const struct sampler *s);
/* True if processes outside of our PID namespace have the id 0. */
bool sampler_in_pid_namespace(const struct sampler *s);
size_t sampler_n_cpus(const struct sampler *s);

/* Accepts NULL and any stage of construction. */
void sampler_close(struct sampler *s);

#endif
