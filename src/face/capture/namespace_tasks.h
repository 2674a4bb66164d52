/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tasks that are known by their ids in another PID namespace. */
#ifndef IBSCOPE_NAMESPACE_TASKS_H
#define IBSCOPE_NAMESPACE_TASKS_H

#include "base/std.h"

/* The inode of a process's PID namespace; 0: unknown. @pid: 0 is this process. */
__u64 namespace_of(__u32 pid);

/* The id that we see of process @pid of a namespace; 0: there is none. */
__u32 namespace_process(__u64 ns, __u32 pid);

/* The same of a thread of process @tgid, an id that we see. */
__u32 namespace_thread(__u32 tgid, __u32 tid);

#endif
