/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Differences of counters that only grow. What was counted before is kept packed, and one group is
 * read at a time: a thousand groups cost a megabyte, not the ten of a snapshot.
 */
#ifndef IBSCOPE_INTERVAL_H
#define IBSCOPE_INTERVAL_H

#include "counts/counts.h"
#include "packed.h"

/* The zero value has counted nothing. */
struct baseline {
	struct snapshot head; /* without groups */
	struct packed groups;
	bool valid;
};

/**
 * interval_read() - what was counted since the last call
 * @now: time, PMU, and what the ledger says of it; groups and outcomes are read here
 * @out: only groups that have samples; the caller frees it
 *
 * Return: 0; 1 if there is nothing to compare with, as at first; or a negative errno with @err.
 */
int interval_read(struct baseline *b, const struct counts *c, const struct snapshot *now,
		  struct snapshot *out, struct err *err);

void baseline_free(struct baseline *b);

#endif
