/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `diff`: two recordings, two selections of one, or two files of counts, compared and shown. */
#ifndef IBSCOPE_DIFF_H
#define IBSCOPE_DIFF_H

#include "compare/compare.h"
#include "input/recorded.h"
#include "profile/profile.h"

struct json_writer;

enum diff_per { DIFF_PER_OPS, DIFF_PER_ACCESS, DIFF_PER_SECOND, DIFF_PER_N };

/* Name of a unit for --per. */
const char *diff_per_name(unsigned int per);

/* Where the samples of a side are from. Empty strings: unknown. */
struct diff_about {
	const char *file, *selection; /* selection: of --a or --b, or NULL */
	bool counts;		      /* of hist --json rather than a recording */
	char host[65], release[65], cpu[64], source[16], event[128], metric[32], filter[1024];
	bool simulated, hardware_filter;
	unsigned int units; /* enum report_unit bits */
};

struct diff {
	struct compare *compare;
	enum diff_per per;
	enum ibs_metric metric;
	enum label by[LABEL_ALL], causes[LABEL_ALL];
	unsigned int n_by, n_causes;
	bool by_default, causes_by_default; /* nobody asked for these keys */
	bool by_container; /* of recordings: a row is a container by its whole name, instead of `by` */
	const char *event; /* of counts: "ibs_op" or "ibs_fetch"; NULL: the first in a file */
	const char *earlier[COMPARE_SIDES]; /* see diff_find_overlap() */
	__u64 max_memory;		    /* for reading, bytes; 0: as for recordings */
	struct diff_about about[COMPARE_SIDES];
	bool html; /* keep what only diff_put_html() needs, which diff_free() frees: */
	struct diff_heat *heat[COMPARE_SIDES];
	struct folded *folded[COMPARE_SIDES]; /* if there are call chains */
};

/*
 * diff_add_recording() - read all samples of an opened recording
 *
 * Return: 0; -EAGAIN if samples have no period, so that only DIFF_PER_ACCESS is possible; or another
 * negative errno with @err.
 */
int diff_add_recording(struct diff *d, enum compare_side side, struct recorded *in,
		       struct err *err);

/* Two parts of a recording: what is before @from_ns, and what is from then on and before @until_ns, as times of samples. */
struct diff_split {
	__u64 from_ns, until_ns;
	const struct diff
		*of; /* only samples of this row of a comparison by_container; NULL: all */
	__u32 row;
	/* gets the samples of the second part, too; NULL: none */
	void (*now)(void *ctx, const struct trace_event *ev);
	void *ctx;
};

/* The same as diff_add_recording() for both sides. */
int diff_add_split(struct diff *d, const struct diff_split *split, struct recorded *in,
		   struct err *err);

/* Does the file have counts, as JSON? */
bool diff_is_counts(const char *file);

/* Where nobody asked for keys, take those that a file of counts has. Return: 0 or a negative errno with @err. */
int diff_keys_of_counts(struct diff *d, const char *file, struct err *err);

/*
 * diff_find_overlap() - are the files snapshots of the same counters?
 *
 * Then the later one has the counts of the other, too: diff_add_counts() subtracts d->earlier[side].
 *
 * Return: 0 or a negative errno with @err.
 */
int diff_find_overlap(struct diff *d, const char *a, const char *b, struct err *err);

/*
 * diff_add_counts() - read the output of hist --json or ctl snapshot --json
 *
 * Return: as diff_add_recording().
 */
int diff_add_counts(struct diff *d, enum compare_side side, const char *file, struct err *err);

/* What a Prometheus server scraped from @from_s, in seconds since 1970, for @seconds. */
struct diff_window {
	const char *url, *match; /* match: further label matchers, or "" */
	double from_s, seconds;
	/* of a history: */
	const struct diff_label {
		const char *key, *value;
	} * labels; /* the groups that have all of these */
	size_t n_labels;
	const char *option; /* that sets @seconds, for messages; NULL: --window */
	bool percentile;    /* of Prometheus: ask for buckets, too, which are most of the series */
};

/*
 * diff_add_window() - read the increases of counters in a window
 *
 * Latencies are known by the edges of the buckets that were exported.
 *
 * Return: 0, or a negative errno with @err.
 */
int diff_add_window(struct diff *d, enum compare_side side, const struct diff_window *w,
		    struct err *err);

/*
 * The same of the history that an ibscope-exporter keeps, of which latencies are known, too.
 *
 * Return: as diff_add_recording().
 */
int diff_add_history(struct diff *d, enum compare_side side, const struct diff_window *w,
		     struct err *err);

/* Get the history, for diff_add_history_answer(); the caller frees *text. Return: 0 or a negative errno with @err. */
int diff_fetch_history(const char *url, char **text, size_t *n, struct err *err);

/* Is @match what diff_add_history() understands? Return: 0 or -EINVAL with @err. */
int diff_history_match(const char *match, struct err *err);

/* The same, of an answer that has been received; it can be anything. */
int diff_add_history_answer(struct diff *d, enum compare_side side, const struct diff_window *w,
			    const char *text, size_t n, double now_s, struct err *err);
int diff_add_answer(struct diff *d, enum compare_side side, const struct diff_window *w,
		    const char *text, size_t n, struct err *err);

/* Return: 0; or -EINVAL with @err if the sides cannot be compared, naming what differs. */
int diff_check(const struct diff *d, struct err *err);

struct diff_print {
	const struct screen *screen;
	enum table_format format;
	size_t top; /* rows of where; 0: the format's usual number */
	/* adds members to the JSON object; NULL: none */
	void (*more)(void *ctx, struct json_writer *w);
	void *ctx;
};

/* Free what has been read, to read it again. */
void diff_reset(struct diff *d);

/*
 * One page without scripts: the tables, latencies over time on one scale with their difference, and call chains
 * if both sides have them. The caller checks ferror().
 */
void diff_put_html(FILE *f, const struct diff *d, const struct compare_result *r);

/* Parts of the text. The answer: a line, and one for each cause. */
void diff_put_answer(FILE *f, const struct screen *s, const struct diff *d,
		     const struct compare_result *r);
/* What is not counted, and what would not have been seen. */
void diff_put_notes(FILE *f, const struct screen *s, const struct diff *d,
		    const struct compare_result *r);

void diff_print(FILE *f, const struct diff_print *p, const struct diff *d,
		const struct compare_result *r);

#endif
