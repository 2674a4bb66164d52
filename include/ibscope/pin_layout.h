/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a collector pins under its directory in bpffs, for unprivileged readers and for the next
 * collector: maps of the program, and two arrays that only user space writes, `meta` and `names`.
 * All can be mapped.
 */
#ifndef IBSCOPE_PINNED_H
#define IBSCOPE_PINNED_H

#include <ibscope/governor_state.h>
#include <ibscope/maps.h>

#define IBS_PIN_DIR "/sys/fs/bpf/ibscope"

/*
 * With two events, the directory has the pins of ibs_op, and this subdirectory has the same pins
 * for ibs_fetch. The status in both covers the whole collector.
 */
#define IBS_PIN_SECOND "ibs_fetch"

/*
 * Bumped when a reader of the old layout would misread the new one. Readers read IBS_PIN_SCHEMA_BEFORE as
 * well, and a collector converts and resumes it (pins_convert.c).
 */
#define IBS_PIN_SCHEMA	      13
#define IBS_PIN_SCHEMA_BEFORE 12
#define IBS_PIN_MAGIC	      0x69627363 /* "ibsc" */

/*
 * The pins. X(NAME, "name", "what readers need it for"). The rows before META are maps of the
 * program, required to resume the counters.
 */
#define IBS_PIN_TABLE(X)                                   \
	X(SERIES, "series", "counters")                    \
	X(OWNERS, "slot_owners", "groups of the counters") \
	X(STATE, "state", "counts of outcomes")            \
	X(CGROUPS, "cgroups", "")                          \
	X(GROUPS, "groups", "")                            \
	X(SLOTS, "slots", "")                              \
	X(META, "meta", "what is sampled, and status")     \
	X(NAMES, "names", "names of cgroups and containers")

enum ibs_pin {
#define IBS_PIN_ENUM(NAME, ...) IBS_PIN_##NAME,
	IBS_PIN_TABLE(IBS_PIN_ENUM)
#undef IBS_PIN_ENUM
		IBS_PIN_N
};

/* Layout and meaning of the counters. A collector with another layout cannot resume them. */
struct ibs_meta_layout {
	__u32 n_cpus; /* possible ones */
	__u32 shards, max_slots, slot_words;
	__u32 by;     /* enum ibs_by bits */
	__u32 metric; /* enum ibs_metric */
	__u32 caps;
	__u32 simulated;
	/* sizes of structures and tables, to detect a build with others */
	__u32 outcomes, sources, ops, buckets, state_bytes;
	__u32 meta_bytes, status_bytes, name_bytes;
	__u16 entry[IBS_LAYOUT_ENTRIES];
	/* v1 controller that the cgroup ids belong to; "": v2 or none */
	char hierarchy[32];
};

/* Where the cost of an interrupt comes from. X(NAME, "name") */
#define IBS_NMI_SOURCE_TABLE(X) X(ASSUMED, "assumed") X(MEASURED, "measured") X(GIVEN, "given")

enum ibs_nmi_source {
#define IBS_NMI_SOURCE_ENUM(NAME, name) IBS_NMI_##NAME,
	IBS_NMI_SOURCE_TABLE(IBS_NMI_SOURCE_ENUM)
#undef IBS_NMI_SOURCE_ENUM
		IBS_NMI_SOURCES
};

#define IBS_GOVERNOR_REASONS 12 /* room for new reasons, which then change no layout */
_Static_assert((int)GOVERNOR_REASON_N <= IBS_GOVERNOR_REASONS, "no room for a reason");

/*
 * What the collector spends its own CPU time on. Only the first counts against the sampling budget;
 * others can cause the rest. X(NAME, "name", "meaning")
 */
#define IBS_WORK_TABLE(X)                                                            \
	X(COUNTERS, "counters", "reading counters and governing the period")         \
	X(CGROUPS, "cgroups", "following cgroups as they come and go, naming them")  \
	X(WEB, "web", "HTTP requests")                                               \
	X(CONTROL, "control", "requests of ibscope ctl")                             \
	X(USERS, "users", "requests of users for what their own cgroups waited for") \
	X(NEIGHBOURS, "neighbours", "judging which container slows which")

