/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which samples of a recording are meant: what the BPF program decides, decided afterwards. */
#ifndef IBSCOPE_REPORT_SELECT_H
#define IBSCOPE_REPORT_SELECT_H

#include "cpulist.h"
#include "filter.h"
#include "tasks.h"

/* The zero value selects all. All pointers outlive the selection. */
struct report_selection {
	__u32 src_mask, op_mask; /* bits of enum ibs_src and ibs_op_kind; 0: all */
	enum ibs_metric metric;	 /* that the limits are of */
	__u32 min_lat, max_lat; /* cycles; 0: no limit. A sample without the latency is not meant */
	const __u32 *pids, *tids;
	size_t n_pids, n_tids;
	bool pids_but, comms_but; /* all but those */
	const char *const *comms;
	size_t n_comms;
	const char *const *cgroups; /* paths or patterns; what is below them is meant too */
	size_t n_cgroups;
	const struct cpulist *cpus;  /* NULL: all */
	const struct filter *filter; /* NULL: none */
};

struct report_select;

/**
 * report_select_new() - prepare a selection
 * @tasks: names and cgroups of the recording
 *
 * Return: 0; -ENOMEM; or -EOPNOTSUPP where the filter asks what no recording tells.
 */
int report_select_new(const struct report_selection *sel, const struct tasks *tasks,
		      struct report_select **out, struct err *err);
void report_select_free(struct report_select *s); /* accepts NULL */

/**
 * report_selected() - is a sample meant?
 *
 * What is asked of a field that a sample lacks never holds, so samples of ibs_fetch are not meant
 * where anything is asked of an op.
 */
bool report_selected(struct report_select *s, const struct trace_event *ev);

#endif
