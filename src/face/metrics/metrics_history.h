/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was counted in each of the last intervals, by group and source, in bounded memory: the costliest groups
 * of each interval by themselves, the others in `other`, so that the sums are exact.
 */
#ifndef IBSCOPE_METRICS_HISTORY_H
#define IBSCOPE_METRICS_HISTORY_H

#include "metrics.h"

#define HISTORY_LENGTH_S   3600 /* the defaults */
#define HISTORY_INTERVAL_S 10

/* Maximum of a length divided by an interval. */
#define HISTORY_INTERVALS_MAX 1440

/* Bytes of all intervals, compressed. Beside them are the counts at the last reading: see metrics_base.h. */
#define HISTORY_MAX (5 << 20)

struct metrics_history;
struct metrics_history_text;

struct metrics_history_opts {
	double length_s; /* 0: none */
	double interval_s;
	size_t bytes; /* 0: HISTORY_MAX */
};

/* @opts: with a length of at most HISTORY_INTERVALS_MAX intervals */
struct metrics_history *metrics_history_open(const struct metrics_history_opts *opts);

/**
 * metrics_history_add() - add what was counted since the reading before
 *
 * Where counters could not be read, began again, or nothing sampled, there is a gap instead: unknown is not zero.
 *
 * Return: false if it was the same reading.
 */
bool metrics_history_add(struct metrics_history *h, const struct metrics *m);

/* Seconds that the intervals cover, gaps not counted; bytes that all of it takes. */
double metrics_history_seconds(const struct metrics_history *h);
size_t metrics_history_bytes(const struct metrics_history *h);

void metrics_history_close(struct metrics_history *h); /* accepts NULL; no text is open */

/**
 * metrics_history_text_open() - begin the text of a history: JSON, which is made while it is sent
 * @h:     NULL: there is none, which the text says
 * @after: number of the last interval that the client has; 0: none
 *
 * What it needs of older intervals stays until it is closed.
 */
struct metrics_history_text *metrics_history_text_open(struct metrics_history *h, __u64 after,
						       bool gzip);

/* Bytes of all of it. */
size_t metrics_history_text_size(const struct metrics_history_text *t);

/* Copy the next bytes. Return: their number, 0 at the end. */
size_t metrics_history_text_read(struct metrics_history_text *t, char *to, size_t max);

void metrics_history_text_close(struct metrics_history_text *t);

#endif
