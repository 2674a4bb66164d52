/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --flight-on CONDITION: when a flight recorder writes its last samples by itself.
 *
 *   condition := test { "&&" test } [ "for" TIME ]
 *   test      := KEY ("==" | "!=" | "=~") text       samples of these groups
 *              | value ("<" | "<=" | ">" | ">=" | "==" | "!=") number
 *
 * The samples of the groups that all tests of keys select are one sum; the values are those of this sum in
 * each second. A value that is unknown, such as a percentile of too few samples, makes the test false.
 */
#ifndef IBSCOPE_FLIGHT_WHEN_H
#define IBSCOPE_FLIGHT_WHEN_H

#include "rows/rows.h"

/* X(NAME, "name", of the ledger, "meaning") */
#define FLIGHT_VALUE_TABLE(X)                                                             \
	X(SAMPLES, "samples", false, "samples a second")                                  \
	X(P50, "p50", false, "latency that half of the samples do not exceed, cycles")    \
	X(P90, "p90", false, "the same for 90 % of them")                                 \
	X(P99, "p99", false, "the same for 99 %; needs 100 samples in a second")          \
	X(MEAN, "mean", false, "mean latency, cycles")                                    \
	X(MISS_CYCLES, "miss_cycles", false, "estimated cycles of misses a second")       \
	X(SAMPLES_LOST, "samples_lost", true, "samples a second that were seen and lost") \
	X(SAMPLES_UNSEEN, "samples_unseen", true, "samples a second that were not seen")

#define FLIGHT_TESTS	  8
#define FLIGHT_TEXT	  256
#define FLIGHT_CONDITIONS 8

struct flight_test {
	bool of_key;
	unsigned int what; /* enum label, or the number of a row of FLIGHT_VALUE_TABLE */
	unsigned int how;  /* the number of an operator */
	double number;
	char text[64];
};

struct flight_condition {
	char text[FLIGHT_TEXT]; /* as written */
	struct flight_test test[FLIGHT_TESTS];
	unsigned int n_tests;
	double for_s;
};

/**
 * flight_condition_parse() - parse one condition
 *
 * Return: 0, or -EINVAL with @err, which begins with "--flight-on: column N: ".
 */
int flight_condition_parse(const char *text, struct flight_condition *out, struct err *err);

/* 1 << enum label bits of its keys. */
unsigned int flight_condition_labels(const struct flight_condition *c);

/* A second, or as long as the collector took. */
struct flight_second {
	double length_s;
	const struct snapshot *counts; /* of this time */
	const struct rows *rows;       /* the same by the labels of all conditions */
};

/**
 * flight_condition_true() - was it true in this second?
 * @value: gets the first value that it names, "p99 2,432"
 */
bool flight_condition_true(const struct flight_condition *c, const struct flight_second *s,
			   char *value, size_t size);

#endif
