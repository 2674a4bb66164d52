/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What twin.c and select.c need of a sampler's insides. */
#ifndef IBSCOPE_SAMPLER_PRIVATE_H
#define IBSCOPE_SAMPLER_PRIVATE_H

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

struct sampler_select *sampler_selection(struct sampler *s);

/* Enter a whole selection, before sampling starts. */
int select_set(struct sampler_select *ss, const struct selection *sel, struct err *err);
void select_close(struct sampler_select *ss);

/* Of the program ibs_op_twin, or -EINVAL if the sampler is not of SAMPLER_TWIN. */
int sampler_twin_fd(const struct sampler *s);

/* Mapped, and shared with the program; NULL if the sampler is not of SAMPLER_TWIN. */
struct ibs_twin_area *sampler_twin_area(const struct sampler *s);

#endif