enum ibs_work {
#define IBS_WORK_ENUM(NAME, ...) IBS_WORK_##NAME,
	IBS_WORK_TABLE(IBS_WORK_ENUM)
#undef IBS_WORK_ENUM
		IBS_WORK_N
};

/* The counts of the flight recorder take the last places of each array, so that no other number moved. */
#define IBS_WORK_ROOM 6 /* room for new kinds, which then change no layout */
_Static_assert((int)IBS_WORK_N <= IBS_WORK_ROOM, "no room for a kind of work");

/* Outcome of a profile of `serve --push`, and of its samples. X(NAME, "name", "meaning") */
#define IBS_PUSH_TABLE(X)                                                         \
	X(DELIVERED, "delivered", "the server accepted it")                       \
	X(REFUSED, "refused", "the server refused it")                            \
	X(UNAVAILABLE, "unavailable", "the server was unreachable or too slow")   \
	X(FAILED, "failed", "it could not be created or sent securely")           \
	X(UNFINISHED, "unfinished", "the collector exited first")                 \
	X(DROPPED, "dropped", "copies of samples found no room or came too late") \
	X(LATE, "late", "the server accepted it, but more than 90 seconds after its end")

enum ibs_push_outcome {
#define IBS_PUSH_ENUM(NAME, ...) IBS_PUSH_##NAME,
	IBS_PUSH_TABLE(IBS_PUSH_ENUM)
#undef IBS_PUSH_ENUM
		IBS_PUSH_N
};

/* The numbers of unnamed files and samples take the eighth place of each array, so that no other number moved. */
#define IBS_PUSH_ROOM 7
_Static_assert((int)IBS_PUSH_N <= IBS_PUSH_ROOM, "no room for an outcome");

/* Only samples are dropped: for profiles, this place has the samples whose call chain found no room (--stacks). */
#define IBS_PUSH_CHAINS_LOST IBS_PUSH_DROPPED

struct ibs_push_counts {
	__u64 profiles[IBS_PUSH_ROOM]; /* by enum ibs_push_outcome */
	__u64 unnamed_files;	       /* of all profiles: not read for lack of time */
	__u64 samples[IBS_PUSH_ROOM];
	__u64 unnamed_samples; /* in these files */
	__u64 retries;
	__u64 collectors; /* collectors with --push so far; 0: ignore the other counts */
};

/* What became of a recording of `serve --flight`. X(NAME, "name", "meaning") */
#define IBS_FLIGHT_TABLE(X)                            \
	X(WRITTEN, "written", "it is complete")        \
	X(FAILED, "failed", "it could not be written") \
	X(SKIPPED, "skipped", "it was too early for another one")

enum ibs_flight_outcome {
#define IBS_FLIGHT_ENUM(NAME, ...) IBS_FLIGHT_##NAME,
	IBS_FLIGHT_TABLE(IBS_FLIGHT_ENUM)
#undef IBS_FLIGHT_ENUM
		IBS_FLIGHT_N
};

/* Counts of `serve --hot-lines`. */
struct ibs_lines_counts {
	__u64 fed, no_address, replaced; /* sums of the tables */
	__u64 on;    /* 0: this collector keeps none; ignore the members below */
	__u64 lines; /* with details in the newest window */
	__u64 lack;  /* most samples missing from a line, over all windows */
};

