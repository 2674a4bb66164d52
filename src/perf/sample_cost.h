/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU time that one sample takes, with NMI, driver and program, measured as the time that a
 * calibrated loop loses.
 */
#ifndef IBSCOPE_SAMPLE_COST_H
#define IBSCOPE_SAMPLE_COST_H

#include "loop_loss.h"

#include <linux/perf_event.h>

struct sample_cost {
	double ns;	  /* median of rounds */
	double spread_ns; /* standard error of it */
	__u64 samples;	  /* measured */
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
 * @like: an event of the same PMU and counting mode; its filters are dropped, as they would leave too
 *	  few samples
 *
 * A program that does nothing is attached, because without one the kernel prepares a record.
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

/* Load the program that does nothing. Return: an fd that the caller closes, or a negative errno. */
int sample_cost_empty_program(void);

/* An event as one of several subjects of loop_loss_measure(). */
struct sample_event;

/* Open it, disabled. Return: as sample_cost_measure(). */
int sample_event_open(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
		      struct sample_event **out, struct err *err);
struct loop_subject sample_event_subject(struct sample_event *ev);
void sample_event_close(struct sample_event *ev); /* accepts NULL */

#endif
