/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The CPU time of one sample, with NMI, driver and program: the time that a busy loop loses. */
#ifndef IBSCOPE_SAMPLE_COST_H
#define IBSCOPE_SAMPLE_COST_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct sample_cost {
	double ns;	  /* median of rounds */
	double spread_ns; /* standard error of it */
	__u64 samples;	  /* measured */
	/* what the event counts, in a ns that this CPU is busy and takes no sample */
	double per_ns;
};

/**
 * sample_cost_measure() - alternate slices of 10 ms with the event disabled and enabled
 * @attr:    of ibs_op, ibs_fetch or the software clock, with a fixed period
 * @prog_fd: program to attach; -1: none
 * @cpu:     the calling thread keeps it busy for about @seconds, up to four times as long if other
 *	     processes use it
 *
 * The cost of cold caches is not included: the loop uses none. The calling thread's affinity is
 * restored.
 *
 * Return: 0; or a negative errno with @err: -EAGAIN if the loop was too disturbed: too few rounds, or
 * spread_ns is not below ns; -EINVAL if the period is not fixed or the CPU is
 * not ours to use; what opening or attaching failed with.
 */
int sample_cost_measure(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
			double seconds, struct sample_cost *out, struct err *err);

/**
 * sample_cost_floor() - measure interrupt and driver alone, the cost of any sample
 * @like: an event of the same PMU and counting mode; its filters are dropped, as they would leave
 *        too few samples
 *
 * An empty program is attached, because without one the kernel prepares a record.
 *
 * Return: as sample_cost_measure(); and -ERANGE for a figure outside SAMPLE_COST_MIN_NS to
 * SAMPLE_COST_MAX_NS.
 */
#define SAMPLE_COST_MIN_NS 50
#define SAMPLE_COST_MAX_NS 100000
int sample_cost_floor(const struct perf_event_attr *like, unsigned int cpu, double seconds,
		      struct sample_cost *out, struct err *err);

/* The event that sample_cost_floor() uses for @like. */
struct perf_event_attr sample_cost_event(const struct perf_event_attr *like);

/* Load an empty program. Return: an fd that the caller closes, or a negative errno. */
int sample_cost_empty_program(void);

/* An event as a subject of loop_loss_measure(). */
struct sample_event;

/* Open the event, disabled. Return: as sample_cost_measure(). */
int sample_event_open(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
		      struct sample_event **out, struct err *err);
struct loop_subject sample_event_subject(struct sample_event *ev);
void sample_event_close(struct sample_event *ev); /* accepts NULL */

/*
 * The CPU time of something, measured by switching it off and on. The calling thread runs a loop on
 * one CPU that only reads the clock: an iteration that took too long was interrupted, by NMI,
 * driver or program. The speed of the loop does not matter, so neither the clock frequency nor a
 * sibling thread changes the result.
 */

struct loop_subject {
	/* Switch it on or off. Return: 0, or a negative errno with @err, which ends the measurement. */
	int (*set)(void *arg, bool on, struct err *err);
	/*
	 * Samples so far, not always a whole number; only differences while it is on are used.
	 * NULL: unknown while it is on.
	 */
	double (*samples)(void *arg);
	void *arg;
};

struct loop_loss {
	double share; /* of the loop's time while on: median of rounds */
	double share_spread;
	/* Per sample, in ns; valid if sampled_rounds is not 0. */
	double ns, ns_spread;
	__u64 samples;	   /* measured */
	double sampled_ns; /* the time in which they were taken */
	double on_s;	   /* total time it was on, including other processes' time */
	unsigned int rounds, sampled_rounds;
};

/* Fewer rounds give no median. */
#define LOOP_ROUNDS_MIN 5

struct loop_opts {
	unsigned int cpu;
	double seconds; /* of all rounds */
	double slice_s; /* length of a slice, without and with each subject; 0: 10 ms */
	const volatile sig_atomic_t
		*stop; /* nonzero ends the measurement with -EINTR; may be NULL */
};

/**
 * loop_loss_measure() - measure each of @n subjects in turn, with one or none on at a time
 * @out: @n of them
 *
 * Time in which other processes had the CPU does not count; if that is most of the time, the
 * measurement takes up to four times as long. Spreads are the standard error of the median, from the
 * quartiles of the rounds. On return all subjects are off, and the caller's affinity is restored.
 *
 * Return: 0; what set() failed with; or a negative errno with @err: -EAGAIN if fewer than
 * LOOP_ROUNDS_MIN rounds were undisturbed, -EINVAL if @opts->cpu is offline or outside our cpuset.
 */
int loop_loss_measure(const struct loop_subject *subjects, size_t n, const struct loop_opts *opts,
		      struct loop_loss *out, struct err *err);

/* Sort @v and return its median; *spread: its standard error, from the quartiles. @n > 0. */
double loop_median(double *v, size_t n, double *spread);

#endif