/* Status, written about once a second. Sums since `start`, over all collectors since then. */
struct ibs_meta_status {
	__u64 time_ns;	   /* CLOCK_BOOTTIME, when this was written */
	__u64 pmu_samples; /* as the PMU counted them */
	__u64 unseen;
	__u64 enabled_ns, running_ns, throttled;
	__u64 cpus_went, cpus_came;
	__u64 bpf_ns, bpf_runs; /* of the program, while bpf_stats were on */
	__u64 cpu_ns;		/* of the collector's process */
	__u64 folded;		/* groups that ended and were added to */
	__u64 reloads, config_errors;
	__u32 cpus;	    /* sampled now */
	__u32 pmu_exact;    /* pmu_samples and unseen are valid */
	__u64 period;	    /* in force; 0: it varies */
	__u64 memory_bytes; /* of maps */
	__u64 rss_bytes;    /* of the collector */
	__u64 counted;	    /* ops or cycles, as the PMU counted them */
	__u64 period_changes;
	__u64 displaced;    /* groups added to `other` because busier ones found no room */
	__u64 live_changes; /* of options, by `ibscope ctl` */
	/* of the governor */
	__u32 governor_state;			      /* enum governor_state */
	__u32 governor_reason;			      /* enum governor_reason, of the state */
	__u64 governor_changes[IBS_GOVERNOR_REASONS]; /* by enum governor_reason */
	__u64 governor_retry_ns; /* CLOCK_BOOTTIME of the next attempt; 0: not suspended */
	__u64 period_asked;	 /* shortest configured period; 0: it varies */
	__u64 budget_ppb;	 /* share of CPU time in parts of 10^9; 0: none */
	__u64 overhead_ppb;	 /* estimated cost over about the last second; 0: not known yet */
	__u64 overhead_ns;	 /* estimated CPU time of samples and collector */
	__u64 nmi_ns;		 /* cost of a sample without the program */
	__u32 nmi_source;	 /* enum ibs_nmi_source */
	__u32 unresolved;	 /* names of the selection that match nothing yet: see ibs_meta */
	__u64 kernel_rate;	 /* kernel.perf_event_max_sample_rate; 0: unknown */
	__u64 kernel_lowered;	 /* times that the kernel lowered it */
	__u64 rss_max;
	__u64 clock_steps, suspends; /* noticed while a collector ran */
	__u64 pmu_shared;	     /* times that another user started sharing the PMU */
	/* see struct ledger; summed while a collector could count them */
	__u64 dropped, undelivered;
	__u32 dropped_known, undelivered_known; /* known to the last collector */
	/* by enum ibs_work */
	__u64 work_ns[IBS_WORK_ROOM]; /* CPU time */
	__u64 flight_on; /* IBS_FLIGHT_* bits; 0: this collector has no flight recorder */
	__u64 flight_written;
	__u64 work_delayed_ns[IBS_WORK_ROOM]; /* time that work was delayed by its limit */
	__u64 flight_failed, flight_skipped;
	struct ibs_push_counts push;
	struct ibs_lines_counts lines;
};

#define IBS_FLIGHT_ON	   1
#define IBS_FLIGHT_SLOWEST 2 /* ibs_slot_name.slowest is valid */

/* Of recordings of the flight recorder, by enum ibs_flight_outcome. */
static inline __u64 ibs_flight_count(const struct ibs_meta_status *st, enum ibs_flight_outcome o)
{
	return o == IBS_FLIGHT_WRITTEN	? st->flight_written
	       : o == IBS_FLIGHT_FAILED ? st->flight_failed
					: st->flight_skipped;
}

struct ibs_meta {
	__u32 magic, schema;
	struct ibs_meta_layout layout;
	__u64 start_realtime_ns; /* of the first collector */
	__u64 starts;		 /* collectors so far */
	__u32 pid;		 /* of the collector; 0: it exited cleanly */
	__u32 seq;		 /* odd while `status` and the texts are written */
	__u32 by_path;	/* --by path: the path of a cgroup is a label even if it has a name */
	__u32 outlives; /* sampling continues if the collector is killed */
	struct ibs_meta_status status;
	char version[32], event[256], source[16];
	char selection[1024]; /* "": everything */
	char live[1024];      /* options set live, and by whom; "": none */
	char control[108];    /* control socket; "": none */
	char unresolved[496]; /* the names counted by status.unresolved, as "--container web, .." */
	__u64 lease_ns; /* CLOCK_MONOTONIC at which sampling ends; 0: never. Schema 12: of `unresolved` */
	/* of this collector */
	__u32 pins_repaired; /* removed or replaced by others, and pinned again */
	__u32 pins_missing;  /* which could not be pinned again yet */
};
_Static_assert(sizeof(struct ibs_meta) == 4352, "layout of ibs_meta changed: raise IBS_PIN_SCHEMA");

