/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the HTML report collects, and the facts about it that the page reads as JSON. */
#ifndef IBSCOPE_HTML_FACTS_H
#define IBSCOPE_HTML_FACTS_H

#include "html_lines.h"
#include "html_opts.h"
#include "html_places.h"
#include "html_rows.h"

#include "base/intern.h"
#include "report/report.h"

#include <stdio.h>

/* Names that rows have numbers of; 0 is none. */
enum html_name { HTML_RANK, HTML_ROLE, HTML_REGION, HTML_NAMES };

/* The address of a line. */
enum html_address { HTML_PHYSICAL, HTML_VIRTUAL, HTML_NO_ADDRESS, HTML_ADDRESSES };

#define HTML_NAMES_MAX 4096 /* of one kind; the last one is of all others */

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
	struct html_places places;
	struct intern names[HTML_NAMES];
	bool ranked;	       /* the recording has MPI ranks or OpenMP threads */
	unsigned int folds;    /* steps of html_fold_add() that were taken */
	unsigned int parts;    /* recordings */
	__u64 time_shift;      /* from the clock of this recording to that of the first one */
	__u64 clock, realtime; /* of the first one: two readings at one time */
	__u64 samples, without_registers, period;
	bool same_period, hitm_known;
	/* samples by how far their function, and the node of their data, are known */
	__u64 code_kinds[CODE_KIND_N], node_kinds[NODE_KIND_N];
	__u64 addresses[HTML_ADDRESSES]; /* those that load or store */
	__u64 first_ns, step_ns, intervals; /* where, and how many there are */
	__u64 length_ns; /* of the intervals; 0: from the first sample to the last */
	__u32 sources;	 /* 1 << enum ibs_src that occur */
};

/* Numbers of the sources that occur, near to far. */
void html_facts_sources(const struct html_report *r, __u8 numbers[IBS_SRC_N]);

/* What a reader must know before anything else: simulated, incomplete, lost samples. */
void html_facts_band(const struct html_report *r, const struct trace_end *end, __u64 fetches,
		     char *buf, size_t size);

void html_facts_write(struct html_report *r, const struct trace_end *end, FILE *f);

/*
 * Add to the rows; when there are as many as there may be, give up one detail after the other.
 *
 * Return: 0, or -E2BIG if there is none left to give up.
 */
int html_fold_add(struct html_report *r, struct html_key key, __u64 time_ns,
		  const struct html_row *what);

/* What was given up, for people; "" if nothing was. */
void html_fold_text(const struct html_report *r, char *buf, size_t size);

/* A frame below @parent in a call chain. Return: its number. */
__u32 html_node_of(struct html_report *r, __u32 parent, __u32 frame);

#endif
