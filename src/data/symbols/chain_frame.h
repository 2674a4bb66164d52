/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_CHAIN_FRAME_H
#define IBSCOPE_CHAIN_FRAME_H

#include "base/std.h"

/* A function of a call chain, by an address in it. */
struct chain_frame {
	__u64 addr;
	bool kernel;
};

#endif
