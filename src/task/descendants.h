/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that come from others, by /proc. */
#ifndef IBSCOPE_DESCENDANTS_H
#define IBSCOPE_DESCENDANTS_H

#include "base/std.h"

#include <ibscope/types.h>

/**
 * descendants() - call @found for each process below @pids, those themselves left out
 * @root: prefix of /proc, "" but in tests
 *
 * Processes that come or go meanwhile may be missing or gone; one whose parent has died belongs to
 * whoever took it over, and is not found.
 *
 * Return: 0, a negative errno with @err, or what @found returned if that was not 0.
 */
int descendants(const char *root, const __u32 *pids, size_t n, int (*found)(void *arg, __u32 pid),
		void *arg, struct err *err);

/**
 * descendant_threads() - the same for threads: call @found for each thread of the processes that the
 * threads @tids made, and of those below
 *
 * Which threads of its own process a thread has made is not in /proc; nor, without
 * CONFIG_PROC_CHILDREN, which processes.
 */
int descendant_threads(const char *root, const __u32 *tids, size_t n,
		       int (*found)(void *arg, __u32 tid), void *arg, struct err *err);

#endif
