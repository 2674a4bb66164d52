/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internals of a sampler, for its files. */
#ifndef IBSCOPE_SAMPLER_PRIVATE_H
#define IBSCOPE_SAMPLER_PRIVATE_H

#include "counts/counts.h"
#include "machine/kernel.h"
#include "perf/perf.h"
#include "sampler.h"
#include "select/selection.h"

#include <ibscope/pin_layout.h>

/* The current selection: addresses in the maps, and their contents. */
struct sampler_select {
	struct ibs_control *control;
	struct ibs_cpu_state *cpus; /* n_cpus of them */
	unsigned int n_cpus;
	unsigned int live; /* enum sampler_live */
	bool follow;
	int cgroups_fd; /* map of selected cgroups; 0: not tested */
	size_t cgroups_max;
	__u8 *processes, *threads; /* one byte per pid; NULL: not tested */
	size_t pids_n;
	struct selected_cgroup *cgroups; /* as in the map, sorted by id */
	size_t n_cgroups;
};

/* For each set of counters that is open. */
#define FOR_COUNTERS(s, p)                                                       \
	for (struct perf_events **p = (s)->counters; p < (s)->counters + 2; p++) \
		if (*p)

struct mapping {
	void *addr; /* NULL: not mapped */
	size_t bytes;
};

struct bpf_map;

/* Map all values of an array. Return: 0, or a negative errno with @err and nothing mapped. */
int map_array(struct bpf_map *map, struct mapping *out, struct err *err);
void unmap(struct mapping *m);

/* State of a slot at the last call of sampler_make_room(). */
struct slot_seen {
	__u64 cgroup_id, ops;
};

struct sampler {
	struct ibs_op_bpf *skel; /* for sampler_load.c and sampler_open.c */
	struct perf_events
		*events; /* NULL with SAMPLER_TWIN; of strata, those of the one that samples */
	struct perf_events *resting; /* those of the other stratum; NULL: no strata */
	struct sampler_strata *strata;
	/* Counters of tagged ops that retired, and of those that interrupted; NULL: not counted. */
	union {
		struct {
			struct perf_events *tags, *valid;
		};
		struct perf_events *counters[2];
	};
	/* before and after all events were enabled; after: only if `tags_ended` */
	struct perf_events_total tags_before, tags_after;
	bool tags_ended;
	struct perf_events_total tags_weighed; /* at the last update of ibs_control.tag_ops */
	struct shares *shares;		       /* of CPUs' time on the PMU */
	__u64 tag_unit; /* unit of SAMPLER_TAG_OPS: 1, or the period of a fetch tag */
	bool tags_are_lost;
	double tag_debt;     /* ops by which samples so far are underestimated */
	struct rings *rings; /* NULL: no records, and no copies */
	struct layout layout;
	struct sampler_memory memory;
	struct kernel_features features;
	struct mapping state_map, series, slot_owners, records, hot_lines, twin, tgids, tids;
	struct sampler_select select;
	struct bpf_link *fork_link;
	struct bpf_program *slabs_prog; /* lists the slab caches */
	int prog_fd;			/* the skeleton's */
	struct counts counts;		/* in the maps above */
	struct ibs_state *state;
	unsigned int possible_cpus;
	__u32 max_slots;
	/* slot for the counts of folded groups: IBS_SLOT_OTHER, or with pins its own */
	__u32 ended;
	sampler_heir *heir;
	void *heir_arg;
	/* totals that only grow; the last two since this sampler started */
	__u64 unseen, dropped, undelivered;
	__u64 seen_before, dropped_before, undelivered_before; /* by earlier collectors */
	/* PMU counts of earlier collectors whose counters were adopted */
	struct pmu_state pmu_before;
	__u64 pmu_samples_before;
	__u32 by;		      /* enum ibs_by bits */
	struct slab_list slab_names;  /* names looked up so far */
	struct slot_seen *slots_seen; /* max_slots of them; NULL: not measured yet */
	bool counts_periods;	      /* PMU count / period is the number of samples */
	enum event_filter filter;
	bool by_freq; /* the period varies */
	bool simulated, count_ops;
	bool pinned, adopted, started;
	const char *not_adopted; /* why pinned counters were not adopted; "": none exist */
	bool direct, unfolded;
	bool warned_cpus;
	__u32 line_sets, line_tables; /* one pair of tables per CPU */
	__u8 line_half;		      /* index of the table in use */
};

/* Derived from the options: which tests are needed, and sizes. In sampler_size.c. */
__u32 sampler_pid_blocks(void);
bool watches_forks(const struct sampler_opts *opts);
size_t sampler_max_selected(const struct selection *sel);
size_t sampler_max_selected_entries(const struct selection *sel);
__u32 sampler_group_by(const struct sampler_opts *opts);
__u32 sampler_max_slots(const struct sampler_opts *opts);
__u32 sampler_stack_depth(void);
bool sampler_has_chains(const struct sampler_opts *opts); /* the programs keep them in maps */
bool sampler_has_rings(const struct sampler_opts *opts);
/* number of CPUs that can be sampled */
size_t sampler_sampled_cpus(const struct sampler_opts *opts);
size_t sampler_ring_cpus(const struct sampler_opts *opts);  /* number of rings */
size_t sampler_line_bytes(const struct sampler_opts *opts); /* size of one table */
size_t sampler_record_bytes(const struct sampler_opts *opts);
__u32 sampler_cpu_entries(unsigned int possible_cpus); /* of the maps indexed by CPU */

