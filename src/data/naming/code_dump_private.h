/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What code_dump*.c share; code_dump.h goes before it. */
#ifndef IBSCOPE_CODE_DUMP_PRIVATE_H
#define IBSCOPE_CODE_DUMP_PRIVATE_H

#include "base/intern.h"

#define NO_CODE INTERN_NONE /* as a name: the code has moved away */

/* From a time on addresses have code. */
struct code_event {
	__u64 time, start, end;
	__u32 name; /* in `names`, or NO_CODE */
	__u32 seq;  /* in the file */
};

/*
 * Addresses are divided where code begins and ends. The parts are the leaves of a tree, and an event is noted at the few
 * nodes that have all its parts below them: what a part had at a time is the latest event at the nodes above it.
 */
struct code_dump {
	struct intern names;
	size_t name_bytes;
	struct code_event *event; /* in the order of time, once all are read */
	size_t n, room;
	__u64 *bound; /* a part begins at each but the last */
	size_t n_bounds;
	__u32 *first; /* of a node, in `piece`; node 1 is the root, those of i are 2i and 2i + 1 */
	__u32 *piece; /* numbers of events */
};

/* Divide what was read. Return: false with @why if that takes too much. */
bool code_dump_divide(struct code_dump *d, char *why, size_t size);

#endif
