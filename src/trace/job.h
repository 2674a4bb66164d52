/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Do recordings belong together? What is missing, double or strange is reported as a warning; the
 * rest can be added up.
 */
#ifndef IBSCOPE_JOB_H
#define IBSCOPE_JOB_H

#include "tasks.h"

struct trace_job;

struct trace_job *trace_job_new(void);

/**
 * trace_job_add() - look at one more recording
 * @name:  for messages
 * @tasks: of tasks_read()
 *
 * Return: false if it is to be left out: it is one of those before, or has a rank that one of them has.
 */
bool trace_job_add(struct trace_job *j, const char *name, const struct trace_info *info,
		   const struct tasks *tasks);

/* All were added: report what is missing. Return: whether nothing is, and nothing was left out. */
bool trace_job_complete(const struct trace_job *j);

/* How many ranks there are. */
size_t trace_job_ranks(const struct trace_job *j);

void trace_job_free(struct trace_job *j); /* accepts NULL */

#endif
