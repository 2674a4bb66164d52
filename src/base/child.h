/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes without a program of their own, for what may take long or never end. */
#ifndef IBSCOPE_CHILD_H
#define IBSCOPE_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/**
 * child_enter() - give up what belongs to the parent, right after fork()
 * @parent: getpid() before; when it ends, so does the child
 * @a, @b:  the descriptors above standard error that stay open
 * @bytes:  that it may allocate, as of rlimit_memory()
 *
 * An alarm() ends the child.
 */
void child_enter(pid_t parent, int a, int b, uint64_t bytes);

#endif
