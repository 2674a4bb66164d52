/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one sample of an event takes from the CPU it interrupts, NMI, driver and program included, by
 * what a calibrated loop loses.
 */
#ifndef IBSCOPE_SAMPLE_COST_H
#define IBSCOPE_SAMPLE_COST_H

#include "loop_loss.h"

#include <linux/perf_event.h>

struct sample_cost {
	double ns;	  /* median of rounds */
	double spread_ns; /* standard error of it */
	__u64 samples;	  /* that it rests on */
};

/**
 * sample_cost_measure() - alternate slices of 10 ms with the event disabled and enabled
 * @attr:    of ibs_op, ibs_fetch or the software clock, with a fixed period; sampled as it says
 * @prog_fd: attached to the event; -1: none
 * @cpu:     where the calling thread is busy for about @seconds, up to four times as long where
 *	     other processes want that CPU too
 *
 * Samples are those that the event counted. Caches that a sample turns cold do not show: the loop
 * uses none. The calling thread's affinity is as before when it returns.
 *
 * Return: 0; or a negative errno with @err: -EAGAIN if the loop was too disturbed to tell, so that
 * spread_ns is not below ns or rounds are too few; -EINVAL if the period is not fixed or the CPU is
 * not ours to use; what opening or attaching failed with.
 */
int sample_cost_measure(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
			double seconds, struct sample_cost *out, struct err *err);

/* The same event as one of several subjects of loop_loss_measure(). */
struct sample_event;

/* Return: 0, or as sample_cost_measure(). It is not enabled. */
int sample_event_open(const struct perf_event_attr *attr, int prog_fd, unsigned int cpu,
		      struct sample_event **out, struct err *err);
struct loop_subject sample_event_subject(struct sample_event *ev);
void sample_event_close(struct sample_event *ev); /* accepts NULL */

#endif
