/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of this room. */
#ifndef IBSCOPE_METRICS_PRIVATE_H
#define IBSCOPE_METRICS_PRIVATE_H

#include "metrics.h"
#include "status/reading.h"
#include "base/u64_map.h"
#include "counts/counts.h"

/* --- groups --- */

/* All counts of a group; `src` together for all kinds of ops. */
struct metrics_group {
	const char *labels; /* as Prometheus writes them, each followed by a comma */
	const char *json;   /* the same as members of a JSON object */
	struct ibs_exemplar slowest[IBS_EXEMPLARS];
	__u64 samples, count[IBS_LAYOUT_OPS][IBS_SRC_N];
	__u64 ops[IBS_LAYOUT_OPS][IBS_SRC_N]; /* estimated ops, or fetches */
	__u64 timed[IBS_SRC_N];		      /* those of kinds of op with latencies */
	__u64 unexposed;		      /* samples of which exposed cycles are unknown */
	struct tlb_counts tlb;		      /* for fetches, the instruction TLB */
	struct series src[IBS_SRC_N];	      /* their buckets, if any, are the next */
	__u64 buckets[IBS_SRC_N][IBS_LAT_BUCKETS];
};

static inline __u64 metrics_exposed(const struct metrics_group *g)
{
	__u64 sum = 0;

	for (int src = 0; src < IBS_SRC_N; src++)
		sum += g->src[src].exposed;
	return sum;
}

/* The same in a few hundred bytes, and histograms in some thousand. */
struct metrics_packed {
	__u64 samples;
	const char *labels, *json;
	unsigned char *slowest;	 /* not aligned; NULL: none */
	unsigned char *counts;	 /* NULL: none */
	unsigned int histograms; /* where they begin in it */
	unsigned int room;	 /* of it */
};

/* The buckets of a source, which it has from now on. */
__u64 *metrics_buckets(struct metrics_group *g, int src);

/* Empty if all is zero except the first four. */
struct metrics_groups {
	__u32 by;     /* enum ibs_by bits: the labels that groups have */
	bool by_path; /* the path is a label even if the cgroup has a name */
	bool fetch;   /* samples are of ibs_fetch */
	/* histograms have only these edges; NULL: all buckets */
	const struct metrics_opts *coarse;
	__u64 ended; /* samples of groups that have no series any more */
	struct metrics_group
		*sum; /* while reading: of all groups, ended ones too; NULL: not wanted */
	struct metrics_packed whole; /* the same after it */
	struct metrics_packed *group;
	size_t n, room;
	struct u64_map by_labels; /* by their hash */
	struct metrics_block *blocks;
	size_t bytes; /* approximate memory use */
};

/* Memory that stays until metrics_groups_free(), out of the way of what is freed at once. */
void *metrics_keep(struct metrics_groups *all, size_t bytes);
void metrics_blocks_free(struct metrics_groups *all);

/* Replace the packed counts of a group. */
void metrics_pack(struct metrics_groups *all, struct metrics_packed *p,
		  const struct metrics_group *g);

/**
 * metrics_unpack() - the counts of a group
 * @histograms: unpack buckets, too; else there are none
 * @g:          valid until the groups are freed; of coarse histograms, each bucket at an edge has the
 *              samples since the edge before
 */
void metrics_unpack(const struct metrics_groups *all, const struct metrics_packed *p,
		    bool histograms, struct metrics_group *g);

/**
 * metrics_groups_add() - add the counts of a group
 * @name:  of its cgroup; unused if @other
 * @other: add them to `other`
 *
 * Groups with the same labels are summed: cgroups of one container, or a cgroup that was recreated.
 * When one of them ends, the collector adds its counts to another, so the sum never decreases. For
 * ended groups without such an heir only samples are counted: added to another series they would
 * look like a burst of samples.
 */
void metrics_groups_add(struct metrics_groups *all, const struct group *g,
			const struct ibs_slot_name *name, bool other);
