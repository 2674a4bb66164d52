/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Resource limits of this process. */
#ifndef IBSCOPE_RLIMIT_H
#define IBSCOPE_RLIMIT_H

#include "std.h"

/* Allow @more open files than are open now, as far as the hard limit and privileges go. */
void rlimit_files(size_t more);

/*
 * Let this process allocate @bytes more than it has now; then malloc() fails. Covers libraries, too.
 * Does nothing if a lower limit is in force.
 */
void rlimit_memory(uint64_t bytes);

#endif
