/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The call chain of a sample as addresses to look up. */
#ifndef IBSCOPE_CHAIN_H
#define IBSCOPE_CHAIN_H

#include "trace/trace.h"

struct chain_frame {
	__u64 addr;
	bool kernel;
};

/**
 * chain_frames() - the chain from the innermost frame on
 * @frames: TRACE_STACK_MAX of them
 *
 * perf's context marks are taken out. Addresses behind the first are return addresses, so one is
 * subtracted: a call may be the last instruction of its function. A sample without a chain has the
 * frame of its own address, if that is known.
 *
 * Return: how many frames.
 */
unsigned int chain_frames(const struct trace_sample *s, struct chain_frame *frames);

#endif
