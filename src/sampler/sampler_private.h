/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The insides of a sampler, for the files it is made of. */
#ifndef IBSCOPE_SAMPLER_PRIVATE_H
#define IBSCOPE_SAMPLER_PRIVATE_H

#include "counts/counts.h"
#include "machine/kernel_features.h"
#include "counts/layout.h"
#include "perf/perf_events.h"
#include "sampler.h"
#include "select/select_config.h"
#include "trace/slab_list.h"

#include <ibscope/pin_layout.h>

/* The selection as it is in force: places in the maps, and what is in them. */
struct sampler_select {
	struct ibs_control *control;
	struct ibs_cpu_state *cpus; /* n_cpus of them */
	unsigned int n_cpus;
	unsigned int live; /* enum sampler_live */
	bool follow;
	int cgroups_fd; /* map of the selected; 0: cgroups are not tested */
	size_t cgroups_max;
	__u8 *processes, *threads; /* a byte a pid; NULL: not tested */
	size_t pids_n;
	struct selected_cgroup *cgroups; /* in the map, ordered by id */
	size_t n_cgroups;
};

/* For each set of counters that is open. */
#define FOR_COUNTERS(s, p)                                                       \
	for (struct perf_events **p = (s)->counters; p < (s)->counters + 2; p++) \
		if (*p)

struct mapping {
	void *addr; /* NULL: nothing is mapped */
	size_t bytes;
};

struct bpf_map;

/* Map all values of an array. Return: 0 or a negative errno with @err, and then nothing is mapped. */
int map_array(struct bpf_map *map, struct mapping *out, struct err *err);
void unmap(struct mapping *m);

/* What a slot had when sampler_make_room() last looked. */
struct slot_seen {
	__u64 cgroup_id, ops;
};

struct sampler {
	struct ibs_op_bpf *skel;    /* for sampler.c alone */
	struct perf_events *events; /* NULL with SAMPLER_TWIN */
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
	struct perf_events_total tags_weighed; /* when ibs_control.tag_ops was last set */
	__u64 tag_unit; /* what each count of SAMPLER_TAG_OPS is: 1, or the period that a fetch tag takes */
	bool tags_are_lost;
	double tag_debt;     /* ops by which samples so far stand for too little */
	struct rings *rings; /* NULL: no records, and no copies */
	struct layout layout;
	struct sampler_memory memory;
	struct kernel_features features;
	struct mapping state_map, series, slot_owners, records, hot_lines, twin, tgids, tids;
	struct sampler_select select;
	struct bpf_link *fork_link;
	int prog_fd;	      /* the skeleton's */
	struct counts counts; /* of the maps above */
	struct ibs_state *state;
	unsigned int possible_cpus;
	__u32 max_slots;
	__u32 ended; /* slot that takes what groups leave: IBS_SLOT_OTHER, or with pins its own */
	sampler_heir *heir;
	void *heir_arg;
	/* so far; only ever grow; the last two since this sampler began */
	__u64 unseen, dropped, undelivered;
	__u64 seen_before, dropped_before, undelivered_before; /* by collectors before */
	/* what the PMU did for collectors before, whose counters were adopted */
	struct pmu_state pmu_before;
	__u64 pmu_samples_before;
	__u32 by;		      /* enum ibs_by bits */
	struct slab_list slab_names;  /* as far as they were asked for */
	struct slot_seen *slots_seen; /* max_slots of them; NULL: never looked */
	bool counts_periods;	      /* what the PMU counts, divided by the period, is samples */
	enum event_filter filter;
	bool by_freq; /* the period varies */
	bool simulated, count_ops;
	bool adopted, started;
	const char *not_adopted; /* why what is pinned was not adopted; "": nothing is */
	bool direct;
	bool warned_cpus;
	__u32 line_sets, line_tables; /* one pair of tables each CPU */
	__u8 line_half;		      /* that is in use */
};

