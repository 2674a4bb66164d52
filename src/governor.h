/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How often to sample, so that sampling stays within a budget: a pure control law. It looks at
 * counters a few times a second, and says which period to set. Quick to back off, slow to return.
 */
#ifndef IBSCOPE_GOVERNOR_H
#define IBSCOPE_GOVERNOR_H

#include <ibscope/governor.h>
#include <linux/types.h>
#include <stdbool.h>

const char *governor_state_name(enum governor_state s);
const char *governor_state_help(enum governor_state s);
const char *governor_reason_name(enum governor_reason r);
const char *governor_reason_help(enum governor_reason r);

#define GOVERNOR_LOOK_S	     0.25
#define GOVERNOR_IDLE_LOOK_S 0.5 /* while so little is sampled that a jump may wait for it */
#define GOVERNOR_BPF_RUNS    100 /* of which a mean means something */
#define GOVERNOR_ROUND	     16	 /* periods that the governor makes are multiples */

struct governor_config {
	double budget; /* of the CPUs' time, 0.005 for 0.5 %; 0: none */
	__u64 floor;   /* period asked for, below which it never goes; 0: it varies, no budget */
	__u64 max;     /* longest there is */
	__u64 start; /* where to begin, if it was needed before; 0, or beyond the others: the floor */
	enum governor_reason start_reason; /* why it was; of a stop: not known */
	double bpf_max_ns;		   /* mean run of the program; 0: no bound */
	__u64 rss_max;			   /* bytes; 0: no bound */
	unsigned int n_cpus;		   /* possible ones */
};

/* What is so at a look. Counts only ever grow, else the look begins anew with them. */
/* Of a run of the program, until runs were timed, and without the privilege to. */
#define GOVERNOR_BPF_ASSUMED_NS 500

struct governor_input {
	__u64 time_ns;	   /* of a clock that does not jump; suspended time is in it or not */
	const __u64 *seen; /* samples of each possible CPU */
	__u64 throttled;   /* notices of the kernel */
	__u64 cpu_ns;	   /* CPU time of the collector */
	__u64 rss_bytes;
	__u64 max_rate;	   /* kernel.perf_event_max_sample_rate; 0: not known */
	unsigned int cpus; /* sampled now */
	double nmi_ns;	   /* of a sample: interrupt and driver */
	double bpf_ns;	   /* mean of the program's runs */
	/* Windows in which runs were timed so far, and what the last one came to. */
	__u64 windows, window_runs;
	double window_ns;
	/* Ops (or cycles) a second whose sample had its interrupt, but was seen by no program. */
	double unseen_ops_s;
};

struct governor_decision {
	__u64 period;	  /* to be in force from now on */
	bool changed;	  /* it was not */
	bool stop, start; /* events are to be disabled, or enabled (after the period is set) */
	bool trim;	  /* memory that is free is to be given back */
	bool end;	  /* the collector is to end in order: its memory stays above the bound */
	enum governor_state state;
	enum governor_reason reason; /* of the state; none at the rate asked for */
	enum governor_reason why;    /* of this change; none without one */
	double overhead; /* estimated since the last look, as a share of the CPUs' time */
	double own;	 /* of that, the collector's process, on average over a minute or so */
	__u64 cost_ns;	 /* of all since the first look: CPU time */
	double look_s;	 /* until the next look */
	double retry_s;	 /* of a stop: until it is tried again */
};

struct governor;

/* NULL without memory, or if @c makes no sense. */
struct governor *governor_new(const struct governor_config *c);
void governor_free(struct governor *g); /* accepts NULL */

/* In force, by the governor's word. */
__u64 governor_period(const struct governor *g);

/* Why it is longer than asked for, if it is, whatever sampling was stopped for since. */
enum governor_reason governor_longer(const struct governor *g);

/**
 * governor_step() - one look
 *
 * The first one only notes the counts.
 *
 * Cost is (samples x (nmi + bpf) + collector's CPU time) / (time x CPUs). Of the last five seconds
 * the end is taken, as long as it may be, in which the cost was above the budget, chance of small
 * numbers left aside: then the period becomes in one step the one that would have cost 80 % of the
 * budget. It is shortened, at most to a half at a time, once the highest cost of any second of a
 * while of at least five seconds would stay below 70 %, and what was spent above the budget before
 * is made up for; the while becomes longer if that was followed by backing off again.
 *
 * If the longest period is still above the budget for a second, whatever else asks for a longer
 * one, sampling stops, and is tried again after a minute, two, and so on up to an hour.
 */
void governor_step(struct governor *g, const struct governor_input *in,
		   struct governor_decision *out);

#endif