/* True if this build knows the layout of what is pinned. */
static inline bool ibs_pin_schema_known(const struct ibs_meta *m)
{
	return m->magic == IBS_PIN_MAGIC &&
	       (m->schema == IBS_PIN_SCHEMA || m->schema == IBS_PIN_SCHEMA_BEFORE);
}

/*
 * A slow sample of a group, which is in a recording of the flight recorder. Everybody may read it, so there is nothing in
 * it of the process that was sampled.
 */
struct ibs_exemplar {
	__u64 time_ns;	    /* CLOCK_REALTIME; 0: none */
	__u64 recording_ns; /* the time in the name of the file: IBS_FLIGHT_FILE */
	__u32 latency;	    /* of the metric */
	__u16 cpu;
	__u8 src; /* enum ibs_src */
	__u8 pad;
};

#define IBS_EXEMPLARS 3 /* of a group, each of another source; the slowest first */

/* The name of a recording of the flight recorder, with its time as text_time_stamp() writes it. */
#define IBS_FLIGHT_FILE "flight-%s.data"

/* Names of the group in a slot. */
struct ibs_slot_name {
	__u32 seq;	    /* odd while it is written */
	__u32 show_runtime; /* groups of other runtimes have or had the same names */
	__u64 cgroup_id;    /* of the group that the names belong to; 0: none yet */
	char cgroup[496];
	char name_space[64], pod[256], container[112]; /* "" where there is none */
	/* if status.flight_on says so; before, the rest of a longer `container` */
	struct ibs_exemplar slowest[IBS_EXEMPLARS];
	char runtime[24];
};
_Static_assert(sizeof(struct ibs_slot_name) == 1040, "ibs_slot_name has implicit padding");

/* A container that slows another one on the cores that share an L3. */
struct ibs_neighbour {
	/* slots that have their names, if still of these cgroups */
	__u32 victim_slot, suspect_slot;
	__u64 victim_cgroup, suspect_cgroup;
	__u64 first_ns, last_ns;  /* CLOCK_BOOTTIME of the seconds in which it was named */
	double latency, baseline; /* of the victim: while the suspect was busy, and quiet; cycles */
	double share;		  /* of the accesses on the complex, while the suspect was busy */
	double correlation;
	double chance; /* probability that it is one */
	__u32 complex, lag, runs, busy; /* as in struct neighbours_pair */
};

#define IBS_NEIGHBOURS 8

/* What resctrl says of a suspect: the most since pairs were named. Where `known` lacks the bit it is unknown, not 0. */
#define IBS_NEIGHBOUR_TRAFFIC 1U
#define IBS_NEIGHBOUR_L3      2U
struct ibs_neighbour_use {
	__u64 known;
	double traffic; /* of memory, bytes per second */
	double l3;	/* bytes in the L3 of the complex */
};

/*
 * The neighbours that a collector names now. They take the place of the names of IBS_SLOT_OTHER, which has none,
 * so that no other number of the pins moved.
 */
struct ibs_neighbours {
	__u32 seq; /* odd while it is written; that of the names */
	__u32 n;   /* that are below */
	__u64 time_ns; /* CLOCK_BOOTTIME when they were judged; 0: never */
	__u32 pairs;   /* that are named */
	__u32 judged;  /* containers with enough samples to be victims */
	struct ibs_neighbour pair[IBS_NEIGHBOURS]; /* the clearest */
	struct ibs_neighbour_use use[IBS_NEIGHBOURS];
};
_Static_assert(sizeof(struct ibs_neighbours) <= sizeof(struct ibs_slot_name),
	       "no room for the neighbours");

/* True if the path is a label. Each start of a container makes a new path, and thus new series. */
static inline bool ibs_slot_name_has_path(const struct ibs_slot_name *n, bool by_path)
{
	return by_path || (!*n->container && !*n->pod);
}

#endif
