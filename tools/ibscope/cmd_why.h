/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibscope why */
#ifndef IBSCOPE_CMD_WHY_H
#define IBSCOPE_CMD_WHY_H

#include "base/intern.h"
#include "diff/diff.h"
#include "neighbours/neighbours.h"

struct screen;

/* Now, by the counters of a collector. Zero: not given. */
struct why_now {
	const char *pin_dir;
	double duration_s;
	const char *wanted; /* NULL: the one with most miss cycles now */
	bool json;
};

/* Print the answer. Return: 0 or a negative errno with @err. */
int why_now_answer(const struct why_now *of, struct err *err);

/* A moment that has passed. Zero: not given. */
struct why_moment {
	double at_s; /* since 1970 */
	double duration_s;
	const char *wanted; /* NULL: the one with most miss cycles then */
	const char *exporter, *prometheus, *match, *flight_dir; /* NULL: not given */
	bool json;
};

/* Are these options right together? Return: 0 or -EINVAL with @err. */
int why_moment_check(const struct why_moment *m, struct err *err);

/* Print the answer of the history of an exporter. Return: 0 or a negative errno with @err. */
int why_moment_answer(const struct why_moment *m, struct err *err);

/* A recording. Zero: not given. */
struct why_file {
	const char *file;
	double at_s, duration_s;
	const char *wanted; /* NULL: the one with most miss cycles at the end */
	bool json;
};

/* Print the answer of a recording. Return: 0 or a negative errno with @err, which is empty if an error was printed. */
int why_file_answer(const struct why_file *of, struct err *err);

/* Is it the name of a file rather than of a container? */
bool why_is_file(const char *wanted);

/* @wanted may lack what is before the last part of the name. */
bool why_is_wanted(const char *name, const char *wanted);

/* Seconds since 1970 as a time in UTC. Return: @text */
#define WHY_STAMP 32
const char *why_stamp(double s, char text[WHY_STAMP]);

/*
 * How long was counted: the time that events were enabled. Counters can be much older, since they stay when a collector
 * and its events end.
 */
#define WHY_SAMPLED 96
void why_format_sampled(double sampled_s, double age_s, char buf[WHY_SAMPLED]);

/* The name of a container, as tables have it. */
void why_put_name(const char *name);

/* Print the comparison, whose selections are the name and what each side is. */
void why_put_json(const struct screen *s, struct diff *d, const struct compare_result *r,
		  const char *name, const char *a, const char *b);

/* The row with the largest part in a finding. */
void why_put_where(const struct diff *d, const struct compare_result *r);

/* Who slows @victim, a number of @names. @more: what would give enough windows */
void why_put_neighbours(struct neighbours *n, __u32 victim, const struct intern *names,
			const char *more);

/* The largest cause of more waiting; NULL: none */
const struct compare_term *why_worst(const struct compare_result *r);

/* What is behind that cause, and what helps. */
void why_put_advice(const struct screen *s, const struct diff *d, const struct compare_result *r);

#endif
