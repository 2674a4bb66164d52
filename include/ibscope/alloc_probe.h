/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the BPF programs at the USDT probes of allocators send. */
#ifndef IBSCOPE_ALLOC_PROBE_H
#define IBSCOPE_ALLOC_PROBE_H

#include <linux/types.h>

#define IBS_ALLOC_PROBE_STACK 64 /* most addresses of an event */

/* That of a free ends before the stack. */
struct ibs_alloc_probe_event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 addr, size;
	__u64 weight; /* bytes that the allocation represents, as the program says */
	__u32 tgid, tid;
	__u32 frees; /* 1: it ends */
	__u32 n_stack;
	__u64 stack[IBS_ALLOC_PROBE_STACK]; /* behind the probe, then return addresses */
};

#endif
