/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of a selection: for each predicate the earliest stage that gives the same answer. Stages
 * before the program only drop samples that the program would drop, and the program still tests
 * everything: a plan changes the cost of dropped samples, and which figures are known.
 */
#ifndef IBSCOPE_PLAN_H
#define IBSCOPE_PLAN_H

#include "abilities.h"
#include "event/event.h"
#include "select/select_options.h"

#include <ibscope/op.h>

/* X(NAME, "name of --plan", "name", "cost of a dropped sample"), the earliest first. */
#define PLAN_STAGE_TABLE(X)                            \
	X(HARDWARE, "hw", "hardware", "nothing")       \
	X(SCHEDULER, "sched", "scheduler", "nothing")  \
	X(DRIVER, "driver", "driver", "the interrupt") \
	X(PROGRAM, "program", "program", "the interrupt and 70 to 130 instructions")

enum plan_stage {
#define PLAN_STAGE_ENUM(NAME, ...) PLAN_##NAME,
	PLAN_STAGE_TABLE(PLAN_STAGE_ENUM)
#undef PLAN_STAGE_ENUM
		PLAN_STAGE_N
};

/*
 * Instead of a list of stages: choose those that keep estimates known. These are the scheduler, and the hardware if core
 * counters give the ops per sample. Not the driver: it saves little, and leaves `unseen` unknown.
 */
#define PLAN_AUTO (1U << PLAN_STAGE_N)

/*
 * Sources beyond the core's L3. Only DataSrc reports them, and only for loads; the effect of
 * l3missonly on I/O, other agents and stores is not documented.
 */
#define PLAN_L3_MISSES                                                                \
	(1U << IBS_SRC_NEAR_CACHE | 1U << IBS_SRC_REMOTE_CACHE | 1U << IBS_SRC_DRAM | \
	 1U << IBS_SRC_REMOTE_DRAM | 1U << IBS_SRC_PMEM | 1U << IBS_SRC_REMOTE_PMEM | \
	 1U << IBS_SRC_CXL | 1U << IBS_SRC_REMOTE_CXL)

/* Predicates, with the options that create them. */
#define PLAN_PREDICATE_TABLE(X)                                           \
	X(CPU, "-C", "samples of other CPUs")                             \
	X(CGROUP, "--cgroup, --container", "tasks of other cgroups")      \
	X(PID, "-p, -t", "other processes and threads")                   \
	X(COMM, "--comm", "threads of other names")                       \
	X(OP, "--op", "other kinds of op")                                \
	X(SRC, "--src", "other sources")                                  \
	X(MIN_LAT, "--min-lat", "shorter latencies, ops without one")     \
	X(MAX_LAT, "--max-lat", "longer latencies, ops without one")      \
	X(MODE, "--user, --kernel", "ops in the other half of addresses") \
	X(OTHER, "other filters", "samples that do not match")

enum plan_predicate {
#define PLAN_PREDICATE_ENUM(NAME, ...) PLAN_BY_##NAME,
	PLAN_PREDICATE_TABLE(PLAN_PREDICATE_ENUM)
#undef PLAN_PREDICATE_ENUM
		PLAN_PREDICATE_N
};

/* Inputs of a plan besides the selecting options. */
struct plan_context {
	const struct abilities *abilities;
	unsigned int stages;	/* 1 << enum plan_stage: allowed stages; or PLAN_AUTO */
	const char *no_weights; /* why samples of filtered ops cannot be weighed; NULL: they can */
	const char *no_slices;	/* why samples of slices of time cannot be; NULL: they can */
	enum ibs_metric metric;
	bool cpus;			/* -C */
	bool core_counters;		/* count tagged ops even if not needed */
	bool command;			/* the measured command has its own cgroup */
	const struct event_spec *event; /* as given */
	bool simulated;
	bool strata; /* sample in strata if possible */
	bool counters; /* with counters that only grow, as those of a collector; a simulation can do that */
	const char *no_strata; /* why that is not possible; NULL: the other members say */
};

struct plan_line {
	enum plan_predicate predicate;
	enum plan_stage stage;
	const char *drops;
	bool rest;     /* the stage drops only some samples, the program the rest */
	char why[240]; /* reason for no earlier stage; "": none exists */
};

struct plan {
	size_t n;
	struct plan_line lines[PLAN_PREDICATE_N];
	/* terms and modifiers of the event */
	bool l3missonly, swfilt, user, kernel;
	unsigned int ldlat, fetchlat; /* cycles; 0: not used */
	bool cgroup;		      /* events count only while the selected cgroup runs */
	bool estimates;	     /* ops per sample are known: a fixed period, or core counters */
	bool tags;	     /* count tagged ops */
	bool unseen;	     /* the PMU's count gives the number of samples */
	bool strata;	     /* alternate with an event that has l3missonly */
	char no_strata[160]; /* why not, if wanted; "": they were not */
	bool chosen;	     /* by PLAN_AUTO: the user asked for no hardware filter, and gets one */
};

/* Find the plan. A pure function of its arguments. */
void plan_make(const struct select_options *o, const struct plan_context *c, struct plan *out);

/* The event to open: as given, with what the plan adds. */
void plan_event(const struct plan *p, const struct plan_context *c, struct event_spec *out);

/* The event of the miss stratum. */
void plan_miss_event(const struct plan *p, const struct plan_context *c, struct event_spec *out);

/* @width: columns to wrap at */
void plan_print(FILE *f, const struct plan *p, const struct plan_context *c, unsigned int width);
void plan_print_json(FILE *f, const struct plan *p, const struct plan_context *c);

/**
 * plan_parse() - parse the argument of --plan: "auto", "program" or "off", or stages as in "hw,sched"
 * @stages: 1 << enum plan_stage, or PLAN_AUTO
 *
 * Return: 0, or -EINVAL with @err.
 */
int plan_parse(const char *text, unsigned int *stages, struct err *err);

#endif
