/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening a perf event on a CPU, and explaining failures. */
#ifndef IBSCOPE_PERF_OPEN_H
#define IBSCOPE_PERF_OPEN_H

#include "base/err.h"

#include <linux/perf_event.h>

/* Open it for all tasks of @cpu. Return: a file, closed on exec, or -1 with errno. */
int perf_open(const struct perf_event_attr *attr, unsigned int cpu);

/**
 * perf_open_explain() - describe a failure and its remedy
 * @error: the errno of perf_open()
 * @event: as the user wrote it
 *
 * Return: -@error, with @err.
 */
int perf_open_explain(struct err *err, int error, unsigned int cpu, const char *event);

#endif
