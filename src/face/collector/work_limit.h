/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The collector's own CPU time by kind of work, and limits for work that others can cause: users
 * who create cgroups by the thousand or flood the HTTP server slow down that work, not sampling.
 */
#ifndef IBSCOPE_WORK_LIMIT_H
#define IBSCOPE_WORK_LIMIT_H

#include <ibscope/pin_layout.h>
#include <stdbool.h>

struct work_part {
	__u64 ns;	  /* CPU time */
	__u64 delayed_ns; /* time on hold */
	double credit_s;  /* CPU time available at once; below 0: on hold */
};

/* The zero value has no limits. */
struct work_limit {
	double rate; /* CPU time per second for each limited kind */
	double refilled_s;
	struct work_part part[IBS_WORK_N];
};

/* CPU time that a limited kind may use at once after a quiet time. */
#define WORK_BURST_S 0.5

/**
 * work_limit_set_budget() - derive the limits from --max-overhead
 * @budget: share of the CPUs' time; 0: none
 * @cpus:   number of sampled CPUs
 *
 * Each limited kind may use a quarter of the budget, and at least 2 % of one CPU.
 */
void work_limit_set_budget(struct work_limit *w, double budget, unsigned int cpus);

/* Account for CPU time that was spent on @kind. */
void work_limit_charge(struct work_limit *w, enum ibs_work kind, __u64 ns, double now_s);

/* Seconds until work of that kind may continue; 0: now. */
double work_limit_wait(struct work_limit *w, enum ibs_work kind, double now_s);

#endif
