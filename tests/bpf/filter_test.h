/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What test_filter.c and its BPF program share in memory. */
#ifndef FILTER_TEST_H
#define FILTER_TEST_H

#include <ibscope/op.h>

#define FILTER_TEST_SAMPLES 128 /* a power of two */

struct filter_test_sample {
	__u64 regs[IBS_OP_REG_FIXED];
	__u64 pid_tgid, uid_gid;
	__u32 cpu, cgroups;
};

struct filter_test_area {
	struct filter_test_sample sample[FILTER_TEST_SAMPLES];
	__u8 outcome[FILTER_TEST_SAMPLES];
};

#endif
