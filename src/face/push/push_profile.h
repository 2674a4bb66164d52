/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes a profile from a recording of the collector's samples. */
#ifndef IBSCOPE_PUSH_PROFILE_H
#define IBSCOPE_PUSH_PROFILE_H

#include "base/std.h"
#include "base/err.h"
#include "naming/naming.h"

#include <ibscope/op.h>

/* Facts about a profile. */
struct push_profile {
	double from_s, until_s; /* since 1970 */
	char host[65];
	bool estimates;		    /* see struct push_body */
	unsigned int unnamed_files; /* which were not read for lack of time */
	__u64 unnamed_samples;	    /* in them */
};

/**
 * push_profile() - read a recording and write it for pprof
 * @recording: open file
 * @fd: output
 * @from_ns, @until_ns: CLOCK_MONOTONIC, when copying began and ended
 * @dropped: number of missing copies
 * @given_up: files that are not named, to which others are added, and names that took long to find; or NULL
 *
 * Return: 0, or a negative errno with @err.
 */
int push_profile(int recording, int fd, __u64 from_ns, __u64 until_ns, __u64 dropped,
		 enum ibs_metric metric, struct naming_memory *given_up, struct push_profile *out,
		 struct err *err);

#endif
