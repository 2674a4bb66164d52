/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a selection to what the decision core reads, live and for recordings, and its sizes. */
#ifndef IBSCOPE_SELECT_CONFIG_H
#define IBSCOPE_SELECT_CONFIG_H

#include "selection.h"

#include <ibscope/config.h>

#define MAX_GROUPS 1024 /* by default */

/* Slots a shard; 0 groups are the default. */
__u32 config_max_slots(__u32 max_groups);

/* Cgroups that are remembered, selected or not; those beyond have no group of their own. */
__u32 config_max_cgroups(__u32 max_slots);

bool selects_processes(const struct selection *sel);
bool selects_threads(const struct selection *sel);
bool selects_cgroups(const struct selection *sel);

/* Are the pids those left out? Nobody named and everybody wanted is all but nobody. */
bool selected_pids_left_out(const struct selected_pids *set);

/* As the core has it. */
struct ibs_selected_cgroup selected_cgroup_value(const struct selected_cgroup *c);

/* Set in @c what depends on the selection; `ibs` and `metric` are set. */
void config_select(struct ibs_config *c, const struct selection *sel);

/* What core_fetch_layout() is, by @c after config_select(), of ibs_fetch. @out: IBS_FETCH_LAYOUT_ENTRIES */
void config_fetch_layout(const struct ibs_config *c, __u16 *out);

#endif
