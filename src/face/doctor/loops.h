/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What loops of known behaviour must look like in samples, and what they looked like. */
#ifndef IBSCOPE_LOOPS_H
#define IBSCOPE_LOOPS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

struct json_writer;

/* How a figure is printed, and what its limit is of. */
enum loop_unit {
	LOOP_COUNT,  /* relative */
	LOOP_CLOCKS, /* relative */
	LOOP_SHARE,  /* absolute */
};

/*
 * X(NAME, "id of JSON", "what", unit, limit)
 *
 * Limits of counts, to which chance is added, leave room for what IBS counts of an interrupt: its end, behind the write
 * that enables the counter again. Those of shares are for what disturbs a loop in the caches, those of latencies for what
 * else a step of a chain takes. All were chosen on the rig, where counts are up to 7 % high; no processor has tried them.
 */
#define LOOPS_TABLE(X)                                                                           \
	X(BRANCHES, "branches", "taken branches", LOOP_COUNT, 0.06)                              \
	X(STORES, "stores", "stores", LOOP_COUNT, 0.06)                                          \
	X(LOADS, "loads", "loads", LOOP_COUNT, 0.06)                                             \
	X(L1, "source_l1", "loads of half the L1, from L1", LOOP_SHARE, 0.1)                     \
	X(L2, "source_l2", "loads of half the L2, from L2", LOOP_SHARE, 0.2)                     \
	X(L3, "source_l3", "loads of a quarter of the L3, from L3", LOOP_SHARE, 0.2)             \
	X(DRAM, "source_dram", "loads of three times the L3, from DRAM", LOOP_SHARE, 0.2)        \
	X(LAT_L2, "latency_l2", "clocks of an L2 hit", LOOP_CLOCKS, 0.3)                         \
	X(LAT_L3, "latency_l3", "clocks of an L3 hit", LOOP_CLOCKS, 0.3)                         \
	X(LAT_DRAM, "latency_dram", "clocks of a load from DRAM", LOOP_CLOCKS, 0.3)              \
	X(LOCAL, "node_local", "loads from DRAM of the node: not remote", LOOP_SHARE, 0.1)       \
	X(REMOTE, "node_remote", "loads from DRAM of another node: remote", LOOP_SHARE, 0.1)     \
	X(PAGES_4K, "pages_4k", "loads of 1,024 pages of 4 KiB: L1 TLB miss", LOOP_SHARE, 0.2)   \
	X(PAGES_2M, "pages_2m", "the same in pages of 2 MiB: L1 TLB miss", LOOP_SHARE, 0.2)      \
	X(SHARING, "sharing", "misses of a line that two cores share: from a cache", LOOP_SHARE, \
	  0.2)                                                                                   \
	X(CODE_L1, "code_l1", "fetches of 8 lines: L1 miss", LOOP_SHARE, 0.1)                    \
	X(CODE_L2, "code_l2", "fetches of 4,096 lines: L1 miss", LOOP_SHARE, 0.3)

enum loop_figure {
#define LOOPS_ENUM(NAME, ...) LOOPS_##NAME,
	LOOPS_TABLE(LOOPS_ENUM)
#undef LOOPS_ENUM
		LOOPS_N
};

struct loop_row {
	bool known;
	char why[160]; /* if unknown */
	double expected, measured;
	unsigned long long samples; /* that @measured is of */
};

struct loops {
	struct loop_row rows[LOOPS_N];
};

/* Note that a figure is unknown, and why. */
void loops_unknown(struct loops *l, enum loop_figure figure, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Fewer samples than this are unknown. */
#define LOOPS_SAMPLES_MIN 30
void loops_set(struct loops *l, enum loop_figure figure, double expected, double measured,
	       unsigned long long samples);

/* Of two shares or of numbers, whatever the figure's limit is of. */
double loops_error(const struct loops *l, enum loop_figure figure);
/* The limit of a figure, wider where samples are few. */
double loops_limit(const struct loops *l, enum loop_figure figure);

bool loops_compared(const struct loops *l); /* any figure is known */
bool loops_agree(
	const struct loops *l); /* all known ones are within their limits, and there is one */

void loops_print(const struct loops *l, FILE *f);
/* Add the member "loops". */
void loops_print_json(const struct loops *l, struct json_writer *w);

/**
 * loops_run() - run the loops under sampling
 *
 * Takes some seconds of one CPU, in part of two, and memory of six times the L3.
 *
 * Return: 0; a figure that cannot be had is unknown. A negative errno with @err if nothing can be sampled.
 */
int loops_run(struct loops *l, struct err *err);

#endif