/* What options come to: what is tested for, and how many of everything. Of sampler_size.c. */
__u32 sampler_pid_blocks(void);
bool watches_forks(const struct sampler_opts *opts);
size_t sampler_max_selected(const struct selection *sel);
size_t sampler_max_selected_entries(const struct selection *sel);
__u32 sampler_group_by(const struct sampler_opts *opts);
__u32 sampler_max_slots(const struct sampler_opts *opts);
__u32 sampler_stack_depth(void);
bool sampler_has_rings(const struct sampler_opts *opts);
size_t sampler_sampled_cpus(const struct sampler_opts *opts); /* that samples can be of */
size_t sampler_ring_cpus(const struct sampler_opts *opts);    /* one ring each */
size_t sampler_line_bytes(const struct sampler_opts *opts); /* of one of the two tables of a CPU */
size_t sampler_record_bytes(const struct sampler_opts *opts);
__u32 sampler_cpu_entries(unsigned int possible_cpus); /* of the maps by CPU */

struct sampler_select *sampler_selection(struct sampler *s);

/* Enter a whole selection, before sampling starts. */
int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err);
void select_close(struct sampler_select *ss);

/* Make the programs look up each cgroup anew at its next sample. */
void select_renew(struct sampler_select *ss);

/* Maps that sampler_fold() deletes from. */
struct sampler_fold_maps {
	int cgroups, groups, slots;
	bool by_groups;
};

/*
 * Before the object is loaded, give it the pinned maps; once it is loaded, continue from their counts;
 * last, pin its own maps if the pinned ones did not fit. Nothing without opts->pins.
 */
int sampler_pins_adopt(struct sampler *s, const struct sampler_opts *opts, struct err *err);
void sampler_pins_resume(struct sampler *s, const struct sampler_opts *opts);
int sampler_pins_put(struct sampler *s, const struct sampler_opts *opts, struct err *err);

/* Disabled, and with the program attached if there is to be one. Not for SAMPLER_TWIN and _LOAD. */
int sampler_events_open(struct sampler *s, const struct sampler_opts *opts, struct err *err);

/* Open them if there are opts->tags; a failure is reported, and they are not counted then. */
void sampler_tags_open(struct sampler *s, const struct sampler_opts *opts, int cgroup);
/* Once all events are enabled, and before the first is disabled. */
void sampler_tags_begin(struct sampler *s);
void sampler_tags_end(struct sampler *s);
void sampler_tags_read(struct sampler *s, struct pmu_state *out);
/* Are samples weighed by ibs_control.tag_ops, in which sampler_tags_weigh() puts what was counted lately? */
bool sampler_weighs_tags(const struct sampler_opts *opts);
void sampler_tags_weigh(struct sampler *s);
/* The period is to be another one: what a tag stands for changes with it. */
void sampler_tags_period(struct sampler *s, __u64 before, __u64 now);

/*
 * Just before events are enabled for the first time: what the program has seen by now is none of
 * theirs. A link that was removed may have let some through until shortly before.
 */
int sampler_pins_start(struct sampler *s, struct err *err);

struct bpf_map *sampler_map(struct sampler *s, enum ibs_pin pin);
void sampler_layout(struct sampler *s, const struct sampler_opts *opts,
		    struct ibs_meta_layout *out);

struct sampler_fold_maps sampler_fold_maps(const struct sampler *s);

struct sampler_leaving {
	__u32 slot;
	__u32 into; /* where its counts go: sampler.ended, or another slot that goes on counting */
};

/*
 * Add slots that are in use to others, and give them free; every cgroup is met anew. Of other
 * groups than cgroups nothing may be found any more.
 */
void sampler_fold_slots(struct sampler *s, struct sampler_leaving *leaving, size_t n);

/* Before the counts of a slot go, so that sampler_make_room() takes them for nobody's activity. */
void sampler_room_moving(struct sampler *s, const struct sampler_leaving *l);

/* Give samplers with pins their slot of IBS_SLOT_ENDED. */
void sampler_fold_reserve(struct sampler *s, const struct sampler_opts *opts);

/* Add up what lies in slots that nobody owns: a folding that was broken off. */
void sampler_fold_repair(struct sampler *s);

/* sampler_slabs() by the program that lists them */
struct bpf_program;
int slabs_list(struct bpf_program *prog, sampler_slab *cb, void *arg, struct err *err);

#endif
