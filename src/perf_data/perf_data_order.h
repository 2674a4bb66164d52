/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records in the order of their time. perf writes the buffers of all CPUs one after the other, then
 * the mark of a finished round: what comes after it is not older than what came before the mark
 * that precedes it. So records are held back for two rounds.
 */
#ifndef IBSCOPE_PERF_DATA_ORDER_H
#define IBSCOPE_PERF_DATA_ORDER_H

#include "perf_data_format.h"

struct perf_order;

struct perf_order *perf_order_new(void); /* NULL: out of memory */

/**
 * perf_order_add() - hold back a copy of a record
 * @attr: comes back with it
 *
 * Return: 0 or -ENOMEM.
 */
int perf_order_add(struct perf_order *o, __u64 time, size_t attr, const struct perf_record *rec);

/* A round ended; or everything did. */
void perf_order_round(struct perf_order *o);
void perf_order_finish(struct perf_order *o);

/* So much is held back (256 MiB) that the oldest record must go, due or not. */
bool perf_order_full(const struct perf_order *o);

/**
 * perf_order_take() - the oldest record that is due, in the order of adding where times are equal
 * @force: due or not
 * @rec:   valid until the next call of any function here
 *
 * Return: false if none is.
 */
bool perf_order_take(struct perf_order *o, bool force, struct perf_record *rec, __u64 *time,
		     size_t *attr);

void perf_order_clear(struct perf_order *o);
void perf_order_free(struct perf_order *o); /* accepts NULL */

#endif
