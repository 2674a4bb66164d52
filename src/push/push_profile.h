/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a recording of the collector's samples to a profile. */
#ifndef IBSCOPE_PUSH_PROFILE_H
#define IBSCOPE_PUSH_PROFILE_H

#include "base/std.h"
#include "base/err.h"

#include <ibscope/op.h>

/* What is known of a profile beside its samples. */
struct push_profile {
	double from_s, until_s; /* since 1970 */
	char host[65];
	bool estimates; /* see struct push_body */
};

/**
 * push_profile() - read a recording and write it for pprof
 * @recording: open file of it
 * @fd: what to write to
 * @from_ns, @until_ns: CLOCK_MONOTONIC, when copies were taken
 * @dropped: copies that are missing
 *
 * Return: 0, or a negative errno with @err.
 */
int push_profile(int recording, int fd, __u64 from_ns, __u64 until_ns, __u64 dropped,
		 enum ibs_metric metric, struct push_profile *out, struct err *err);

#endif
