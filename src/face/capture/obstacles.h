/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why the allocations of a program of the command cannot be noted. */
#ifndef IBSCOPE_OBSTACLES_H
#define IBSCOPE_OBSTACLES_H

#include "base/std.h"

enum obstacle {
	OBSTACLE_NONE, /* or unknown: it has exited already */
	OBSTACLE_USER, /* it runs as another user, who cannot write to the directory */
	OBSTACLE_LOADER, /* no loader, or one for other programs: it is statically linked, or of 32 bits */
	OBSTACLES,
};

/* Does the kernel pass the program to a loader of 64-bit programs, which can load our library? True if nobody knows. */
bool obstacle_has_loader(int fd);

/* Of a process that runs. */
enum obstacle obstacle_of(__u32 pid);

#endif
