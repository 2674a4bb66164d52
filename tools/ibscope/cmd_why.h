/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ibscope why */
#ifndef IBSCOPE_CMD_WHY_H
#define IBSCOPE_CMD_WHY_H

#include "base/intern.h"
#include "diff/diff.h"
#include "neighbours/neighbours.h"

struct json_writer;
struct screen;
struct why_places;

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

/* Print the comparison, whose selections are the name and what each side is. @places: NULL: unknown */
void why_put_json(const struct screen *s, struct diff *d, const struct compare_result *r,
		  const char *name, const char *a, const char *b, struct why_places *places);

/* The row with the largest part in a finding. */
void why_put_where(const struct diff *d, const struct compare_result *r);

/* Who slows @victim, a number of @names. @more: what would give enough windows */
void why_put_neighbours(struct neighbours *n, __u32 victim, const struct intern *names,
			const char *more);

/* Where the data of a container is, by the samples of a recording that are "now": its hottest line, and memory of other nodes. */
struct why_places *why_places_new(const struct recorded *in);
void why_places_free(struct why_places *p); /* accepts NULL */
/* @places: struct why_places; a sample for diff_split.now */
void why_places_add(void *places, const struct trace_event *ev);
/* Name what stands out, after the last sample and before @in is closed. */
void why_places_finish(struct why_places *p, const struct recorded *in, const struct screen *s);
/* A line each for what stands out. */
void why_places_put(const struct why_places *p, const struct screen *s);
/* @places: struct why_places; the same as members of an object, null for what does not stand out */
void why_places_put_json(void *places, struct json_writer *w);
/* Does a shared line, or memory of other nodes, stand out? */
bool why_places_line(const struct why_places *p);
bool why_places_remote(const struct why_places *p);

/* compare_finish() gave -ENODATA and @err: say how many samples of @whose are too few, and what helps. Return: -ENODATA */
int why_too_few(struct err *err, const char *whose, const struct compare_result *r,
		const char *remedy);

/* The largest cause of more waiting; NULL: none */
const struct compare_term *why_worst(const struct compare_result *r);

/* What is behind that cause, and what helps. */
void why_put_advice(const struct screen *s, const struct diff *d, const struct compare_result *r);

#endif
