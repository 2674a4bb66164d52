/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this room share. */
#ifndef IBSCOPE_METRICS_PRIVATE_H
#define IBSCOPE_METRICS_PRIVATE_H

#include "metrics.h"
#include "reading.h"
#include "base/u64_map.h"
#include "counts/counts.h"

/* --- groups --- */

struct metrics_group {
	__u64 cgroup_id;
	char *labels; /* as Prometheus writes them, each followed by a comma */
	char *json;   /* the same as members of a JSON object */
	__u64 samples, count[IBS_OP_KIND_N][IBS_SRC_N];
	__u64 ops[IBS_OP_KIND_N][IBS_SRC_N]; /* estimated ops */
	struct tlb_counts tlb;
	struct series src[IBS_SRC_N]; /* all kinds of ops together */
};

/* Empty if all is zero but @by. */
struct metrics_groups {
	__u32 by; /* enum ibs_by bits: the labels that groups have */
	struct metrics_group **group;
	size_t n, room;
	struct u64_map by_labels; /* by their hash */
	size_t bytes;		  /* of memory, about */
};

/**
 * metrics_groups_add() - add the counts of a group
 * @name:  of its cgroup; not used if @other
 * @other: add them to `other`
 *
 * Groups with the same labels are added up, except those of a cgroup that was made again: the series
 * is that of the newer one, and the counts of the older one go to `other`. So the series restarts
 * once, as if the workload had restarted, and does not go back when the older one is folded.
 *
 * Return: 0 or -ENOMEM.
 */
int metrics_groups_add(struct metrics_groups *all, const struct group *g,
		       const struct ibs_slot_name *name, bool other);
void metrics_groups_free(struct metrics_groups *all);

/* --- a reading --- */

struct metrics_facts {
	enum metrics_state state;
	struct reading reading; /* if READ */
	struct metrics_self self;
	/* As the client libraries of Prometheus report it; NAN where unknown. */
	struct process_stats {
		double cpu_s, rss_bytes, virtual_bytes, open_fds, max_fds, start_s;
	} process;
};

void process_stats_read(struct process_stats *out);

/* Does not change any more. */
struct metrics {
	struct metrics_facts facts;
	struct metrics_opts opts;
	struct metrics_groups groups;
	char *json; /* the collector as members of a JSON object, which the groups end */
	size_t json_len;
};

/* --- how metrics are written --- */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_SUMMARY, METRIC_INFO };

struct metric_head {
	const char *name; /* without _total, _info and the like */
	enum metric_type type;
	const char *unit; /* the last word of the name, or "" */
	const char *help;
};

/* "_total", "_info" or "": the end of the names of the metric's samples. */
const char *metric_suffix(const struct metric_head *m);

/* HELP, TYPE and UNIT. @format is one of the text formats. */
void metric_write_head(FILE *f, enum metrics_format format, const struct metric_head *m);

/* NAME="VALUE" after @sep. @value may contain any bytes; unprintable ones are escaped. */
void metric_write_label(FILE *f, const char *sep, const char *name, const char *value);

/* A line for the list of all metrics. */
void metric_describe(FILE *f, const struct metric_head *m);

/* Every metric that is not one of groups: its text, or its line in the list. */
void metrics_table_write(FILE *f, enum metrics_format format, const struct metrics_facts *facts);
void metrics_table_describe(FILE *f);

#endif
