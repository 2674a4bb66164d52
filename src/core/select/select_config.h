/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts a selection to the configuration of the decision core, live and for recordings. */
#ifndef IBSCOPE_SELECT_CONFIG_H
#define IBSCOPE_SELECT_CONFIG_H

#include "selection.h"

#include <ibscope/config.h>

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
