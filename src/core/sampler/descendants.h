/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descendants of processes, from /proc. */
#ifndef IBSCOPE_DESCENDANTS_H
#define IBSCOPE_DESCENDANTS_H

#include "base/std.h"

#include <ibscope/types.h>

/**
 * descendants() - call @found for each descendant of @pids, excluding those
 * @root: prefix of /proc, "" except in tests
 *
 * Processes that start or exit meanwhile may be missing or gone; a process whose parent has died
 * was adopted by another, and is not found.
 *
 * Return: 0, a negative errno with @err, or what @found returned if that was not 0.
 */
int descendants(const char *root, const __u32 *pids, size_t n, int (*found)(void *arg, __u32 pid),
		void *arg, struct err *err);

/**
 * descendant_threads() - the same for threads: call @found for each thread of the descendant
 * processes of the threads @tids
 *
 * /proc does not show which threads of its own process a thread has created; nor, without
 * CONFIG_PROC_CHILDREN, which processes.
 */
int descendant_threads(const char *root, const __u32 *tids, size_t n,
		       int (*found)(void *arg, __u32 tid), void *arg, struct err *err);

#endif
