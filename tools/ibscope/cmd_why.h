/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibscope why */
#ifndef IBSCOPE_CMD_WHY_H
#define IBSCOPE_CMD_WHY_H

#include "diff/diff.h"

struct screen;

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

/* Is it the name of a file rather than of a container? NULL: no. Return: 0 or -EINVAL with @err, which says what reads it. */
int why_name_check(const char *wanted, struct err *err);

/* @wanted may lack what is before the last part of the name. */
bool why_is_wanted(const char *name, const char *wanted);

/* The name of a container, as tables have it. */
/*
 * How long was counted: the time that events were enabled. Counters can be much older, since they stay when a collector
 * and its events end.
 */
#define WHY_SAMPLED 96
void why_format_sampled(double sampled_s, double age_s, char buf[WHY_SAMPLED]);

void why_put_name(const char *name);

/* Print the comparison, whose selections are the name and what each side is. */
void why_put_json(const struct screen *s, struct diff *d, const struct compare_result *r,
		  const char *name, const char *a, const char *b);

/* What is behind the largest cause, and what helps. */
void why_put_advice(const struct screen *s, const struct diff *d, const struct compare_result *r);

#endif
