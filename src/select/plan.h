/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan of a selection: for each predicate the earliest stage that gives the same answer. A stage
 * before the program only drops what the program would drop, too, and the program still tests
 * everything: a plan changes what dropped samples cost, and which figures can be known.
 */
#ifndef IBSCOPE_PLAN_H
#define IBSCOPE_PLAN_H

#include "machine/abilities.h"
#include "machine/event.h"
#include "select_options.h"

#include <ibscope/op.h>
#include <jansson.h>

/* X(NAME, "name of --plan", "name", "what a sample costs that it drops"), the earliest first. */
#define PLAN_STAGE_TABLE(X)                            \
	X(HARDWARE, "hw", "hardware", "nothing")       \
	X(SCHEDULER, "sched", "scheduler", "nothing")  \
	X(DRIVER, "driver", "driver", "the interrupt") \
	X(PROGRAM, "off", "program", "the interrupt and 70 to 130 instructions")

enum plan_stage {
#define PLAN_STAGE_ENUM(NAME, ...) PLAN_##NAME,
	PLAN_STAGE_TABLE(PLAN_STAGE_ENUM)
#undef PLAN_STAGE_ENUM
		PLAN_STAGE_N
};

/*
 * Stages used without --plan: the scheduler leaves every estimate as it is. A hardware filter takes
 * them away, and the driver saves little, but takes `unseen` away.
 */
#define PLAN_DEFAULT (1U << PLAN_SCHEDULER)

/*
 * Sources that the L3 of the core does not have. Only DataSrc reports them, which only loads have; what
 * l3missonly does with I/O, other agents and stores is not documented.
 */
#define PLAN_L3_MISSES                                                                \
	(1U << IBS_SRC_NEAR_CACHE | 1U << IBS_SRC_REMOTE_CACHE | 1U << IBS_SRC_DRAM | \
	 1U << IBS_SRC_REMOTE_DRAM | 1U << IBS_SRC_PMEM | 1U << IBS_SRC_REMOTE_PMEM | \
	 1U << IBS_SRC_CXL | 1U << IBS_SRC_REMOTE_CXL)

/* The predicates that options make, with the names of their options. */
#define PLAN_PREDICATE_TABLE(X)                                           \
	X(CPU, "-C", "what other CPUs do")                                \
	X(CGROUP, "--cgroup, --container", "tasks of other cgroups")      \
	X(PID, "-p, -t", "other processes and threads")                   \
	X(COMM, "--comm", "threads of other names")                       \
	X(OP, "--op", "other kinds of op")                                \
	X(SRC, "--src", "other sources")                                  \
	X(MIN_LAT, "--min-lat", "shorter latencies, ops without one")     \
	X(MAX_LAT, "--max-lat", "longer latencies, ops without one")      \
	X(MODE, "--user, --kernel", "ops in the other half of addresses") \
	X(OTHER, "other filters", "what does not match")

enum plan_predicate {
#define PLAN_PREDICATE_ENUM(NAME, ...) PLAN_BY_##NAME,
	PLAN_PREDICATE_TABLE(PLAN_PREDICATE_ENUM)
#undef PLAN_PREDICATE_ENUM
		PLAN_PREDICATE_N
};

/* What a plan depends on besides the options that select. */
struct plan_context {
	const struct abilities *abilities;
	unsigned int stages; /* 1 << enum plan_stage: which may be used */
	enum ibs_metric metric;
	bool cpus;			/* -C */
	bool core_counters;		/* tagged ops are counted also without need */
	bool command;			/* the measured command has a cgroup of its own */
	const struct event_spec *event; /* as given */
	bool simulated;
};

struct plan_line {
	enum plan_predicate predicate;
	enum plan_stage stage;
	const char *drops;
	bool rest;     /* the stage drops only some of that, the program the rest */
	char why[240]; /* not earlier; "": it cannot be earlier */
};

struct plan {
	size_t n;
	struct plan_line lines[PLAN_PREDICATE_N];
	/* terms and modifiers of the event */
	bool l3missonly, swfilt, user, kernel;
	unsigned int ldlat, fetchlat; /* cycles; 0: not used */
	bool cgroup;	/* events count only while the selected cgroup runs, if it is one */
	bool estimates; /* what a sample stands for is known: one period, or by core counters */
	bool tags;	/* tagged ops are to be counted */
	bool unseen;	/* the PMU's count tells how many samples there were */
};

/* Find the plan. Depends on nothing but its arguments. */
void plan_make(const struct select_options *o, const struct plan_context *c, struct plan *out);

/* The event to open: as given, with what the plan adds. */
void plan_event(const struct plan *p, const struct plan_context *c, struct event_spec *out);

void plan_print(FILE *f, const struct plan *p, const struct plan_context *c);
json_t *plan_json(const struct plan *p, const struct plan_context *c); /* the caller owns it */

/**
 * plan_parse() - the argument of --plan: "off", or stages as in "hw,sched"
 * @stages: 1 << enum plan_stage
 *
 * Return: 0, or -EINVAL with @err.
 */
int plan_parse(const char *text, unsigned int *stages, struct err *err);

#endif
