/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Check whether recordings belong together. Missing, duplicate and inconsistent recordings are reported as
 * warnings; the rest can be added up.
 */
#ifndef IBSCOPE_JOB_H
#define IBSCOPE_JOB_H

#include "trace/tasks.h"

struct trace_job;

struct trace_job *trace_job_new(void);

/**
 * trace_job_add() - check one more recording
 * @name:  for messages
 * @tasks: filled by tasks_read()
 *
 * Return: false if the recording must be left out: it is a duplicate, or has a rank of an earlier one.
 */
bool trace_job_add(struct trace_job *j, const char *name, const struct trace_info *info,
		   const struct tasks *tasks);

/* After the last recording, report missing ranks. Return: true if none is missing or was left out. */
bool trace_job_complete(struct trace_job *j);

/* The number of ranks in all recordings. */
size_t trace_job_ranks(const struct trace_job *j);

void trace_job_free(struct trace_job *j); /* accepts NULL */

#endif
