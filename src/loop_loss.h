/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What something takes from the CPU, switched off and on by turns: a loop that does nothing but read
 * the clock, on one CPU, by the thread that calls, sees each interruption as a turn that took too
 * long. All that interrupts it counts, whatever it is: NMI, driver, program. How fast the loop is does
 * not, so that neither clock frequency nor what a sibling thread does disturb.
 */
#ifndef IBSCOPE_LOOP_LOSS_H
#define IBSCOPE_LOOP_LOSS_H

#include "err.h"

#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct loop_subject {
	/* Called with true and false by turns. 0, or a negative errno with @err, which ends all */
	int (*set)(void *arg, bool on, struct err *err);
	/*
	 * Samples so far, perhaps not a whole number; only their differences while it is on matter.
	 * NULL: they cannot be told while it goes on.
	 */
	double (*samples)(void *arg);
	void *arg;
};

struct loop_loss {
	double share; /* of the loop's time, while it was on: median of rounds */
	double share_spread;
	/* A sample's part of it, in ns of CLOCK_MONOTONIC; told if sampled_rounds is not 0. */
	double ns, ns_spread;
	/* The same beyond subject 0, as differences within a round; of subject 0 all 0. */
	double share_beyond, share_beyond_spread, ns_beyond, ns_beyond_spread;
	__u64 samples; /* that the figures rest on */
	double on_s;   /* that it was on in all, other processes' time included */
	unsigned int rounds, sampled_rounds;
};

/* A median of fewer is none. */
#define LOOP_ROUNDS_MIN 5

struct loop_opts {
	unsigned int cpu;
	double seconds; /* of all rounds */
	double slice_s; /* at a stretch without and with each subject; 0: 10 ms */
	const volatile sig_atomic_t *stop; /* -EINTR once it is not 0; may be NULL */
};

/**
 * loop_loss_measure() - by turns without and with each of @n subjects, of which one is on at a time
 * @out: @n of them
 *
 * A part of the loop in which other processes had the CPU does not count; when they have most of it,
 * it takes longer than said, up to four times. Spreads are the standard error of the median, from the
 * quartiles of the rounds. When it returns all subjects are off, and the caller's affinity is as before.
 *
 * Return: 0; what set() failed with; or a negative errno with @err: -EAGAIN if fewer than
 * LOOP_ROUNDS_MIN rounds were left, -EINVAL if @opts->cpu is offline or not ours to use.
 */
int loop_loss_measure(const struct loop_subject *subjects, size_t n, const struct loop_opts *opts,
		      struct loop_loss *out, struct err *err);

/* Keep the CPU busy for so long. */
void loop_for(double seconds);

/* The median of @n > 0, which sorts @v; and its standard error, from the quartiles. */
double loop_median(double *v, size_t n, double *spread);

#endif
