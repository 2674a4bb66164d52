/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the HTML report collects, and the facts about it that the page reads as JSON. */
#ifndef IBSCOPE_HTML_FACTS_H
#define IBSCOPE_HTML_FACTS_H

#include "html_lines.h"
#include "html_opts.h"
#include "html_rows.h"

#include "base/intern.h"

#include <stdio.h>

#define HTML_CPUS   8192
#define HTML_NO_CPU 65535

/* A frame of a call chain, below its caller's node. */
struct html_node {
	__u32 parent, frame;
};

/* A container, or the cgroup of what is in none. */
struct html_group {
	const char *option; /* that selects it by its name; NULL: none does */
};

struct html_report {
	struct html_report_opts opts;
	struct html_rows rows;
	struct html_lines lines;
	struct intern frames, groups;
	struct html_group *group; /* by number in `groups` */
	size_t room_groups;
	struct u64_map group_of; /* cgroup id to number */
	struct u64_map node_of;	 /* parent << 32 | frame to node */
	struct html_node *nodes;
	size_t n_nodes, room_nodes;
	__u64 cpus[HTML_CPUS / 64]; /* that have samples */
	__u64 samples, without_registers, period;
	bool same_period, hitm_known;
	__u64 first_ns, step_ns, intervals; /* where, and how many there are */
	__u64 length_ns; /* of the intervals; 0: from the first sample to the last */
	__u32 sources;	 /* 1 << enum ibs_src that occur */
};

/* Numbers of the sources that occur, near to far. */
void html_facts_sources(const struct html_report *r, __u8 numbers[IBS_SRC_N]);

/* What a reader must know before anything else: simulated, incomplete, lost samples. */
void html_facts_band(const struct html_report *r, const struct trace_end *end, char *buf,
		     size_t size);

/* Return: 0 or -ENOMEM. */
int html_facts_write(struct html_report *r, const struct trace_end *end, FILE *f);

#endif
