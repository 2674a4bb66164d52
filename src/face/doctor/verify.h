/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares samples with counters of the core and of the L3. */
#ifndef IBSCOPE_VERIFY_H
#define IBSCOPE_VERIFY_H

#include <stdbool.h>
#include <stdio.h>

struct err;
struct loops;

/*
 * X(NAME, "id of JSON", "what was sampled", "what was counted", limit of the difference, 0: not judged,
 *   "remark of the text")
 *
 * A tag that does not retire is never delivered. Each tag costs a period of ops, so samples
 * represent ops that retire; ops of the interrupt itself are counted, but not sampled.
 */
#define VERIFY_TABLE(X)                                                                           \
	X(RETIRED, "samples", "samples seen", "tagged ops that retired", 0.005, "")               \
	X(VALID, "samples_valid", "samples seen", "tagged ops that interrupted", 0.005, "")       \
	X(TAGGED, "samples_tagged", "samples seen", "tagged ops", 0, "the rest did not retire")   \
	X(OPS, "ops", "estimated ops", "retired ops", 0.1, "the interrupt's own are not sampled") \
	X(L3, "l3_miss_latency", "mean latency of L3 misses", "the same, sampled by the L3", 0,   \
	  "samples in core clocks, the L3 in ns, or in core clocks by older descriptions of it; " \
	  "reading the L3 was never tried on hardware")                                           \
	X(L3_DRAM, "l3_dram", "  from DRAM of the node", "", 0, "")                               \
	X(L3_REMOTE_DRAM, "l3_remote_dram", "  from DRAM of another", "", 0, "")                  \
	X(L3_NEAR_CACHE, "l3_near_cache", "  from a cache of the node", "", 0, "")                \
	X(L3_REMOTE_CACHE, "l3_remote_cache", "  from a cache of another", "", 0, "")             \
	X(L3_CXL, "l3_cxl", "  from CXL of the node", "", 0, "")                                  \
	X(L3_REMOTE_CXL, "l3_remote_cxl", "  from CXL of another", "", 0, "")

enum verify_figure {
#define VERIFY_ENUM(NAME, ...) VERIFY_##NAME,
	VERIFY_TABLE(VERIFY_ENUM)
#undef VERIFY_ENUM
		VERIFY_N
};

struct verify_row {
	bool known;
	char why[256]; /* if unknown */
	double sampled, counted;
};

struct verify {
	const char *event;
	unsigned long long period; /* ops */
	double seconds;
	unsigned int cpus;
	struct verify_row rows[VERIFY_N];
};

/* Note that a figure is unknown, and why. */
void verify_unknown(struct verify *v, enum verify_figure figure, const char *why);
void verify_set(struct verify *v, enum verify_figure figure, double sampled, double counted);

/* True if any figure is known and judged. */
bool verify_compared(const struct verify *v);
/* True if all known and judged figures agree, and there is one. */
bool verify_agrees(const struct verify *v);

void verify_print(const struct verify *v, FILE *f);

/**
 * verify_print_json() - print the report as one JSON object
 * @loops: what loops looked like, or NULL
 *
 * {"event","period","seconds","cpus","figures":[{"id","sampled","counted","difference","limit","agrees",
 * "why"}],"agrees","loops":[{"id","expected","measured","error","limit","samples","agrees","why"}]};
 * unknown values are null, as are limit and agrees of figures that are not judged, and the final
 * agrees if nothing could be compared.
 *
 * Return: 0, or -EIO with @e.
 */
int verify_print_json(const struct verify *v, const struct loops *loops, FILE *f, struct err *e);

#endif
