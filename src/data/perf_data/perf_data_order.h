/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorts records by time. perf writes the buffers of all CPUs one after the other, then the mark of a
 * finished round: records after it are not older than those before the mark
 * that precedes it. So records are held back for two rounds.
 *
 * To read everything and sort it would be simpler, but takes memory for all records of a file that can be
 * larger than that, and a pipe could not be read while it is written.
 */
#ifndef IBSCOPE_PERF_DATA_ORDER_H
#define IBSCOPE_PERF_DATA_ORDER_H

#include "base/heap.h"
#include "perf_data_format.h"

/* The zero value is empty. */
struct perf_order {
	/*
	 * Runs of records that were added one after the other with times that do not decrease, as the
	 * buffer of a CPU has them: by time and number of the first record. They are few.
	 */
	struct heap runs;
	__u64 seq, bytes;
	struct perf_held *last; /* of the newest run, NULL when that is empty */
	struct perf_held *taken;
	__u64 due, newest, newest_of_round;
	bool has_due, has_newest;
};

/* Hold back a copy of a record; @attr comes back with it. */
void perf_order_add(struct perf_order *o, __u64 time, size_t attr, const struct perf_record *rec);

/* Call at the end of a round, and at the end of the file. */
void perf_order_round(struct perf_order *o);
void perf_order_finish(struct perf_order *o);

/**
 * perf_order_take() - take the oldest record that is due; equal times keep the order of addition
 * @rec: valid until the next call of any function here
 *
 * Above 256 MiB the oldest one goes, due or not.
 *
 * Return: false if none is.
 */
bool perf_order_take(struct perf_order *o, struct perf_record *rec, __u64 *time, size_t *attr);

void perf_order_clear(struct perf_order *o);

#endif