void metrics_groups_free(struct metrics_groups *all);

/* --- a reading --- */

#define METRICS_EVENTS 2

struct metrics_facts {
	enum metrics_state state;
	unsigned int n_events;			/* 0 unless READ; with two, the first is ibs_op */
	struct reading reading[METRICS_EVENTS]; /* by event, and so are */
	__u64 ended[METRICS_EVENTS];		/* samples of groups that have no series any more */
	struct metrics_self self;
	/* As Prometheus client libraries report it; NAN: unknown. */
	struct process_stats {
		double cpu_s, rss_bytes, virtual_bytes, open_fds, max_fds, start_s;
	} process;
};

void process_stats_read(struct process_stats *out);

/* Immutable. */
struct metrics {
	struct metrics_facts facts;
	struct metrics_opts opts;
	struct metrics_groups groups[METRICS_EVENTS];
	char *why; /* there are no counters; NULL: there are */
};

/* --- writing text --- */

/* Several times faster than stdio for megabytes. */
void buf_put(struct metrics_buf *b, const void *s, size_t n);
void buf_text(struct metrics_buf *b, const char *s);
void buf_number(struct metrics_buf *b, const char *before, __u64 v, const char *after);

/* --- metrics of groups --- */

/* Number of group metrics. */
extern const unsigned int group_metrics;

/* A group metric: NULL if the reading of the event lacks it, as all latencies but the one histogrammed. */
const struct group_metric *group_metric_at(const struct metrics *m, unsigned int event,
					   unsigned int i);
const struct metric_head *group_metric_head(const struct group_metric *row);
void group_metric_put(struct metrics_buf *b, const struct metrics *m,
		      const struct group_metric *row, enum metrics_format format,
		      const struct metrics_group *g);
/* True if it needs the histograms of groups. */
bool group_metric_of_histograms(const struct group_metric *row);
void group_metrics_describe(FILE *f);

/* --- how metrics are written --- */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_SUMMARY, METRIC_INFO };

struct metric_head {
	const char *name; /* without suffixes such as _total or _info */
	enum metric_type type;
	const char *unit; /* the last word of the name, or "" */
	const char *help;
};

/* "_total", "_info" or "": suffix of the names of the metric's samples. */
const char *metric_suffix(const struct metric_head *m);

/* HELP, TYPE and UNIT. @format is one of the text formats. */
void metric_write_head(FILE *f, enum metrics_format format, const struct metric_head *m);

/* NAME="VALUE" after @sep. @value may contain any bytes; unprintable ones are escaped. */
void metric_write_label(FILE *f, const char *sep, const char *name, const char *value);

#define METRIC_LABELS_MAX 8

/* One line of a metric. */
struct metric_line {
	struct {
		const char *name, *value;
	} label[METRIC_LABELS_MAX]; /* ends with a NULL name */
	char text[16];		    /* room for a label's value */
	double value;		    /* NAN: unknown, no line */
};

void metric_line_label(struct metric_line *out, const char *name, const char *value);

/* Lines of metrics with labels, by a reading: fill line @i, which is zeroed. Return: false after the last one. */
typedef bool metric_lines(const struct reading *r, unsigned int i, struct metric_line *out);

extern metric_lines lines_filtered, lines_lost, lines_work, lines_work_delayed, lines_push_profiles,
	lines_push_samples, lines_flights, lines_neighbour_slowdowns, lines_neighbour_shares,
	lines_neighbour_chances, lines_neighbour_traffic, lines_neighbour_l3, lines_governor_states,
	lines_governor_changes, lines_nmi_cost, lines_bpf_cost, lines_build_info,
	lines_collector_info, lines_strata_seconds, lines_strata_samples;

/* A line for the list of all metrics. */
void metric_describe(FILE *f, const struct metric_head *m);

/* All other metrics: their text, or their lines in the list. */
void metrics_table_write(FILE *f, enum metrics_format format, const struct metrics_facts *facts);
void metrics_table_describe(FILE *f);

#endif
