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
	char *labels; /* as Prometheus writes them, each followed by a comma */
	char *json;   /* the same as members of a JSON object */
	__u64 samples, count[IBS_LAYOUT_OPS][IBS_SRC_N];
	__u64 ops[IBS_LAYOUT_OPS][IBS_SRC_N]; /* estimated ops, or fetches */
	__u64 timed[IBS_SRC_N];	      /* of those, the ones of kinds of op that have latencies */
	struct tlb_counts tlb;	      /* of fetches the instruction TLB */
	struct series src[IBS_SRC_N]; /* all kinds of ops together */
};

/* Empty if all is zero but the first three. */
struct metrics_groups {
	__u32 by;     /* enum ibs_by bits: the labels that groups have */
	bool by_path; /* the path of the cgroup is a label even where there is a name */
	bool fetch;   /* samples are of ibs_fetch */
	__u64 ended;  /* samples of groups that have no series any more */
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
 * Groups with the same labels are added up: cgroups of one container, or one that was made again. When
 * one of them ends the collector adds its counts to another, so the sum does not go back. Of a group
 * that has ended and left none, only the samples are counted: as a series of others it would be taken
 * for samples that came at once.
 */
void metrics_groups_add(struct metrics_groups *all, const struct group *g,
			const struct ibs_slot_name *name, bool other);
void metrics_groups_free(struct metrics_groups *all);

/* --- a reading --- */

struct metrics_facts {
	enum metrics_state state;
	struct reading reading;		    /* if READ */
	const struct metrics_facts *second; /* of the other event; NULL: there is none */
	__u64 ended;			    /* samples of groups that have no series any more */
	struct metrics_self self;
	/* As the client libraries of Prometheus report it; NAN where unknown. */
	struct process_stats {
		double cpu_s, rss_bytes, virtual_bytes, open_fds, max_fds, start_s;
	} process;
};

void process_stats_read(struct process_stats *out);

/* Counters are of samples of ibs_fetch. */
static inline bool facts_of_fetch(const struct metrics_facts *f)
{
	return f->state == METRICS_READ && ibs_metric_of_fetch(reading_metric(&f->reading.meta));
}

/* Does not change any more. */
struct metrics {
	struct metrics_facts facts;
	struct metrics_opts opts;
	struct metrics_groups groups;
	char *json; /* the collector as members of a JSON object, which the groups end */
	size_t json_len;
	struct metrics *second; /* of ibs_fetch, where both events are sampled; else NULL */
};

/* --- text that is being written --- */

/* Stdio would take several times as long for megabytes. */
void buf_put(struct metrics_buf *b, const char *s, size_t n);
void buf_text(struct metrics_buf *b, const char *s);
void buf_number(struct metrics_buf *b, const char *before, __u64 v, const char *after);

/* --- metrics of groups --- */

/* How many there are. */
extern const unsigned int group_metrics;

/*
 * One of the metrics of groups: NULL if the reading has it not. The collector histograms one of the
 * latencies, and the others have no lines.
 */
const struct group_metric *group_metric_at(const struct metrics *m, unsigned int i);
const struct metric_head *group_metric_head(const struct group_metric *row);
void group_metric_put(struct metrics_buf *b, const struct metrics *m,
		      const struct group_metric *row, enum metrics_format format,
		      const struct metrics_group *g);
void group_metrics_describe(FILE *f);

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
