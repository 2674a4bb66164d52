/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A selection of samples, in the form that the sampler and the replay of recordings test. */
#ifndef IBSCOPE_SELECTION_H
#define IBSCOPE_SELECTION_H

#include "base/std.h"

#include <ibscope/config.h>
#include <ibscope/predicate.h>

/*
 * A cgroup that a selection names. It includes all descendants without an entry of their own. Id 0
 * matches no cgroup: selecting only it selects nothing, as when the cgroups do not exist yet.
 */
struct selected_cgroup {
	__u64 id;
	__u16 min_lat;	  /* cycles; 0: that of the selection */
	bool out;	  /* excluded rather than selected */
	bool filter_only; /* neither: the entry is only for `filter` */
	__u8 filter;	  /* bit k: predicate k of the filter holds for it and its descendants */
};

struct selected_pids {
	const __u32 *pids; /* in the PID namespace of this process */
	size_t n;
	bool but; /* all others */
};

/* What sampler_set_*() can change. The program has no tests for anything else. */
enum sampler_live {
	SAMPLER_LIVE_PROCESSES = 1 << 0,
	SAMPLER_LIVE_CGROUPS = 1 << 1,
	SAMPLER_LIVE_FILTER = 1 << 2,  /* only cgroups that are `filter_only` */
	SAMPLER_LIVE_LATENCY = 1 << 3, /* including those of cgroups */
	SAMPLER_LIVE_ALL = (1 << 4) - 1,
};

/* The zero value selects everything. */
struct selection {
	struct selected_pids processes; /* none: any */
	struct selected_pids threads;	/* the same; `but` is not supported */
	bool follow;			/* include their children */
	const char *const *comms;	/* at most IBS_COMMS_MAX, of at most 15 bytes; none: any */
	size_t n_comms;
	bool comms_but;
	__u32 op_mask;		/* 1 << enum ibs_op_kind; 0: any */
	__u32 src_mask;		/* 1 << enum ibs_src; 0: any */
	__u32 min_lat, max_lat; /* cycles; max 0: no limit. Samples without a latency never match */
	/* if none is selected: all except the `out` ones; else only those selected */
	const struct selected_cgroup *cgroups;
	size_t n_cgroups;
	const struct ibs_filter *filter; /* from filter_parse(); NULL: none */
	unsigned int live;		 /* enum sampler_live bits: what may change */
};

/* Converts a selection to the configuration of the decision core, live and for recordings. */

#define MAX_GROUPS 1024 /* by default */

/* Slots per shard; 0: the default number of groups. */
__u32 config_max_slots(__u32 max_groups);

/* Cgroups that the program caches, selected or not; further ones have no group of their own. */
__u32 config_max_cgroups(__u32 max_slots);

bool selects_processes(const struct selection *sel);
bool selects_threads(const struct selection *sel);

/* True if the pids are excluded, including the empty set: everything except none. */
bool selected_pids_left_out(const struct selected_pids *set);

/* Convert to the decision core's form. */
struct ibs_selected_cgroup selected_cgroup_value(const struct selected_cgroup *c);

/* Set the members of @c that depend on the selection; `ibs` and `metric` must be set. */
void config_select(struct ibs_config *c, const struct selection *sel);

/* Compute core_fetch_layout(), after config_select(). @out: IBS_FETCH_LAYOUT_ENTRIES entries */
void config_fetch_layout(const struct ibs_config *c, __u16 *out);

#endif
