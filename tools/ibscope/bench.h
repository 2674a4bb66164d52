/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the measurements of `ibscope bench` share. */
#ifndef IBSCOPE_BENCH_H
#define IBSCOPE_BENCH_H

#include "cpu.h"
#include "event.h"
#include "loop_loss.h"
#include "quiet.h"
#include "sampler.h"

#include <signal.h>

/* Where a figure comes from; every line of the report says it. */
enum bench_from {
	BENCH_FROM_EVENT,    /* samples of ibs_op, or of the software clock */
	BENCH_FROM_TWIN,     /* the program run on request: no interrupt, modelled registers */
	BENCH_FROM_COMPUTED, /* no measurement */
};

#define BENCH_MORE 8

/* One line of the report. */
struct bench_row {
	char name[64]; /* stable: scripts know it */
	char what[112];
	char why[512]; /* not "": it cannot be had, and this is the reason */
	enum bench_from from;
	const char *unit;
	double value, spread; /* a median, and its standard error */
	unsigned int rounds;  /* that it is the median of; 0: one figure */
	struct {
		const char *name;
		double value;
	} more[BENCH_MORE];
	size_t n_more;
};

struct bench_report;

struct bench {
	bool quick;
	bool instructions; /* a nanosecond of the clock is an instruction */
	const char *unit;  /* "ns", or "instructions" */
	struct bench_report *report;

	enum sampler_source source; /* SAMPLER_IBS or SAMPLER_SIM */
	struct cpu_info cpu_info;
	struct ibs_cpu ibs;
	struct perf_event_attr attr; /* the period is bench_period()'s */
	char event[EVENT_TEXT_MAX];  /* for messages and for perf */
	double events_per_s;	     /* that the loop makes: ops, or ns; 0: not measured yet */

	unsigned int cpu, reader_cpu; /* of loop and readers; the same where there is but one */
};

extern volatile sig_atomic_t bench_stop; /* the user wants an end */

/* 0, or -EINTR with @err. */
int bench_check_stop(struct err *err);

/* Seconds or rounds, of a short or of a whole run. */
double bench_of(const struct bench *b, double quick, double full);

/* --- the report --- */

struct bench_report *bench_report_new(bool json);
void bench_report_free(struct bench_report *r); /* accepts NULL */
/* What machine this is; @cpus: online. */
void bench_report_begin(struct bench *b, unsigned int cpus);
void bench_report_section(struct bench *b, const char *name, const char *help);
/* Return: 0, or a negative errno with @err if it cannot be written. */
int bench_report_end(struct bench *b, bool interrupted, struct err *err);

/*
 * Adds a line; what it points to lives as long as the program. Of a value that is not above its spread
 * only that: it cannot be told.
 */
void bench_add(struct bench *b, const struct bench_row *row);
/* To be called before bench_add(): one more figure of the line. */
void bench_more(struct bench_row *row, const char *name, double value);
/* A figure that is there, or 0. */
double bench_get(const struct bench_row *row, const char *name);
void bench_missing(struct bench *b, const char *name, const char *what, enum bench_from from,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A line that is there already and has a value, or NULL. */
const struct bench_row *bench_find(const struct bench *b, const char *name);

/* --- what becomes of a sample --- */

/* Which measurements have the case. */
enum bench_in {
	BENCH_IN_PROGRAM = 1 << 0,
	BENCH_IN_SITU = 1 << 1,
	BENCH_IN_SAMPLE = 1 << 2,
};

struct bench_case {
	const char *name, *what;
	unsigned int in;	  /* enum bench_in */
	enum ibs_outcome outcome; /* IBS_OUTCOME_N: none */
	enum sampler_prog prog;
	enum sampler_output output;
	__u32 by;
	unsigned int n_cgroups; /* selected */
	bool no_op, no_src, high_lat, other_pid, copy;
};

extern const struct bench_case bench_cases[];
extern const size_t bench_n_cases;

/* Options of a sampler for a case; the caller adds the source, event and CPUs where needed. */
void bench_case_opts(const struct bench *b, const struct bench_case *c, struct sampler_opts *out);
/* The same with @period on the CPU of the loop, opened. */
int bench_case_open(const struct bench *b, const struct bench_case *c, __u64 period,
		    struct sampler **out, struct err *err);
/* 0 if samples came to what the case says; else a negative errno with @err. */
int bench_case_check(const struct bench_case *c, struct sampler *s, struct err *err);

/* --- help for measurements --- */

/* The period that makes about so many samples a second of the loop. */
int bench_period(struct bench *b, double rate, __u64 *period, struct err *err);

/* A file without a name, in TMPDIR, /var/tmp or /tmp. */
int bench_tmpfile(struct err *err);

/* --- the measurements: 0, or a negative errno with @err if none of it can be had --- */

typedef int bench_fn(struct bench *b, struct err *err);

bench_fn bench_program, bench_cold, bench_instructions;
bench_fn bench_situ, bench_sample;
bench_fn bench_peers, bench_bpftrace, bench_ratios;
bench_fn bench_rings;
bench_fn bench_snapshot, bench_scrape, bench_memory;

#endif
