/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_DIFF_PRIVATE_H
#define IBSCOPE_DIFF_PRIVATE_H

#include "diff.h"

/* What a cause without keys is called. */
#define DIFF_NO_CAUSE "unknown"

void diff_put_json(FILE *f, const struct diff_print *p, const struct diff *d,
		   const struct compare_result *r);
void diff_put_csv(FILE *f, const struct diff *d, const struct compare_result *r);

/* --- counts of files and servers, which may be anything */

struct json_t;

struct diff_numbers {
	double samples, valid, sum, ops, cycles;
	bool no_ops; /* ops or cycles are unknown */
};

/* Could they be counts? */
bool diff_numbers_good(const struct diff_numbers *n);
struct compare_amount diff_amount(const struct diff *d, const struct diff_numbers *n);

/* "namespace/pod" of these labels, as LABEL_POD of recordings. The caller frees it; NULL: unknown */
char *diff_pod_name(const struct json_t *labels);

/* Add @n samples up to @edge to the buckets, and to @sum. Return: false if these are no such numbers, or there are more than @most. */
bool diff_add_bucket(__u64 *buckets, const struct json_t *edge, const struct json_t *n, double most,
		     double *sum);

/* Where the samples of a side are from. */
/* @width: columns of the file name, at least */
void diff_put_side(FILE *f, const struct screen *s, const struct diff_about *a, char name,
		   const struct compare_side_sum *sum, size_t width);

/* y is miss cycles per op; people read them per thousand. */
double diff_scale(const struct diff *d);

/* "miss cycles per thousand ops" */
void diff_what(const struct diff *d, char *buf, size_t size);

/* A number as people read it, without and with a sign. */
#define DIFF_NUMBER 32
const char *diff_number(const struct screen *s, double v, char buf[DIFF_NUMBER]);
#define DIFF_SIGNED (DIFF_NUMBER + 4)
const char *diff_signed(const struct screen *s, double v, char buf[DIFF_SIGNED]);

const char *diff_minus(const struct screen *s);

/* Print with names that others chose. */
__attribute__((format(printf, 2, 3))) void diff_put(FILE *f, const char *fmt, ...);

/* How far the changes that are shown are to be trusted, as table_print_trust() says it of rows. */
void diff_put_trust(FILE *f, const struct screen *s, const struct compare_result *r);

/* Nothing was found, although the interval of the sum does not contain 0: so many changes were tested. */
bool diff_is_close(const struct compare_result *r);

/* Which change would have been seen, or what this one needs. */
void diff_put_power(FILE *f, const struct screen *s, const struct compare_result *r);

/* The name of a row's key. */
const char *diff_name(const struct diff *d, const struct compare_where *w, unsigned int k);

/* "more often" or "slower", by the sign of a change. */
const char *diff_word(enum compare_kind kind, double change);

/* "ops", "cycles" or "fetches": what the samples count. */
const char *diff_unit(const struct diff *d);

/* --- latencies over time, only with diff.html */

#define DIFF_HEAT_COLUMNS 48 /* parts of the time of a side */
#define DIFF_HEAT_ROWS	  25 /* of latencies: half an octave, but for the first */

struct diff_parts {
	double y[DIFF_HEAT_COLUMNS][DIFF_HEAT_ROWS]; /* miss cycles per base */
	bool known[DIFF_HEAT_COLUMNS];		     /* there was a sample */
};

/* Add a sample; @ns: of any clock, 0: unknown */
void diff_heat_add(struct diff *d, enum compare_side side, __u64 ns, __u32 bucket,
		   const struct compare_amount *a);
/* Add counts, whose cycles are divided among the buckets by their middles. */
void diff_heat_spread(struct diff *d, enum compare_side side, __u64 ns, const __u64 *buckets,
		      const struct compare_amount *a);
/* @seconds: of the side, for DIFF_PER_SECOND */
void diff_heat_parts(const struct diff *d, enum compare_side side, double seconds,
		     struct diff_parts *out);
/* The upper edge of a row, in cycles. */
__u32 diff_heat_edge(unsigned int row);

/* Draw the call chains; @k: as diff_scale(). Return: false if there are none. */
bool diff_put_flame(FILE *out, const struct diff *d, const struct compare_result *r, double k);

#endif
