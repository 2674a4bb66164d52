/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_LINK_EVENT_H
#define IBSCOPE_LINK_EVENT_H

#include <linux/types.h>

/* An event of a link, as bpf/link_events.bpf.c reads it while the event is off the PMU. */
struct ibs_link_event {
	__u32 link; /* its id */
	__u32 unused;
	__u64 counted;
	__u64 period;
	/* when it left the PMU, or later if the kernel has tried to put it back */
	__u64 enabled_ns, running_ns;
};

#endif