/* Enter the initial selection, before sampling starts. */
int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err);
void select_close(struct sampler_select *ss);

/* Make the programs look up each cgroup again at its next sample. */
void select_renew(struct sampler_select *ss);

/* Maps that sampler_fold() deletes from. */
struct sampler_fold_maps {
	int cgroups, groups, slots;
	bool by_groups;
};

/*
 * _adopt(): before the object is loaded, give it the pinned maps; _resume(): after loading,
 * continue from their counts; _put(): last, pin its own maps if these did not match. No-ops without
 * opts->pins.
 */
int sampler_pins_adopt(struct sampler *s, const struct sampler_opts *opts, struct err *err);
int sampler_pins_resume(struct sampler *s, const struct sampler_opts *opts, struct err *err);
int sampler_pins_put(struct sampler *s, const struct sampler_opts *opts, struct err *err);

/* Open the events, disabled, with the program attached if needed. Not for TWIN and LOAD. */
int sampler_events_open(struct sampler *s, const struct sampler_opts *opts, struct err *err);

/* Open the counters of opts->tags, if any; on failure warn and do not count them. */
void sampler_tags_open(struct sampler *s, const struct sampler_opts *opts, int cgroup);
/* _begin(): call after all events are enabled; _end(): before the first is disabled. */
void sampler_tags_begin(struct sampler *s);
void sampler_tags_end(struct sampler *s);
void sampler_tags_read(struct sampler *s, struct pmu_state *out);
/* Read s->tags: `counted` are tagged ops, `second` all. */
void sampler_tags_total(const struct sampler *s, struct perf_events_total *t);
/* True if samples are weighted by ibs_control.tag_ops, which sampler_tags_weigh() updates. */
bool sampler_weighs_tags(const struct sampler_opts *opts);
void sampler_tags_weigh(struct sampler *s);
/* Weights of samples on CPUs where another user has the PMU for a part of the time. */
void sampler_share_open(struct sampler *s);
void sampler_share_weigh(struct sampler *s);
__s64 sampler_share_extra(const struct sampler *s); /* pmu_state.extra_ns, as of the last reading */
/* Set its share_variance and share_n. */
void sampler_share_spread(const struct sampler *s, struct pmu_state *out);

/* Adjust the weight of a tag to a new period. */
void sampler_tags_period(struct sampler *s, __u64 before, __u64 now);

/*
 * Strata; nothing without them. _open(): after the events; _begin(): before they are enabled; _end(): after they
 * were disabled. _leave(): in counters of a collector that sampled in strata, for one that does not.
 */
int sampler_strata_open(struct sampler *s, const struct sampler_opts *opts, struct err *err);
int sampler_strata_begin(struct sampler *s, struct err *err);
int sampler_strata_end(struct sampler *s, struct err *err);
int sampler_strata_leave(struct sampler *s, struct err *err);
void sampler_strata_close(struct sampler *s);
/* Change the period of the full stratum, and that of the other one in proportion. */
int sampler_strata_set_period(struct sampler *s, __u64 period, struct err *err);
/* Events of the full stratum, or the only ones. */
struct perf_events *sampler_full_events(const struct sampler *s);
/* The next turns find events that CPUs have lost while they rested. */
void sampler_strata_reopen(struct sampler *s);

/*
 * Call just before events are enabled for the first time: samples seen before do not belong to
 * them. A removed link may have let some through until shortly before.
 */
int sampler_pins_start(struct sampler *s, struct err *err);

/* Note in the pinned state what the next collector must know of the events. Call it after each change of them. */
void sampler_pins_mark(struct sampler *s);

/* Call it before a change of the period: until the next mark, the notes count as unknown. */
void sampler_pins_unmark(struct sampler *s);

/*
 * The BPF object, in the order of calls: _handle_programs() before it is opened, returns the id of
 * a libbpf handler to remove after the load, or a negative errno; _choose_prog() returns NULL if
 * there is no such program; _load() also maps the state.
 */
int sampler_handle_programs(struct sampler *s);
struct bpf_program *sampler_choose_prog(struct sampler *s, const struct sampler_opts *opts);
int sampler_set_map_sizes(struct sampler *s, const struct sampler_opts *opts, struct err *e);
int sampler_load(struct sampler *s, const struct sampler_opts *opts, struct bpf_program *prog,
		 struct err *err);

struct bpf_map *sampler_map(struct sampler *s, enum ibs_pin pin);
void sampler_layout(struct sampler *s, const struct sampler_opts *opts,
		    struct ibs_meta_layout *out);

/* Wait until all programs that are running now have ended. */
void sampler_wait_for_programs(struct sampler *s);

/* Fill the map `fetch_layout`. */
void sampler_put_fetch_layout(struct sampler *s);

struct sampler_fold_maps sampler_fold_maps(const struct sampler *s);

/* Reserve a slot marked IBS_SLOT_ENDED for samplers with pins. */
void sampler_fold_reserve(struct sampler *s, const struct sampler_opts *opts);

/* Complete an interrupted fold: add the counts of slots without owner. */
void sampler_fold_repair(struct sampler *s);

#endif
