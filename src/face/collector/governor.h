/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the sampling period so that sampling stays within a budget: raises it at once when samples
 * cost too much, lowers it slowly. Pure arithmetic on counters that the caller reads a few times a
 * second.
 */
#ifndef IBSCOPE_GOVERNOR_H
#define IBSCOPE_GOVERNOR_H

#include <ibscope/governor_state.h>
#include <linux/types.h>
#include <stdbool.h>

#define GOVERNOR_STEP_S	     0.25
#define GOVERNOR_IDLE_STEP_S 0.5 /* while the cost is far below the budget */
#define GOVERNOR_BPF_RUNS    100 /* minimum for a meaningful mean */
#define GOVERNOR_ROUND	     16	 /* periods set by the governor are multiples of this */

struct governor_config {
	double budget; /* share of the CPUs' time, 0.005 for 0.5 %; 0: none */
	__u64 floor;   /* the configured period, also the shortest; 0: it varies, no budget */
	__u64 max;     /* the longest period possible */
	__u64 start;   /* initial period, if needed before; 0 or out of range: the floor */
	enum governor_reason start_reason; /* why it was needed */
	double bpf_max_ns;		   /* mean run of the program; 0: no limit */
	__u64 rss_max;			   /* bytes; 0: no limit */
	unsigned int n_cpus;		   /* possible ones */
};

/* Current counters. If one is lower than before, the step only records them. */
struct governor_input {
	__u64 time_ns;	   /* monotonic, with or without suspended time */
	const __u64 *seen; /* samples of each possible CPU */
	__u64 throttled;   /* throttling events */
	__u64 cpu_ns;	   /* the collector's CPU time for sampling */
	__u64 other_ns;	   /* the collector's CPU time that others cause: reported, not budgeted */
	__u64 rss_bytes;
	__u64 max_rate;	   /* kernel.perf_event_max_sample_rate; 0: unknown */
	unsigned int cpus; /* sampled now */
	double nmi_ns;	   /* cost of a sample: interrupt and driver */
	double bpf_ns;	   /* mean run of the program */
	/* number of windows with timed runs so far, and the result of the last one */
	__u64 windows, window_runs;
	double window_ns;
	/* ops (or cycles) per second of samples that took an interrupt but reached no program */
	double unseen_ops_s;
};

struct governor_decision {
	__u64 period;	  /* in force from now on */
	bool changed;	  /* the period has changed */
	bool stop, start; /* disable events, or enable them after setting the period */
	bool trim;	  /* return free memory to the kernel */
	bool end;	  /* exit: memory stays above the limit */
	enum governor_state state;
	enum governor_reason reason; /* of the state; none at the configured rate */
	enum governor_reason why;    /* of this change, if any */
	double overhead; /* estimated since the last step, as a share of the CPUs' time */
	double own;	 /* the collector's part, averaged over about a minute */
	__u64 cost_ns;	 /* CPU time of everything since the first step */
	double next_s;	 /* until the next step */
	double retry_s;	 /* after a stop: until the next attempt */
};

struct governor;

/* NULL if out of memory, or if @c is inconsistent. */
struct governor *governor_new(const struct governor_config *c);
void governor_free(struct governor *g); /* accepts NULL */

/* Change the budget, a share of the CPUs' time, from the next step on; ignored without one. */
void governor_set_budget(struct governor *g, double budget);

/* The period in force. */
__u64 governor_period(const struct governor *g);

/* Why the period is longer than configured, if it is, even while sampling is stopped. */
enum governor_reason governor_longer(const struct governor *g);

/**
 * governor_step() - decide on the period from the counters since the last step
 *
 * The first step only notes the counters.
 *
 * The cost is (samples x (nmi + bpf) + the collector's CPU time) / (time x CPUs). The collector's time
 * counts up to half of the budget, so that it never stops sampling. If the cost of any part of the
 * last five seconds up to now is above the budget by more than chance, the period is raised in one
 * step to the value that would have cost 80 % of the budget. It is lowered, at most to a half at a
 * time, once the highest cost of any second of a quiet interval of at least five seconds would stay
 * below 70 % and what was spent above the budget is made up for; the interval doubles after every
 * premature return.
 *
 * A program that is slower than its limit raises the period, too, in proportion.
 *
 * If samples alone stay above the budget for a second at the longest period, or if the program is ten times
 * slower than its limit (without a budget: slower at all), sampling stops. It
 * is tried again after a minute, two, and so on up to an hour.
 */
void governor_step(struct governor *g, const struct governor_input *in,
		   struct governor_decision *out);

#endif
