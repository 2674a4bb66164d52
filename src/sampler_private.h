/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The insides of a sampler, for the files it is made of: sampler, sampler_read, select and twin. */
#ifndef IBSCOPE_SAMPLER_PRIVATE_H
#define IBSCOPE_SAMPLER_PRIVATE_H

#include "counts.h"
#include "kernel_features.h"
#include "layout.h"
#include "perf_events.h"
#include "sampler.h"

#include <ibscope/twin.h>

/* The selection as it is in force: places in the maps, and what is in them. */
struct sampler_select {
	struct ibs_control *control;
	bool live, follow;
	int cgroups_fd; /* map of the selected; 0: cgroups are not tested */
	__u8 *processes, *threads; /* a byte a pid; NULL: not tested */
	size_t pids_n;
	__u64 *ids; /* of the cgroups in the map */
	size_t n_ids;
};

struct mapping {
	void *addr;
	size_t bytes;
};

struct sampler {
	struct ibs_op_bpf *skel; /* for sampler.c alone */
	struct perf_events *events; /* NULL with SAMPLER_TWIN */
	struct layout layout;
	struct sampler_memory memory;
	struct kernel_features features;
	struct mapping series, slot_owners, twin, tgids, tids;
	struct sampler_select select;
	struct bpf_link *fork_link;
	struct counts counts; /* of the maps above */
	struct ibs_cpu_state *cpus; /* possible_cpus of them, shared with the programs */
	unsigned int possible_cpus;
	__u32 max_slots;
	__u64 period; /* 0: varies, or not counted by IBS */
	__u64 unseen; /* so far; only ever grows */
	bool direct;
	bool warned_cpus;
	int prog_fd; /* of the program that samples; of the skeleton */
};

struct sampler_select *sampler_selection(struct sampler *s);

/* Enter a whole selection, before sampling starts. */
int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err);
void select_close(struct sampler_select *ss);

/* Of the program ibs_op_twin, or -EINVAL if the sampler is not of SAMPLER_TWIN. */
int sampler_twin_fd(const struct sampler *s);

/* Mapped, and shared with the program; NULL if the sampler is not of SAMPLER_TWIN. */
struct ibs_twin_area *sampler_twin_area(const struct sampler *s);

#endif
