/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Resource limits of this process. */
#ifndef IBSCOPE_RLIMIT_H
#define IBSCOPE_RLIMIT_H

#include "err.h"
#include "std.h"

/* Allow @more open files in addition to those open now, within the hard limit and privileges. */
void rlimit_files(size_t more);

/* The same, where work without @more would fail. Return: 0, or -EMFILE with @err. */
int rlimit_need_files(size_t more, struct err *err);

/*
 * Let this process allocate @bytes more than now; beyond that malloc() fails. Includes libraries.
 * Does nothing if a lower limit is in force.
 */
void rlimit_memory(uint64_t bytes);

#endif
