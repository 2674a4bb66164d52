/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The data of an HTML report, and the facts about it that the page reads as JSON. */
#ifndef IBSCOPE_HTML_FACTS_H
#define IBSCOPE_HTML_FACTS_H

#include "html_opts.h"
#include "html_places.h"
#include "html_rows.h"

#include "base/intern.h"
#include "base/parallel.h"
#include "report/report.h"
#include "symbols/chain.h"
#include "where/lines.h"

#include <stdio.h>

/* Names that rows refer to by number; 0: none. */
enum html_name { HTML_RANK, HTML_ROLE, HTML_REGION, HTML_SITE, HTML_NAMES };

/* The address of a line. */
enum html_address { HTML_PHYSICAL, HTML_VIRTUAL, HTML_NO_ADDRESS, HTML_ADDRESSES };

#define HTML_NAMES_MAX 4096 /* per kind; the last one is for all others */

/* A frame of a call chain, below its caller's node. */
struct html_node {
	__u32 parent, frame;
	__u32 alone; /* the node of the same frame without callers; 0: not asked for */
};

/* A container, or a cgroup outside containers. */
struct html_group {
	const char *option; /* option that selects it by its name; NULL: there is none */
};

#define HTML_BATCH  4096 /* samples of a job */
#define HTML_RECENT 256	 /* threads */

/* A sample on its way to the rows. */
struct html_sample {
	struct html_key key;
	__u64 time_ns, period; /* as for html_rows_add(), html_row_of_sample() */
	__u32 latency, exposed;
	unsigned int folds; /* steps that were applied to the key */
};

struct html_report {
	struct html_report_opts opts;
	struct html_rows rows;	     /* complete after html_fold_flush() */
	struct parallel_queue queue; /* of struct html_sample, on their way to the rows */
	const struct html_sample
		*left; /* of the last batch: there was no room for the first of them */
	size_t n_left;
	struct line_set *lines; /* of the current recording */
	char *hot_lines;	/* of all recordings, as elements of a JSON array */
	size_t hot_size;
	__u64 trimmed;	     /* samples of lines that were given up */
	__u64 lines_private; /* lines of one thread or CPU, which are left out */
	FILE *hot_file;
	struct json_writer hot_writer;
	struct intern frames, groups;
	struct html_group *group; /* by number in `groups` */
	size_t room_groups;
	struct u64_map group_of; /* cgroup id to number */
	struct u64_map node_of;	 /* parent << 32 | frame to node */
	struct html_node *nodes;
	size_t n_nodes, room_nodes;
	struct chain_memo memo;	   /* node of a frame below that of its caller */
	struct u64_map thread_of;  /* node by the address of the thread's name */
	__u32 recent[HTML_RECENT]; /* the node of a thread met lately, by tid */
	struct html_places places;
	struct intern names[HTML_NAMES];
	struct u64_map site_of; /* number by stack and maps of an allocation; of this recording */
	struct html_bytes *block_bytes; /* sizes of the blocks of a site, by its number */
	size_t room_block_bytes;
	bool exposed_unknown;  /* of a sample */
	bool ranked;	       /* the recording has MPI ranks or OpenMP threads */
	unsigned int folds;    /* steps that html_fold_add() has taken */
	unsigned int parts;    /* recordings */
	__u64 time_shift;      /* from the clock of this recording to that of the first one */
	__u64 clock, realtime; /* of the first recording, read at the same time */
	__u64 samples, without_registers, period;
	bool same_period, hitm_known;
	/* samples by how far their function, and the node of their data, are known */
	__u64 code_kinds[CODE_KIND_N], node_kinds[NODE_KIND_N];
	__u64 addresses[HTML_ADDRESSES];    /* those that load or store */
	__u64 first_ns, step_ns, intervals; /* of intervals; their number */
	__u64 length_ns; /* of the intervals; 0: from the first sample to the last */
	__u32 sources;	 /* 1 << enum ibs_src that occur */
};

/* Number the occurring sources, near to far. */
void html_facts_sources(const struct html_report *r, __u8 numbers[IBS_SRC_N]);

/* Warnings for the top of the page: simulated, incomplete, lost samples. */
void html_facts_band(const struct html_report *r, const struct trace_end *end, __u64 fetches,
		     char *buf, size_t size);

/* Whether containers are ranked by exposed cycles: table_currency(). */
bool html_facts_exposed(const struct html_report *r);

void html_facts_write(struct html_report *r, const struct trace_end *end, FILE *f);

/* What differs from the rest, as "findings"; null if there are too few samples. */
void html_findings_put(const struct html_report *r, struct json_writer *w);

/*
 * Add to the rows; at the maximum number of rows, give up one detail after the other.
 *
 * Return: 0, or -E2BIG if there is no detail left to give up.
 */
int html_fold_add(struct html_report *r, struct html_key key, __u64 time_ns,
		  const struct html_row *what);

/* The same for one sample, some time before html_fold_flush() returns; an error is of this sample or of one before it. */
int html_fold_sample(struct html_report *r, const struct html_sample *sample);
int html_fold_flush(struct html_report *r);

/* Describe the given up details; "" if there are none. */
void html_fold_text(const struct html_report *r, char *buf, size_t size);

/* Set rank, role, region and site of a sample's key; the role only in recordings with ranks or regions. */
void html_names_add(struct html_report *r, const struct trace_event *ev, struct html_key *key);
/* "names": those that rows refer to by number, "" first; "block_bytes": least and largest size of the blocks of each site. */
void html_names_write(const struct html_report *r, struct json_writer *w);

/* The node of a sample's innermost function. */
__u32 html_stack_of(struct html_report *r, const struct trace_event *ev);

/* Add a frame below @parent in a call chain. Return: its number. */
__u32 html_node_of(struct html_report *r, __u32 parent, __u32 frame);

/* Do samples represent different numbers of ops? */
static inline bool html_report_strata(const struct html_report *r)
{
	return r->opts.info->n_pmus && trace_has_strata(r->opts.info);
}

#endif
