/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Child processes that run no other program, for work that may take long or hang. */
#ifndef IBSCOPE_CHILD_H
#define IBSCOPE_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/**
 * child_enter() - drop the parent's resources, right after fork()
 * @parent: getpid() of the parent; when it exits, the child is killed
 * @a, @b:  the descriptors above standard error to keep open
 * @bytes:  limit of further allocations, see rlimit_memory()
 *
 * An alarm() kills the child.
 */
void child_enter(pid_t parent, int a, int b, uint64_t bytes);

#endif
